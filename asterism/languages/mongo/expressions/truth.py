"""The truth of a value: everything is true but false, null, missing and zeros."""

from __future__ import annotations

from typing import Any

from asterism.values.bson.types import Decimal128, Int64, Missing

_NUMBERS = (int, float, Int64)


def is_true(value: Any) -> bool:
    kind = type(value)
    if kind is bool:
        return bool(value)
    if value is None or kind is Missing:
        return False
    if kind in _NUMBERS:
        return bool(value != 0)
    return not (kind is Decimal128 and value.to_decimal().is_zero())
