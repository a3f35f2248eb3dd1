"""Functions of GeoJSON geometries. An argument that is not a valid geometry makes the result undefined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from asterism.languages.cosmos_sql.compiling.semantics import json_number
from asterism.languages.cosmos_sql.functions.function import Function
from asterism.languages.cosmos_sql.functions.geodesy import area_square_meters, distance_meters
from asterism.languages.cosmos_sql.functions.geojson import InvalidGeometry, read_shape
from asterism.languages.cosmos_sql.functions.geometry import Shape, intersect, is_within, nearest_places
from asterism.values.undefined import UNDEFINED


def _of_shapes(run: Callable[..., object]) -> Callable[..., object]:
    def checked(*values: object) -> object:
        try:
            shapes = [read_shape(value) for value in values]
        except InvalidGeometry:
            return UNDEFINED
        return run(*shapes)

    return checked


def _area(shape: Shape) -> object:
    return json_number(sum(area_square_meters(polygon) for polygon in shape.polygons))


def _distance(left: Shape, right: Shape) -> object:
    are_points = len(left.places) == len(right.places) == 1
    if not are_points and intersect(left, right):
        return 0
    places = (left.places[0], right.places[0]) if are_points else nearest_places(left, right)
    return json_number(distance_meters(*places))


def _is_valid(value: object) -> object:
    if value is UNDEFINED:
        return UNDEFINED
    try:
        read_shape(value)
    except InvalidGeometry:
        return False
    return True


def _is_valid_detailed(value: object) -> object:
    if value is UNDEFINED:
        return UNDEFINED
    try:
        read_shape(value)
    except InvalidGeometry as invalid:
        return {"valid": False, "reason": str(invalid)}
    return {"valid": True}


SPATIAL_FUNCTIONS: Final[dict[str, Function]] = {
    "ST_AREA": Function(1, 1, _of_shapes(_area)),
    "ST_DISTANCE": Function(2, 2, _of_shapes(_distance)),
    "ST_INTERSECTS": Function(2, 2, _of_shapes(intersect)),
    "ST_ISVALID": Function(1, 1, _is_valid),
    "ST_ISVALIDDETAILED": Function(1, 1, _is_valid_detailed),
    "ST_WITHIN": Function(2, 2, _of_shapes(is_within)),
}
