"""Operators that add, multiply and divide, with the promotion of number types that the protocol promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any

from asterism.languages.mongo.expressions.constants import is_nullish
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables, positional
from asterism.languages.mongo.expressions.widths import (
    DECIMAL,
    DOUBLE,
    EXACT,
    INT,
    LONG,
    fits_int64,
    int_or_long,
    plain_decimal,
    width_of,
)
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.numbers import DECIMAL_CONTEXT, from_decimal, to_decimal
from asterism.values.bson.types import DatetimeMS, Int64

BAD_VALUE = 2
TYPE_MISMATCH = 14
OVERFLOW = 15


def _many(name: str, combine: Callable[[list[Any]], Any]) -> Operator:
    """An operator of any number of arguments. They are given to `combine` up to the first null, which makes the
    result null, so that a wrong type is an error only in front of it."""

    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        arguments = specification if isinstance(specification, list) else [specification]
        closures = [context.compile(argument) for argument in arguments]

        def evaluate(document: Any, variables: Variables) -> Any:
            values: list[Any] = []
            for closure in closures:
                value = closure(document, variables)
                if is_nullish(value):
                    combine(values)
                    return None
                values.append(value)
            return combine(values)

        return evaluate

    return Operator(name, compile_call)


def as_number(total: int, width: int) -> Any:
    """Return an integer in the type of its width; a long that overflows becomes a double."""
    if not fits_int64(total):
        return float(total)
    return int_or_long(total) if width == INT else Int64(total)


def add(values: list[Any]) -> Any:
    total: Any = 0
    width = INT
    date: DatetimeMS | None = None
    for value in values:
        if type(value) is DatetimeMS:
            if date is not None:
                raise MongoFailure(16612, "only one date allowed in an $add expression")
            date = value
            continue
        operand_width = width_of(value)
        if operand_width is None:
            raise MongoFailure(TYPE_MISMATCH, f"$add only supports numeric or date types, not {type_name(value)}")
        total, width = _plus(total, width, value, operand_width)
    if date is not None:
        return _shift_date(date, [value for value in values if type(value) is not DatetimeMS])
    return from_decimal(total) if width == DECIMAL else total if width == DOUBLE else as_number(total, width)


def _plus(total: Any, width: int, value: Any, operand_width: int) -> tuple[Any, int]:
    if width == DECIMAL or operand_width == DECIMAL:
        left = total if width == DECIMAL else to_decimal(total)
        return DECIMAL_CONTEXT.add(left, to_decimal(value)), DECIMAL
    if width == DOUBLE or operand_width == DOUBLE:
        return float(total) + float(value), DOUBLE
    total = int(total) + int(value)
    if not fits_int64(total):
        return float(total), DOUBLE
    return total, max(width, operand_width)


def _shift_date(date: DatetimeMS, offsets: list[Any], sign: int = 1) -> DatetimeMS:
    milliseconds = int(date)
    for offset in offsets:
        milliseconds += sign * _whole_milliseconds(offset)
    if not fits_int64(milliseconds):
        raise MongoFailure(OVERFLOW, "date overflow")
    return DatetimeMS(milliseconds)


def _whole_milliseconds(offset: Any) -> int:
    number = plain_decimal(offset)
    if not number.is_finite():
        raise MongoFailure(OVERFLOW, "date overflow: the offset is not a finite number")
    rounding = ROUND_HALF_EVEN if width_of(offset) == DECIMAL else ROUND_HALF_UP
    return int(number.to_integral_value(rounding, EXACT))


def subtract(left: Any, right: Any) -> Any:
    if is_nullish(left) or is_nullish(right):
        return None
    left_width, right_width = width_of(left), width_of(right)
    if left_width is not None and right_width is not None:
        width = max(left_width, right_width)
        if width == DECIMAL:
            return from_decimal(DECIMAL_CONTEXT.subtract(to_decimal(left), to_decimal(right)))
        return float(left) - float(right) if width == DOUBLE else as_number(int(left) - int(right), width)
    if type(left) is DatetimeMS:
        if type(right) is DatetimeMS:
            difference = int(left) - int(right)
            if not fits_int64(difference):
                raise MongoFailure(OVERFLOW, "date overflow in $subtract")
            return Int64(difference)
        if right_width is not None:
            return _shift_date(left, [right], -1)
    raise MongoFailure(TYPE_MISMATCH, f"can't $subtract {type_name(right)} from {type_name(left)}")


def multiply(values: list[Any]) -> Any:
    total: Any = 1
    width = INT
    for value in values:
        operand_width = width_of(value)
        if operand_width is None:
            raise MongoFailure(TYPE_MISMATCH, f"$multiply only supports numeric types, not {type_name(value)}")
        if width == DECIMAL or operand_width == DECIMAL:
            left = total if width == DECIMAL else to_decimal(total)
            total, width = DECIMAL_CONTEXT.multiply(left, to_decimal(value)), DECIMAL
        elif width == DOUBLE or operand_width == DOUBLE:
            total, width = float(total) * float(value), DOUBLE
        else:
            total, width = int(total) * int(value), max(width, operand_width)
            if not fits_int64(total):
                total, width = float(total), DOUBLE
    return from_decimal(total) if width == DECIMAL else total if width == DOUBLE else as_number(total, width)


def divide(left: Any, right: Any) -> Any:
    left_width, right_width = width_of(left), width_of(right)
    if left_width is None or right_width is None:
        if is_nullish(left) or is_nullish(right):
            return None
        raise MongoFailure(
            TYPE_MISMATCH, f"$divide only supports numeric types, not {type_name(left)} and {type_name(right)}"
        )
    if max(left_width, right_width) == DECIMAL:
        divisor = to_decimal(right)
        if divisor.is_zero():
            raise MongoFailure(BAD_VALUE, "can't $divide by zero")
        return from_decimal(DECIMAL_CONTEXT.divide(to_decimal(left), divisor))
    if float(right) == 0:
        raise MongoFailure(BAD_VALUE, "can't $divide by zero")
    return float(left) / float(right)


def modulo(left: Any, right: Any) -> Any:
    left_width, right_width = width_of(left), width_of(right)
    if left_width is None or right_width is None:
        if is_nullish(left) or is_nullish(right):
            return None
        raise MongoFailure(16611, f"$mod only supports numeric types, not {type_name(left)} and {type_name(right)}")
    width = max(left_width, right_width)
    if width == DECIMAL:
        return from_decimal(_decimal_modulo(to_decimal(left), to_decimal(right)))
    if float(right) == 0:
        raise MongoFailure(16610, "can't $mod by zero")
    if width == DOUBLE:
        return _double_modulo(float(left), float(right))
    remainder = abs(int(left)) % abs(int(right))
    remainder = -remainder if left < 0 else remainder
    return Int64(remainder) if width == LONG else remainder


def _decimal_modulo(left: Decimal, right: Decimal) -> Decimal:
    if right.is_zero():
        raise MongoFailure(5733415, "can't $mod by zero")
    if left.is_nan() or right.is_nan() or left.is_infinite():
        return Decimal("NaN")
    return left if right.is_infinite() else EXACT.remainder(left, right)


def _double_modulo(left: float, right: float) -> float:
    return math.nan if math.isinf(left) or math.isnan(left) or math.isnan(right) else math.fmod(left, right)


OPERATORS: tuple[Operator, ...] = (
    _many("$add", add),
    _many("$multiply", multiply),
    positional("$subtract", subtract, 2, 2),
    positional("$divide", divide, 2, 2),
    positional("$mod", modulo, 2, 2),
)
