"""Documents from bytes and back, by the C extension of `bson`, with the exceptions that it does not handle.

The C decoder is exact for nearly every document. Sub-documents with `$ref` would become objects that lose the order
of their fields, and so would the deprecated pointers: bytes in which these may occur are decoded by
`slow_decoder.decode_slowly`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import bson
from bson.codec_options import CodecOptions, DatetimeConversion

from asterism.values.bson.slow_decoder import NESTING_MAX, InvalidBson, decode_slowly
from asterism.values.bson.types import Document

__all__ = ["InvalidBson", "RawDocument", "decode", "decode_all", "decode_record", "encode"]

OPTIONS: Final[CodecOptions[Document]] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)

_DOCUMENT_BYTES_MIN: Final = 5
# Levels of a record of the program above the documents in it.
RECORD_LEVELS_MAX: Final = 20
# An element of the deprecated type 0x0C: name, then a string, whose length is below 16 MB.
_POINTER: Final = re.compile(rb"\x0c[^\x00]*\x00...\x00", re.DOTALL)


class RawDocument:
    """A document as the bytes it is stored in, which `encode` copies wherever one stands inside a document."""

    __slots__ = ("raw",)

    # The mark by which the C encoder knows a document that is encoded already.
    _type_marker = 101

    def __init__(self, raw: bytes) -> None:
        self.raw = raw


def decode(raw: bytes) -> Document:
    """Return the document of the bytes, or raise InvalidBson."""
    # Written out, because a scan decodes every document. The search for one byte is many times as fast as for four.
    if (b"$" in raw and b"$ref" in raw) or (b"\x0c" in raw and _POINTER.search(raw)):
        return decode_slowly(raw)
    try:
        document: Document = _bson_to_dict(raw, OPTIONS)
    except Exception as problem:
        # The C code raises what its helpers raise: InvalidBSON, but also ValueError, OverflowError, RecursionError.
        raise InvalidBson(str(problem)) from None
    # A level of nesting needs a type byte of 3 or 4 (or 15) and 8 bytes in all, so most documents need no walk.
    if len(raw) > NESTING_MAX * 8 and raw.count(b"\x03") + raw.count(b"\x04") + raw.count(b"\x0f") > NESTING_MAX:
        _check_depth(document)
    return document


def decode_record(raw: bytes) -> Document:
    """Return a record that this program has put together. Documents of clients lie some levels below its top, so that
    the limit for nesting is not for the record."""
    if b"$ref" in raw or (b"\x0c" in raw and _POINTER.search(raw)):
        return decode_slowly(raw, wrapped_levels=RECORD_LEVELS_MAX)
    try:
        return bson.decode(raw, OPTIONS)
    except Exception as problem:
        raise InvalidBson(str(problem)) from None


def decode_all(raw: bytes) -> list[Document]:
    """Return the documents that follow one another in the bytes, or raise InvalidBson."""
    return [decode(part) for part in split_documents(raw)]


def split_documents(raw: bytes) -> list[bytes]:
    """Return the bytes of the documents that follow one another, or raise InvalidBson."""
    parts = []
    position = 0
    end = len(raw)
    while position < end:
        size = int.from_bytes(raw[position : position + 4], "little", signed=True)
        if size < _DOCUMENT_BYTES_MIN or position + size > end:
            raise InvalidBson("invalid message size")
        parts.append(raw[position : position + size])
        position += size
    return parts


def encode(document: Document) -> bytes:
    """Return the bytes of a document, its fields in their order; InvalidBson for what BSON cannot express."""
    try:
        encoded: bytes = _dict_to_bson(document, False, OPTIONS, False)
    except Exception as problem:
        raise InvalidBson(str(problem)) from None
    return encoded


def _check_depth(document: Document) -> None:
    """Raise InvalidBson if the document is nested more deeply than the protocol allows."""
    level: list[Any] = [document]
    for _ in range(NESTING_MAX + 1):
        level = [member for value in level for member in _members(value) if isinstance(member, (dict, list))]
        if not level:
            return
    raise InvalidBson(f"nested more than {NESTING_MAX} levels deep")


def _members(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


# The fourth argument says whether `_id` is to be moved to the front, as drivers do.
_dict_to_bson: Final[Any] = bson._dict_to_bson
_bson_to_dict: Final[Any] = bson._bson_to_dict
