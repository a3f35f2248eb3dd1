"""The order in which number types give way to each other: int, long, double, decimal."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

from asterism.values.bson.types import Decimal128, Int64

INT, LONG, DOUBLE, DECIMAL = range(4)
# By exact type, so that a bool, which is an int to Python, is not a number.
WIDTHS: dict[type, int] = {int: INT, Int64: LONG, float: DOUBLE, Decimal128: DECIMAL}

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
# Enough digits for the quotient of any two decimals, whose exponents lie between -6176 and 6111.
EXACT = Context(prec=13_000, Emin=-99_999, Emax=99_999)


def width_of(value: Any) -> int | None:
    """Return the width of a number, or None for a value that is not a number."""
    return WIDTHS.get(type(value))


def fits_int32(number: int) -> bool:
    return INT32_MIN <= number <= INT32_MAX


def fits_int64(number: int) -> bool:
    return INT64_MIN <= number <= INT64_MAX


def int_or_long(number: int) -> int:
    """Return the narrowest integer type for a number that fits into a long."""
    return int(number) if fits_int32(number) else Int64(number)


def plain_decimal(value: Any) -> Decimal:
    """Return the exact value of any finite or infinite number, without the rounding of `numbers.to_decimal`."""
    return value.to_decimal() if type(value) is Decimal128 else Decimal(value)


def is_nan(value: Any) -> bool:
    if type(value) is float:
        return value != value
    return type(value) is Decimal128 and value.to_decimal().is_nan()


def integral(value: Any) -> int | None:
    """Return a number as a Python integer if it has no fraction, else None. Values that are not numbers give None."""
    width = width_of(value)
    if width is None:
        return None
    if width <= LONG:
        return int(value)
    number = plain_decimal(value)
    if not number.is_finite() or number != number.to_integral_value(context=EXACT):
        return None
    return int(number)


def integral_int32(value: Any) -> int | None:
    """Return a number as a Python integer if it is one of 32 bits, else None."""
    number = integral(value)
    return number if number is not None and fits_int32(number) else None
