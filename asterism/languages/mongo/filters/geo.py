"""$geoWithin, $geoIntersects, $near and $nearSphere in filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.match import Node
from asterism.languages.mongo.filters.predicate import Predicate, Scope, bad_value
from asterism.languages.mongo.geo.geometry import Geometry
from asterism.languages.mongo.geo.near import NEAR_OPERATORS, parse_near
from asterism.languages.mongo.geo.parse import parse_stored
from asterism.languages.mongo.geo.regions import Region, parse_region

__all__ = ["NEAR_OPERATORS", "compile_geo_intersects", "compile_geo_within", "compile_near"]


def _decides(region: Region, decide: Callable[[Geometry], bool]) -> Predicate:
    def test(value: Any) -> bool:
        if type(value) is not dict and type(value) is not list:
            return False
        try:
            geometry = parse_stored(value)
        except MongoFailure:
            return False
        # A stored polygon larger than half the sphere is a mistake, and never found.
        return not geometry.is_big and decide(geometry)

    return Predicate("geo", test, region)


def compile_geo_within(operand: Any, _: Scope) -> Predicate:
    region = parse_region(operand)
    if not region.is_area:
        raise bad_value("$within not supported with provided geometry")
    return _decides(region, region.contains)


def compile_geo_intersects(operand: Any, _: Scope) -> Predicate:
    region = parse_region(operand)
    if region.is_flat:
        raise bad_value("$geoIntersect not supported with provided geometry")
    return _decides(region, region.intersects)


def compile_near(path: str, operand: dict[str, Any], scope: Scope) -> Node:
    """Compile a field whose first operator searches near a point; its options may stand beside it."""
    if "near" not in scope.features:
        raise MongoFailure(5626500, "$geoNear, $near, and $nearSphere are not allowed in this context")
    if not scope.is_top_level:
        raise bad_value("geoNear must be a top-level expression")
    search = parse_near(path, operand)
    return Node("near", lambda document: search.find(document) is not None, path=path, value=search)
