"""Identity of values: whether two of them have the same bytes. `1` and `1.0` are equal, but not identical."""

from __future__ import annotations

import struct
from typing import Any

from asterism.values.bson.types import Code, Decimal128, Regex

_double_bytes = struct.Struct("<d").pack


def identical(left: Any, right: Any) -> bool:
    """Return whether two values have the same type and the same bytes, fields in the same order."""
    if left is right:
        return True
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is dict:
        return len(left) == len(right) and all(
            name == other and identical(value, right[other])
            for (name, value), other in zip(left.items(), right, strict=True)
        )
    if kind is list:
        return len(left) == len(right) and all(map(identical, left, right))
    if kind is float:
        # Minus zero equals zero, and NaN nothing: only the bytes tell.
        return _double_bytes(left) == _double_bytes(right)
    if kind is Decimal128:
        return bool(left.bid == right.bid)
    if kind is Regex:
        return bool(left.pattern == right.pattern and left.flags == right.flags)
    if kind is Code:
        return str(left) == str(right) and identical(left.scope, right.scope)
    return bool(left == right)
