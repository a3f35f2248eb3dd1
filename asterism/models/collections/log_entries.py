"""Entries of the log of changes: one for each change of a document, and one for each change of the catalog.

An entry lies under the LSN of its batch, its place in it, and a number that no other entry of the keyspace has (that of
the document, or a new one), so that the logs of two partitions can be merged. The name of the collection is part of it:
readers ask for names, and a collection may be renamed or dropped before they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from asterism.models.collections.layout import CHANGE_LOG, log_suffix
from asterism.storage.contract import Batch
from asterism.values.bson.codec import encode
from asterism.values.bson.raw_documents import document_of
from asterism.values.bson.types import Document, Int64

# Entries, and the bodies that they need, are kept so long.
LOG_KEPT_SECONDS: Final = 24 * 3600
# Stored by their positions: new ones are added at the end.
OPERATIONS: Final = (
    "insert", "update", "replace", "delete", "drop", "rename", "dropDatabase", "create", "createIndexes", "dropIndexes",
    "modify", "shardCollection", "reshardCollection", "refineCollectionShardKey",
)  # fmt: skip
DOCUMENT_OPERATIONS: Final = frozenset(OPERATIONS[:4])
# Two bytes; entries behind it are in the order of their numbers.
_PLACE_MAX: Final = 0xFFFF
_KEY_ELEMENT: Final = b"\x03k\x00"
_NUMBERS: Final = {operation: number for number, operation in enumerate(OPERATIONS)}


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """A change of a collection, or of a whole database (without a name). `details` are what its event tells."""

    operation: str
    database: str
    name: str = ""
    uuid: bytes = b""
    details: Document = field(default_factory=dict)
    is_view: bool = False


def entry_head(
    operation: str, name: str, uuid: bytes, *, time: int, wall_milliseconds: int, keeps_images: bool = False
) -> bytes:
    """Return the elements that all entries of an operation on one collection in one batch share."""
    entry: Document = {
        "o": _NUMBERS[operation],
        "n": name,
        "u": uuid,
        "t": Int64(time),
        "w": Int64(wall_milliseconds),
    }
    if keeps_images:
        entry["e"] = True
    return encode(entry)[4:-1]


def document_entry(
    head: bytes, key: bytes, before: bytes | None, description: Document | None, transaction: Document | None
) -> bytes:
    """Return the entry of a change of a document. `key` is the BSON of its shard key and `_id`, `before` the place of
    the body that was displaced."""
    rest: Document = {}
    if before is not None:
        rest["p"] = before
    if description is not None:
        rest["d"] = description
    if transaction is not None:
        rest["x"] = transaction
    return document_of(head, _KEY_ELEMENT, key, encode(rest)[4:-1]) if rest else document_of(head, _KEY_ELEMENT, key)


def log_catalog_changes(
    batch: Batch,
    point: bytes,
    changes: Sequence[CatalogChange],
    *,
    numbers: Sequence[int],
    time: int,
    wall_milliseconds: int,
) -> None:
    """Add the entries of catalog changes to a batch of the partition of `point`."""
    for place, (change, number) in enumerate(zip(changes, numbers, strict=True)):
        head = entry_head(change.operation, change.name, change.uuid, time=time, wall_milliseconds=wall_milliseconds)
        details: Document = {"b": change.database, "d": change.details}
        if change.is_view:
            details["v"] = True
        entry = document_of(head, encode(details)[4:-1])
        suffix = log_suffix(place=min(place, _PLACE_MAX), number=number)
        batch.stamped_puts.append((CHANGE_LOG, suffix, point + entry))
