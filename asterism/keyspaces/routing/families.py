"""The keys of a keyspace inside a partition, declared once (docs/storage-format.md has them byte by byte).

A key begins with its family. The family's number says how an entry is routed to its partition, which is all that split,
merge and move need to know of it (K5):

    below 0x10        belongs to the partition itself; never copied
    0x10 to 0x7F      routed by its key: the bytes after the family begin with the effective partition key
    0x80 and above    routed by its value: the value begins with the effective partition key
"""

from __future__ import annotations

import hashlib
import struct

from asterism.storage.contract import Span
from asterism.values.identifiers import Lsn

TOTALS_KEY = b"\x01"
ITEMS = b"\x10"
LOGICAL_SIZES = b"\x11"
UNIQUE_KEYS = b"\x12"
# The items of a logical partition in the order of their creation: point, item number -> id key.
LOGICAL_ORDER = b"\x13"
# 14 is the collections' (models/collections/layout.py).
# The edges that lead to a vertex, by the place of the vertex (models/documents/incoming/entries.py).
INCOMING_EDGES = b"\x15"
CHANGE_LOG = b"\x90"
INDEX = b"\x91"
# Every version of every item and every delete, where they are kept (models/documents/changes/item_version.py).
VERSIONS = b"\x92"
EXPIRY = b"\x93"
# All items of the physical partition in the order of their creation: item number -> reference.
CREATION_ORDER = b"\x94"

_FIRST_ROUTED_BY_KEY = 0x10
_FIRST_ROUTED_BY_VALUE = 0x80
_FAMILIES_ROUTED_BY_KEY = tuple(bytes([number]) for number in range(_FIRST_ROUTED_BY_KEY, _FIRST_ROUTED_BY_VALUE))

# Ids up to this many bytes stand in the key as they are; a longer one is cut and its digest appended, which makes
# it one byte longer than any that is not cut, so the two forms never meet.
ID_KEY_BYTES_MAX = 255
_ID_DIGEST_BYTES = 32

COUNTERS = struct.Struct(">qq")
_LSN = struct.Struct(">Q")
_LOG_SUFFIX = struct.Struct(">HQ")
_EXPIRY_KEY = struct.Struct(">cQQ")
ITEM_NUMBER_BYTES = 8
_UNIQUE_DIGEST_BYTES = 16


def id_key(item_id: bytes) -> bytes:
    """Return an item's id as it stands in keys."""
    if len(item_id) <= ID_KEY_BYTES_MAX:
        return item_id
    digest = hashlib.blake2b(item_id, digest_size=_ID_DIGEST_BYTES).digest()
    return item_id[: ID_KEY_BYTES_MAX + 1 - _ID_DIGEST_BYTES] + digest


def log_suffix(*, place_in_batch: int, item_number: int) -> bytes:
    """Return the part of a change-log key after the LSN: the order inside a batch, and the item's number, which keeps
    entries of two partitions apart if a merge brings equal LSNs together."""
    return _LOG_SUFFIX.pack(place_in_batch, item_number)


def log_key(lsn: Lsn, *, place_in_batch: int, item_number: int) -> bytes:
    return CHANGE_LOG + _LSN.pack(lsn) + _LOG_SUFFIX.pack(place_in_batch, item_number)


def behind_lsn(family: bytes, lsn: Lsn) -> bytes:
    """Return the first key after all entries of `lsn`, in a log that is ordered by LSNs."""
    return family + _LSN.pack(lsn + 1)


def lsn_in_log_key(key: bytes) -> Lsn:
    return Lsn(int.from_bytes(key[1:9], "big"))


def number_bytes(item_number: int) -> bytes:
    return item_number.to_bytes(ITEM_NUMBER_BYTES, "big")


def expiry_key(expires_at: int, *, item_number: int) -> bytes:
    """When an item is due to be removed. Only a hint: who finds it due looks at the item itself."""
    return _EXPIRY_KEY.pack(EXPIRY, expires_at, item_number)


def expiry_of(key: bytes) -> tuple[int, int]:
    """The second and the item number of an expiry key."""
    _, expires_at, item_number = _EXPIRY_KEY.unpack(key)
    return expires_at, item_number


def unique_key(point: bytes, values: bytes) -> bytes:
    """The entry that one item of a logical partition may hold; `values` spells which unique key it is and its values,
    and may be long, so a digest stands for it."""
    return UNIQUE_KEYS + point + hashlib.blake2b(values, digest_size=_UNIQUE_DIGEST_BYTES).digest()


def after_prefix(prefix: bytes) -> bytes | None:
    """Return the first key after all keys that begin with `prefix`; None if no key is."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else None


def is_routed(key: bytes) -> bool:
    return key[0] >= _FIRST_ROUTED_BY_KEY


def is_routed_by_value(key: bytes) -> bool:
    return key[0] >= _FIRST_ROUTED_BY_VALUE


def route_of(key: bytes, value: bytes) -> bytes:
    """Bytes that begin with the effective partition key of a routed entry: enough to compare with a range's bounds,
    because no bound is longer than the keys it divides."""
    return value if key[0] >= _FIRST_ROUTED_BY_VALUE else key[1:]


def spans_to_copy(start: bytes, end: bytes) -> list[Span]:
    """List what a copy of the hash interval [start, end) reads: every key-routed family by interval, and all of the
    value-routed ones as one span, whose entries are then chosen by `route_of`.

    Families count by their number alone, so that a copy also takes those that are not named here; one without entries
    costs a seek."""
    by_key = [Span(family + start, family + end) for family in _FAMILIES_ROUTED_BY_KEY]
    return [*by_key, Span(bytes([_FIRST_ROUTED_BY_VALUE]))]
