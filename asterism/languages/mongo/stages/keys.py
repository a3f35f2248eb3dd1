"""Keys for hashing values: equal for values that are equal in BSON, cheap for the types that keys usually have."""

from __future__ import annotations

from typing import Any

from asterism.values.bson.order import NAN, RANK_NUMBER, Collate, sort_key
from asterism.values.bson.types import Int64

# Python hashes and compares these as BSON does, also across int and float. A key of any other type is a tuple, and
# so is one of a boolean, which Python takes for a number.
_PLAIN = frozenset({int, Int64, type(None)})


def hash_key(value: Any, collate: Collate | None = None) -> Any:
    """Return a hashable key: the same for values that are equal. The keys have no order."""
    kind = type(value)
    if kind is str:
        return value if collate is None else ("text", collate(value))
    if kind in _PLAIN:
        return value
    if kind is float and value == value:
        return value
    key = sort_key(value, collate)
    # A decimal must meet the integers and doubles that are its equals.
    return key[1] if key[0] == RANK_NUMBER and key[1] is not NAN else key
