"""Stages that choose documents by their number: $limit, $skip, $count, $sample."""

from __future__ import annotations

import math
import random
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.integers import INT64_MAX, whole_number
from asterism.languages.mongo.stages.stage import Batches, RunContext, Scope, Stage, StageRow
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import int_of_size
from asterism.values.bson.types import Decimal128, Document


def limit_stage(specification: Any, count: int) -> Stage:
    async def run(source: Batches, run_context: RunContext) -> Batches:
        left = count
        async for batch in source:
            if len(batch) >= left:
                yield batch[:left]
                return
            left -= len(batch)
            yield batch

    return Stage("$limit", specification, run=run, meaning=count)


def _compile_limit(specification: Any, scope: Scope) -> Stage:
    count = whole_number(specification)
    if count is None or not 0 <= count <= INT64_MAX:
        raise MongoFailure(5107201, "invalid argument to $limit stage: Expected a non-negative number")
    if count == 0:
        raise MongoFailure(15958, "the limit must be positive")
    return limit_stage(specification, count)


def _compile_skip(specification: Any, scope: Scope) -> Stage:
    count = whole_number(specification)
    if count is None or not 0 <= count <= INT64_MAX:
        raise MongoFailure(5107200, "invalid argument to $skip stage: Expected a non-negative number")

    async def run(source: Batches, run_context: RunContext) -> Batches:
        left = count
        async for batch in source:
            if left >= len(batch):
                left -= len(batch)
                continue
            yield batch[left:] if left else batch
            left = 0

    return Stage("$skip", specification, run=run, meaning=count)


def _compile_count(specification: Any, scope: Scope) -> Stage:
    if type(specification) is not str:
        raise MongoFailure(40156, "the count field must be a non-empty string")
    if not specification:
        raise MongoFailure(40157, "the count field must be a non-empty string")
    if specification[0] == "$":
        raise MongoFailure(40158, "the count field cannot be a $-prefixed path")
    if "\0" in specification:
        raise MongoFailure(40159, "the count field cannot contain a null byte")
    if "." in specification:
        raise MongoFailure(40160, "the count field cannot contain '.'")
    if specification == "_id":
        raise MongoFailure(9039800, "the count field cannot be '_id'")

    async def run(source: Batches, run_context: RunContext) -> Batches:
        count = 0
        async for batch in source:
            count += len(batch)
        if count:
            yield [{specification: int_of_size(count)}]

    return Stage("$count", specification, run=run)


def _compile_sample(specification: Any, scope: Scope) -> Stage:
    if type(specification) is not dict:
        raise MongoFailure(28745, "the $sample stage specification must be an object")
    size: int | None = None
    for name, value in specification.items():
        if name != "size":
            raise MongoFailure(28748, f"unrecognized option to $sample: {name}")
        if not is_number(value):
            raise MongoFailure(28746, "size argument to $sample must be a number")
        size = _rounded(value)
    if size is None:
        raise MongoFailure(28749, "$sample stage must specify a size")
    if size <= 0:
        raise MongoFailure(28747, "size argument to $sample must be a positive integer")
    wanted = size

    async def run(source: Batches, run_context: RunContext) -> Batches:
        kept: list[Document] = []
        seen = 0
        async for batch in source:
            for document in batch:
                seen += 1
                if len(kept) < wanted:
                    kept.append(document)
                elif (place := random.randrange(seen)) < wanted:
                    kept[place] = document
        random.shuffle(kept)
        if kept:
            yield kept

    return Stage("$sample", specification, run=run)


def _rounded(value: Any) -> int:
    """Return a size as the server reads it: a double without its fraction, a decimal rounded half to even."""
    number = value.to_decimal() if type(value) is Decimal128 else value
    if number != number:
        return 0
    if number in (math.inf, -math.inf) or abs(number) > INT64_MAX:
        return INT64_MAX if number > 0 else -INT64_MAX
    return round(number) if type(value) is Decimal128 else int(number)


ROWS = (
    StageRow("$limit", _compile_limit),
    StageRow("$skip", _compile_skip),
    StageRow("$count", _compile_count),
    StageRow("$sample", _compile_sample),
)
