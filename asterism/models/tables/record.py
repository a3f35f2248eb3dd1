"""An entity as it is stored: a fixed header, its two keys, then its properties as `codec` writes them.

The engine puts the LSN of the writing batch before it (a versioned record); changes are planned on that version:

    0   8  LSN of the batch that wrote it, big-endian
    8   1  format, 0x01
    9   8  Timestamp, in ticks of 100 ns since 1970, big-endian
    17  2  bytes of the PartitionKey, big-endian
    19  2  bytes of the RowKey, big-endian
    21     PartitionKey and RowKey in UTF-8, lone surrogates allowed; the properties
"""

from __future__ import annotations

import struct

from asterism.errors import StoredDamage
from asterism.models.tables.entities import StoredEntity
from asterism.values.ordered_text import ordered_text

_FORMAT = 1
_HEADER = struct.Struct(">BQHH")
_STORED_HEADER = struct.Struct(">8xBQHH")
_KEYS_AT = _STORED_HEADER.size

_pack = _HEADER.pack
_unpack_from = _STORED_HEADER.unpack_from


def pack_entity(partition_key: str, row_key: str, ticks: int, properties: bytes) -> bytes:
    first = partition_key.encode("utf-8", "surrogatepass")
    second = row_key.encode("utf-8", "surrogatepass")
    return _pack(_FORMAT, ticks, len(first), len(second)) + first + second + properties


def unpack_entity(stored: bytes) -> StoredEntity:
    _, ticks, first_bytes, second_bytes = _header(stored)
    second_at = _KEYS_AT + first_bytes
    properties_at = second_at + second_bytes
    try:
        return StoredEntity(
            stored[_KEYS_AT:second_at].decode(),
            stored[second_at:properties_at].decode(),
            ticks,
            stored[properties_at:],
        )
    except UnicodeDecodeError:
        return StoredEntity(
            stored[_KEYS_AT:second_at].decode("utf-8", "surrogatepass"),
            stored[second_at:properties_at].decode("utf-8", "surrogatepass"),
            ticks,
            stored[properties_at:],
        )


def unpack_known(stored: bytes, partition_key: str, row_key: str) -> StoredEntity:
    """Return an entity whose keys the caller knows, which saves decoding them."""
    _, ticks, first_bytes, second_bytes = _header(stored)
    return StoredEntity(partition_key, row_key, ticks, stored[_KEYS_AT + first_bytes + second_bytes :])


def order_of(stored: bytes) -> tuple[bytes, bytes]:
    """Return the two keys as bytes that compare as the keys do."""
    partition_key, row_key, _, _ = unpack_entity(stored)
    return ordered_text(partition_key), ordered_text(row_key)


def partition_key_of(stored: bytes) -> str:
    return unpack_entity(stored).partition_key


def _header(stored: bytes) -> tuple[int, int, int, int]:
    try:
        header: tuple[int, int, int, int] = _unpack_from(stored)
    except struct.error:
        raise StoredDamage(what="entity record") from None
    if header[0] != _FORMAT:
        raise StoredDamage(what="entity record")
    return header
