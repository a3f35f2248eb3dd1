"""Functions of numbers. Numbers are doubles; where the result is no finite number it is undefined."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from asterism.languages.cosmos_sql.functions.arguments import integer_of, of_numbers
from asterism.languages.cosmos_sql.functions.context import EvaluationContext
from asterism.languages.cosmos_sql.functions.function import Function
from asterism.values.undefined import UNDEFINED

# Digits enough for any double, written out from its first digit to its last.
_ALL_DIGITS = Context(prec=800)
# Beyond these every double is its own rounding, or zero.
_ROUNDING_DIGITS_MAX = 400


def _sign(value: float) -> float:
    return (value > 0) - (value < 0)


def _whole(value: float) -> float:
    """The nearest integer; halves go away from zero."""
    below = float(math.trunc(value))
    return below + math.copysign(1.0, value) if abs(value - below) >= 0.5 else below


def _round(value: object, digits: object = 0) -> object:
    """`digits` after the decimal point, or before it when negative, of the number as it is written."""
    places = integer_of(digits)
    if places is None:
        return UNDEFINED
    return _round_whole(value) if places == 0 else _round_to(value, places)


def _round_to(value: object, places: int) -> object:
    if abs(places) > _ROUNDING_DIGITS_MAX:
        return of_numbers(lambda number: number if places > 0 else 0.0)(value)

    def rounded(number: float) -> float:
        if not math.isfinite(number):
            return number
        unit = Decimal(1).scaleb(-places)
        return float(Decimal(repr(number)).quantize(unit, ROUND_HALF_UP, _ALL_DIGITS))

    return of_numbers(rounded)(value)


def _logarithm(value: float, base: float = math.e) -> float:
    # The library's own functions for the common bases are exact where a quotient is off by a bit.
    if base == math.e:
        return math.log(value)
    if base == 10.0:
        return math.log10(value)
    return math.log2(value) if base == 2.0 else math.log(value) / math.log(base)


def _number_bin(value: float, size: float = 1.0) -> float:
    return math.floor(value / size) * size


def _random(context: EvaluationContext) -> object:
    return context.random()


def _one(run: Callable[[float], float]) -> Function:
    return Function(1, 1, of_numbers(run))


_round_whole = of_numbers(_whole)

MATH_FUNCTIONS: Final[dict[str, Function]] = {
    "ABS": _one(abs),
    "ACOS": _one(math.acos),
    "ASIN": _one(math.asin),
    "ATAN": _one(math.atan),
    "ATN2": Function(2, 2, of_numbers(math.atan2)),
    "CEILING": _one(math.ceil),
    "COS": _one(math.cos),
    "COT": _one(lambda value: 1.0 / math.tan(value)),
    "DEGREES": _one(lambda value: 180.0 / math.pi * value),
    "EXP": _one(math.exp),
    "FLOOR": _one(math.floor),
    "LOG": Function(1, 2, of_numbers(_logarithm)),
    "LOG10": _one(math.log10),
    "NUMBERBIN": Function(1, 2, of_numbers(_number_bin)),
    "PI": Function(0, 0, lambda: math.pi),
    "POWER": Function(2, 2, of_numbers(math.pow)),
    "RADIANS": _one(lambda value: math.pi * value / 180.0),
    "RAND": Function(0, 0, _random, needs_context=True),
    "ROUND": Function(1, 2, _round),
    "SIGN": _one(_sign),
    "SIN": _one(math.sin),
    "SQRT": _one(math.sqrt),
    "SQUARE": _one(lambda value: value * value),
    "TAN": _one(math.tan),
    "TRUNC": _one(math.trunc),
}
