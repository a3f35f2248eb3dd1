"""Whole numbers out of BSON numbers, as operators with integer operands read them."""

from __future__ import annotations

import math
from typing import Any

from asterism.values.bson.types import Decimal128, Int64

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def whole_number(value: Any) -> int | None:
    """Return the integer that a number is exactly, or None for fractions, infinities, NaN and values of other types."""
    kind = type(value)
    if kind is int or kind is Int64:
        return int(value)
    if kind is float:
        return int(value) if math.isfinite(value) and value == int(value) else None
    if kind is Decimal128:
        exact = value.to_decimal()
        # A number of more digits than any operand can have must not be written out: 1E+6000 is one of them.
        if not exact.is_finite() or exact.adjusted() > 40:
            return None
        return int(exact) if exact == exact.to_integral_value() else None
    return None


def truncated_int64(value: Any) -> int | None:
    """Return a number without its fraction, or None if it is not a number or does not fit into 64 bits."""
    kind = type(value)
    if kind is int or kind is Int64:
        return int(value)
    if kind is float:
        if not math.isfinite(value):
            return None
        whole = int(value)
    elif kind is Decimal128:
        exact = value.to_decimal()
        if not exact.is_finite() or exact.adjusted() > 40:
            return None
        whole = int(exact)
    else:
        return None
    return whole if INT64_MIN <= whole <= INT64_MAX else None
