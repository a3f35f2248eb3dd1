"""Indexes of places: the cells of a document's geometries as keys, and the cells that a region asks for.

Cells give candidates; the condition decides on each. All entries of a document may lead to it, so a reader leaves out
what it has met.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.match import Matches
from asterism.languages.mongo.filters.paths import values_on_path
from asterism.languages.mongo.geo.boxes import Box, boxes_of_geometry
from asterism.languages.mongo.geo.cells import (
    QUERY_CELLS_MAX,
    SHAPE_CELLS_MAX,
    SPHERE_GRID,
    Grid,
    ancestors,
)
from asterism.languages.mongo.geo.parse import is_pair, parse_pair, parse_stored, to_double
from asterism.models.collections.records import IndexRecord
from asterism.models.collections.rules import IndexProfile, TextsOfCondition
from asterism.values.bson.types import Document, Missing

_PLANE_MIN, _PLANE_MAX = -180.0, 180.0
_NO_KEYS: tuple[Sequence[tuple[Any, ...]], bool] = ((), False)


def compile_geo_index(index: IndexRecord, holds: Matches | None) -> IndexProfile:
    """Return the rules of a 2d or 2dsphere index."""
    kinds = list(index.key.values())
    paths = [tuple(path.split(".")) for path in index.key]
    grid = SPHERE_GRID if "2dsphere" in kinds else _plane_grid(index.options)
    special = {position: texts_of(grid) for position, kind in enumerate(kinds) if kind in ("2d", "2dsphere")}

    def keys_of(document: Document) -> tuple[Sequence[tuple[Any, ...]], bool]:
        if holds is not None and not holds(document):
            return _NO_KEYS
        parts: list[list[Any]] = []
        has_place = False
        for path, kind in zip(paths, kinds, strict=True):
            values = [value for value, _ in values_on_path(document, path, enter_last_array=False)]
            if kind == "2dsphere":
                cells = [cell for value in values for cell in _sphere_cells(value)]
            elif kind == "2d":
                cells = [cell for value in values for cell in _plane_cells(value, grid)]
            else:
                parts.append(_ordinary(values))
                continue
            has_place = has_place or bool(cells)
            parts.append(list(dict.fromkeys(cells)) or [None])
        return (list(product(*parts)), True) if has_place else _NO_KEYS

    return IndexProfile(keys_of, None, False, special)


def texts_of(grid: Grid) -> TextsOfCondition:
    """Return the cells that a region asks for: all that begin with those that cover it, and those around them."""

    def texts(condition: Any) -> list[tuple[str, bool]]:
        cells = grid.cover(condition.value.boxes(), QUERY_CELLS_MAX)
        return [*((cell, False) for cell in ancestors(cells)), *((cell, True) for cell in cells)]

    return texts


def _ordinary(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found += value or [None] if type(value) is list else [None if type(value) is Missing else value]
    return found


def _sphere_cells(value: Any) -> list[str]:
    if value is None or type(value) is Missing:
        return []
    try:
        geometry = parse_stored(value)
    except MongoFailure as failure:
        raise MongoFailure(16755, f"Can't extract geo keys: {failure}") from failure
    if geometry.is_big or not geometry.is_on_sphere:
        raise MongoFailure(
            16755, "Can't extract geo keys: longitude/latitude is out of bounds or the polygon too large"
        )
    point = geometry.point
    if point is not None:
        return [SPHERE_GRID.name_of_point(point.x, point.y)]
    return SPHERE_GRID.cover(boxes_of_geometry(geometry), SHAPE_CELLS_MAX)


def _plane_grid(options: Document) -> Grid:
    low = to_double(options.get("min", _PLANE_MIN))
    high = to_double(options.get("max", _PLANE_MAX))
    return Grid(Box(low, low, high, high))


def _plane_cells(value: Any, grid: Grid) -> list[str]:
    if value is None or type(value) is Missing:
        return []
    if type(value) is not list and type(value) is not dict:
        raise MongoFailure(13026, "geo values must be 'legacy coordinate pairs' for 2d indexes")
    elements = list(value.values()) if isinstance(value, dict) else value
    if not elements:
        return []
    if type(value) is list and type(elements[0]) in (dict, list):
        return [_plane_cell(element, grid) for element in elements]
    return [_plane_cell(value, grid)]


def _plane_cell(value: Any, grid: Grid) -> str:
    if not is_pair(value):
        raise MongoFailure(13026, "geo values must be 'legacy coordinate pairs' for 2d indexes")
    try:
        point = parse_pair(value, more_allowed=True)
    except MongoFailure as failure:
        raise MongoFailure(
            13068, f"geo field only has one element, or values that are no numbers: {failure}"
        ) from failure
    bounds = grid.whole
    if not (bounds.west <= point.x <= bounds.east and bounds.south <= point.y <= bounds.north):
        raise MongoFailure(13027, f"point not in interval of [ {bounds.west}, {bounds.east} ]")
    return grid.name_of_point(point.x, point.y)
