"""Documents on their way in: the id as the first element, sizes, and values that the server fills in."""

from __future__ import annotations

import struct
from collections.abc import Callable

from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.codec import InvalidBson, decode
from asterism.values.bson.raw_documents import elements, with_id_first
from asterism.values.bson.types import ObjectId

DOCUMENT_BYTES_MAX = 16 * 1024 * 1024

_OBJECT, _ARRAY, _UNDEFINED, _REGEX, _TIMESTAMP = 0x03, 0x04, 0x06, 0x0B, 0x11
_REFUSED_IDS = {_ARRAY: "array", _UNDEFINED: "undefined", _REGEX: "regex"}
# The fields of a reference to another document.
_REFERENCE = frozenset({b"$ref", b"$id", b"$db"})
_ZERO_TIMESTAMP = b"\x00" * 8
_TIMESTAMP_VALUE = struct.Struct("<Q")


def prepare_document(raw: bytes, next_time: Callable[[], int]) -> bytes:
    """Return a document as it is stored: with `_id` first, a new one if it had none, and with empty timestamps at the
    top level filled in. Refuse what cannot be stored."""
    try:
        if len(raw) > DOCUMENT_BYTES_MAX:
            raise too_large(len(raw))
        # Stored as it is: bytes that cannot be decoded would spoil every later read of the collection.
        decode(raw)
        if raw[5:9] != b"_id\x00":
            raw = with_id_first(raw, ObjectId())
        check_id(raw)
        if _ZERO_TIMESTAMP in raw and b"\x11" in raw:
            raw = _fill_timestamps(raw, next_time)
    except (struct.error, ValueError, IndexError) as problem:
        raise InvalidBson(str(problem)) from None
    return raw


def too_large(size: int) -> MongoFailure:
    return MongoFailure(
        10334, f"BSONObj size: {size} is invalid. Size must be between 0 and {DOCUMENT_BYTES_MAX}(16MB)"
    )


def check_id(raw: bytes) -> None:
    """Refuse ids of types that cannot be one. `_id` is the first element."""
    kind = raw[4]
    if kind in _REFUSED_IDS:
        raise MongoFailure(53, f"The '_id' value cannot be of type {_REFUSED_IDS[kind]}")
    if kind == _OBJECT:
        names = [name for _, name, _, _ in elements(raw, 9)]
        is_reference = names[:2] == [b"$ref", b"$id"]
        for name in names:
            if name.startswith(b"$") and not (is_reference and name in _REFERENCE):
                raise MongoFailure(
                    52, f"_id fields may not contain '$'-prefixed fields: {name.decode(errors='replace')}"
                )


def _fill_timestamps(raw: bytes, next_time: Callable[[], int]) -> bytes:
    places = [
        start
        for kind, name, start, end in elements(raw)
        if kind == _TIMESTAMP and name != b"_id" and raw[start:end] == _ZERO_TIMESTAMP
    ]
    if not places:
        return raw
    filled = bytearray(raw)
    for start in places:
        # Seconds are in the upper half of a time, the counter in the lower one; so they are in BSON.
        _TIMESTAMP_VALUE.pack_into(filled, start, next_time())
    return bytes(filled)
