"""Places on the Earth as cells of a grid, for spatial indexes.

A cell is a square of longitudes and latitudes: of level 0 it is everything, and each level halves both sides. Its code
interleaves the bits of both, so that all cells within a cell follow one another. A point is indexed by its finest cell;
a line or a polygon by a few cells that cover it, of a level where few are enough.

A shape is covered by a small cap around its corners (a place and an angle), converted to boxes. The edges of a shape
are arcs of great circles, and those between places of a cap narrower than half the sphere stay in the cap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

Vector = tuple[float, float, float]

LEVEL_MAX: Final = 32
# Regions have cells of every second level down to about the size of a house, so that few levels need a lookup.
REGION_LEVELS: Final = range(0, 25, 2)
REGION_CELLS_MAX: Final = 16
QUERY_CELLS_MAX: Final = 16
_SIDE: Final = 1 << LEVEL_MAX
_CODE_BYTES: Final = 8
# Some meters: more than all rounding errors, and than the distance at which two places count as the same.
_ROOM_RADIANS: Final = 1e-6
# Wider than this, a cap might not hold the arcs between its places any more.
_CAP_RADIANS_MAX: Final = math.radians(85.0)
# The smallest radius of curvature of the ellipsoid, at the equator along a meridian: nowhere is a meter a larger angle.
_METERS_PER_RADIAN_MIN: Final = 6_335_439.0


@dataclass(frozen=True, slots=True)
class Box:
    """A range of longitudes and latitudes in degrees; the bounds belong to it."""

    west: float
    south: float
    east: float
    north: float


@dataclass(frozen=True, slots=True)
class Cap:
    center: Vector
    radians: float

    def widened(self, meters: float) -> Cap:
        return Cap(self.center, self.radians + meters / _METERS_PER_RADIAN_MIN)


@dataclass(frozen=True, slots=True)
class Everywhere:
    """A shape of which no small cap is known: more than half the Earth, or spread over it."""


def region_of(geometry: Any) -> Cap | Everywhere | None:
    """Return a region that holds a GeoJSON geometry; None for a value that is not a geometry. Every value that the
    query language takes for a geometry is one here, and some others are too."""
    coordinates = geometry.get("coordinates") if isinstance(geometry, dict) else None
    if not isinstance(coordinates, list):
        return None
    match geometry.get("type"):
        case "Point":
            return _region([coordinates], polygons=[])
        case "LineString":
            return _region(coordinates, polygons=[])
        case "Polygon":
            return _region([], polygons=[coordinates])
        case "MultiPolygon":
            return _region([], polygons=coordinates)
        case _:
            return None


def _region(positions: list[Any], *, polygons: list[Any]) -> Cap | Everywhere | None:
    if not all(isinstance(polygon, list) for polygon in polygons):
        return None
    rings = [_places(ring) for polygon in polygons for ring in polygon]
    parts = [_places(positions), *rings]
    places = [place for part in parts if part is not None for place in part]
    if not places or None in parts:
        return None
    cap = _cap_around(places)
    outer = [_places(polygon[0]) or [] for polygon in polygons if polygon]
    is_small = cap is not None and all(_is_counterclockwise(ring, cap.center) for ring in outer)
    return cap if is_small else Everywhere()


def _places(positions: Any) -> list[Vector] | None:
    if not isinstance(positions, list):
        return None
    found = []
    for position in positions:
        degrees = _degrees(position)
        if degrees is None:
            return None
        found.append(_vector(*degrees))
    return found


def _degrees(position: Any) -> tuple[float, float] | None:
    if not isinstance(position, list) or len(position) < 2:
        return None
    if not all(isinstance(number, int | float) for number in position[:2]):
        return None
    longitude, latitude = position[:2]
    return (longitude, latitude) if -180 <= longitude <= 180 and -90 <= latitude <= 90 else None


def _vector(longitude: float, latitude: float) -> Vector:
    east, north = math.radians(longitude), math.radians(latitude)
    shadow = math.cos(north)
    return shadow * math.cos(east), shadow * math.sin(east), math.sin(north)


def _cap_around(places: Sequence[Vector]) -> Cap | None:
    x, y, z = (sum(place[axis] for place in places) for axis in range(3))
    length = math.hypot(x, y, z)
    if length < 1e-9:
        return None
    center = (x / length, y / length, z / length)
    radians = max(_angle(center, place) for place in places) + _ROOM_RADIANS
    return Cap(center, radians) if radians <= _CAP_RADIANS_MAX else None


def _angle(left: Vector, right: Vector) -> float:
    # By the chord: the arc cosine loses small angles.
    return 2 * math.asin(min(1.0, math.dist(left, right) / 2))


def _is_counterclockwise(ring: Sequence[Vector], center: Vector) -> bool:
    """Return True if a ring is counterclockwise, seen from above the center, which has the whole ring on its side of
    the Earth. A polygon lies to the left of its ring, so that a clockwise one is the rest of the Earth."""
    # Projected from the middle of the Earth, great circles are straight lines, and a ring is a polygon of the plane.
    east = (-center[1], center[0], 0.0) if abs(center[2]) < 0.9 else (0.0, -center[2], center[1])
    north = (
        center[1] * east[2] - center[2] * east[1],
        center[2] * east[0] - center[0] * east[2],
        center[0] * east[1] - center[1] * east[0],
    )
    flat = [(_dot(place, east) / (d := _dot(place, center)), _dot(place, north) / d) for place in ring]
    return sum(x * next_y - next_x * y for (x, y), (next_x, next_y) in pairwise(flat)) > 0.0


def _dot(left: Vector, right: Vector) -> float:
    return left[0] * right[0] + left[1] * right[1] + left[2] * right[2]


# --- boxes ----------------------------------------------------------------------------------------------------------


def boxes_of(cap: Cap) -> tuple[Box, ...]:
    """Return the cap in degrees: one box, or two if it lies across the date line."""
    x, y, z = cap.center
    latitude = math.degrees(math.atan2(z, math.hypot(x, y)))
    half_height = math.degrees(cap.radians + _ROOM_RADIANS)
    south, north = max(latitude - half_height, -90.0), min(latitude + half_height, 90.0)
    if south <= -90.0 or north >= 90.0 or cap.radians >= math.pi / 2:
        # Around a pole lie all longitudes.
        return (Box(-180.0, south, 180.0, north),)
    longitude = math.degrees(math.atan2(y, x))
    sine = math.sin(cap.radians + _ROOM_RADIANS) / math.cos(math.radians(latitude))
    if sine >= 1.0:
        return (Box(-180.0, south, 180.0, north),)
    half_width = math.degrees(math.asin(sine) + _ROOM_RADIANS)
    west, east = longitude - half_width, longitude + half_width
    if west < -180.0:
        return Box(west + 360.0, south, 180.0, north), Box(-180.0, south, east, north)
    if east > 180.0:
        return Box(west, south, 180.0, north), Box(-180.0, south, east - 360.0, north)
    return (Box(west, south, east, north),)


# --- cells ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the grid, by its column and row among the cells of its level."""

    level: int
    column: int
    row: int

    def code(self) -> int:
        shift = LEVEL_MAX - self.level
        return _spread(self.column << shift) << 1 | _spread(self.row << shift)

    def value(self) -> bytes:
        """Return the cell as the value of an index entry."""
        return self.code().to_bytes(_CODE_BYTES, "big") + bytes([self.level])

    def span(self) -> tuple[bytes, bytes]:
        """Return the range of the values of all cells within this one: the first of them, and the first behind them."""
        first = self.code()
        behind = first + (1 << 2 * (LEVEL_MAX - self.level))
        is_last = behind >> 2 * LEVEL_MAX
        return (
            first.to_bytes(_CODE_BYTES, "big"),
            b"\xff" * (_CODE_BYTES + 1) if is_last else behind.to_bytes(_CODE_BYTES, "big"),
        )

    def at_level(self, level: int) -> Cell:
        shift = self.level - level
        return Cell(level, self.column >> shift, self.row >> shift)


_EVERYTHING: Final = Cell(0, 0, 0)


def _spread(number: int) -> int:
    """Return the bits of a 32-bit number with a zero before each."""
    for shift, mask in (
        (16, 0x0000FFFF0000FFFF),
        (8, 0x00FF00FF00FF00FF),
        (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333),
        (1, 0x5555555555555555),
    ):
        number = (number | number << shift) & mask
    return number


def _column(longitude: float) -> int:
    return min(int((longitude + 180.0) / 360.0 * _SIDE), _SIDE - 1)


def _row(latitude: float) -> int:
    return min(int((latitude + 90.0) / 180.0 * _SIDE), _SIDE - 1)


def index_values(geometry: Any) -> list[bytes]:
    """Return the values by which an index finds a geometry; none for a value that is not a geometry."""
    if isinstance(geometry, dict) and geometry.get("type") == "Point":
        degrees = _degrees(geometry.get("coordinates"))
        return [] if degrees is None else [Cell(LEVEL_MAX, _column(degrees[0]), _row(degrees[1])).value()]
    region = region_of(geometry)
    if region is None:
        return []
    if isinstance(region, Everywhere):
        return [_EVERYTHING.value()]
    return [cell.value() for cell in _cover(boxes_of(region), REGION_LEVELS, REGION_CELLS_MAX)]


def spans_touching(boxes: Sequence[Box]) -> list[tuple[bytes, bytes]]:
    """Return ranges of index values that hold those of every geometry that touches one of the boxes."""
    cells = _cover(boxes, range(LEVEL_MAX + 1), QUERY_CELLS_MAX)
    around = {cell.at_level(level): None for cell in cells for level in REGION_LEVELS if level < cell.level}
    # Up to the next level: an item's number follows the value.
    exact = [(value, value[:-1] + bytes([value[-1] + 1])) for value in sorted(cell.value() for cell in around)]
    return [*_joined(sorted(cell.span() for cell in cells)), *exact]


def _joined(spans: list[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    low, high = spans[0]
    for next_low, next_high in spans[1:]:
        if next_low > high:
            yield low, high
            low = next_low
        high = next_high
    yield low, high


def _cover(boxes: Sequence[Box], levels: range, cells_max: int) -> list[Cell]:
    """Return the cells that touch a box, of the finest of the levels on which they are not too many."""
    corners = [(_column(box.west), _row(box.south), _column(box.east), _row(box.north)) for box in boxes]
    chosen = LEVEL_MAX
    for level in levels:
        shift = LEVEL_MAX - level
        count = sum(
            ((east >> shift) - (west >> shift) + 1) * ((north >> shift) - (south >> shift) + 1)
            for west, south, east, north in corners
        )
        if count > cells_max and level:
            break
        chosen = level
    shift = LEVEL_MAX - chosen
    return list(
        {
            Cell(chosen, column, row): None
            for west, south, east, north in corners
            for column in range(west >> shift, (east >> shift) + 1)
            for row in range(south >> shift, (north >> shift) + 1)
        }
    )
