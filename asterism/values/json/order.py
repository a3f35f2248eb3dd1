"""One order over values of all types: undefined < null < false < true < number < string < array < object.

Numbers are doubles, strings go by code point (the same as by UTF-8 byte), arrays by element, objects by their
properties in the order of the names. `key_bytes` puts the same order into bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from asterism.errors import TooLarge
from asterism.values.json import ranks
from asterism.values.undefined import UNDEFINED
from asterism.values.value_order import SortKey

# The largest item is an array of about this many numbers. Values of expressions may have more parts.
COMPARED_PARTS_MAX = 1_200_000

_KEY_UNDEFINED: SortKey = (ranks.UNDEFINED,)
_KEY_NULL: SortKey = (ranks.NULL,)
_KEY_FALSE: SortKey = (ranks.FALSE,)
_KEY_TRUE: SortKey = (ranks.TRUE,)
# Not a JSON number, but a result of arithmetic; the order is total with it below all numbers.
_KEY_NOT_A_NUMBER: SortKey = (ranks.NUMBER,)
# Names of this module: they are used for every value that is compared.
_NUMBER, _STRING, _ARRAY, _OBJECT = ranks.NUMBER, ranks.STRING, ranks.ARRAY, ranks.OBJECT


def as_double(number: int | float) -> float:
    """Return `number` as a double; whole numbers beyond the range of doubles become infinities."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


# Typed Any and not object here and below: `kind` determines the type, which the type checker cannot follow.
def sort_key(value: Any) -> SortKey:
    """Return a tuple that compares with other values' tuples as the values do; for `sorted`, `min`, `bisect`."""
    kind = type(value)
    if kind is str:
        return (_STRING, value)
    if kind is int or kind is float:
        number = as_double(value)
        return (_NUMBER, number) if number == number else _KEY_NOT_A_NUMBER
    if kind is bool:
        return _KEY_TRUE if value else _KEY_FALSE
    if value is None:
        return _KEY_NULL
    if value is UNDEFINED:
        return _KEY_UNDEFINED
    return _KeyOfParts().of(value)


class _KeyOfParts:
    """Make the key of an array or an object. Parts may be shared, so that a value has more than memory holds."""

    __slots__ = ("_parts_left",)

    def __init__(self) -> None:
        self._parts_left = COMPARED_PARTS_MAX

    def of(self, value: Any) -> SortKey:
        if isinstance(value, Mapping):
            self._count(len(value))
            return (_OBJECT, tuple([(name, self._of_part(value[name])) for name in sorted(value)]))
        if isinstance(value, Sequence):
            self._count(len(value))
            return (_ARRAY, tuple([self._of_part(part) for part in value]))
        raise TypeError(f"not a JSON value: {type(value).__name__}")

    def _of_part(self, part: Any) -> SortKey:
        return self.of(part) if type(part) is list or type(part) is dict else sort_key(part)

    def _count(self, parts: int) -> None:
        self._parts_left -= parts
        if self._parts_left < 0:
            raise TooLarge(what="value that is compared", bytes_max=COMPARED_PARTS_MAX)


def compare(left: object, right: object) -> int:
    """Return -1, 0 or 1 as `left` sorts before, with or after `right`."""
    left_key = sort_key(left)
    right_key = sort_key(right)
    # Tuples of different ranks differ in their first members, so values of different types are never compared.
    return (left_key > right_key) - (left_key < right_key)


def values_equal(left: Any, right: Any) -> bool:
    """Deep equality of JSON values: 1 equals 1.0, and True does not equal 1."""
    left_kind = type(left)
    right_kind = type(right)
    if left_kind is str or right_kind is str or left_kind is bool or right_kind is bool:
        return left_kind is right_kind and left == right
    if left_kind is right_kind and (left_kind is dict or left_kind is list):
        return _parts_equal(left, right)
    if (left_kind is int or left_kind is float) and (right_kind is int or right_kind is float):
        return as_double(left) == as_double(right)
    return left is right


def _parts_equal(left: Any, right: Any) -> bool:
    """Compare two arrays or two objects part by part, without recursion, up to the maximum of parts: shared parts count
    each time."""
    waiting = [(left, right)]
    parts_left = COMPARED_PARTS_MAX
    while waiting:
        left, right = waiting.pop()
        parts_left -= len(left)
        if parts_left < 0:
            raise TooLarge(what="value that is compared", bytes_max=COMPARED_PARTS_MAX)
        if len(left) != len(right) or (type(left) is dict and left.keys() != right.keys()):
            return False
        pairs = (
            [(left_part, right[name]) for name, left_part in left.items()]
            if type(left) is dict
            else zip(left, right, strict=True)
        )
        for left_part, right_part in pairs:
            kind = type(left_part)
            if (kind is dict or kind is list) and kind is type(right_part):
                waiting.append((left_part, right_part))
            elif not values_equal(left_part, right_part):
                return False
    return True
