"""The keys of a container inside its partitions (docs/storage-format.md has them byte by byte).

A blob is one logical partition, at the point of its name. Every key of it begins with that point, after the family, so
that one partition serves all of it and each change of it is one batch.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final

from asterism.errors import StoredDamage
from asterism.keyspaces.routing.families import ITEMS, after_prefix
from asterism.limits import KIB, MIB
from asterism.storage.contract import Span
from asterism.values.ordered_text import leading_part

# --- routed by key ------------------------------------------------------------------------------------------------

# ITEMS (families.py): point -> root, versioned: the current blob, or what else its name has.
ROOTS: Final = ITEMS
# point, moment -> record of a snapshot, of a previous version, or of a deleted blob; versioned
VERSIONS: Final = b"\x20"
# point, block id -> uncommitted block
BLOCKS: Final = b"\x21"
# point, content id, page number -> segments
MANIFESTS: Final = b"\x22"
# point, data id, offset -> bytes; never changed once a record refers to them
DATA: Final = b"\x23"
# point, content id, index, epoch -> which of 64 pages are valid, and which were written in this epoch
PAGE_MAPS: Final = b"\x24"
# point, content id, index, epoch -> 32 KiB of a page blob
PAGES: Final = b"\x25"
# point, moment, number -> contents and data that were released
GARBAGE: Final = b"\x26"
# point, data id -> moment of the latest write of data that no record refers to yet
UPLOADS: Final = b"\x27"
# point -> moment of the latest Put Block; versioned
UNCOMMITTED: Final = b"\x28"
# point -> copy that is under way
COPIES: Final = b"\x29"
# point -> number of uncommitted blocks
BLOCK_COUNTS: Final = b"\x2a"

# --- routed by value ----------------------------------------------------------------------------------------------

# name and value of a tag, blob -> point
TAGS: Final = b"\xa0"
# moment, moment of the record in VERSIONS, digest of the point -> point, moment of the record
RETENTION: Final = b"\xa1"

CONTENT_ID_BYTES: Final = 16
DATA_ID_BYTES: Final = 16
MOMENT_BYTES: Final = 8
BLOCK_ID_BYTES_MAX: Final = 64

# An entry of DATA. Larger values save nothing: the engine reads them at several GB/s either way.
CHUNK_BYTES: Final = 256 * KIB
# An upload keeps so much in memory, and stores it as one batch.
UPLOAD_BUFFER_BYTES: Final = MIB
# A content up to this size stands in the record itself: a small blob is one entry, read and written as one.
INLINE_BYTES_MAX: Final = 4 * KIB
# Segments in the record of a block blob; those of a longer list stand in manifests.
INLINE_SEGMENTS_MAX: Final = 32
# Segments in the record of an append blob, before they move to a manifest.
TAIL_SEGMENTS_MAX: Final = 64
MANIFEST_SEGMENTS_MAX: Final = 1_000

# The service's limits.
COMMITTED_BLOCKS_MAX: Final = 50_000
UNCOMMITTED_BLOCKS_MAX: Final = 100_000
APPENDED_BLOCKS_MAX: Final = 50_000

# Readers of a content that was replaced have so long to finish.
GARBAGE_SECONDS: Final = 300
# An upload that wrote nothing for so long was cut off.
UPLOAD_SECONDS_MAX: Final = 3600
# Spec B4.
UNCOMMITTED_SECONDS_MAX: Final = 7 * 24 * 3600

_MOMENT = struct.Struct(">Q")
_NUMBER = struct.Struct(">L")
_MOMENT_AND_NUMBER = struct.Struct(">QL")
_DIGEST_BYTES = 8


def point_of(name: str) -> bytes:
    return leading_part(name)


def root_key(point: bytes) -> bytes:
    return ROOTS + point


def version_key(point: bytes, moment: int) -> bytes:
    return VERSIONS + point + _MOMENT.pack(moment)


def moment_of(key: bytes) -> int:
    """Return the moment that a key of VERSIONS ends with."""
    (moment,) = _MOMENT.unpack_from(key, len(key) - MOMENT_BYTES)
    return int(moment)


def block_key(point: bytes, block_id: bytes) -> bytes:
    return BLOCKS + point + block_id


def manifest_key(point: bytes, content_id: bytes, page: int) -> bytes:
    return MANIFESTS + point + content_id + _NUMBER.pack(page)


def data_key(point: bytes, data_id: bytes, offset: int) -> bytes:
    return DATA + point + data_id + _MOMENT.pack(offset)


def offset_of(key: bytes) -> int:
    """Return the offset that a key of DATA ends with."""
    (offset,) = _MOMENT.unpack_from(key, len(key) - MOMENT_BYTES)
    return int(offset)


def garbage_key(point: bytes, moment: int, number: int) -> bytes:
    return GARBAGE + point + _MOMENT_AND_NUMBER.pack(moment, number)


def garbage_place(key: bytes) -> tuple[bytes, int]:
    """Return the point and the moment of a key of GARBAGE."""
    at = len(key) - _MOMENT_AND_NUMBER.size
    moment, _ = _MOMENT_AND_NUMBER.unpack_from(key, at)
    return key[1:at], moment


def upload_key(point: bytes, data_id: bytes) -> bytes:
    return UPLOADS + point + data_id


def upload_place(key: bytes) -> tuple[bytes, bytes]:
    """Return the point and the data id of a key of UPLOADS."""
    return key[1:-DATA_ID_BYTES], key[-DATA_ID_BYTES:]


def uncommitted_key(point: bytes) -> bytes:
    return UNCOMMITTED + point


def block_count_key(point: bytes) -> bytes:
    return BLOCK_COUNTS + point


def copy_key(point: bytes) -> bytes:
    return COPIES + point


def retention_entry(due_at: int, point: bytes, moment: int) -> tuple[bytes, bytes]:
    """Return the entry for a record that is due; `moment` is its place in VERSIONS, 0 for the root."""
    tail = _MOMENT.pack(moment)
    return RETENTION + _MOMENT.pack(due_at) + tail + _point_digest(point), point + tail


def retention_place(key: bytes, value: bytes) -> tuple[int, bytes, int]:
    """Return the moment at which a record is due, its point and its place in VERSIONS."""
    (due_at,) = _MOMENT.unpack_from(key, 1)
    return due_at, value[:-MOMENT_BYTES], unpack_moment(value[-MOMENT_BYTES:])


def due_until(moment: int) -> Span:
    """Return the span of the entries of RETENTION that are due at a moment."""
    return Span(RETENTION, RETENTION + _MOMENT.pack(moment + 1))


def pack_moment(moment: int) -> bytes:
    return _MOMENT.pack(moment)


def unpack_moment(stored: bytes) -> int:
    try:
        return int(_MOMENT.unpack_from(stored)[0])
    except struct.error:
        raise StoredDamage(what="moment") from None


def span_of(family: bytes, *parts: bytes) -> Span:
    """Return the span of all keys of a family that begin with the parts, the point first."""
    prefix = family + b"".join(parts)
    return Span(prefix, after_prefix(prefix))


def _point_digest(point: bytes) -> bytes:
    # Two records of one moment are of different blobs.
    return hashlib.blake2b(point, digest_size=_DIGEST_BYTES).digest()
