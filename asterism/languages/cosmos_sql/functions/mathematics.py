"""Functions of numbers. Numbers are doubles; a result that is not finite is undefined."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from asterism.languages.cosmos_sql.functions.arguments import integer_of, of_numbers
from asterism.languages.cosmos_sql.functions.context import EvaluationContext
from asterism.languages.cosmos_sql.functions.function import Function
from asterism.values.undefined import UNDEFINED

# Enough digits for any double, from its first digit to its last.
_ALL_DIGITS = Context(prec=800)
# With more digits every double rounds to itself, or to zero.
_ROUNDING_DIGITS_MAX = 400


def _sign(value: float) -> float:
    return (value > 0) - (value < 0)


def _whole(value: float) -> float:
    """Return the nearest integer; halves round away from zero."""
    below = float(math.trunc(value))
    return below + math.copysign(1.0, value) if abs(value - below) >= 0.5 else below


def _round(value: object, digits: object = 0) -> object:
    """Round the decimal text of a number to `digits` after the point, or before it if negative."""
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
    # The library's own functions for the common bases are exact; a quotient can be off by a bit.
    if base == math.e:
        return math.log(value)
    if base == 10.0:
        return math.log10(value)
    return math.log2(value) if base == 2.0 else math.log(value) / math.log(base)


def _number_bin(value: float, size: float = 1.0) -> float:
    return math.floor(value / size) * size


def _random(context: EvaluationContext) -> object:
    return context.random()


def _unary(run: Callable[[float], float]) -> Function:
    return Function(1, 1, of_numbers(run))


_round_whole = of_numbers(_whole)

MATH_FUNCTIONS: Final[dict[str, Function]] = {
    "ABS": _unary(abs),
    "ACOS": _unary(math.acos),
    "ASIN": _unary(math.asin),
    "ATAN": _unary(math.atan),
    "ATN2": Function(2, 2, of_numbers(math.atan2)),
    "CEILING": _unary(math.ceil),
    "COS": _unary(math.cos),
    "COT": _unary(lambda value: 1.0 / math.tan(value)),
    "DEGREES": _unary(lambda value: 180.0 / math.pi * value),
    "EXP": _unary(math.exp),
    "FLOOR": _unary(math.floor),
    "LOG": Function(1, 2, of_numbers(_logarithm)),
    "LOG10": _unary(math.log10),
    "NUMBERBIN": Function(1, 2, of_numbers(_number_bin)),
    "PI": Function(0, 0, lambda: math.pi),
    "POWER": Function(2, 2, of_numbers(math.pow)),
    "RADIANS": _unary(lambda value: math.pi * value / 180.0),
    "RAND": Function(0, 0, _random, needs_context=True),
    "ROUND": Function(1, 2, _round),
    "SIGN": _unary(_sign),
    "SIN": _unary(math.sin),
    "SQRT": _unary(math.sqrt),
    "SQUARE": _unary(lambda value: value * value),
    "TAN": _unary(math.tan),
    "TRUNC": _unary(math.trunc),
}
