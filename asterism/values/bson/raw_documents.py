"""Parts of documents without decoding the whole: a walk over the elements, and answers assembled from stored bodies."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final

from asterism.values.bson.codec import InvalidBson, decode
from asterism.values.bson.types import MISSING, ObjectId

_LENGTH = struct.Struct("<i")
_FIXED: Final[dict[int, int]] = {
    0x01: 8, 0x06: 0, 0x07: 12, 0x08: 1, 0x09: 8, 0x0A: 0, 0x10: 4, 0x11: 8, 0x12: 8, 0x13: 16, 0xFF: 0, 0x7F: 0,
}  # fmt: skip


def elements(raw: bytes, start: int = 0) -> Iterator[tuple[int, bytes, int, int]]:
    """Yield type, name, start and end of the value of each element of the document at `start`."""
    end = start + _LENGTH.unpack_from(raw, start)[0] - 1
    at = start + 4
    while at < end:
        kind = raw[at]
        stop = raw.index(b"\x00", at + 1)
        value = stop + 1
        size = _FIXED.get(kind)
        if size is None:
            size = _variable_size(raw, kind, value)
        yield kind, raw[at + 1 : stop], value, value + size
        at = value + size


def end_of_id(raw: bytes) -> int:
    """Return where the `_id` of a document ends, which is its first element."""
    size = _FIXED.get(raw[4])
    return 9 + (_variable_size(raw, raw[4], 9) if size is None else size)


def _variable_size(raw: bytes, kind: int, at: int) -> int:
    if kind in (0x02, 0x0D, 0x0E):
        return 4 + int(_LENGTH.unpack_from(raw, at)[0])
    if kind in (0x03, 0x04, 0x0F):
        return int(_LENGTH.unpack_from(raw, at)[0])
    if kind == 0x05:
        return 5 + int(_LENGTH.unpack_from(raw, at)[0])
    if kind == 0x0B:
        return raw.index(b"\x00", raw.index(b"\x00", at) + 1) + 1 - at
    if kind == 0x0C:
        return 16 + int(_LENGTH.unpack_from(raw, at)[0])
    raise InvalidBson(f"unknown type {kind:#x}")


def get_field(raw: bytes, name: str) -> Any:
    """Return the value of a top-level field, or MISSING, without decoding the others."""
    wanted = name.encode()
    try:
        for kind, found, start, end in elements(raw):
            if found == wanted:
                return _value(raw, kind, start, end)
    except (ValueError, struct.error, IndexError) as problem:
        raise InvalidBson(str(problem)) from None
    return MISSING


def _value(raw: bytes, kind: int, start: int, end: int) -> Any:
    if kind == 0x07:
        return ObjectId(raw[start:end])
    if kind == 0x02:
        return raw[start + 4 : end - 1].decode()
    if kind == 0x10:
        return _LENGTH.unpack_from(raw, start)[0]
    body = bytes((kind,)) + b"v\x00" + raw[start:end] + b"\x00"
    return decode(_LENGTH.pack(len(body) + 4) + body)["v"]


def with_id_first(raw: bytes, new_id: ObjectId | None = None) -> bytes:
    """Return a document with `_id` as its first element: as it is, moved there, or added. Without `new_id` a document
    that has none is returned unchanged."""
    if raw[5:9] == b"_id\x00":
        return raw
    for _kind, name, start, end in elements(raw):
        if name == b"_id":
            begins = start - 5
            return raw[:4] + raw[begins:end] + raw[4:begins] + raw[end:]
    if new_id is None:
        return raw
    added = b"\x07_id\x00" + new_id.binary
    return _LENGTH.pack(len(raw) + len(added)) + added + raw[4:]


_NAMES: Final = [str(number).encode() + b"\x00" for number in range(1024)]


def join_array(raws: Sequence[bytes]) -> bytes:
    """Return an array of documents as BSON, without decoding them."""
    parts: list[bytes] = []
    for index, raw in enumerate(raws):
        name = _NAMES[index] if index < len(_NAMES) else str(index).encode() + b"\x00"
        parts += (b"\x03", name, raw)
    body = b"".join(parts)
    return _LENGTH.pack(len(body) + 5) + body + b"\x00"


def document_of(*encoded: bytes) -> bytes:
    """Return the document of encoded elements."""
    body = b"".join(encoded)
    return _LENGTH.pack(len(body) + 5) + body + b"\x00"


def element(kind: int, name: str, value: bytes) -> bytes:
    """Return one element: its type, its name, and its value as bytes."""
    return bytes((kind,)) + name.encode() + b"\x00" + value


def text_value(text: str) -> bytes:
    encoded = text.encode()
    return _LENGTH.pack(len(encoded) + 1) + encoded + b"\x00"
