"""The form of the entries of GARBAGE: contents and data that were released, as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from asterism.errors import StoredDamage
from asterism.models.blobs.content import Content, unpack_content
from asterism.models.blobs.layout import DATA_ID_BYTES
from asterism.models.blobs.record import BlobKind, BlobRecord

_CONTENT = 1
_DATA = 2
_HEAD = struct.Struct(">BBQ")
_DATUM = struct.Struct(f">{DATA_ID_BYTES}sQ")


@dataclass(frozen=True, slots=True)
class ReleasedContent:
    kind: BlobKind
    content: Content
    size: int


@dataclass(frozen=True, slots=True)
class ReleasedData:
    """Data of blocks, by id, with their sizes."""

    sizes: dict[bytes, int]


Released = ReleasedContent | ReleasedData


def pack_released_content(record: BlobRecord) -> bytes | None:
    """Return the entry for the content of a record; None if it has nothing outside of the record."""
    content = record.content
    if content.inline is not None:
        return None
    return _HEAD.pack(_CONTENT, record.kind, record.size) + record.stored_content


def pack_released_data(data: Iterable[tuple[bytes, int]]) -> bytes:
    return _HEAD.pack(_DATA, 0, 0) + b"".join([_DATUM.pack(data_id, size) for data_id, size in data])


def unpack_released(stored: bytes) -> Released:
    try:
        form, kind, size = _HEAD.unpack_from(stored)
        rest = stored[_HEAD.size :]
        if form == _CONTENT:
            return ReleasedContent(BlobKind(kind), unpack_content(rest), size)
        return ReleasedData(dict(_DATUM.iter_unpack(rest)))
    except (struct.error, ValueError):
        raise StoredDamage(what="garbage") from None
