"""One order over values of all types: undefined < null < false < true < number < string < array < object.

Numbers are doubles, strings go by code point (the same as by UTF-8 byte), arrays by element, objects by their
properties in the order of the names. `key_bytes` puts the same order into bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from asterism.errors import TooLarge
from asterism.values.undefined import UNDEFINED

_RANK_UNDEFINED = 0
_RANK_NULL = 1
_RANK_FALSE = 2
_RANK_TRUE = 3
# JSON has no such number but arithmetic has; it needs a place for the order to be total.
_RANK_NOT_A_NUMBER = 4
_RANK_NUMBER = 5
_RANK_STRING = 6
_RANK_ARRAY = 7
_RANK_OBJECT = 8

# The largest item is an array of about this many numbers. What expressions make may have more parts.
COMPARED_PARTS_MAX = 1_200_000

SortKey = tuple[object, ...]

_KEY_UNDEFINED: SortKey = (_RANK_UNDEFINED,)
_KEY_NULL: SortKey = (_RANK_NULL,)
_KEY_FALSE: SortKey = (_RANK_FALSE,)
_KEY_TRUE: SortKey = (_RANK_TRUE,)
_KEY_NOT_A_NUMBER: SortKey = (_RANK_NOT_A_NUMBER,)


def as_double(number: int | float) -> float:
    """The double that stands for `number`; whole numbers beyond the range of doubles become infinities."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


# Typed Any and not object here and below: the type is told by `kind`, which the type checker cannot follow.
def sort_key(value: Any) -> SortKey:
    """A tuple that compares with other values' tuples as the values do; for `sorted`, `min`, `bisect`."""
    kind = type(value)
    if kind is str:
        return (_RANK_STRING, value)
    if kind is int or kind is float:
        number = as_double(value)
        return (_RANK_NUMBER, number) if number == number else _KEY_NOT_A_NUMBER
    if kind is bool:
        return _KEY_TRUE if value else _KEY_FALSE
    if value is None:
        return _KEY_NULL
    if value is UNDEFINED:
        return _KEY_UNDEFINED
    return _KeyOfParts().of(value)


class _KeyOfParts:
    """Makes the key of an array or an object. Its parts may be shared, so that there are more of them than memory."""

    __slots__ = ("_parts_left",)

    def __init__(self) -> None:
        self._parts_left = COMPARED_PARTS_MAX

    def of(self, value: Any) -> SortKey:
        if isinstance(value, Mapping):
            self._count(len(value))
            return (_RANK_OBJECT, tuple([(name, self._of_part(value[name])) for name in sorted(value)]))
        if isinstance(value, Sequence):
            self._count(len(value))
            return (_RANK_ARRAY, tuple([self._of_part(part) for part in value]))
        raise TypeError(f"not a JSON value: {type(value).__name__}")

    def _of_part(self, part: Any) -> SortKey:
        return self.of(part) if type(part) is list or type(part) is dict else sort_key(part)

    def _count(self, parts: int) -> None:
        self._parts_left -= parts
        if self._parts_left < 0:
            raise TooLarge(what="value that is compared", bytes_max=COMPARED_PARTS_MAX)


def compare(left: object, right: object) -> int:
    """-1, 0 or 1 as `left` sorts before, with or after `right`."""
    left_key = sort_key(left)
    right_key = sort_key(right)
    # Tuples of unlike ranks are told apart by their first members, so unlike types never meet.
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
    """Whether two arrays or two objects are equal: part by part, without recursion, and no more parts than there may
    be, for they may be shared."""
    waiting = [(left, right)]
    parts_left = COMPARED_PARTS_MAX
    while waiting:
        one, other = waiting.pop()
        parts_left -= len(one)
        if parts_left < 0:
            raise TooLarge(what="value that is compared", bytes_max=COMPARED_PARTS_MAX)
        if len(one) != len(other) or (type(one) is dict and one.keys() != other.keys()):
            return False
        pairs = (
            [(held, other[name]) for name, held in one.items()] if type(one) is dict else zip(one, other, strict=True)
        )
        for held, held_there in pairs:
            kind = type(held)
            if (kind is dict or kind is list) and kind is type(held_there):
                waiting.append((held, held_there))
            elif not values_equal(held, held_there):
                return False
    return True
