"""Changes that a write transaction can carry, each all or nothing.

A change first checks everything that may refuse it, and raises its refusal before it writes; several changes can then
share a transaction, although LMDB cannot undo a single one of them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import zip_longest

import lmdb

from asterism.storage.contract import (
    LSN_BYTES,
    Batch,
    CeilingPassed,
    EngineFailed,
    EpochFenced,
    ExpectationFailed,
    Fence,
    FenceChanged,
    OutOfSpace,
    PartitionUnknown,
    RecordDamaged,
    Span,
    decode_counters,
    encode_counters,
)
from asterism.storage.lmdb.layout import (
    JOURNAL_PREFIX,
    PARTITION_NUMBER_MAX,
    PartitionMeta,
    PartitionNames,
    after_prefix,
    bounds,
    decode_meta,
    encode_journal,
    journal_key,
)
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber, sequence_of

# Entries of a partition or a journal that are removed at once: a millisecond or two of the event loop.
REMOVE_ENTRIES_PER_CHANGE = 1000


class WriteView:
    """A write transaction, and the meta records it has read: each is read once and written once per transaction."""

    __slots__ = ("_changed", "_cursor", "_metas", "_names", "has_room", "txn")

    def __init__(self, txn: lmdb.Transaction[bytes], names: PartitionNames, *, has_room: bool) -> None:
        self.txn = txn
        # Without room, only changes that remove more than they add are carried out.
        self.has_room = has_room
        self._names = names
        self._metas: dict[PartitionNumber, PartitionMeta | None] = {}
        self._changed: set[PartitionNumber] = set()
        # One for the whole transaction: to make it takes as long as two puts.
        self._cursor: lmdb.Cursor[bytes] | None = None

    def put_many(self, entries: Sequence[tuple[bytes, bytes]]) -> None:
        if self._cursor is None:
            self._cursor = self.txn.cursor()
        self._cursor.putmulti(entries)

    def prefix(self, partition: PartitionNumber) -> bytes:
        return self._names[partition][1]

    def stored_meta(self, partition: PartitionNumber) -> PartitionMeta | None:
        """Return the meta record, also of a partition that is being dropped."""
        if partition not in self._metas:
            record = self.txn.get(self._names[partition][0])
            self._metas[partition] = None if record is None else decode_meta(record)
        return self._metas[partition]

    def meta(self, partition: PartitionNumber) -> PartitionMeta:
        meta = self.stored_meta(partition)
        if meta is None or meta.dropping:
            raise PartitionUnknown(partition)
        return meta

    def change_meta(self, partition: PartitionNumber, meta: PartitionMeta | None) -> None:
        self._metas[partition] = meta
        self._changed.add(partition)

    def save_metas(self) -> None:
        for partition in self._changed:
            meta = self._metas[partition]
            if meta is None:
                self.txn.delete(self._names[partition][0])
            else:
                self.txn.put(self._names[partition][0], meta.encode())


def apply_batch(partition: PartitionNumber, epoch: Epoch, batch: Batch, view: WriteView) -> Lsn:
    meta = view.meta(partition)
    if meta.sealed or meta.epoch != epoch:
        raise EpochFenced(partition)
    prefix = view.prefix(partition)
    txn = view.txn
    _check_expectations(txn, prefix, batch)
    if not view.has_room and not batch.may_use_reserve and _grows(batch):
        raise OutOfSpace("the store is nearly full: the remaining space is reserved for deletes")
    totals = _add_up(txn, prefix, batch)

    lsn = Lsn(meta.lsn + 1)
    stamp = lsn.to_bytes(LSN_BYTES, "big")
    for span in batch.range_deletes:
        remove_span(txn, *bounds(prefix, span))
    for key in batch.deletes:
        txn.delete(prefix + key)
    # One call for all puts, and a cursor that keeps its position: entries of an index are adjacent.
    puts = [(prefix + key, value) for key, value in batch.puts]
    puts += [(prefix + key, stamp + value) for key, value in batch.versioned_puts]
    puts += [(prefix + head + stamp + tail, value) for head, tail, value in batch.stamped_puts]
    for key, counters in totals:
        if counters is None:
            txn.delete(prefix + key)
        else:
            puts.append((prefix + key, counters))
    view.put_many(puts)
    if meta.journaling:
        txn.put(journal_key(prefix, lsn), encode_journal(batch, stamp))
    meta.lsn = lsn
    view.change_meta(partition, meta)
    return lsn


def _check_expectations(txn: lmdb.Transaction[bytes], prefix: bytes, batch: Batch) -> None:
    for expectation in batch.expectations:
        value = txn.get(prefix + expectation.key)
        wanted = expectation.begins_with
        if value is not None if wanted is None else value is None or not value.startswith(wanted):
            raise ExpectationFailed(expectation.key)


def _grows(batch: Batch) -> bool:
    """Estimate growth by the number of entries: removing an item deletes several and adds one to the change log."""
    put_count = len(batch.puts) + len(batch.versioned_puts) + len(batch.stamped_puts)
    return not batch.range_deletes and put_count > len(batch.deletes)


def _add_up(txn: lmdb.Transaction[bytes], prefix: bytes, batch: Batch) -> list[tuple[bytes, bytes | None]]:
    """Return the totals after the batch's adds, None for a record to delete; refuse before anything is written."""
    totals: dict[bytes, tuple[int, ...]] = {}
    for add in batch.adds:
        key, deltas = add.key, add.deltas
        counters = totals.get(key)
        if counters is None:
            is_emptied = batch.range_deletes and any(span.contains(key) for span in batch.range_deletes)
            try:
                counters = () if is_emptied else decode_counters(txn.get(prefix + key))
            except struct.error:
                raise RecordDamaged(key) from None
        if not counters:
            counters = deltas
        elif len(counters) == len(deltas):
            counters = tuple(map(int.__add__, counters, deltas))
        else:
            counters = tuple(map(sum, zip_longest(counters, deltas, fillvalue=0)))
        if add.first_max is not None and deltas and deltas[0] > 0 and counters[0] > add.first_max:
            raise CeilingPassed(key)
        totals[key] = counters
    try:
        return [(key, encode_counters(counters) if any(counters) else None) for key, counters in totals.items()]
    except struct.error as error:
        raise EngineFailed("a counter of the batch overflows 64 bits") from error


def remove_span(txn: lmdb.Transaction[bytes], low: bytes, high: bytes, *, limit: int | None = None) -> int:
    """Remove the stored keys from `low` up to `high`, at most `limit` of them; return the number of removed keys."""
    removed = 0
    with txn.cursor() as cursor:
        found = cursor.set_range(low)
        # Deleting moves the cursor to the next entry; past the last one its key is empty.
        while found and removed != limit and (key := cursor.key()) and key < high:
            found = cursor.delete()
            removed += 1
    return removed


def create_partition(view: WriteView, partition: PartitionNumber, fence: Fence, lsn: Lsn) -> None:
    if partition < 0 or sequence_of(partition) > PARTITION_NUMBER_MAX:
        raise EngineFailed(f"a partition cannot have the number {partition}")
    if view.stored_meta(partition) is not None:
        raise EngineFailed(f"partition {partition} exists already")
    meta = PartitionMeta(fence.epoch, lsn, sealed=fence.sealed, journaling=fence.journaling, journal_after=lsn)
    view.change_meta(partition, meta)


def set_fence(
    view: WriteView, partition: PartitionNumber, fence: Fence, lsn: Lsn | None, expected: Fence | None
) -> tuple[Lsn, bool]:
    """Set the fence; return the LSN, and True if discarded journal records remain to be removed."""
    meta = view.meta(partition)
    if expected is not None and meta.fence() != expected:
        raise FenceChanged(partition)
    if lsn is not None and lsn > meta.lsn:
        meta.lsn = lsn
    ends_journal = meta.journaling and not fence.journaling
    if meta.journaling != fence.journaling:
        meta.journal_after = meta.lsn
    meta.epoch, meta.sealed, meta.journaling = fence.epoch, fence.sealed, fence.journaling
    view.change_meta(partition, meta)
    return meta.lsn, ends_journal


def remove_forgotten_journal(view: WriteView, partition: PartitionNumber) -> bool:
    """Remove some of the discarded journal records; return True if there are more."""
    meta = view.stored_meta(partition)
    if meta is None:
        return False
    prefix = view.prefix(partition)
    low, high = JOURNAL_PREFIX + prefix, journal_key(prefix, meta.journal_after + 1)
    return remove_span(view.txn, low, high, limit=REMOVE_ENTRIES_PER_CHANGE) == REMOVE_ENTRIES_PER_CHANGE


def drop_some(view: WriteView, partition: PartitionNumber) -> bool:
    """Close the partition for good and remove some of its entries; return True if none are left."""
    meta = view.stored_meta(partition)
    if meta is None:
        return True
    prefix = view.prefix(partition)
    budget = REMOVE_ENTRIES_PER_CHANGE
    for head in (prefix, JOURNAL_PREFIX + prefix):
        budget -= remove_span(view.txn, head, after_prefix(head), limit=budget)
    meta.dropping = True
    view.change_meta(partition, meta if budget == 0 else None)
    return budget > 0


def write_copied(
    view: WriteView,
    partition: PartitionNumber,
    epoch: Epoch,
    puts: Sequence[tuple[bytes, bytes]],
    deletes: Sequence[bytes],
    range_deletes: Sequence[Span],
) -> None:
    meta = view.meta(partition)
    if not meta.sealed or meta.epoch != epoch:
        raise EpochFenced(partition)
    if not view.has_room and puts:
        raise OutOfSpace("the store is nearly full: the remaining space is reserved for deletes")
    prefix = view.prefix(partition)
    txn = view.txn
    for span in range_deletes:
        remove_span(txn, *bounds(prefix, span))
    for key in deletes:
        txn.delete(prefix + key)
    for key, value in puts:
        txn.put(prefix + key, value)
