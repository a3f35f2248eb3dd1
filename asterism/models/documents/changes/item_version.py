"""One change of an item, as a container with a change-feed retention keeps it.

An entry is written in the batch of the change it tells of, and removed when the retention has passed (`retention.py`).
Its value begins with the item's reference, by which it is routed when partitions split or merge; the fields needed to
take it apart therefore stand at its end:

    reference | image after | image before | operation 1 | flags 1 | reference bytes 2 | bytes of the image after 4 |
    LSN of the image before 8 | wall seconds of the change 8
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from asterism.errors import StoredDamage
from asterism.keyspaces.routing.families import VERSIONS, log_suffix, lsn_in_log_key
from asterism.models.documents.item_record import StoredItem
from asterism.storage.contract import Batch
from asterism.values.identifiers import Lsn

_FOOTER = struct.Struct(">BBHIQQ")
_EXPIRED_FLAG = 1


class ChangeKind(IntEnum):
    CREATE = 1
    REPLACE = 2
    DELETE = 3


class ItemVersion(NamedTuple):
    """A stored change. The images are bodies, and empty after a delete and before a create."""

    kind: ChangeKind
    lsn: Lsn
    changed_at_seconds: int
    after: bytes
    before: bytes
    before_lsn: Lsn
    # True for an item that was removed because it had expired.
    is_expired: bool


def plan_version(
    batch: Batch,
    reference: bytes,
    *,
    number: int,
    place_in_batch: int,
    body: bytes | None,
    before: StoredItem | None,
    now_wall_seconds: float,
    expired: bool = False,
) -> None:
    """Add the entry of a change to its batch. A `body` of None is a delete, by expiry if `expired`."""
    kind = ChangeKind.DELETE if body is None else ChangeKind.CREATE if before is None else ChangeKind.REPLACE
    after = body or b""
    footer = _FOOTER.pack(
        kind,
        _EXPIRED_FLAG if expired else 0,
        len(reference),
        len(after),
        0 if before is None else before.lsn,
        int(now_wall_seconds),
    )
    value = b"".join((reference, after, b"" if before is None else before.body, footer))
    batch.stamped_puts.append((VERSIONS, log_suffix(place_in_batch=place_in_batch, item_number=number), value))


def changed_at_seconds(value: bytes) -> int:
    """Return the second of the change that an entry's value tells of."""
    return int(_FOOTER.unpack_from(value, len(value) - _FOOTER.size)[5])


def unpack_version(key: bytes, value: bytes) -> ItemVersion:
    """Return the parts of an entry; StoredDamage, naming its key, if it was cut short."""
    end = len(value) - _FOOTER.size
    try:
        kind, flags, reference_bytes, after_bytes, before_lsn, seconds = _FOOTER.unpack_from(value, end)
        change_kind = ChangeKind(kind)
    except (struct.error, ValueError):
        raise StoredDamage(what="version of an item", key=key.hex()) from None
    before_at = reference_bytes + after_bytes
    if before_at > end:
        raise StoredDamage(what="version of an item", key=key.hex())
    return ItemVersion(
        change_kind,
        lsn_in_log_key(key),
        seconds,
        after=value[reference_bytes:before_at],
        before=value[before_at:end],
        before_lsn=Lsn(before_lsn),
        is_expired=bool(flags & _EXPIRED_FLAG),
    )
