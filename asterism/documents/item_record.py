"""An item as it is stored: a fixed header, then its JSON text with the system properties in it.

The engine puts the LSN of the writing batch before it (a versioned record), which is the item's version:

    0   8  LSN of the batch that wrote it, big-endian
    8   1  format: 0x01, or 0x02 for an item that has no index entries
    9   8  item number: the document's part of its `_rid`, big-endian
    17  2  place in its batch, big-endian (with LSN and number: the key of its change-log entry)
    19 16  etag, as the 16 bytes of its GUID
    35     JSON, UTF-8
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from asterism.errors import StoredDamage
from asterism.storage.contract import LSN_BYTES
from asterism.values.identifiers import Lsn

_FORMAT = 1
# The same, of an item that was written to be left out of the index.
_FORMAT_UNINDEXED = 2
_HEADER = struct.Struct(">BQH16s")
_STORED_HEADER = struct.Struct(">QBQH16s")
HEADER_BYTES = _STORED_HEADER.size
NUMBER_AT = LSN_BYTES + 1
NUMBER_END = NUMBER_AT + 8
_OPENING, _CLOSING = b"{}"


# Made for every item that is loaded, so not frozen, and without the text of its etag: either would double the time.
@dataclass(slots=True)
class StoredItem:
    lsn: Lsn
    number: int
    place_in_batch: int
    guid: bytes
    body: bytes
    is_indexed: bool = True

    @property
    def etag(self) -> str:
        return etag_text(self.guid)

    @property
    def version(self) -> bytes:
        """What the stored value must still begin with for a change decided on this item to be applied."""
        return self.lsn.to_bytes(LSN_BYTES, "big")


def etag_text(guid: bytes) -> str:
    text = guid.hex()
    return f'"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"'


def pack_item(*, number: int, place_in_batch: int, guid: bytes, body: bytes, is_indexed: bool = True) -> bytes:
    return _HEADER.pack(_FORMAT if is_indexed else _FORMAT_UNINDEXED, number, place_in_batch, guid) + body


def unpack_item(stored: bytes, key: bytes = b"") -> StoredItem:
    """The parts of a record; StoredDamage, naming its key, for one that was cut short or is none."""
    try:
        lsn, form, number, place_in_batch, guid = _STORED_HEADER.unpack_from(stored)
        # That a body is JSON is found out where it is read; that it is whole costs next to nothing.
        is_whole = stored[HEADER_BYTES] == _OPENING and stored[-1] == _CLOSING
    except (struct.error, IndexError):
        raise StoredDamage(what="item record", key=key.hex()) from None
    if not is_whole or form not in (_FORMAT, _FORMAT_UNINDEXED):
        raise StoredDamage(what="item record", key=key.hex())
    return StoredItem(lsn, number, place_in_batch, guid, stored[HEADER_BYTES:], form == _FORMAT)


def is_indexed(stored: bytes) -> bool:
    return stored[LSN_BYTES] != _FORMAT_UNINDEXED


def body_of(stored: bytes) -> bytes:
    return stored[HEADER_BYTES:]
