"""The stages $bucket and $bucketAuto, which group by ranges of values."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from asterism.languages.mongo.expressions.constants import Constant
from asterism.languages.mongo.expressions.operator import CompileContext, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.integers import whole_number
from asterism.languages.mongo.stages.accumulators import compile_accumulated_field
from asterism.languages.mongo.stages.grouping import Fields, Groups
from asterism.languages.mongo.stages.preferred_numbers import GRANULARITIES, Rounder, rounder_of
from asterism.languages.mongo.stages.stage import (
    BATCH_DOCUMENTS,
    Batches,
    MemoryMeter,
    Pacer,
    RunContext,
    Scope,
    Stage,
    StageRow,
    evaluate_many,
)
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import INT32_MAX, INT32_MIN, is_nan
from asterism.values.bson.order import rank, sort_key
from asterism.values.bson.types import MISSING, Document


def is_expression(specification: Any) -> bool:
    """Return whether a specification is a path or the call of an operator, and not a constant."""
    if type(specification) is str:
        return specification[:1] == "$"
    return type(specification) is dict and next(iter(specification), "")[:1] == "$"


def _compile_output(output: Document | None, context: CompileContext) -> Fields:
    if output is None:
        output = {"count": {"$sum": 1}}
    if "_id" in output:
        raise MongoFailure(15948, "a group's _id may only be specified once")
    return [(name, compile_accumulated_field(name, value, context)) for name, value in output.items()]


# --- $bucket ------------------------------------------------------------------------------------------------------


def _constant(specification: Any, context: CompileContext, code: int, name: str) -> Any:
    evaluate = context.compile(specification)
    if not isinstance(evaluate, Constant):
        raise MongoFailure(code, f"The $bucket {name} must be a constant value, but found the value {specification!r}")
    return evaluate.value


def _read_boundaries(specification: Any, context: CompileContext) -> list[Any]:
    if type(specification) is not list:
        raise MongoFailure(40200, "The $bucket 'boundaries' field must be an array")
    boundaries = [_constant(value, context, 40191, "'boundaries' field") for value in specification]
    if len(boundaries) < 2:
        raise MongoFailure(40192, "The $bucket 'boundaries' field must have at least 2 values")
    for lower, upper in pairwise(boundaries):
        if rank(lower) != rank(upper):
            raise MongoFailure(40193, "All values in the 'boundaries' option to $bucket must have the same type")
        if not sort_key(lower, context.collate) < sort_key(upper, context.collate):
            raise MongoFailure(40194, "The 'boundaries' option to $bucket must be sorted in ascending order")
    return boundaries


def _compile_bucket(specification: Any, scope: Scope) -> Stage:
    if type(specification) is not dict:
        raise MongoFailure(40201, "Argument to $bucket stage must be an object")
    context = scope.context
    boundaries: list[Any] = []
    default: Any = MISSING
    for name, value in specification.items():
        if name == "groupBy":
            if not is_expression(value):
                raise MongoFailure(40202, "The $bucket 'groupBy' field must be a $-prefixed path or an expression")
        elif name == "boundaries":
            boundaries = _read_boundaries(value, context)
        elif name == "default":
            default = _constant(value, context, 40195, "'default' field")
        elif name == "output":
            if type(value) is not dict:
                raise MongoFailure(40196, "The $bucket 'output' field must be an object")
        else:
            raise MongoFailure(40197, f"Unrecognized option to $bucket: {name}")
    if "groupBy" not in specification or not boundaries:
        raise MongoFailure(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified")
    edges = [sort_key(value, context.collate) for value in boundaries]
    if default is not MISSING and edges[0] <= sort_key(default, context.collate) < edges[-1]:
        raise MongoFailure(
            40199, "The $bucket 'default' field must be less than the lowest boundary or not less than the highest"
        )
    values_of = evaluate_many(specification["groupBy"], context)
    fields = _compile_output(specification.get("output"), context)
    place_of = _placer(edges, boundaries, default, context)

    def keys_of(documents: list[Document], variables: Variables) -> list[Any]:
        return [place_of(value) for value in values_of(documents, variables)]

    async def run(source: Batches, run_context: RunContext) -> Batches:
        pacer, meter = Pacer(run_context), MemoryMeter("$bucket", run_context)
        groups = Groups(fields, context.collate)
        variables = run_context.variables
        holds_input = any(field.holds_input for _, field in fields)
        async for batch in source:
            groups.add(keys_of(batch, variables), batch, variables)
            if holds_input:
                meter.add(batch)
            await pacer.pause()
        output = groups.documents()
        output.sort(key=lambda document: sort_key(document["_id"], context.collate))
        for start in range(0, len(output), BATCH_DOCUMENTS):
            yield output[start : start + BATCH_DOCUMENTS]

    return Stage("$bucket", specification, run=run)


def _placer(edges: list[Any], boundaries: list[Any], default: Any, context: CompileContext) -> Callable[[Any], Any]:
    """Return the function from a value to the lower edge of its bucket, or to the default."""

    def place_of(value: Any) -> Any:
        place = bisect_right(edges, sort_key(value, context.collate))
        if 0 < place < len(edges):
            return boundaries[place - 1]
        if default is MISSING:
            raise MongoFailure(
                40066, "$switch could not find a matching branch for an input, and no default was specified."
            )
        return default

    return place_of


# --- $bucketAuto --------------------------------------------------------------------------------------------------


def _read_bucket_count(value: Any) -> int:
    if not is_number(value):
        raise MongoFailure(40241, "The $bucketAuto 'buckets' field must be a numeric value")
    count = whole_number(value)
    if count is None or not INT32_MIN <= count <= INT32_MAX:
        raise MongoFailure(40242, "The $bucketAuto 'buckets' field must be representable as a 32-bit integer")
    if count <= 0:
        raise MongoFailure(40243, "The $bucketAuto 'buckets' field must be greater than 0")
    return count


def _compile_bucket_auto(specification: Any, scope: Scope) -> Stage:
    if type(specification) is not dict:
        raise MongoFailure(40240, "The argument to $bucketAuto must be an object")
    context = scope.context
    count = 0
    rounder: Rounder | None = None
    for name, value in specification.items():
        if name == "groupBy":
            if not is_expression(value):
                raise MongoFailure(40239, "The $bucketAuto 'groupBy' field must be a $-prefixed path or an expression")
        elif name == "buckets":
            count = _read_bucket_count(value)
        elif name == "output":
            if type(value) is not dict:
                raise MongoFailure(40244, "The $bucketAuto 'output' field must be an object")
        elif name == "granularity":
            if type(value) is not str:
                raise MongoFailure(40261, "The $bucketAuto 'granularity' field must be a string")
            if value not in GRANULARITIES:
                raise MongoFailure(40257, f"Unknown rounding granularity: {value}")
            rounder = rounder_of(value)
        else:
            raise MongoFailure(40245, f"Unrecognized option to $bucketAuto: {name}")
    if "groupBy" not in specification or not count:
        raise MongoFailure(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified")
    values_of = evaluate_many(specification["groupBy"], context)
    # Unlike $bucket, an empty output counts.
    fields = _compile_output(specification.get("output") or None, context)

    async def run(source: Batches, run_context: RunContext) -> Batches:
        pacer, meter = Pacer(run_context), MemoryMeter("$bucketAuto", run_context)
        variables = run_context.variables
        held: list[tuple[Any, Document]] = []
        async for batch in source:
            values = (None if value is MISSING else value for value in values_of(batch, variables))
            held.extend(zip(values, batch, strict=True))
            meter.add(batch)
            await pacer.pause()
        if rounder is not None:
            _check_for_rounding(held)
        held.sort(key=lambda pair: sort_key(pair[0], context.collate))
        for least, most, members in divide(held, count, rounder, lambda value: sort_key(value, context.collate)):
            group = Groups(fields, context.collate)
            group.add_to_one({"min": least, "max": most}, members, variables)
            yield group.documents()
            await pacer.pause()

    return Stage("$bucketAuto", specification, run=run)


def _check_for_rounding(held: list[tuple[Any, Document]]) -> None:
    for value, _ in held:
        if not is_number(value):
            raise MongoFailure(40258, "$bucketAuto can specify a 'granularity' with numeric boundaries only")
        if is_nan(value):
            raise MongoFailure(40259, "$bucketAuto can specify a 'granularity' with numeric boundaries only, found NaN")
        if sort_key(value) < sort_key(0):
            raise MongoFailure(40260, "$bucketAuto can specify a 'granularity' with non-negative numbers only")


def divide(
    held: list[tuple[Any, Document]], count: int, rounder: Rounder | None, key: Callable[[Any], Any]
) -> Iterator[tuple[Any, Any, list[Document]]]:
    """Yield the buckets of documents that are sorted by their values: the edges and the documents. Equal values are
    never parted, so that there may be fewer buckets than wanted."""
    if not held:
        return
    # Half up, as the reference server rounds.
    size = max(1, (2 * len(held) + count) // (2 * count))
    start, number = 0, 1
    least = held[0][0] if rounder is None else rounder.down(held[0][0])
    while start < len(held):
        stop = len(held) if number == count else min(start + size, len(held))
        most = held[stop - 1][0]
        if rounder is None:
            while stop < len(held) and key(held[stop][0]) == key(most):
                stop += 1
            most = held[stop][0] if stop < len(held) else held[stop - 1][0]
        else:
            most = rounder.up(most)
            while stop < len(held) and key(held[stop][0]) < key(most):
                stop += 1
            if key(most) == key(0) and stop < len(held):
                # Zero is no edge that rounding could leave: the next value gives it.
                while stop < len(held) and key(held[stop][0]) == key(0):
                    stop += 1
                most = rounder.down(held[stop][0]) if stop < len(held) else most
        yield least, most, [document for _, document in held[start:stop]]
        least = most
        start, number = stop, number + 1


ROWS = (StageRow("$bucket", _compile_bucket), StageRow("$bucketAuto", _compile_bucket_auto))
