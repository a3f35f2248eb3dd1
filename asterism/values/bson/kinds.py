"""The types of BSON by name and by number, as `$type` and error messages of the protocol use them."""

from __future__ import annotations

from typing import Any, Final

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

# The numbers of bsonspec.org, signed as `$type` shows them. Undefined, dbPointer and symbol are accepted as names
# although no value of the program has these types any more.
NAMES_TO_NUMBERS: Final[dict[str, int]] = {
    "double": 1,
    "string": 2,
    "object": 3,
    "array": 4,
    "binData": 5,
    "undefined": 6,
    "objectId": 7,
    "bool": 8,
    "date": 9,
    "null": 10,
    "regex": 11,
    "dbPointer": 12,
    "javascript": 13,
    "symbol": 14,
    "javascriptWithScope": 15,
    "int": 16,
    "timestamp": 17,
    "long": 18,
    "decimal": 19,
    "minKey": -1,
    "maxKey": 127,
}

NUMBERS_TO_NAMES: Final[dict[int, str]] = {number: name for name, number in NAMES_TO_NUMBERS.items()}

_NAMES: Final[dict[type, str]] = {
    float: "double",
    str: "string",
    dict: "object",
    list: "array",
    tuple: "array",
    bytes: "binData",
    Binary: "binData",
    ObjectId: "objectId",
    bool: "bool",
    DatetimeMS: "date",
    type(None): "null",
    Regex: "regex",
    Code: "javascript",
    int: "int",
    Timestamp: "timestamp",
    Int64: "long",
    Decimal128: "decimal",
    MinKey: "minKey",
    MaxKey: "maxKey",
    Missing: "missing",
}

_NUMBER_TYPES: Final = frozenset({int, Int64, float, Decimal128})


def type_name(value: Any) -> str:
    """Return the protocol's name of the value's type; "missing" for MISSING."""
    name = _NAMES.get(type(value))
    if name is None:
        name = _name_of_subclass(type(value))
    if name == "javascript" and value.scope is not None:
        return "javascriptWithScope"
    if name == "int" and not -0x80000000 <= value <= 0x7FFFFFFF:
        return "long"
    return name


def type_number(value: Any) -> int:
    """Return the protocol's number of the value's type; 0 for MISSING."""
    return NAMES_TO_NUMBERS.get(type_name(value), 0)


def is_number(value: Any) -> bool:
    """Return True for int, long, double and decimal; a boolean is not a number."""
    return type(value) in _NUMBER_TYPES


def _name_of_subclass(kind: type) -> str:
    """Return the name for a subclass, such as an ordered dict, and remember it. A class that is no BSON value at all
    has none: TypeError, which is a defect of the caller."""
    for base in kind.__mro__:
        name = _NAMES.get(base)
        if name is not None:
            _NAMES[kind] = name
            return name
    raise TypeError(f"{kind.__name__} is not a BSON value")
