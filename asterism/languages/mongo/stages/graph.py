"""The stage $graphLookup: documents that are reached over any number of steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from asterism.languages.mongo.expressions.paths import read_path, split_path
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import MATCH_FEATURES, compile_filter
from asterism.languages.mongo.filters.integers import whole_number
from asterism.languages.mongo.stages.joining import set_path
from asterism.languages.mongo.stages.keys import hash_key
from asterism.languages.mongo.stages.looking_up import read_collection
from asterism.languages.mongo.stages.stage import Batches, Pacer, RunContext, Scope, Stage, StageRow, estimate_bytes
from asterism.values.bson.kinds import is_number
from asterism.values.bson.types import MISSING, Document, Int64

# The limit of the reference server for one search.
MEMORY_BYTES_MAX: Final = 100 * 1024 * 1024
_TEXTS: Final = ("as", "connectFromField", "connectToField", "depthField")
_FIELDS: Final = (*_TEXTS, "from", "startWith", "maxDepth", "restrictSearchWithMatch")


def _check(specification: Any) -> Document:
    if type(specification) is not dict:
        raise MongoFailure(9, "the $graphLookup stage specification must be an object")
    for name, value in specification.items():
        if name not in _FIELDS:
            raise MongoFailure(40104, f"unknown argument to $graphLookup: {name}")
        if name in _TEXTS or (name == "from" and type(value) is not dict):
            if type(value) is not str:
                raise MongoFailure(40103, f"expected string as argument for {name}")
            if name != "from":
                split_path(value)
        if name == "maxDepth":
            _read_depth(value)
        if name == "restrictSearchWithMatch" and type(value) is not dict:
            raise MongoFailure(40185, "$graphLookup argument 'restrictSearchWithMatch' must be an object")
    if any(name not in specification for name in ("from", "as", "startWith", "connectFromField", "connectToField")):
        raise MongoFailure(
            40105, "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField'"
        )
    return specification


def _read_depth(value: Any) -> int:
    if not is_number(value):
        raise MongoFailure(40100, "maxDepth requires numeric argument")
    depth = whole_number(value)
    if depth is None:
        raise MongoFailure(40102, "maxDepth could not be represented as a long long")
    if depth < 0:
        raise MongoFailure(40101, "maxDepth requires a nonnegative argument")
    return depth


def _compile_graph_lookup(specification: Any, scope: Scope) -> Stage:
    fields = _check(specification)
    collection = read_collection(fields["from"], "$graphLookup")
    start = scope.context.compile(fields["startWith"])
    depth_max = _read_depth(fields["maxDepth"]) if "maxDepth" in fields else None
    depth_parts = tuple(fields["depthField"].split(".")) if "depthField" in fields else None
    as_parts = tuple(fields["as"].split("."))
    from_parts = tuple(fields["connectFromField"].split("."))
    connect_to = fields["connectToField"]
    restriction = fields.get("restrictSearchWithMatch")
    match = None if restriction is None else compile_filter(restriction, scope.context, features=MATCH_FEATURES)
    collate = scope.context.collate

    async def reach(document: Document, run_context: RunContext, pacer: Pacer) -> list[Document]:
        accepts = None if match is None else match.with_variables(run_context.variables)
        frontier = _distinct(_values(start(document, run_context.variables)), set(), collate)
        asked = set(frontier)
        reached: dict[Any, Document] = {}
        depth, held_bytes = 0, 0
        while frontier and (depth_max is None or depth <= depth_max):
            found = await run_context.lookup(collection, None, connect_to, list(frontier.values()))
            following: list[Any] = []
            for other in found:
                key = hash_key(other.get("_id"), collate=None)
                if key in reached or (accepts is not None and not accepts(other)):
                    continue
                reached[key] = other if depth_parts is None else set_path(other, depth_parts, Int64(depth))
                held_bytes += estimate_bytes(other)
                following.extend(_values(read_path(other, from_parts), is_start=False))
            if held_bytes > MEMORY_BYTES_MAX:
                raise MongoFailure(40099, "$graphLookup reached maximum memory consumption")
            frontier = _distinct(following, asked, collate)
            asked.update(frontier)
            depth += 1
            await pacer.pause()
        return list(reached.values())

    async def run(source: Batches, run_context: RunContext) -> Batches:
        pacer = Pacer(run_context)
        async for batch in source:
            yield [set_path(document, as_parts, await reach(document, run_context, pacer)) for document in batch]

    return Stage("$graphLookup", specification, run=run, reads=((None, collection),))


def _values(value: Any, *, is_start: bool = True) -> list[Any]:
    """Return the values to go on from: those of an array each by itself. A field that is missing leads nowhere, but
    a search may start from it."""
    if type(value) is list:
        return value
    if value is MISSING:
        return [None] if is_start else []
    return [value]


def _distinct(values: Iterable[Any], known: set[Any], collate: Any) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for value in values:
        key = hash_key(value, collate)
        if key not in known:
            found.setdefault(key, value)
    return found


ROWS = (StageRow("$graphLookup", _compile_graph_lookup),)
