"""GeoJSON to shapes: Point, LineString, Polygon and MultiPolygon, in degrees of longitude and latitude."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from asterism.languages.cosmos_sql.compiling.semantics import is_number
from asterism.languages.cosmos_sql.functions.geometry import Ring, Shape, arcs_of, area_to_the_left
from asterism.languages.cosmos_sql.functions.vectors import Vector, vector_of
from asterism.values.json.order import as_double

# The service's limit for indexed geometries; it bounds the cost of a geometry.
_POSITIONS_MAX = 4096
_POLYGON_POSITIONS_MIN = 4


class InvalidGeometry(Exception):
    """The value is not a geometry; the message is the reason that the service would give."""


def read_shape(value: object) -> Shape:
    """Return the shape of a GeoJSON value. Raises InvalidGeometry."""
    kind = value.get("type") if isinstance(value, dict) else None
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None or not isinstance(value, dict):
        raise InvalidGeometry("The input is not a Point, LineString, Polygon or MultiPolygon in the form of GeoJSON.")
    return read(_elements(value.get("coordinates"), f"The coordinates of a {kind} must be an array."))


def _elements(value: object, reason: str) -> list[object]:
    if not isinstance(value, list):
        raise InvalidGeometry(reason)
    return value


def _place(value: object) -> Vector:
    position = _elements(value, "A position must be an array of numbers.")
    numbers = [as_double(number) for number in position if isinstance(number, int | float) and is_number(number)]
    if len(numbers) != len(position) or not 2 <= len(numbers) <= 3 or not all(map(math.isfinite, numbers)):
        raise InvalidGeometry("A position must be an array of two or three numbers.")
    longitude, latitude = numbers[:2]
    if not -90.0 <= latitude <= 90.0:
        raise InvalidGeometry("Latitude values must be between -90 and 90 degrees.")
    if not -180.0 <= longitude <= 180.0:
        raise InvalidGeometry("Longitude values must be between -180 and 180 degrees.")
    return vector_of(longitude, latitude)


def _places(value: object, *, count_min: int, reason: str) -> list[Vector]:
    positions = _elements(value, reason)
    if len(positions) < count_min:
        raise InvalidGeometry(reason)
    if len(positions) > _POSITIONS_MAX:
        raise InvalidGeometry(f"A geometry has at most {_POSITIONS_MAX} positions.")
    return [_place(position) for position in positions]


def _point(coordinates: list[object]) -> Shape:
    return Shape(places=[_place(coordinates)])


def _line(coordinates: list[object]) -> Shape:
    places = _places(coordinates, count_min=2, reason="A LineString must have at least two positions.")
    lines = arcs_of(places)
    # A line between equal positions is a point.
    return Shape(lines=lines) if lines else Shape(places=places[:1])


def _polygon(coordinates: list[object]) -> Shape:
    return Shape(polygons=[_rings(coordinates)])


def _multi_polygon(coordinates: list[object]) -> Shape:
    if not coordinates:
        raise InvalidGeometry("A MultiPolygon must have at least one polygon.")
    polygons = [_rings(_elements(rings, "A polygon must be an array of rings.")) for rings in coordinates]
    if sum(len(ring) for rings in polygons for ring in rings) > _POSITIONS_MAX:
        raise InvalidGeometry(f"A geometry has at most {_POSITIONS_MAX} positions.")
    return Shape(polygons=polygons)


def _rings(value: list[object]) -> list[Ring]:
    if not value:
        raise InvalidGeometry("A polygon must have at least one ring.")
    outer, *holes = (_ring(positions, number) for number, positions in enumerate(value, start=1))
    # A hole is the enclosed area, whichever direction it is drawn in.
    return [outer, *(hole[::-1] if area_to_the_left(hole) < 2 * math.pi else hole for hole in holes)]


def _ring(value: object, number: int) -> Ring:
    reason = f"The ring number {number} of the polygon must have at least {_POLYGON_POSITIONS_MIN} positions."
    places = _places(value, count_min=_POLYGON_POSITIONS_MIN, reason=reason)
    if places[0] != places[-1]:
        raise InvalidGeometry(
            f"The Polygon input is not valid because the start and end points of the ring number {number} are not the "
            "same. Each ring of a polygon must have the same start and end points."
        )
    if len(set(places)) < _POLYGON_POSITIONS_MIN - 1:
        raise InvalidGeometry(f"The ring number {number} of the polygon must have three different positions.")
    return places


_READERS: Final[dict[str, Callable[[list[object]], Shape]]] = {
    "Point": _point,
    "LineString": _line,
    "Polygon": _polygon,
    "MultiPolygon": _multi_polygon,
}
