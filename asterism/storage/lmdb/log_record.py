"""Records of the write log: the changes of one group, and what proves that they are whole.

A record is the outcome of a group, not its orders: the keys that have another value afterwards, and the keys that are
gone. To write it twice is the same as to write it once. docs/storage-format.md describes the bytes.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

from asterism.storage.contract import EngineFailed

# A record begins at a multiple of this, so that no write touches a block in which an acknowledged record lies.
ALIGNMENT_BYTES = 4096
STORE_ID_BYTES = 8
# LMDB's limit. A key that the tree refuses must not get into the log: it could never be folded.
STORED_KEY_BYTES_MAX = 511

MAGIC = b"asterlog"
# Magic, store, sequence, number of puts, number of deletes, length of the body; the checksum of all that and of the
# body follows.
_HEAD = struct.Struct(f">8s{STORE_ID_BYTES}sQIIQ")
_CHECKSUM = struct.Struct(">I")
_BODY_AT = _HEAD.size + _CHECKSUM.size
_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """A whole record in a file; `next_at` is where the next one would begin."""

    sequence: int
    store_id: bytes
    put_count: int
    delete_count: int
    body_at: int
    end: int
    next_at: int


def encode_record(store_id: bytes, sequence: int, changes: Mapping[bytes, bytes | None]) -> bytes:
    """Return the record with its padding. A value of None is a delete. `EngineFailed`: a key is too long."""
    deletes: list[bytes] = []
    if None in changes.values():
        deletes = [key for key, value in changes.items() if value is None]
        changes = {key: value for key, value in changes.items() if value is not None}
    parts: list[bytes] = [*chain.from_iterable(changes.items()), *deletes]  # type: ignore[list-item]  # no None is left
    put_parts = 2 * len(changes)
    lengths = array("I", map(len, parts))
    if max(chain(lengths[0:put_parts:2], lengths[put_parts:]), default=0) > STORED_KEY_BYTES_MAX:
        raise EngineFailed(f"a key has more than {STORED_KEY_BYTES_MAX} bytes")
    body = b"".join((_in_little_endian(lengths).tobytes(), *parts))
    head = _HEAD.pack(MAGIC, store_id, sequence, len(changes), len(deletes), len(body))
    checksum = zlib.crc32(body, zlib.crc32(head))
    padding = bytes(-(_BODY_AT + len(body)) % ALIGNMENT_BYTES)
    return b"".join((head, _CHECKSUM.pack(checksum), body, padding))


def find_records(data: bytes) -> Iterator[RecordPlace]:
    """Return the records from the beginning of a file, until one is not whole or does not follow the one before."""
    at = 0
    before: RecordPlace | None = None
    while (place := find_record(data, at)) is not None:
        if before is not None and (place.store_id, place.sequence) != (before.store_id, before.sequence + 1):
            return
        yield place
        at, before = place.next_at, place


def find_record(data: bytes, at: int) -> RecordPlace | None:
    """Return the record at this place; None if there is no whole record."""
    if len(data) - at < _BODY_AT or not data.startswith(MAGIC, at):
        return None
    _, store_id, sequence, put_count, delete_count, body_bytes = _HEAD.unpack_from(data, at)
    body_at = at + _BODY_AT
    end = body_at + body_bytes
    if not body_at + (2 * put_count + delete_count) * _LENGTH_BYTES <= end <= len(data):
        return None
    view = memoryview(data)
    checksum = zlib.crc32(view[body_at:end], zlib.crc32(view[at : at + _HEAD.size]))
    if (checksum,) != _CHECKSUM.unpack_from(data, at + _HEAD.size):
        return None
    return RecordPlace(sequence, store_id, put_count, delete_count, body_at, end, end + -end % ALIGNMENT_BYTES)


def decode_record(data: bytes, place: RecordPlace) -> dict[bytes, bytes | None]:
    """Return the changes of a record: its puts, then its deletes."""
    put_parts = 2 * place.put_count
    parts_at = place.body_at + (put_parts + place.delete_count) * _LENGTH_BYTES
    lengths = _in_little_endian(array("I", data[place.body_at : parts_at]))
    parts = [data[start:stop] for start, stop in pairwise(accumulate(lengths, initial=parts_at))]
    # Without a tuple for each put: these would be most of the work of the garbage collector.
    changes: dict[bytes, bytes | None] = dict(zip(parts[0:put_parts:2], parts[1:put_parts:2], strict=True))
    changes.update(dict.fromkeys(parts[put_parts:]))
    return changes


def _in_little_endian(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
