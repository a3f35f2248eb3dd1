"""Window functions over a series of points: slopes, areas, moving averages, gaps that are filled, scales."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any, Final

from asterism.languages.mongo.expressions.constants import Constant
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.integers import whole_number
from asterism.languages.mongo.stages.stage import many
from asterism.languages.mongo.stages.windows.bounds import FAILED_TO_PARSE, WHOLE_PARTITION
from asterism.languages.mongo.stages.windows.framed import window_of
from asterism.languages.mongo.stages.windows.partition import Evaluate, FunctionScope, Partition
from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.numbers import DECIMAL_CONTEXT, add, from_decimal, multiply, subtract, to_decimal
from asterism.values.bson.order import sort_key
from asterism.values.bson.types import MISSING, DatetimeMS, Decimal128, Document, Int64

# Only units of a fixed length, which a month does not have.
_UNIT_MILLISECONDS: Final = {
    "week": 604_800_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1000,
    "millisecond": 1,
}


def _fail(message: str) -> MongoFailure:
    return MongoFailure(FAILED_TO_PARSE, message)


def _arguments(name: str, argument: Any, allowed: tuple[str, ...]) -> Document:
    if type(argument) is not dict:
        raise _fail(f"{name} requires an object as its argument")
    for field in argument:
        if field not in allowed:
            raise _fail(f"{name} got unexpected argument: {field}")
    if "input" not in argument:
        raise _fail(f"{name} requires an 'input' expression")
    return argument


def divide(a: Any, b: Any) -> Any:
    """Return a quotient as a double, or as a decimal if one of the numbers is."""
    if type(a) is Decimal128 or type(b) is Decimal128:
        return from_decimal(DECIMAL_CONTEXT.divide(to_decimal(a), to_decimal(b)))
    return float(a) / float(b)


def _is_null(value: Any) -> bool:
    return value is None or value is MISSING


def _single_order(name: str, scope: FunctionScope) -> None:
    if scope.ordering is None or len(scope.ordering.fields) != 1:
        raise _fail(f"{name} requires a sortBy of a single field")


def _moments(name: str, partition: Partition, unit: str | None) -> list[Any]:
    """Return the sort values as numbers; those of dates in milliseconds, which need a unit."""
    moments = []
    for value in partition.sort_values():
        if type(value) is DatetimeMS:
            if unit is None:
                raise MongoFailure(5624901, f"{name} where the sortBy is a Date requires an 'unit'")
            moments.append(Int64(int(value)))
        elif unit is not None:
            raise MongoFailure(5624900, f"{name} with 'unit' expects the sortBy field to be a Date")
        elif is_number(value):
            moments.append(value)
        else:
            raise MongoFailure(5624902, f"{name} where the sortBy is not a Date requires numbers")
    return moments


def _slope_arguments(name: str, argument: Any, scope: FunctionScope) -> tuple[Document, str | None]:
    fields = _arguments(name, argument, ("input", "unit"))
    unit = fields.get("unit")
    if "unit" in fields and (type(unit) is not str or unit not in _UNIT_MILLISECONDS):
        raise _fail(f"{name} 'unit' must be 'week' or smaller: {unit!r}")
    _single_order(name, scope)
    return fields, unit


def compile_derivative(name: str, argument: Any, scope: FunctionScope) -> Evaluate:
    fields, unit = _slope_arguments(name, argument, scope)
    if scope.window is MISSING:
        raise _fail("$derivative requires explicit window bounds")
    window = window_of(scope)
    values_of = many(scope.context.compile(fields["input"]))

    def evaluate(partition: Partition) -> list[Any]:
        values = values_of(partition.documents, partition.variables)
        moments = _moments(name, partition, unit)
        return [_slope(values, moments, start, stop - 1, unit) for start, stop in partition.frames(window)]

    return evaluate


def _slope(values: list[Any], moments: list[Any], first: int, last: int, unit: str | None) -> Any:
    if last <= first or not is_number(values[first]) or not is_number(values[last]):
        return None
    run = subtract(moments[last], moments[first])
    if sort_key(run) == sort_key(0):
        return None
    slope = divide(subtract(values[last], values[first]), run)
    return slope if unit is None else multiply(slope, _UNIT_MILLISECONDS[unit])


def compile_integral(name: str, argument: Any, scope: FunctionScope) -> Evaluate:
    fields, unit = _slope_arguments(name, argument, scope)
    window = window_of(scope)
    values_of = many(scope.context.compile(fields["input"]))

    def evaluate(partition: Partition) -> list[Any]:
        values = values_of(partition.documents, partition.variables)
        moments = _moments(name, partition, unit)
        return [_area(values, moments, start, stop, unit) for start, stop in partition.frames(window)]

    return evaluate


def _area(values: list[Any], moments: list[Any], start: int, stop: int, unit: str | None) -> Any:
    places = [place for place in range(start, stop) if is_number(values[place])]
    if not places:
        return None
    area: Any = 0.0
    for left, right in itertools.pairwise(places):
        width = subtract(moments[right], moments[left])
        area = add(area, divide(multiply(width, add(values[left], values[right])), 2))
    return area if unit is None else divide(area, _UNIT_MILLISECONDS[unit])


def compile_moving_average(name: str, argument: Any, scope: FunctionScope) -> Evaluate:
    fields = _arguments(name, argument, ("input", "N", "alpha"))
    if ("N" in fields) == ("alpha" in fields):
        raise _fail("$expMovingAvg requires exactly one of 'N' and 'alpha'")
    if scope.window is not MISSING:
        raise _fail("$expMovingAvg does not accept a 'window' argument")
    if scope.ordering is None:
        raise _fail("$expMovingAvg requires an explicit 'sortBy'")
    alpha = _read_alpha(fields)
    values_of = many(scope.context.compile(fields["input"]))

    def evaluate(partition: Partition) -> list[Any]:
        results: list[Any] = []
        average: Any = None
        for value in values_of(partition.documents, partition.variables):
            if not is_number(value):
                results.append(None)
                continue
            average = _start(value) if average is None else _blend(value, average, alpha)
            results.append(average)
        return results

    return evaluate


def _read_alpha(fields: Document) -> Decimal:
    if "N" in fields:
        count = whole_number(fields["N"])
        if count is None or count <= 0:
            raise _fail("'N' field must be a positive integer")
        return DECIMAL_CONTEXT.divide(Decimal(2), Decimal(count + 1))
    if not is_number(fields["alpha"]):
        raise _fail("'alpha' must be a number")
    alpha = to_decimal(fields["alpha"])
    if not 0 < alpha < 1:
        raise _fail("'alpha' must be between 0 and 1 (exclusive)")
    return alpha


def _start(value: Any) -> Any:
    return value if type(value) is Decimal128 else float(value)


def _blend(value: Any, average: Any, alpha: Decimal) -> Any:
    if type(value) is Decimal128 or type(average) is Decimal128:
        rest = DECIMAL_CONTEXT.subtract(Decimal(1), alpha)
        weighted = DECIMAL_CONTEXT.multiply(to_decimal(value), alpha)
        return from_decimal(DECIMAL_CONTEXT.add(weighted, DECIMAL_CONTEXT.multiply(to_decimal(average), rest)))
    weight = float(alpha)
    return float(value) * weight + float(average) * (1.0 - weight)


def compile_linear_fill(name: str, argument: Any, scope: FunctionScope) -> Evaluate:
    if scope.window is not MISSING:
        raise _fail("$linearFill does not accept a 'window' field")
    _single_order(name, scope)
    values_of = many(scope.context.compile(argument))

    def evaluate(partition: Partition) -> list[Any]:
        values = values_of(partition.documents, partition.variables)
        return interpolate(values, [_abscissa(value) for value in partition.sort_values()])

    return evaluate


def _abscissa(value: Any) -> Any:
    if type(value) is DatetimeMS:
        return Int64(int(value))
    if not is_number(value):
        raise MongoFailure(605001, f"$linearFill needs a sortBy of numbers or dates, found {type_name(value)}")
    return value


def interpolate(values: list[Any], places: list[Any]) -> list[Any]:
    """Return the values with those that are null or missing on the line between their neighbors; null at the ends."""
    for earlier, later in itertools.pairwise(places):
        if sort_key(earlier) == sort_key(later):
            raise MongoFailure(6050106, "There can be no repeated values in the sort field of $linearFill")
    results = [None if _is_null(value) else value for value in values]
    left: int | None = None
    for right, value in enumerate(values):
        if _is_null(value):
            continue
        if not is_number(value):
            raise MongoFailure(6050201, f"$linearFill needs numbers, found {type_name(value)}")
        for place in range(right if left is None else left + 1, right):
            assert left is not None, "the first value has nothing before it to fill"
            part = divide(subtract(places[place], places[left]), subtract(places[right], places[left]))
            results[place] = add(values[left], multiply(subtract(value, values[left]), part))
        left = right
    return results


def compile_locf(name: str, argument: Any, scope: FunctionScope) -> Evaluate:
    if scope.window is not MISSING:
        raise _fail("$locf does not accept a 'window' field")
    values_of = many(scope.context.compile(argument))

    def evaluate(partition: Partition) -> list[Any]:
        results: list[Any] = []
        last: Any = None
        for value in values_of(partition.documents, partition.variables):
            last = last if _is_null(value) else value
            results.append(last)
        return results

    return evaluate


def compile_scaler(name: str, argument: Any, scope: FunctionScope) -> Evaluate:
    fields = _arguments(name, argument, ("input", "min", "max"))
    low, high = (_scale_end(fields.get(field, default), scope) for field, default in (("min", 0), ("max", 1)))
    if not sort_key(low) < sort_key(high):
        raise MongoFailure(10487001, "The 'max' of $minMaxScaler must be greater than its 'min'")
    window = WHOLE_PARTITION if scope.window is MISSING else window_of(scope)
    values_of = many(scope.context.compile(fields["input"]))

    def evaluate(partition: Partition) -> list[Any]:
        values = values_of(partition.documents, partition.variables)
        for value in values:
            if not is_number(value):
                raise MongoFailure(10487000, f"$minMaxScaler needs numbers, found {type_name(value)}")
        results = []
        for value, (start, stop) in zip(values, partition.frames(window), strict=True):
            frame = values[start:stop] or [value]
            least, most = min(frame, key=sort_key), max(frame, key=sort_key)
            width = subtract(most, least)
            if sort_key(width) == sort_key(0):
                results.append(low)
                continue
            part = divide(subtract(value, least), width)
            results.append(add(multiply(part, subtract(high, low)), low))
        return results

    return evaluate


def _scale_end(specification: Any, scope: FunctionScope) -> Any:
    evaluate = scope.context.compile(specification)
    if not isinstance(evaluate, Constant) or not is_number(evaluate.value):
        raise _fail("'min' and 'max' of $minMaxScaler must be constant numbers")
    return evaluate.value
