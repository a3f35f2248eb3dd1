"""The stage $geoNear: documents in the order of their distance from a point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from asterism.languages.mongo.expressions.constants import is_constant
from asterism.languages.mongo.expressions.misc import METADATA_FIELD
from asterism.languages.mongo.expressions.operator import Evaluate, Variables
from asterism.languages.mongo.expressions.paths import PATH_COMPONENTS_MAX, split_path
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import VALIDATOR_FEATURES, compile_filter
from asterism.languages.mongo.geo.near import Found, NearSearch
from asterism.languages.mongo.geo.parse import bad_geometry, parse_pair, parse_query_point, to_double
from asterism.languages.mongo.stages.stage import Batches, RunContext, Scope, Stage, StageRow, Within
from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.types import Document

_FIELDS: Final = frozenset(
    (
        *("near", "distanceField", "spherical", "maxDistance", "minDistance", "query", "distanceMultiplier"),
        *("includeLocs", "key", "uniqueDocs", "limit", "num", "start", "$_requestReshardingResumeToken"),
    )
)
_REMOVED: Final = frozenset(("limit", "num", "start"))
# A longer key could not be the path of an index.
_KEY_COMPONENTS_MAX: Final = 180


@dataclass(frozen=True, slots=True)
class GeoNear:
    """A $geoNear without its surroundings: `search_at` gives the search over a path, `key` that path if it is named."""

    key: str | None
    query: Document
    search_at: Callable[[str, Variables], NearSearch]


def compile_geo_near(specification: Any, scope: Scope) -> Stage:
    if type(specification) is list:
        # As the server, which takes an array for an object with numbers as names.
        specification = {str(position): value for position, value in enumerate(specification)}
    if type(specification) is not dict:
        raise MongoFailure(10065, f"$geoNear requires an object, found {type_name(specification)}")
    if "near" not in specification:
        raise MongoFailure(5860400, "$geoNear requires a 'near' option")
    for name in specification:
        if name in _REMOVED:
            raise MongoFailure(50858, f"$geoNear no longer supports the '{name}' parameter. Use a $limit stage")
        if name not in _FIELDS:
            raise bad_geometry(f"Unknown argument to $geoNear: {name}")
    request = GeoNear(_read_key(specification), _read_query(specification, scope), _read_search(specification, scope))
    shape = _read_output(specification)

    async def run(_: Batches, run_context: RunContext) -> Batches:
        async for found in run_context.near(request):
            yield [shape(document, nearest, run_context.variables) for document, nearest in found]

    return Stage("$geoNear", specification, run=run, meaning=request)


def _read_key(specification: Document) -> str | None:
    if "key" not in specification:
        return None
    key = specification["key"]
    if type(key) is not str:
        raise MongoFailure(14, f"$geoNear parameter 'key' must be of type string but found type: {type_name(key)}")
    if not key:
        raise bad_geometry("$geoNear parameter 'key' cannot be the empty string")
    parts = _split(key)
    if len(parts) > _KEY_COMPONENTS_MAX:
        raise MongoFailure(5729100, "$geoNear parameter 'key' is too deep")
    return key


def _split(path: str) -> tuple[str, ...]:
    if path.count(".") >= PATH_COMPONENTS_MAX:
        raise MongoFailure(15, "FieldPath is too long")
    return split_path(path)


def _read_query(specification: Document, scope: Scope) -> Document:
    query = specification.get("query", {})
    if type(query) is not dict:
        raise MongoFailure(14, f"$geoNear parameter 'query' must be an object, found {type_name(query)}")
    compile_filter(query, scope.context, features=VALIDATOR_FEATURES)
    return query


def _read_search(specification: Document, scope: Scope) -> Callable[[str, Variables], NearSearch]:
    near = _argument(specification["near"], scope, not_constant=5860402)
    least = _distance(specification, "minDistance", scope, not_constant=7555701)
    most = _distance(specification, "maxDistance", scope, not_constant=7555702)
    spherical = _truth(specification.get("spherical", False))

    def search_at(path: str, variables: Variables) -> NearSearch:
        value = near({}, variables)
        point_value, legacy_most = _split_legacy(value)
        point = parse_query_point(point_value)
        is_sphere = spherical or not point.is_flat
        if is_sphere and not point.is_on_sphere:
            raise bad_geometry("Legacy point is out of bounds for spherical query")
        return NearSearch(
            path,
            point,
            is_sphere,
            is_sphere and point.is_flat,
            0.0 if least is None else _checked(least({}, variables), "minDistance"),
            legacy_most if most is None else _checked(most({}, variables), "maxDistance"),
        )

    if is_constant(near):
        _split_legacy(near.value)
    for distance, name in ((least, "minDistance"), (most, "maxDistance")):
        if distance is not None and is_constant(distance):
            _checked(distance.value, name)
    return search_at


def _split_legacy(value: Any) -> tuple[Any, float]:
    """Return the point and the greatest distance, which may stand behind a pair of coordinates."""
    if type(value) is not dict and type(value) is not list:
        raise MongoFailure(5860401, "$geoNear requires 'near' to be a point: an array or an object")
    if type(value) is list and len(value) == 3 and is_number(value[2]):
        parse_pair(value[:2])
        return value[:2], to_double(value[2])
    parse_query_point(value)
    return value, float("inf")


def _argument(specification: Any, scope: Scope, *, not_constant: int) -> Evaluate:
    if _reads_document(specification):
        raise MongoFailure(not_constant, "$geoNear requires constant expressions for 'near' and the distances")
    return scope.context.compile(specification)


def _reads_document(specification: Any) -> bool:
    if type(specification) is str:
        is_variable = specification.startswith("$$")
        if is_variable:
            return specification[2:].partition(".")[0] in ("ROOT", "CURRENT")
        return specification.startswith("$")
    if type(specification) is list:
        return any(map(_reads_document, specification))
    if type(specification) is dict:
        return any(_reads_document(value) for name, value in specification.items() if name != "$literal")
    return False


def _distance(specification: Document, name: str, scope: Scope, *, not_constant: int) -> Evaluate | None:
    return _argument(specification[name], scope, not_constant=not_constant) if name in specification else None


def _checked(value: Any, name: str) -> float:
    if not is_number(value):
        raise MongoFailure(14, f"$geoNear parameter '{name}' must be a number, found {type_name(value)}")
    number = to_double(value)
    if not number >= 0:
        raise bad_geometry(f"$geoNear parameter '{name}' must be non-negative")
    return number


def _truth(value: Any) -> bool:
    if is_number(value):
        return to_double(value) != 0
    return value is not None and value is not False


def _read_output(specification: Document) -> Callable[[Document, Found, Variables], Document]:
    """Return the function that adds the distance and the location to a document."""
    multiplier = (
        _checked(specification["distanceMultiplier"], "distanceMultiplier")
        if ("distanceMultiplier" in specification)
        else 1.0
    )
    paths: list[tuple[str, tuple[str, ...]]] = []
    for name, code, source in (("distanceField", 16606, "distance"), ("includeLocs", 16607, "location")):
        if name not in specification:
            continue
        if type(specification[name]) is not str:
            raise MongoFailure(code, f"$geoNear requires that '{name}' option is a String")
        parts = _split(specification[name])
        if len(parts) == PATH_COMPONENTS_MAX:
            # The distance would be one level deeper than documents may be.
            raise MongoFailure(5984700, "FieldPath is too long")
        paths.append((source, parts))
    writers = [_writer(source, parts) for source, parts in paths]

    def shape(document: Document, nearest: Found, variables: Variables) -> Document:
        distance = nearest.distance * multiplier
        values = {"distance": distance, "location": nearest.location}
        for write in writers:
            document = write(document, values)
        return {**document, METADATA_FIELD: {"geoNearDistance": distance, "geoNearPoint": nearest.location}}

    return shape


def _writer(source: str, parts: tuple[str, ...]) -> Callable[[Document, Variables], Document]:
    return lambda document, values: _with_value(document, parts, values[source])


def _with_value(document: Any, parts: tuple[str, ...], value: Any) -> Document:
    """Return a document with a value at a path; anything on the way that is no document is replaced."""
    kept = document if type(document) is dict else {}
    if len(parts) == 1:
        return {**kept, parts[0]: value}
    return {**kept, parts[0]: _with_value(kept.get(parts[0]), parts[1:], value)}


ROWS = (StageRow("$geoNear", compile_geo_near, refused_in=frozenset({Within.FACET})),)
