"""The one order over the values of all types: what sorting, `$cmp`, grouping and sets go by.

Values of different types compare by the rank of their types. Numbers compare by exact value whatever their types are,
NaN is lower than every other number and equal to itself. Text compares by its UTF-8 bytes, which is the order of code
points, unless the caller passes the sort keys of a collation. MISSING stands below null: callers that take a missing
field for null, as a sort does, replace it first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final, final

from asterism.values.bson.numbers import decimal_of
from asterism.values.bson.types import (
    Binary,
    Code,
    DatetimeMS,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    Missing,
    ObjectId,
    Regex,
    Timestamp,
)

Collate = Callable[[str], bytes]
SortKey = tuple[Any, ...]

RANK_MIN_KEY: Final = -1
RANK_MISSING: Final = 0
RANK_NULL: Final = 5
RANK_NUMBER: Final = 10
RANK_STRING: Final = 15
RANK_OBJECT: Final = 20
RANK_ARRAY: Final = 25
RANK_BINARY: Final = 30
RANK_OBJECT_ID: Final = 35
RANK_BOOL: Final = 40
RANK_DATE: Final = 45
RANK_TIMESTAMP: Final = 47
RANK_REGEX: Final = 50
RANK_CODE: Final = 60
RANK_CODE_WITH_SCOPE: Final = 65
RANK_MAX_KEY: Final = 127

_OLD_BINARY_SUBTYPE: Final = 2


@final
class _NotANumber:
    """The sort key of NaN: below every number, equal to itself."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return other is not self

    def __le__(self, other: object) -> bool:
        return True

    def __gt__(self, other: object) -> bool:
        return False

    def __ge__(self, other: object) -> bool:
        return other is self

    def __eq__(self, other: object) -> bool:
        return other is self

    def __hash__(self) -> int:
        return 0x7FF8


NAN: Final = _NotANumber()

_NAN_KEY: Final[SortKey] = (RANK_NUMBER, NAN)
_NULL_KEY: Final[SortKey] = (RANK_NULL,)


def rank(value: Any) -> int:
    """Return the place of the value's type in the order over types; types of one rank compare by value."""
    found = _RANKS.get(type(value))
    if found is None:
        found = _RANKS[_base(type(value))]
    if found == RANK_CODE and value.scope is not None:
        return RANK_CODE_WITH_SCOPE
    return found


def sort_key(value: Any, collate: Collate | None = None) -> SortKey:
    """Return a key that compares with the keys of other values as the values do, and is hash-equal to theirs exactly
    where the values are equal. Keys under different collations do not compare."""
    kind = type(value)
    if kind is str:
        return (RANK_STRING, value if collate is None else collate(value))
    if kind is int or kind is Int64:
        return (RANK_NUMBER, value)
    if kind is float:
        return (RANK_NUMBER, value) if value == value else _NAN_KEY
    if value is None:
        return _NULL_KEY
    make = _KEYS.get(kind)
    if make is None:
        make = _KEYS[_base(kind)]
    return make(value, collate)


def key_maker(collate: Collate | None) -> Callable[[Any], SortKey]:
    """Return `sort_key` under a collation, as `sorted(key=...)` wants it."""
    return sort_key if collate is None else partial(sort_key, collate=collate)


def compare(left: Any, right: Any, collate: Collate | None = None) -> int:
    """Return -1, 0 or 1 as left is lower than, equal to or greater than right."""
    kind = type(left)
    if kind is type(right) and kind in _PLAIN and (collate is None or kind is not str):
        if left == right:
            return 0
        if left < right:
            return -1
        if left > right:
            return 1
        # Only NaN is neither.
    left_key = sort_key(left, collate)
    right_key = sort_key(right, collate)
    if left_key == right_key:
        return 0
    return -1 if left_key < right_key else 1


def equal(left: Any, right: Any, collate: Collate | None = None) -> bool:
    """Return True if two values are the same in the order: 1, 1.0 and Decimal128("1") are."""
    kind = type(left)
    if kind is type(right) and kind in _PLAIN and (collate is None or kind is not str):
        return bool(left == right or (left != left and right != right))
    return sort_key(left, collate) == sort_key(right, collate)


def binary_order(value: bytes) -> tuple[int, int, bytes]:
    """Return length, subtype and bytes of binary data, in which order it compares. The length is that on the wire:
    the old subtype 2 repeats its length in 4 bytes."""
    data = bytes(value)
    subtype = value.subtype if isinstance(value, Binary) else 0
    return len(data) + (4 if subtype == _OLD_BINARY_SUBTYPE else 0), subtype, data


_FLAG_LETTERS: Final = (
    (re.IGNORECASE, "i"),
    (re.LOCALE, "l"),
    (re.MULTILINE, "m"),
    (re.DOTALL, "s"),
    (re.UNICODE, "u"),
    (re.VERBOSE, "x"),
)


def regex_flags(value: Regex[Any]) -> str:
    """Return the flags of a regular expression as the letters on the wire."""
    return "".join(letter for bit, letter in _FLAG_LETTERS if value.flags & bit)


def regex_pattern(value: Regex[Any]) -> str:
    """Return the pattern as text, which a Regex built by hand may hold as bytes."""
    pattern = value.pattern
    return pattern.decode("utf-8", "replace") if isinstance(pattern, bytes) else pattern


def _decimal_key(value: Decimal128, _: Collate | None) -> SortKey:
    number = decimal_of(value)
    return _NAN_KEY if number.is_nan() else (RANK_NUMBER, number)


def _object_key(value: dict[str, Any], collate: Collate | None) -> SortKey:
    """Fields compare by type, then name, then value; a document that ends first is lower."""
    fields = []
    for name, member in value.items():
        key = sort_key(member, collate)
        fields.append((key[0], name, key))
    return (RANK_OBJECT, tuple(fields))


def _array_key(value: list[Any], collate: Collate | None) -> SortKey:
    return (RANK_ARRAY, tuple([sort_key(member, collate) for member in value]))


def _code_key(value: Code, collate: Collate | None) -> SortKey:
    if value.scope is None:
        return (RANK_CODE, str(value))
    return (RANK_CODE_WITH_SCOPE, str(value), _object_key(dict(value.scope), collate))


def _number_key(value: float, _: Collate | None) -> SortKey:
    return (RANK_NUMBER, value) if value == value else _NAN_KEY


_KEYS: Final[dict[type, Callable[[Any, Collate | None], SortKey]]] = {
    MinKey: lambda value, collate: (RANK_MIN_KEY,),
    Missing: lambda value, collate: (RANK_MISSING,),
    type(None): lambda value, collate: _NULL_KEY,
    int: _number_key,
    Int64: _number_key,
    float: _number_key,
    Decimal128: _decimal_key,
    str: lambda value, collate: (RANK_STRING, value if collate is None else collate(value)),
    dict: _object_key,
    list: _array_key,
    tuple: _array_key,
    bytes: lambda value, collate: (RANK_BINARY, *binary_order(value)),
    Binary: lambda value, collate: (RANK_BINARY, *binary_order(value)),
    ObjectId: lambda value, collate: (RANK_OBJECT_ID, value.binary),
    bool: lambda value, collate: (RANK_BOOL, value),
    DatetimeMS: lambda value, collate: (RANK_DATE, int(value)),
    Timestamp: lambda value, collate: (RANK_TIMESTAMP, value.time, value.inc),
    Regex: lambda value, collate: (RANK_REGEX, regex_pattern(value), regex_flags(value)),
    Code: _code_key,
    MaxKey: lambda value, collate: (RANK_MAX_KEY,),
}

_RANKS: Final[dict[type, int]] = {
    MinKey: RANK_MIN_KEY,
    Missing: RANK_MISSING,
    type(None): RANK_NULL,
    int: RANK_NUMBER,
    Int64: RANK_NUMBER,
    float: RANK_NUMBER,
    Decimal128: RANK_NUMBER,
    str: RANK_STRING,
    dict: RANK_OBJECT,
    list: RANK_ARRAY,
    tuple: RANK_ARRAY,
    bytes: RANK_BINARY,
    Binary: RANK_BINARY,
    ObjectId: RANK_OBJECT_ID,
    bool: RANK_BOOL,
    DatetimeMS: RANK_DATE,
    Timestamp: RANK_TIMESTAMP,
    Regex: RANK_REGEX,
    Code: RANK_CODE,
    MaxKey: RANK_MAX_KEY,
}

# Types whose own comparison is the order of BSON, but for NaN.
_PLAIN: Final = frozenset({int, Int64, float, str, bool, ObjectId})


def _base(kind: type) -> type:
    """Return the known type that a class is derived from, such as dict for an ordered dict."""
    for base in kind.__mro__:
        if base in _RANKS:
            return base
    raise TypeError(f"{kind.__name__} is not a BSON value")
