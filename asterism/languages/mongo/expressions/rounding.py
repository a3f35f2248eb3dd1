"""Operators that bring a number to a rounder one: `$abs`, `$ceil`, `$floor`, `$round`, `$trunc`."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from asterism.languages.mongo.expressions.constants import is_nullish
from asterism.languages.mongo.expressions.operator import Operator, positional
from asterism.languages.mongo.expressions.widths import (
    DECIMAL,
    DOUBLE,
    EXACT,
    INT,
    INT64_MIN,
    fits_int64,
    int_or_long,
    integral,
    plain_decimal,
    width_of,
)
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.numbers import DECIMAL_CONTEXT, from_decimal, to_decimal
from asterism.values.bson.types import Decimal128, Int64

# Digits after the point that may be asked for; a negative number counts digits before it.
PLACE_MIN, PLACE_MAX = -20, 100
DECIMAL_DIGITS = 34
_ONE = Decimal(1)


def number_of(name: str, function: Callable[[Any, int], Any]) -> Operator:
    """An operator of one number; `function` gets it and its width."""

    def compute(value: Any) -> Any:
        width = width_of(value)
        if width is None:
            raise MongoFailure(28765, f"{name} only supports numeric types, not {type_name(value)}")
        return function(value, width)

    return positional(name, compute, 1, 1, null_if_null=True)


def _absolute(value: Any, width: int) -> Any:
    if width == DECIMAL:
        return from_decimal(value.to_decimal().copy_abs())
    if width == DOUBLE:
        return abs(value)
    if value == INT64_MIN:
        raise MongoFailure(28680, "can't take $abs of long long min")
    return int_or_long(abs(value)) if width == INT else Int64(abs(value))


def _to_integral(double: Callable[[float], int], rounding: str) -> Callable[[Any, int], Any]:
    def compute(value: Any, width: int) -> Any:
        if width == DECIMAL:
            # A decimal with more than 34 digits before the point gives NaN, as it does in the reference server.
            rounded = to_decimal(value).to_integral_value(rounding, EXACT)
            return from_decimal(DECIMAL_CONTEXT.quantize(rounded, _ONE))
        if width == DOUBLE:
            return math.copysign(float(double(value)), value) if math.isfinite(value) else value
        return value

    return compute


def _to_place(name: str, rounding: str) -> Operator:
    def compute(value: Any, place_value: Any = 0) -> Any:
        if is_nullish(value):
            return None
        width = width_of(value)
        if width is None:
            raise MongoFailure(51081, f"{name} only supports numeric types, not {type_name(value)}")
        if is_nullish(place_value):
            return None
        place = _place(name, place_value)
        if width <= 1:
            return _integer_to_place(name, value, place, rounding)
        number = plain_decimal(value)
        if not number.is_finite():
            return value
        rounded = _quantize(number, place, rounding, is_double=width == DOUBLE)
        return float(rounded) if width == DOUBLE else from_decimal(rounded)

    return positional(name, compute, 1, 2)


def _place(name: str, value: Any) -> int:
    width = width_of(value)
    if width is None:
        raise MongoFailure(16004, f"can't convert from BSON type {type_name(value)} to long")
    if width >= DOUBLE and type(value) is not Decimal128 and not (math.isfinite(value) and abs(value) < 2.0**63):
        raise MongoFailure(31109, f"Can't coerce out of range value {value} to long")
    place = integral(value)
    if place is None or not fits_int64(place):
        raise MongoFailure(51082, f"precision argument to {name} must be an integral value")
    if not PLACE_MIN <= place <= PLACE_MAX:
        raise MongoFailure(51083, f"cannot apply {name} with precision value {place}, value must be in [-20, 100]")
    return place


def _integer_to_place(name: str, value: Any, place: int, rounding: str) -> Any:
    if place >= 0:
        return value
    unit = Decimal(1).scaleb(-place)
    rounded = int((Decimal(int(value)) / unit).to_integral_value(rounding, EXACT) * unit)
    if not fits_int64(rounded):
        raise MongoFailure(51080, f"invalid conversion from Decimal128 result in {name}")
    return Int64(rounded) if type(value) is Int64 else int_or_long(rounded)


def _quantize(number: Decimal, place: int, rounding: str, *, is_double: bool) -> Decimal:
    # A number too large to have that many places in 34 digits is as round as it can be.
    if number.adjusted() + place >= DECIMAL_DIGITS and not number.is_zero():
        return number if is_double else _widen(number)
    return number.quantize(Decimal(1).scaleb(-place), rounding, EXACT)


def _widen(number: Decimal) -> Decimal:
    digits = len(number.as_tuple().digits)
    exponent = number.adjusted() - DECIMAL_DIGITS + 1
    return number.quantize(Decimal(1).scaleb(exponent), context=EXACT) if digits < DECIMAL_DIGITS else number


OPERATORS: tuple[Operator, ...] = (
    number_of("$abs", _absolute),
    number_of("$ceil", _to_integral(math.ceil, ROUND_CEILING)),
    number_of("$floor", _to_integral(math.floor, ROUND_FLOOR)),
    _to_place("$round", ROUND_HALF_EVEN),
    _to_place("$trunc", ROUND_DOWN),
)
