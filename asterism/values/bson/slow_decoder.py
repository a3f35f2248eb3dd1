"""A decoder of BSON in Python, for the few documents that the C extension would not return as they are stored.

A sub-document with `$ref` stays a dict with its fields in order. The deprecated types have no class of their own:
undefined becomes null, a symbol text, a pointer the dict that replaced it, {$ref, $id}.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, Final

from asterism.values.bson.types import (
    Binary,
    Code,
    DatetimeMS,
    Decimal128,
    Document,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)

# The limit of the server for nested documents and arrays.
NESTING_MAX: Final = 200

_INT32: Final = struct.Struct("<i")
_INT64: Final = struct.Struct("<q")
_DOUBLE: Final = struct.Struct("<d")
_UNSIGNED_PAIR: Final = struct.Struct("<II")

_FLAGS: Final = {
    "i": re.IGNORECASE,
    "l": re.LOCALE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "u": re.UNICODE,
    "x": re.VERBOSE,
}


class InvalidBson(Exception):
    """Raised for bytes that are not a document of BSON, and for values that cannot become one."""


def decode_slowly(raw: bytes, *, wrapped_levels: int = 0) -> Document:
    """Return the document that fills the bytes, or raise InvalidBson. `wrapped_levels` do not count as nesting."""
    try:
        document, end = read_document(raw, 0, -wrapped_levels)
    except (struct.error, IndexError, ValueError) as problem:
        raise InvalidBson(str(problem)) from None
    if end != len(raw):
        raise InvalidBson("bytes behind the end of the document")
    return document


def decode_value(kind: int, raw: bytes) -> Any:
    """Return the value that fills the bytes, of the element type `kind`, or raise InvalidBson."""
    try:
        value, end = _reader(kind)(raw, 0, 0)
    except (struct.error, IndexError, ValueError) as problem:
        raise InvalidBson(str(problem)) from None
    if end != len(raw):
        raise InvalidBson("bytes behind the end of the value")
    return value


def read_document(raw: bytes, position: int, depth: int) -> tuple[Document, int]:
    end = _end_of_document(raw, position, depth)
    position += 4
    document: Document = {}
    while position < end - 1:
        kind = raw[position]
        name_end = raw.index(0, position + 1)
        name = raw[position + 1 : name_end].decode()
        document[name], position = _reader(kind)(raw, name_end + 1, depth + 1)
    if position != end - 1:
        raise InvalidBson("an element runs over the end of its document")
    return document, end


def _read_array(raw: bytes, position: int, depth: int) -> tuple[list[Any], int]:
    document, end = read_document(raw, position, depth)
    return list(document.values()), end


def _end_of_document(raw: bytes, position: int, depth: int) -> int:
    if depth > NESTING_MAX:
        raise InvalidBson(f"nested more than {NESTING_MAX} levels deep")
    size = _INT32.unpack_from(raw, position)[0]
    end: int = position + size
    if size < 5 or end > len(raw) or raw[end - 1] != 0:
        raise InvalidBson("wrong length of a document")
    return end


def _read_text(raw: bytes, position: int, _: int) -> tuple[str, int]:
    size = _INT32.unpack_from(raw, position)[0]
    end: int = position + 4 + size
    if size < 1 or end > len(raw) or raw[end - 1] != 0:
        raise InvalidBson("wrong length of a string")
    return raw[position + 4 : end - 1].decode(), end


def _read_binary(raw: bytes, position: int, _: int) -> tuple[bytes, int]:
    size = _INT32.unpack_from(raw, position)[0]
    subtype = raw[position + 4]
    start = position + 5
    end: int = start + size
    if size < 0 or end > len(raw):
        raise InvalidBson("wrong length of binary data")
    if subtype == 2:
        if size < 4 or _INT32.unpack_from(raw, start)[0] != size - 4:
            raise InvalidBson("wrong inner length of binary data")
        start += 4
    data = raw[start:end]
    return (data if subtype == 0 else Binary(data, subtype)), end


def _read_object_id(raw: bytes, position: int, _: int) -> tuple[ObjectId, int]:
    if position + 12 > len(raw):
        raise InvalidBson("an ObjectId of less than 12 bytes")
    return ObjectId(raw[position : position + 12]), position + 12


def _read_bool(raw: bytes, position: int, _: int) -> tuple[bool, int]:
    if raw[position] > 1:
        raise InvalidBson("a boolean that is neither 0 nor 1")
    return raw[position] == 1, position + 1


def _read_regex(raw: bytes, position: int, _: int) -> tuple[Regex[str], int]:
    pattern_end = raw.index(0, position)
    flags_end = raw.index(0, pattern_end + 1)
    flags = 0
    for letter in raw[pattern_end + 1 : flags_end].decode():
        flags |= _FLAGS.get(letter, 0)
    return Regex(raw[position:pattern_end].decode(), flags), flags_end + 1


def _read_pointer(raw: bytes, position: int, depth: int) -> tuple[Document, int]:
    namespace, position = _read_text(raw, position, depth)
    identifier, position = _read_object_id(raw, position, depth)
    return {"$ref": namespace, "$id": identifier}, position


def _read_code(raw: bytes, position: int, depth: int) -> tuple[Code, int]:
    code, position = _read_text(raw, position, depth)
    return Code(code), position


def _read_code_with_scope(raw: bytes, position: int, depth: int) -> tuple[Code, int]:
    end = position + _INT32.unpack_from(raw, position)[0]
    code, position = _read_text(raw, position + 4, depth)
    scope, position = read_document(raw, position, depth)
    if position != end:
        raise InvalidBson("wrong length of code with scope")
    return Code(code, scope), end


def _read_timestamp(raw: bytes, position: int, _: int) -> tuple[Timestamp, int]:
    increment, seconds = _UNSIGNED_PAIR.unpack_from(raw, position)
    return Timestamp(seconds, increment), position + 8


def _read_decimal(raw: bytes, position: int, _: int) -> tuple[Decimal128, int]:
    if position + 16 > len(raw):
        raise InvalidBson("a decimal of less than 16 bytes")
    return Decimal128.from_bid(raw[position : position + 16]), position + 16


Reader = Callable[[bytes, int, int], tuple[Any, int]]

_READERS: Final[dict[int, Reader]] = {
    0x01: lambda raw, position, depth: (_DOUBLE.unpack_from(raw, position)[0], position + 8),
    0x02: _read_text,
    0x03: read_document,
    0x04: _read_array,
    0x05: _read_binary,
    0x06: lambda raw, position, depth: (None, position),
    0x07: _read_object_id,
    0x08: _read_bool,
    0x09: lambda raw, position, depth: (DatetimeMS(_INT64.unpack_from(raw, position)[0]), position + 8),
    0x0A: lambda raw, position, depth: (None, position),
    0x0B: _read_regex,
    0x0C: _read_pointer,
    0x0D: _read_code,
    0x0E: _read_text,
    0x0F: _read_code_with_scope,
    0x10: lambda raw, position, depth: (_INT32.unpack_from(raw, position)[0], position + 4),
    0x11: _read_timestamp,
    0x12: lambda raw, position, depth: (Int64(_INT64.unpack_from(raw, position)[0]), position + 8),
    0x13: _read_decimal,
    0xFF: lambda raw, position, depth: (MinKey(), position),
    0x7F: lambda raw, position, depth: (MaxKey(), position),
}


def _reader(kind: int) -> Reader:
    reader = _READERS.get(kind)
    if reader is None:
        raise InvalidBson(f"unknown element type {kind}")
    return reader
