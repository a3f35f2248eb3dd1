"""Window functions of the place of a document: $rank, $denseRank, $documentNumber, $shift."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.expressions.constants import Constant
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.integers import whole_number
from asterism.languages.mongo.stages.stage import many
from asterism.languages.mongo.stages.windows.bounds import FAILED_TO_PARSE
from asterism.languages.mongo.stages.windows.partition import Evaluate, FunctionScope, Partition
from asterism.values.bson.numbers import INT32_MAX, INT32_MIN
from asterism.values.bson.types import MISSING

RANK_NAMES = ("$rank", "$denseRank", "$documentNumber")


def compile_rank(name: str, argument: Any, scope: FunctionScope) -> Evaluate:
    if argument != {} or type(argument) is not dict:
        raise MongoFailure(5371603, f"{name} must be specified with '{{}}' as the value")
    if scope.ordering is None or len(scope.ordering.fields) != 1:
        raise MongoFailure(5371602, f"{name} must be specified with a top level sortBy expression with one element")
    if name == "$documentNumber":
        return lambda partition: list(range(1, len(partition) + 1))
    return lambda partition: _ranks(partition, is_dense=name == "$denseRank")


def _ranks(partition: Partition, *, is_dense: bool) -> list[int]:
    assert partition.ordering is not None, "ranks were checked to have an order"
    results: list[int] = []
    previous: Any = None
    rank = 0
    for number, document in enumerate(partition.documents, start=1):
        key = partition.ordering.key(document)
        if number == 1 or key != previous:
            rank = rank + 1 if is_dense else number
            previous = key
        results.append(rank)
    return results


def compile_shift(name: str, argument: Any, scope: FunctionScope) -> Evaluate:
    if type(argument) is not dict:
        raise MongoFailure(FAILED_TO_PARSE, "Argument to $shift must be an object")
    for field in argument:
        if field not in ("output", "by", "default"):
            raise MongoFailure(FAILED_TO_PARSE, f"Unknown argument in $shift: {field}")
    if "by" not in argument or "output" not in argument:
        raise MongoFailure(FAILED_TO_PARSE, "$shift requires 'by' and 'output'")
    if scope.window is not MISSING:
        raise MongoFailure(FAILED_TO_PARSE, "$shift does not accept a 'window' field")
    if scope.ordering is None:
        raise MongoFailure(FAILED_TO_PARSE, "'$shift' requires a sortBy")
    by = whole_number(argument["by"])
    if by is None or not INT32_MIN <= by <= INT32_MAX:
        raise MongoFailure(FAILED_TO_PARSE, f"'$shift:by' field must be an integer, but found {argument['by']!r}")
    default = scope.context.compile(argument.get("default"))
    if not isinstance(default, Constant):
        raise MongoFailure(FAILED_TO_PARSE, "'$shift:default' expression must yield a constant value")
    values_of = many(scope.context.compile(argument["output"]))
    fallback = default.value

    def evaluate(partition: Partition) -> list[Any]:
        values = values_of(partition.documents, partition.variables)
        count = len(values)
        moved = (place + by for place in range(count))
        found = [values[place] if 0 <= place < count else fallback for place in moved]
        return [None if value is MISSING else value for value in found]

    return evaluate
