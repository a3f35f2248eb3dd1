"""Writes of entities as one batch: planned on the records that were read, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

from asterism.models.tables.codec import merge
from asterism.models.tables.entities import EntityWrite, FailureReason, OperationFailed, StoredEntity, WriteKind
from asterism.models.tables.record import pack_entity, unpack_known
from asterism.storage.contract import LSN_BYTES, Batch, Expectation
from asterism.throughput import charge

_MAKE_NEW = frozenset({WriteKind.INSERT, WriteKind.INSERT_OR_REPLACE, WriteKind.INSERT_OR_MERGE})
_MERGES = frozenset({WriteKind.MERGE, WriteKind.INSERT_OR_MERGE})


class PlannedChange:
    """The batch of some writes, with what it costs, what it adds, and the entities after it (None: deleted)."""

    __slots__ = ("after", "batch", "bytes_delta", "cost", "items_delta")

    def __init__(self) -> None:
        self.batch = Batch()
        self.after: list[StoredEntity | None] = []
        self.cost = 0.0
        self.bytes_delta = self.items_delta = 0

    def put(self, key: bytes, write: EntityWrite, properties: bytes, ticks: int, before: bytes | None) -> None:
        partition_key, row_key = write.partition_key, write.row_key
        record = pack_entity(partition_key, row_key, ticks, properties)
        self.batch.versioned_puts.append((key, record))
        self.after.append(StoredEntity(partition_key, row_key, ticks, properties))
        if before is None:
            self.cost += charge.write(len(record), 0)
            self.bytes_delta += len(record)
            self.items_delta += 1
        else:
            before_bytes = len(before) - LSN_BYTES
            self.cost += charge.replace(before_bytes=before_bytes, after_bytes=len(record), indexed_paths=0)
            self.bytes_delta += len(record) - before_bytes

    def delete(self, key: bytes, before: bytes) -> None:
        before_bytes = len(before) - LSN_BYTES
        self.batch.deletes.append(key)
        self.after.append(None)
        self.cost += charge.delete(before_bytes, 0)
        self.bytes_delta -= before_bytes
        self.items_delta -= 1


def plan_change(
    writes: Sequence[EntityWrite], keys: Sequence[bytes], found: Sequence[bytes | None], ticks: int
) -> PlannedChange:
    """Plan `writes` on the records `found` under their keys; OperationFailed names the first that is not possible.

    The batch expects every record to be as it was found.
    """
    if len(keys) > 1 and len(set(keys)) < len(keys):
        raise ValueError("two writes of a batch name the same entity")
    change = PlannedChange()
    for index, write in enumerate(writes):
        stored, key = found[index], keys[index]
        if stored is None:
            if write.kind not in _MAKE_NEW:
                raise OperationFailed(index, FailureReason.NOT_FOUND)
            change.batch.expectations.append(Expectation(key, None))
            change.put(key, write, write.properties, ticks, None)
            continue
        before = unpack_known(stored, write.partition_key, write.row_key)
        refusal = _refusal(write, before)
        if refusal is not None:
            raise OperationFailed(index, refusal)
        change.batch.expectations.append(Expectation(key, stored[:LSN_BYTES]))
        if write.kind is WriteKind.DELETE:
            change.delete(key, stored)
            continue
        properties = write.properties
        if write.kind in _MERGES:
            merged = merge(before.properties, properties)
            if isinstance(merged, FailureReason):
                raise OperationFailed(index, merged)
            properties = merged
        # A clock that was set back must not give an entity an older Timestamp.
        change.put(key, write, properties, max(ticks, before.etag_time + 1), stored)
    return change


def _refusal(write: EntityWrite, before: StoredEntity) -> FailureReason | None:
    """Return the reason for which the existing entity does not permit a write, or None."""
    if write.kind is WriteKind.INSERT:
        return FailureReason.EXISTS
    wanted = write.if_match
    return FailureReason.ETAG_MISMATCH if isinstance(wanted, int) and wanted != before.etag_time else None
