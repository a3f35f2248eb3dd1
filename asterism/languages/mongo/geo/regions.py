"""Regions that a query asks for: `$geometry`, `$box`, `$polygon`, `$center`, `$centerSphere`.

A region decides about a geometry, and names boxes of longitudes and latitudes that hold everything in it, for indexes.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from asterism.languages.mongo.geo.boxes import Box, boxes_of_cap, boxes_of_geometry
from asterism.languages.mongo.geo.geometry import Geometry, Place, intersect, polygons_contain
from asterism.languages.mongo.geo.parse import bad_geometry, is_pair, parse_geo_json, parse_pair, to_double
from asterism.languages.mongo.geo.polygons import TOUCH_RADIANS
from asterism.languages.mongo.geo.vectors import Vector, angle, distance_to_edge, negative
from asterism.values.bson.kinds import is_number


class Region(Protocol):
    """A part of the sphere or of the plane."""

    @property
    def is_flat(self) -> bool: ...

    @property
    def is_area(self) -> bool:
        """True if something can be within it."""
        ...

    def contains(self, geometry: Geometry) -> bool: ...

    def intersects(self, geometry: Geometry) -> bool: ...

    def boxes(self) -> list[Box] | None:
        """Return boxes that hold all of it; None for everywhere."""
        ...


@dataclass(frozen=True, slots=True)
class ShapeRegion:
    """A geometry of GeoJSON."""

    geometry: Geometry

    is_flat = False

    @property
    def is_area(self) -> bool:
        return bool(self.geometry.polygons)

    def contains(self, geometry: Geometry) -> bool:
        return geometry.is_on_sphere and polygons_contain(self.geometry.polygons, geometry)

    def intersects(self, geometry: Geometry) -> bool:
        return geometry.is_on_sphere and intersect(self.geometry, geometry)

    def boxes(self) -> list[Box] | None:
        return boxes_of_geometry(self.geometry)


@dataclass(frozen=True, slots=True)
class CapRegion:
    """A circle on the sphere."""

    center: Vector
    radians: float

    is_flat = False
    is_area = True

    def contains(self, geometry: Geometry) -> bool:
        if not geometry.is_on_sphere:
            return False
        if self.radians >= math.pi:
            return True
        reach = self.radians + TOUCH_RADIANS
        if any(angle(self.center, vector) > reach for vector in geometry.vectors()):
            return False
        if self.radians <= math.pi / 2:
            return True
        # Beyond half the sphere, edges and insides may leave the circle though all corners are in it.
        return not self._misses(geometry)

    def _misses(self, geometry: Geometry) -> bool:
        opposite, rest = negative(self.center), math.pi - self.radians - TOUCH_RADIANS
        edges = [edge for line in geometry.lines for edge in itertools.pairwise(line)]
        edges += [edge for polygon in geometry.polygons for edge in polygon.edges()]
        if any(distance_to_edge(opposite, a, b) < rest for a, b in edges):
            return True
        return any(polygon.contains(opposite) for polygon in geometry.polygons)

    def intersects(self, geometry: Geometry) -> bool:
        return geometry.is_on_sphere and geometry.radians_to(self.center) <= self.radians + TOUCH_RADIANS

    def boxes(self) -> list[Box] | None:
        return boxes_of_cap(self.center, self.radians)


class _FlatRegion(ABC):
    is_flat = True
    is_area = True

    @abstractmethod
    def holds(self, x: float, y: float) -> bool: ...

    def contains(self, geometry: Geometry) -> bool:
        point = geometry.point
        return point is not None and self.holds(point.x, point.y)

    def intersects(self, geometry: Geometry) -> bool:
        return self.contains(geometry)


@dataclass(frozen=True, slots=True)
class BoxRegion(_FlatRegion):
    box: Box

    def holds(self, x: float, y: float) -> bool:
        box = self.box
        return box.west <= x <= box.east and box.south <= y <= box.north

    def boxes(self) -> list[Box] | None:
        return [self.box]


@dataclass(frozen=True, slots=True)
class CircleRegion(_FlatRegion):
    center: Place
    radius: float

    def holds(self, x: float, y: float) -> bool:
        return self.center.flat_distance_to(Place(x, y)) <= self.radius

    def boxes(self) -> list[Box] | None:
        x, y, radius = self.center.x, self.center.y, self.radius
        return [Box(x - radius, y - radius, x + radius, y + radius)]


@dataclass(frozen=True, slots=True)
class FlatPolygonRegion(_FlatRegion):
    corners: tuple[Place, ...]

    def holds(self, x: float, y: float) -> bool:
        """Count the edges to the right of a point; one that lies on a corner or on a level or upright edge is in."""
        inside = False
        for position, second in enumerate(self.corners):
            first = self.corners[position - 1]
            if (x, y) == (first.x, first.y):
                return True
            low, high = min(first.x, second.x), max(first.x, second.x)
            if first.y == second.y:
                if y == first.y and low <= x <= high:
                    return True
                continue
            if not min(first.y, second.y) < y <= max(first.y, second.y) or x > high:
                continue
            if first.x == second.x:
                if x == first.x:
                    return True
                inside = not inside
            elif x <= (y - first.y) * (second.x - first.x) / (second.y - first.y) + first.x:
                inside = not inside
        return inside

    def boxes(self) -> list[Box] | None:
        xs, ys = [corner.x for corner in self.corners], [corner.y for corner in self.corners]
        return [Box(min(xs), min(ys), max(xs), max(ys))]


def _parts(value: Any, what: str) -> list[Any]:
    if type(value) is list:
        return value
    if type(value) is dict:
        return list(value.values())
    raise bad_geometry(f"unknown geo specifier: {what} must be an array")


def _parse_box(value: Any) -> Region:
    # The server passes over whatever stands behind the second corner.
    corners = [parse_pair(corner) for corner in _parts(value, "$box")[:2]]
    if len(corners) != 2:
        raise bad_geometry("Box must be an array of two points")
    first, second = corners
    return BoxRegion(
        Box(min(first.x, second.x), min(first.y, second.y), max(first.x, second.x), max(first.y, second.y))
    )


def _parse_polygon(value: Any) -> Region:
    corners = tuple(parse_pair(corner) for corner in _parts(value, "$polygon"))
    if len(corners) < 3:
        raise bad_geometry("Polygon must have at least 3 points")
    return FlatPolygonRegion(corners)


def _center_and_radius(value: Any, what: str) -> tuple[Place, float]:
    parts = _parts(value, what)
    if not parts:
        raise bad_geometry("Point must be an array or object")
    center = parse_pair(parts[0])
    if len(parts) < 2 or not is_number(parts[1]):
        raise bad_geometry("radius must be a non-negative number")
    if len(parts) > 2:
        raise bad_geometry("Only 2 fields allowed for circular region")
    radius = to_double(parts[1])
    if not radius >= 0:
        raise bad_geometry("radius must be a non-negative number")
    return center, radius


def _parse_center(value: Any) -> Region:
    return CircleRegion(*_center_and_radius(value, "$center"))


def _parse_center_sphere(value: Any) -> Region:
    center, radians = _center_and_radius(value, "$centerSphere")
    if not center.is_on_sphere:
        raise bad_geometry("Spherical circles must have a center within the bounds of longitude and latitude")
    return CapRegion(center.vector, radians)


def _parse_geometry(value: Any) -> Region:
    if type(value) is not dict and type(value) is not list:
        raise bad_geometry("geometry must be an object")
    if is_pair(value):
        return ShapeRegion(Geometry((parse_pair(value),)))
    return ShapeRegion(parse_geo_json(value))


_SPECIFIERS: Final[dict[str, Callable[[Any], Region]]] = {
    "$box": _parse_box,
    "$polygon": _parse_polygon,
    "$center": _parse_center,
    "$centerSphere": _parse_center_sphere,
    "$geometry": _parse_geometry,
}


def parse_region(operand: Any) -> Region:
    """Return the region behind `$geoWithin` or `$geoIntersects`."""
    if type(operand) is not dict:
        raise bad_geometry("geometry must be an object")
    found: Sequence[tuple[str, Any]] = [entry for entry in operand.items() if entry[0] != "$uniqueDocs"]
    if not found:
        raise bad_geometry("geometry is required")
    if len(found) > 1:
        raise bad_geometry(f"can't parse extra geometry: {found[1][0]}")
    ((name, value),) = found
    parse = _SPECIFIERS.get(name)
    if parse is None:
        raise bad_geometry(f"unknown geo specifier: {name}")
    return parse(value)
