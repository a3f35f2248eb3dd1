"""Accumulators used as expressions, over their arguments or over the elements of a single array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.expressions.constants import is_nullish
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables, named
from asterism.languages.mongo.expressions.quantiles import (
    check_method,
    check_probabilities,
    numbers_among,
    quantile,
)
from asterism.languages.mongo.expressions.sums import Deviation, Mean, Sum
from asterism.values.bson.order import compare


def _over_values(name: str, function: Callable[[list[Any], Any], Any]) -> Operator:
    """An operator over values; `function` gets them and the collation."""

    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        collate = context.collate
        if isinstance(specification, list) and len(specification) != 1:
            closures = [context.compile(argument) for argument in specification]
            return lambda document, variables: function([part(document, variables) for part in closures], collate)
        only = context.compile(specification[0] if isinstance(specification, list) else specification)

        def evaluate(document: Any, variables: Variables) -> Any:
            value = only(document, variables)
            return function(value if isinstance(value, list) else [value], collate)

        return evaluate

    return Operator(name, compile_call)


def _sum(values: list[Any], collate: Any) -> Any:
    total = Sum()
    for value in values:
        total.add(value)
    return total.total()


def _mean(values: list[Any], collate: Any) -> Any:
    mean = Mean()
    for value in values:
        mean.add(value)
    return mean.result()


def _deviation(*, is_sample: bool) -> Callable[[list[Any], Any], Any]:
    def compute(values: list[Any], collate: Any) -> Any:
        result = Deviation()
        for value in values:
            result.add(value)
        return result.result(is_sample=is_sample)

    return compute


def _extreme(sign: int) -> Callable[[list[Any], Any], Any]:
    def compute(values: list[Any], collate: Any) -> Any:
        best: Any = None
        for value in values:
            if not is_nullish(value) and (best is None or compare(value, best, collate) * sign > 0):
                best = value
        return best

    return compute


def _compile_percentile(fields: dict[str, Any], context: CompileContext) -> Evaluate:
    method = check_method("$percentile", fields["method"])
    read_input, read_probabilities = context.compile(fields["input"]), context.compile(fields["p"])

    def evaluate(document: Any, variables: Variables) -> Any:
        probabilities = check_probabilities(read_probabilities(document, variables))
        ordered = _ordered(read_input(document, variables))
        return [quantile(ordered, probability, method) for probability in probabilities]

    return evaluate


def _compile_median(fields: dict[str, Any], context: CompileContext) -> Evaluate:
    method = check_method("$median", fields["method"])
    read_input = context.compile(fields["input"])
    return lambda document, variables: quantile(_ordered(read_input(document, variables)), 0.5, method)


def _ordered(value: Any) -> list[float]:
    return numbers_among(value if isinstance(value, list) else [value])


OPERATORS: tuple[Operator, ...] = (
    _over_values("$sum", _sum),
    _over_values("$avg", _mean),
    _over_values("$min", _extreme(-1)),
    _over_values("$max", _extreme(1)),
    _over_values("$stdDevPop", _deviation(is_sample=False)),
    _over_values("$stdDevSamp", _deviation(is_sample=True)),
    named(
        "$percentile",
        _compile_percentile,
        required=("input", "p", "method"),
        not_an_object=7429703,
        unknown_field=40415,
        missing_field=40414,
    ),
    named(
        "$median",
        _compile_median,
        required=("input", "method"),
        not_an_object=7436100,
        unknown_field=40415,
        missing_field=40414,
    ),
)
