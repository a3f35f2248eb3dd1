"""One order over values of all types: undefined < null < false < true < number < string < array < object.

Numbers are doubles, strings go by code point (the same as by UTF-8 byte), arrays by element, objects by their
properties in the order of the names. `key_bytes` puts the same order into bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

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
    if isinstance(value, Mapping):
        names = sorted(value)
        return (_RANK_OBJECT, tuple((name, sort_key(value[name])) for name in names))
    if isinstance(value, Sequence):
        return (_RANK_ARRAY, tuple(map(sort_key, value)))
    raise TypeError(f"not a JSON value: {kind.__name__}")


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
    if left_kind is dict and right_kind is dict:
        return _objects_equal(left, right)
    if left_kind is list and right_kind is list:
        return _arrays_equal(left, right)
    if (left_kind is int or left_kind is float) and (right_kind is int or right_kind is float):
        return as_double(left) == as_double(right)
    return left is right


def _objects_equal(left: dict[str, object], right: dict[str, object]) -> bool:
    return left.keys() == right.keys() and all(values_equal(held, right[name]) for name, held in left.items())


def _arrays_equal(left: list[object], right: list[object]) -> bool:
    return len(left) == len(right) and all(map(values_equal, left, right))
