"""Geometries read from documents and queries, with the server's checks: GeoJSON, and pairs of coordinates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.geo.geometry import Geometry, Line, Place
from asterism.languages.mongo.geo.polygons import Loop, Polygon
from asterism.languages.mongo.geo.vectors import Vector, crossing, from_degrees
from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.types import Decimal128

_SPHERE_NAMES: Final = frozenset(("urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326"))
_STRICT_NAME: Final = "urn:x-mongodb:crs:strictwinding:EPSG:4326"


def bad_geometry(message: str) -> MongoFailure:
    return MongoFailure(2, message)


def to_double(value: Any) -> float:
    return float(value.to_decimal()) if type(value) is Decimal128 else float(value)


def _elements(value: Any) -> list[Any]:
    """Return the elements of an array or the values of an object: the server takes both for coordinates."""
    if type(value) is list:
        return value
    if type(value) is dict:
        return list(value.values())
    raise bad_geometry(f"Point must be an array or object, instead got type {type_name(value)}")


def parse_pair(value: Any, *, more_allowed: bool = False) -> Place:
    """Return the point of a pair of coordinates, an array or an object of two numbers."""
    elements = _elements(value)
    if len(elements) < 2 or not all(is_number(element) for element in elements[:2]):
        raise bad_geometry("Point must only contain numeric elements")
    if len(elements) > 2 and not more_allowed:
        raise bad_geometry("Point must only contain two numeric elements")
    x, y = to_double(elements[0]), to_double(elements[1])
    if not math.isfinite(x) or not math.isfinite(y):
        raise bad_geometry("Point coordinates must be finite numbers")
    return Place(x, y, is_flat=True)


def is_pair(value: Any) -> bool:
    """Return whether a value is written as a pair of coordinates rather than as GeoJSON."""
    return type(value) is list or (type(value) is dict and is_number(next(iter(value.values()), None)))


def parse_stored(value: Any) -> Geometry:
    """Return the geometry of a value of a document."""
    if is_pair(value):
        return Geometry((parse_pair(value, more_allowed=True),))
    return parse_geo_json(value)


def parse_query_point(value: Any) -> Place:
    """Return the point that a search begins at."""
    if is_pair(value):
        return parse_pair(value)
    # The server takes an object without a type for a point.
    geometry = parse_geo_json({"type": "Point", **value} if type(value) is dict else value)
    if geometry.kind != "Point":
        raise bad_geometry("GeoJSON query point must be of type Point")
    return geometry.points[0]


def parse_geo_json(value: Any) -> Geometry:
    """Return a geometry of GeoJSON."""
    if type(value) is not dict:
        raise bad_geometry("geometry must be an object")
    kind = value.get("type")
    kind = kind if type(kind) is str else ""
    parse = _PARSERS.get(kind)
    if parse is None:
        raise bad_geometry(f"unknown GeoJSON type: {kind!r}")
    is_strict = _reads_strict(value)
    if is_strict and kind != "Polygon":
        raise bad_geometry("Strict winding order is only supported by polygon")
    if kind == "GeometryCollection":
        return _parse_collection(value)
    # Of a point alone they may be an object of two numbers.
    if type(value.get("coordinates")) not in ((list, dict) if kind == "Point" else (list,)):
        raise bad_geometry("GeoJSON coordinates must be an array")
    if is_strict:
        return Geometry(polygons=(_parse_big_polygon(value["coordinates"]),), kind=kind)
    return parse(value["coordinates"])


def _reads_strict(value: dict[str, Any]) -> bool:
    """Return whether the inside of a polygon is to the left of it, whatever its size; check the `crs`."""
    if "crs" not in value:
        return False
    crs = value["crs"]
    if type(crs) is not dict or crs.get("type") != "name":
        raise bad_geometry('GeoJSON CRS must have field "type": "name"')
    properties = crs.get("properties")
    if type(properties) is not dict or type(properties.get("name")) is not str:
        raise bad_geometry('CRS must have field "properties" which has a "name"')
    if properties["name"] == _STRICT_NAME:
        return True
    if properties["name"] not in _SPHERE_NAMES:
        raise bad_geometry(f"Unknown CRS name: {properties['name']}")
    return False


def _place(value: Any) -> Place:
    pair = parse_pair(value, more_allowed=True)
    if not pair.is_on_sphere:
        raise bad_geometry(f"longitude/latitude is out of bounds, lng: {pair.x} lat: {pair.y}")
    return Place(pair.x, pair.y)


def _list(value: Any, least: int, what: str) -> list[Any]:
    if type(value) is not list:
        raise bad_geometry(f"{what} must be an array")
    if len(value) < least:
        raise bad_geometry(f"{what} must have at least {least} element(s)")
    return value


def _line(value: Any) -> Line:
    places = [_place(element).vector for element in _list(value, 0, "LineString coordinates")]
    # Vertices that repeat the one before say nothing.
    distinct = [place for position, place in enumerate(places) if not position or place != places[position - 1]]
    if len(distinct) < 2:
        raise bad_geometry("GeoJSON LineString must have at least 2 vertices")
    if any(_are_opposite(a, b) for a, b in itertools.pairwise(distinct)):
        raise bad_geometry("Vertices of a line cannot be opposite places of the sphere")
    return tuple(distinct)


def _are_opposite(a: Vector, b: Vector) -> bool:
    return all(abs(left + right) < 1e-15 for left, right in zip(a, b, strict=True))


def _loop(value: Any) -> Loop:
    places = [_place(element) for element in _list(value, 0, "Polygon coordinates")]
    if not places:
        raise bad_geometry("Loop has no vertices")
    if (places[0].x, places[0].y) != (places[-1].x, places[-1].y):
        raise bad_geometry("Loop is not closed")
    vectors = [from_degrees(place.x, place.y) for place in places]
    distinct = [place for position, place in enumerate(vectors) if not position or place != vectors[position - 1]]
    corners = distinct[:-1]
    if len(corners) < 3:
        raise bad_geometry("Loop must have at least 3 different vertices")
    if len(set(corners)) < len(corners):
        raise bad_geometry("Loop is not valid: duplicate vertices")
    if any(_are_opposite(corners[position - 1], corner) for position, corner in enumerate(corners)):
        raise bad_geometry("Loop is not valid: neighbors are opposite places of the sphere")
    loop = Loop(corners)
    if loop.crosses_itself():
        raise bad_geometry("Loop is not valid: edges cross")
    return loop


def _polygon(value: Any) -> Polygon:
    loops = [_loop(element).normalized() for element in _list(value, 1, "Polygon coordinates")]
    outer, holes = loops[0], loops[1:]
    for hole in holes:
        if not _is_hole_of(outer, hole):
            raise bad_geometry("Secondary loops not contained by first exterior loop")
    for position, hole in enumerate(holes):
        for other in holes[position + 1 :]:
            if _loops_cross(hole, other) or hole.contains(other.corners[0]) or other.contains(hole.corners[0]):
                raise bad_geometry("Loops of a polygon cannot cross or contain each other")
    return Polygon(outer, holes)


def _is_hole_of(outer: Loop, hole: Loop) -> bool:
    if _loops_cross(outer, hole):
        return False
    shared = set(outer.corners) & set(hole.corners)
    inner = [corner for corner in hole.corners if corner not in shared]
    return len(shared) < 2 and all(outer.contains(corner) and not outer.touches(corner) for corner in inner)


def _loops_cross(left: Loop, right: Loop) -> bool:
    own = list(left.edges())
    return any(crossing(*edge, *other) > 0 for edge in own for other in right.edges())


def _parse_big_polygon(value: Any) -> Polygon:
    loops = _list(value, 1, "Polygon coordinates")
    if len(loops) != 1:
        raise bad_geometry("Only one simple loop is allowed in a big polygon")
    return Polygon(_loop(loops[0]), is_big=True)


def _many(parse: Callable[[Any], Any], what: str) -> Callable[[Any], list[Any]]:
    return lambda value: [parse(element) for element in _list(value, 1, what)]


def _parse_collection(value: dict[str, Any]) -> Geometry:
    members = value.get("geometries")
    parsed = [parse_geo_json(member) for member in _list(members, 1, "GeometryCollection geometries")]
    if any(member.kind == "GeometryCollection" or member.is_big for member in parsed):
        raise bad_geometry("GeometryCollections cannot be nested")
    return Geometry(
        tuple(point for member in parsed for point in member.points),
        tuple(line for member in parsed for line in member.lines),
        tuple(polygon for member in parsed for polygon in member.polygons),
        "GeometryCollection",
    )


def _points(kind: str, parse: Callable[[Any], Sequence[Place]]) -> Callable[[Any], Geometry]:
    return lambda value: Geometry(points=tuple(parse(value)), kind=kind)


def _lines(kind: str, parse: Callable[[Any], Sequence[Line]]) -> Callable[[Any], Geometry]:
    return lambda value: Geometry(lines=tuple(parse(value)), kind=kind)


def _polygons(kind: str, parse: Callable[[Any], Sequence[Polygon]]) -> Callable[[Any], Geometry]:
    return lambda value: Geometry(polygons=tuple(parse(value)), kind=kind)


_PARSERS: Final[dict[str, Callable[[Any], Geometry]]] = {
    "Point": _points("Point", lambda value: [_place(value)]),
    "MultiPoint": _points("MultiPoint", _many(_place, "MultiPoint coordinates")),
    "LineString": _lines("LineString", lambda value: [_line(value)]),
    "MultiLineString": _lines("MultiLineString", _many(_line, "MultiLineString coordinates")),
    "Polygon": _polygons("Polygon", lambda value: [_polygon(value)]),
    "MultiPolygon": _polygons("MultiPolygon", _many(_polygon, "MultiPolygon coordinates")),
    "GeometryCollection": _parse_collection,
}
