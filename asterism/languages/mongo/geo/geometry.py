"""Geometries of documents and queries: GeoJSON on the sphere, and pairs of coordinates in a plane."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from asterism.languages.mongo.geo.polygons import Polygon, line_distance, line_touches, lines_intersect
from asterism.languages.mongo.geo.vectors import Vector, angle, from_degrees

# The server's sphere: all distances in meters are angles times this radius.
EARTH_RADIUS_METERS: Final = 6_378_100.0

Line = tuple[Vector, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A point with the coordinates as they were written. `is_flat` says that it is a pair of the old form."""

    x: float
    y: float
    is_flat: bool = False

    @property
    def is_on_sphere(self) -> bool:
        return abs(self.x) <= 180 and abs(self.y) <= 90

    @property
    def vector(self) -> Vector:
        return from_degrees(self.x, self.y)

    def flat_distance_to(self, other: Place) -> float:
        return math.hypot(self.x - other.x, self.y - other.y)


@dataclass(frozen=True, slots=True)
class Geometry:
    """The parts of a geometry; a multipart one or a collection has several."""

    points: tuple[Place, ...] = ()
    lines: tuple[Line, ...] = ()
    polygons: tuple[Polygon, ...] = ()
    # The type of GeoJSON; "" for a pair of coordinates.
    kind: str = ""

    @property
    def point(self) -> Place | None:
        """The point of a geometry that is nothing else."""
        return self.points[0] if self.kind in ("", "Point") else None

    @property
    def is_on_sphere(self) -> bool:
        return all(point.is_on_sphere for point in self.points)

    @property
    def is_big(self) -> bool:
        """True if a polygon of it may be larger than half the sphere: no stored geometry may be so."""
        return any(polygon.is_big for polygon in self.polygons)

    def vectors(self) -> Iterator[Vector]:
        for point in self.points:
            yield point.vector
        for line in self.lines:
            yield from line
        for polygon in self.polygons:
            yield from polygon.outer.corners

    def radians_to(self, place: Vector) -> float:
        """Return the angle between a place and the nearest one of the geometry."""
        distances = [angle(point.vector, place) for point in self.points]
        distances += [line_distance(line, place) for line in self.lines]
        distances += [polygon.distance_to(place) for polygon in self.polygons]
        return min(distances)


def intersect(left: Geometry, right: Geometry) -> bool:
    """Return whether two geometries have a place in common."""
    return (
        any(_meets_point(right, point.vector) for point in left.points)
        or any(_meets_line(right, line) for line in left.lines)
        or any(_meets_polygon(right, polygon) for polygon in left.polygons)
    )


def _meets_point(geometry: Geometry, place: Vector) -> bool:
    return (
        any(line_touches((point.vector, point.vector), place) for point in geometry.points)
        or any(line_touches(line, place) for line in geometry.lines)
        or any(polygon.covers(place) for polygon in geometry.polygons)
    )


def _meets_line(geometry: Geometry, line: Line) -> bool:
    return (
        any(line_touches(line, point.vector) for point in geometry.points)
        or any(lines_intersect(line, other) for other in geometry.lines)
        or any(polygon.intersects_line(line) for polygon in geometry.polygons)
    )


def _meets_polygon(geometry: Geometry, polygon: Polygon) -> bool:
    return (
        any(polygon.covers(point.vector) for point in geometry.points)
        or any(polygon.intersects_line(line) for line in geometry.lines)
        or any(polygon.intersects_polygon(other) for other in geometry.polygons)
    )


def polygons_contain(polygons: tuple[Polygon, ...], geometry: Geometry) -> bool:
    """Return whether every part of a geometry lies in one of the polygons."""
    return (
        all(any(polygon.holds(point.vector) for polygon in polygons) for point in geometry.points)
        and all(any(polygon.contains_line(line) for polygon in polygons) for line in geometry.lines)
        and all(any(polygon.contains_polygon(other) for polygon in polygons) for other in geometry.polygons)
    )
