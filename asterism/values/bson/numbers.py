"""Exact arithmetic over the four number types: int32 grows into int64, int64 into double, a decimal takes all.

The rules are those of the aggregation language. Operators with other rules, such as `$inc`, which refuses to leave
int64, look at the result's type or range themselves.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Any, Final

from asterism.values.bson.types import Decimal128, Int64

INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

# IEEE 754 decimal128: 34 digits. Nothing is trapped: overflow gives an infinity and an undefined result NaN.
DECIMAL_CONTEXT: Final = decimal.Context(
    prec=34, rounding=decimal.ROUND_HALF_EVEN, Emin=-6143, Emax=6144, capitals=1, clamp=1, flags=[], traps=[]
)
# The server takes 15 significant digits of a double that meets a decimal, trailing zeros included.
DOUBLE_DIGITS: Final = 15
_DOUBLE_CONTEXT: Final = decimal.Context(
    prec=DOUBLE_DIGITS, rounding=decimal.ROUND_HALF_EVEN, Emin=-6143, Emax=6144, traps=[]
)

Number = int | Int64 | float | Decimal128


def to_decimal(value: Any) -> Decimal:
    """Return the decimal that a number becomes in arithmetic: a double is rounded to 15 digits, others are exact."""
    kind = type(value)
    if kind is Decimal128:
        return decimal_of(value)
    if kind is float:
        if value == 0.0 or value != value or value in (float("inf"), float("-inf")):
            return Decimal(value)
        rounded = _DOUBLE_CONTEXT.create_decimal_from_float(value)
        padding = DOUBLE_DIGITS - len(rounded.as_tuple().digits)
        if padding > 0:
            return rounded.scaleb(-padding, DECIMAL_CONTEXT) * Decimal(10**padding)
        return rounded
    return Decimal(int(value))


def exact_decimal(value: Any) -> Decimal:
    """Return the decimal of exactly the same value, for comparisons; that of a double may have hundreds of digits."""
    return decimal_of(value) if type(value) is Decimal128 else Decimal(value)


def decimal_of(value: Decimal128) -> Decimal:
    """Return the Decimal of a Decimal128; a signaling NaN becomes a quiet one, because comparing it would raise."""
    result = value.to_decimal()
    return Decimal("NaN") if result.is_snan() else result


def from_decimal(value: Decimal) -> Decimal128:
    """Return the Decimal128 nearest to a decimal; one too large becomes an infinity."""
    return Decimal128(DECIMAL_CONTEXT.create_decimal(value))


def int_of_size(n: int) -> int | Int64 | float:
    """Return an integer as int32, else int64, else double, whichever is the first to hold its range."""
    if INT32_MIN <= n <= INT32_MAX:
        return int(n)
    if INT64_MIN <= n <= INT64_MAX:
        return Int64(n)
    return float(n)


def long_or_double(n: int) -> Int64 | float:
    """Return an integer as int64, or as double beyond its range."""
    return Int64(n) if INT64_MIN <= n <= INT64_MAX else float(n)


def is_nan(value: Any) -> bool:
    """Return True for the NaN of doubles and of decimals."""
    kind = type(value)
    if kind is float:
        return bool(value != value)
    return kind is Decimal128 and decimal_of(value).is_nan()


def add(a: Any, b: Any) -> Number:
    kind_a, kind_b = type(a), type(b)
    if kind_a is Decimal128 or kind_b is Decimal128:
        return Decimal128(DECIMAL_CONTEXT.add(to_decimal(a), to_decimal(b)))
    if kind_a is float or kind_b is float:
        return float(a) + float(b)
    return _sized(int(a) + int(b), kind_a, kind_b)


def subtract(a: Any, b: Any) -> Number:
    kind_a, kind_b = type(a), type(b)
    if kind_a is Decimal128 or kind_b is Decimal128:
        return Decimal128(DECIMAL_CONTEXT.subtract(to_decimal(a), to_decimal(b)))
    if kind_a is float or kind_b is float:
        return float(a) - float(b)
    return _sized(int(a) - int(b), kind_a, kind_b)


def multiply(a: Any, b: Any) -> Number:
    kind_a, kind_b = type(a), type(b)
    if kind_a is Decimal128 or kind_b is Decimal128:
        return Decimal128(DECIMAL_CONTEXT.multiply(to_decimal(a), to_decimal(b)))
    if kind_a is float or kind_b is float:
        return float(a) * float(b)
    return _sized(int(a) * int(b), kind_a, kind_b)


def _sized(n: int, kind_a: type, kind_b: type) -> int | Int64 | float:
    """Return the integer in the wider of two types, or in the next that holds it."""
    if kind_a is Int64 or kind_b is Int64:
        return long_or_double(n)
    return int_of_size(n)


def exact_value(value: Any) -> Any:
    """Return a number that Python compares exactly with any other such one; not for NaN."""
    return decimal_of(value) if type(value) is Decimal128 else value
