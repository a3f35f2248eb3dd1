"""Searches for what is near a point: `$near`, `$nearSphere` and `$geoNear` in filters, and the stage `$geoNear`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.paths import values_on_path
from asterism.languages.mongo.geo.geometry import EARTH_RADIUS_METERS, Geometry, Place
from asterism.languages.mongo.geo.parse import bad_geometry, parse_pair, parse_query_point, parse_stored, to_double
from asterism.languages.mongo.geo.regions import CapRegion, CircleRegion, Region
from asterism.values.bson.kinds import is_number
from asterism.values.bson.types import Document

NEAR_OPERATORS: Final = ("$near", "$nearSphere", "$geoNear")
_FAR: Final = math.inf


class Found(NamedTuple):
    """The nearest geometry of a document: its distance in the units of the search, and the value itself."""

    distance: float
    location: Any


@dataclass(frozen=True, slots=True)
class NearSearch:
    """A point to begin at. Distances are meters on the sphere, units of the coordinates in a plane."""

    path: str
    point: Place
    is_sphere: bool
    # The point is a pair of coordinates and distances are given and shown in radians.
    in_radians: bool = False
    least: float = 0.0
    most: float = _FAR

    @property
    def index_kinds(self) -> tuple[str, ...]:
        """The kinds of indexes that can answer the search."""
        if not self.is_sphere:
            return ("2d",)
        return ("2dsphere", "2d") if self.in_radians else ("2dsphere",)

    @property
    def _unit(self) -> float:
        return EARTH_RADIUS_METERS if self.in_radians else 1.0

    def find(self, document: Document) -> Found | None:
        """Return the nearest geometry of a document; None if none is within the distances."""
        nearest: Found | None = None
        for value, _ in values_on_path(document, tuple(self.path.split(".")), enter_last_array=False):
            for location, geometry in _geometries(value):
                distance = self._distance(geometry)
                if distance is not None and (nearest is None or distance < nearest.distance):
                    nearest = Found(distance, location)
        if nearest is None or not self.least * self._unit <= nearest.distance <= self.most * self._unit:
            return None
        return Found(nearest.distance / self._unit, nearest.location)

    def _distance(self, geometry: Geometry) -> float | None:
        if self.is_sphere:
            if not geometry.is_on_sphere or geometry.is_big:
                return None
            return geometry.radians_to(self.point.vector) * EARTH_RADIUS_METERS
        point = geometry.point
        return None if point is None else self.point.flat_distance_to(point)

    def within(self, distance: float) -> Region:
        """Return the region of everything up to a distance, in the units of `find`."""
        if not self.is_sphere:
            return CircleRegion(self.point, distance)
        return CapRegion(
            self.point.vector, min(math.pi, distance if self.in_radians else distance / EARTH_RADIUS_METERS)
        )

    def rings(self) -> list[float]:
        """Return growing distances to search up to, the last of them infinite or the greatest allowed: most searches
        want the few nearest, and only the next ring if those are not enough."""
        reach = 1e-5 if self.in_radians else 100.0 if self.is_sphere else 0.001
        end = math.pi if self.in_radians else math.pi * EARTH_RADIUS_METERS if self.is_sphere else 1000.0
        rings: list[float] = []
        while reach < min(self.most, end / 2):
            if reach > self.least:
                rings.append(reach)
            reach *= 4
        rings.append(self.most)
        return rings


def _geometries(value: Any) -> list[tuple[Any, Geometry]]:
    geometry = _stored(value)
    if geometry is not None:
        return [(value, geometry)]
    if type(value) is not list:
        return []
    parsed = [(element, _stored(element)) for element in value]
    return [(element, geometry) for element, geometry in parsed if geometry is not None]


def _stored(value: Any) -> Geometry | None:
    if type(value) is not dict and type(value) is not list:
        return None
    try:
        return parse_stored(value)
    except MongoFailure:
        return None


def parse_near(path: str, operand: Document) -> NearSearch:
    """Return the search behind a field whose first operator is one of `NEAR_OPERATORS`."""
    search = _parse_legacy(path, operand) or _parse_nested(path, operand)
    if search.is_sphere and not search.point.is_on_sphere:
        raise bad_geometry("Legacy point is out of bounds for spherical query")
    return search


def _parse_legacy(path: str, operand: Document) -> NearSearch | None:
    """Return a search whose distances stand beside the point, or None if the point is not given so."""
    point: Place | None = None
    is_near_sphere = False
    least, most = 0.0, _FAR
    for name, value in operand.items():
        if name in NEAR_OPERATORS:
            found = _point_and_distance(value)
            if found is not None:
                point, distance = found
                most = most if distance is None else distance
                is_near_sphere = name == "$nearSphere"
        elif name == "$minDistance":
            least = _read_distance(name, value, wrong_type=16893, negative=16894)
        elif name == "$maxDistance":
            most = _read_distance(name, value, wrong_type=16895, negative=16896)
        elif name != "$uniqueDocs":
            raise MongoFailure(34413, f"invalid argument in geo near query: {name}")
    if point is None:
        return None
    is_sphere = is_near_sphere or not point.is_flat
    return NearSearch(path, point, is_sphere, is_near_sphere and point.is_flat, least, most)


def _point_and_distance(value: Any) -> tuple[Place, float | None] | None:
    """Return the point, and the greatest distance if it stands behind the coordinates."""
    if type(value) is not dict and type(value) is not list:
        return None
    try:
        return parse_query_point(value), None
    except MongoFailure:
        pass
    elements = list(value.values()) if isinstance(value, dict) else value
    if len(elements) != 3 or not all(is_number(element) for element in elements):
        return None
    try:
        point = parse_pair(elements[:2])
    except MongoFailure:
        return None
    most = to_double(elements[2])
    if not most >= 0:
        raise MongoFailure(18522, "max distance must be non-negative")
    return point, most


def _parse_nested(path: str, operand: Document) -> NearSearch:
    """Return a search whose point and distances are in the operand: `{$near: {$geometry: ..., $maxDistance: ...}}`."""
    name, argument = next(iter(operand.items()))
    if len(operand) > 1:
        raise bad_geometry("geo near accepts just one argument when querying for a GeoJSON point")
    if type(argument) is not dict and type(argument) is not list:
        raise bad_geometry("geo near query argument is not an object")
    point: Place | None = None
    least, most = 0.0, _FAR
    fields = argument if type(argument) is dict else {str(place): value for place, value in enumerate(argument)}
    for field, value in fields.items():
        if field == "$geometry":
            if type(value) is dict or type(value) is list:
                try:
                    point = parse_query_point(value)
                except MongoFailure as failure:
                    raise bad_geometry(f"invalid point in geo near query $geometry argument: {failure}") from failure
                if point.is_flat:
                    raise MongoFailure(16681, "$near requires geojson point")
        elif field == "$minDistance":
            least = _read_finite_distance(field, value)
        elif field == "$maxDistance":
            most = _read_finite_distance(field, value)
        else:
            raise bad_geometry(f"invalid argument in geo near query: {field}")
    if point is None:
        raise bad_geometry(f"$geometry is required for geo near query {name}")
    return NearSearch(path, point, True, False, least, most)


def _read_finite_distance(name: str, value: Any) -> float:
    distance = _read_distance(name, value, wrong_type=2, negative=2)
    if math.isinf(distance):
        raise bad_geometry(f"{name} must be finite")
    return distance


def _read_distance(name: str, value: Any, *, wrong_type: int, negative: int) -> float:
    if not is_number(value):
        raise MongoFailure(wrong_type, f"{name} must be a number")
    distance = to_double(value)
    if not distance >= 0:
        raise MongoFailure(negative, f"{name} must be non-negative")
    return distance
