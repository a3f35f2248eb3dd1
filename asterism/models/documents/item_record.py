"""The stored record of an item: a fixed header, then the body, as the container's codec has written it.

The engine puts the LSN of the writing batch before it (a versioned record), which is the item's version:

    0   8  LSN of the batch that wrote it, big-endian
    8   1  format: the codec's (odd), or one more for an item that has no index entries
    9   8  item number: the document's part of its `_rid`, big-endian
    17  2  place in its batch, big-endian (with LSN and number: the key of its change-log entry)
    19 16  version tag: the 16 bytes of the etag's GUID
    35     body: JSON text (formats 1 and 2)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from asterism.errors import StoredDamage
from asterism.storage.contract import LSN_BYTES
from asterism.values.identifiers import Lsn

# Format -> first and last byte of a body. A body that was cut is noticed at once; other damage is noticed where the
# codec reads the body.
JSON_FORMAT = 1
BODY_ENDS = {JSON_FORMAT: (0x7B, 0x7D), JSON_FORMAT + 1: (0x7B, 0x7D)}

_HEADER = struct.Struct(">BQH16s")
_STORED_HEADER = struct.Struct(">QBQH16s")
HEADER_BYTES = _STORED_HEADER.size
NUMBER_AT = LSN_BYTES + 1
NUMBER_END = NUMBER_AT + 8
TAG_AT = NUMBER_END + 2


# Made for every item that is loaded, so not frozen, and without the text of its etag: either would double the time.
@dataclass(slots=True)
class StoredItem:
    lsn: Lsn
    number: int
    place_in_batch: int
    tag: bytes
    body: bytes
    is_indexed: bool = True

    @property
    def version(self) -> bytes:
        """The bytes that the stored value must still begin with for a change decided on this item to be applied."""
        return self.lsn.to_bytes(LSN_BYTES, "big")


def pack_item(
    record_format: int, *, number: int, place_in_batch: int, tag: bytes, body: bytes, is_indexed: bool = True
) -> bytes:
    """Return the record of an item, without the LSN. `record_format` is that of its codec."""
    return _HEADER.pack(record_format if is_indexed else record_format + 1, number, place_in_batch, tag) + body


def unpack_item(stored: bytes, key: bytes = b"") -> StoredItem:
    """Return the parts of a record; StoredDamage, naming its key, if it was cut short or has an unknown format."""
    try:
        lsn, record_format, number, place_in_batch, tag = _STORED_HEADER.unpack_from(stored)
        first, last = BODY_ENDS[record_format]
        is_whole = stored[HEADER_BYTES] == first and stored[-1] == last
    except (struct.error, IndexError, KeyError):
        raise StoredDamage(what="item record", key=key.hex()) from None
    if not is_whole:
        raise StoredDamage(what="item record", key=key.hex())
    return StoredItem(lsn, number, place_in_batch, tag, stored[HEADER_BYTES:], record_format & 1 == 1)


def tag_and_body(stored: bytes, key: bytes) -> tuple[bytes, bytes]:
    """Return the two parts of a record that a point read answers with, checked as `unpack_item` does."""
    try:
        first, last = BODY_ENDS[stored[LSN_BYTES]]
        is_whole = stored[HEADER_BYTES] == first and stored[-1] == last
    except (IndexError, KeyError):
        is_whole = False
    if not is_whole:
        raise StoredDamage(what="item record", key=key.hex())
    return stored[TAG_AT:HEADER_BYTES], stored[HEADER_BYTES:]


def is_indexed(stored: bytes) -> bool:
    return stored[LSN_BYTES] & 1 == 1


def body_of(stored: bytes) -> bytes:
    return stored[HEADER_BYTES:]
