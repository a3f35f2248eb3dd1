"""The covariance of pairs of numbers in a frame."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from asterism.languages.mongo.stages.stage import many
from asterism.languages.mongo.stages.windows.framed import window_of
from asterism.languages.mongo.stages.windows.partition import Evaluate, FunctionScope, Partition
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import DECIMAL_CONTEXT, from_decimal, to_decimal
from asterism.values.bson.types import Decimal128

Pair = tuple[Any, Any]


def compile_covariance(name: str, argument: Any, scope: FunctionScope) -> Evaluate:
    values_of = many(scope.context.compile(argument))
    window = window_of(scope)
    is_sample = name == "$covarianceSamp"

    def evaluate(partition: Partition) -> list[Any]:
        pairs = [_pair(value) for value in values_of(partition.documents, partition.variables)]
        known: dict[tuple[int, int], Any] = {}
        results = []
        for frame in partition.frames(window):
            if frame not in known:
                known.clear()
                members = [pair for pair in pairs[frame[0] : frame[1]] if pair is not None]
                known[frame] = covariance(members, is_sample=is_sample)
            results.append(known[frame])
        return results

    return evaluate


def _pair(value: Any) -> Pair | None:
    """Return the two numbers of a value, or None for anything else."""
    if type(value) is list and len(value) == 2 and all(map(is_number, value)):
        return value[0], value[1]
    return None


def covariance(pairs: list[Pair], *, is_sample: bool) -> Any:
    """Return the covariance, null for too few pairs. Pairs with an infinity or NaN do not count, but their sum is the
    result as soon as there are two others."""
    finite = [pair for pair in pairs if all(map(_is_finite, pair))]
    special = [number for pair in pairs for number in pair if not _is_finite(number)]
    if len(finite) - is_sample <= 0:
        return None
    is_decimal = any(type(number) is Decimal128 for pair in pairs for number in pair)
    if special and len(finite) > 1:
        total = sum(float(number.to_decimal() if type(number) is Decimal128 else number) for number in special)
        return from_decimal(Decimal(total)) if is_decimal else total
    if len(finite) == 1:
        return 0.0
    if is_decimal:
        return _of_decimals([(to_decimal(x), to_decimal(y)) for x, y in finite], len(finite) - is_sample)
    return _of_doubles([(float(x), float(y)) for x, y in finite], len(finite) - is_sample)


def _is_finite(number: Any) -> bool:
    return number.to_decimal().is_finite() if type(number) is Decimal128 else math.isfinite(number)


# The means come from the sums, as in the reference server: sums that overflow show in the result.


def _of_doubles(pairs: list[tuple[float, float]], degrees: int) -> float:
    sum_x, sum_y, products = pairs[0][0], pairs[0][1], 0.0
    for count, (x, y) in enumerate(pairs[1:], start=2):
        sum_y += y
        products += (x - sum_x / (count - 1)) * (y - sum_y / count)
        sum_x += x
    return products / degrees


def _of_decimals(pairs: list[tuple[Decimal, Decimal]], degrees: int) -> Decimal128:
    context = DECIMAL_CONTEXT
    (sum_x, sum_y), products = pairs[0], Decimal(0)
    for count, (x, y) in enumerate(pairs[1:], start=2):
        sum_y = context.add(sum_y, y)
        delta_x = context.subtract(x, context.divide(sum_x, to_decimal(float(count - 1))))
        delta_y = context.subtract(y, context.divide(sum_y, to_decimal(float(count))))
        products = context.add(products, context.multiply(delta_x, delta_y))
        sum_x = context.add(sum_x, x)
    return from_decimal(context.divide(products, to_decimal(float(degrees))))
