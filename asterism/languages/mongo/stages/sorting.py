"""The stage $sort, and the reading of its specification."""

from __future__ import annotations

import random
from typing import Any

from asterism.languages.mongo.expressions.misc import METADATA_FIELD
from asterism.languages.mongo.expressions.operator import CompileContext
from asterism.languages.mongo.expressions.paths import split_path
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.ordering import SortField, SortRule
from asterism.languages.mongo.stages.stage import (
    BATCH_DOCUMENTS,
    Batches,
    MemoryMeter,
    Pacer,
    RunContext,
    Scope,
    Stage,
    StageRow,
)
from asterism.values.bson.kinds import is_number
from asterism.values.bson.types import Decimal128, Document

# As many fields as an index may have.
FIELDS_MAX = 32
# Metadata that documents have only after a search that gives it, and whether the greatest comes first.
_SEARCHED_METADATA = {"textScore": True, "geoNearDistance": False}
# Metadata of a search engine, which is null without one.
_NULL_METADATA = ("searchScore", "vectorSearchScore", "score")


def parse_ordering(specification: Document, context: CompileContext) -> SortRule:
    """Return the ordering that a document of paths and directions stands for."""
    if sum(type(value) is not dict for value in specification.values()) > FIELDS_MAX:
        raise MongoFailure(13103, "too many compound keys")
    return SortRule((_sort_field(path, value) for path, value in specification.items()), context.collate)


def _sort_field(path: str, value: Any) -> SortField:
    if type(value) is dict:
        return _meta_field(split_path(path, too_long_code=15), value)
    if not is_number(value):
        raise MongoFailure(15974, f"Illegal key in $sort specification: {path}: {value!r}")
    direction = _direction(value)
    if direction not in (1, -1):
        raise MongoFailure(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
    return SortField(split_path(path, too_long_code=15), direction < 0)


def _meta_field(parts: tuple[str, ...], value: Document) -> SortField:
    if "$meta" not in value:
        raise MongoFailure(17312, "$meta is the only expression supported by $sort right now")
    if len(value) > 1:
        raise MongoFailure(9, "Cannot have additional keys in a $meta sort specification")
    name = value["$meta"]
    if name == "randVal":
        return SortField(parts, True, lambda _: random.random())
    if name in _NULL_METADATA:
        return SortField(parts, True, lambda _: 0)
    if type(name) is str and name in _SEARCHED_METADATA:
        return SortField(parts, _SEARCHED_METADATA[name], lambda document: document.get(METADATA_FIELD, {}).get(name))
    raise MongoFailure(31138, f"Illegal $meta sort: $meta: {name!r}")


def _direction(value: Any) -> int:
    if type(value) is Decimal128:
        exact = value.to_decimal()
        return round(exact) if exact.is_finite() and abs(exact) < 10 else 0
    return int(value) if abs(value) < 10 else 0


def compile_sort(specification: Any, scope: Scope) -> Stage:
    if type(specification) is not dict:
        raise MongoFailure(15973, "the $sort key specification must be an object")
    if not specification:
        raise MongoFailure(15976, "$sort stage must have at least one sort key")
    return sort_stage(specification, parse_ordering(specification, scope.context), None)


def sort_stage(specification: Document, ordering: SortRule, keep: int | None) -> Stage:
    """Return the stage that sorts, or that finds the first `keep` documents of the order."""

    async def run(source: Batches, run_context: RunContext) -> Batches:
        meter = MemoryMeter("Sort", run_context)
        pacer = Pacer(run_context)
        held: list[Document] = []
        async for batch in source:
            held.extend(batch)
            meter.add(batch)
            if keep is not None and len(held) > 2 * keep + BATCH_DOCUMENTS:
                held = ordering.sort(held)[:keep]
                meter.held_bytes = 0
                meter.add(held)
            await pacer.pause()
        held = ordering.sort(held)
        run_context.check_time()
        for start in range(0, len(held), BATCH_DOCUMENTS):
            yield held[start : start + BATCH_DOCUMENTS]

    has_meta = any(field.meta is not None for field in ordering.fields)
    return Stage("$sort", specification, run=run, meaning=None if has_meta else specification, ordering=ordering)


def fuse_limits(stages: list[Stage]) -> list[Stage]:
    """Let every $sort hold only what the $skip and $limit behind it want."""
    fused = list(stages)
    for index, stage in enumerate(stages):
        if stage.ordering is None:
            continue
        skipped = 0
        for follower in stages[index + 1 :]:
            if follower.name == "$skip":
                skipped += follower.meaning
            elif follower.name == "$limit":
                kept = sort_stage(stage.specification, stage.ordering, skipped + follower.meaning)
                fused[index] = kept
                break
            else:
                break
    return fused


ROWS = (StageRow("$sort", compile_sort),)
