"""Changes that a write transaction can carry, each all or nothing.

A change first checks everything that may refuse it, and raises its refusal before it writes; several changes can then
share a transaction, although LMDB cannot undo a single one of them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import zip_longest

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
    RecordDamaged,
    Span,
    decode_counters,
    encode_counters,
)
from asterism.storage.lmdb.layout import (
    CHECKPOINT_KEY,
    FORMAT_KEY,
    JOURNAL_PREFIX,
    PARTITION_NUMBER_MAX,
    Checkpoint,
    PartitionMeta,
    after_prefix,
    bounds,
    encode_format,
    encode_journal,
    journal_key,
)
from asterism.storage.lmdb.overlay import Overlaid
from asterism.storage.lmdb.write_views import Writes, WriteView
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber, sequence_of

# Entries of a partition or a journal that are removed at once: a millisecond or two of the event loop.
REMOVE_ENTRIES_PER_CHANGE = 1000


def apply_batch(partition: PartitionNumber, epoch: Epoch, batch: Batch, view: WriteView) -> Lsn:
    meta = view.meta(partition)
    if meta.sealed or meta.epoch != epoch:
        raise EpochFenced(partition)
    prefix = view.prefix(partition)
    _check_expectations(view, prefix, batch)
    if not view.has_room and not batch.may_use_reserve and _grows(batch):
        raise OutOfSpace("the store is nearly full: the remaining space is reserved for deletes")
    totals = _add_up(view, prefix, batch)

    lsn = Lsn(meta.lsn + 1)
    stamp = lsn.to_bytes(LSN_BYTES, "big")
    for span in batch.range_deletes:
        view.remove_span(*bounds(prefix, span))
    for key in batch.deletes:
        view.delete(prefix + key)
    view.put_many(prefix, batch.puts)
    puts = [(key, stamp + value) for key, value in batch.versioned_puts]
    puts += [(head + stamp + tail, value) for head, tail, value in batch.stamped_puts]
    for key, counters in totals:
        if counters is None:
            view.delete(prefix + key)
        else:
            puts.append((key, counters))
    view.put_many(prefix, puts)
    if meta.journaling:
        view.put_many(b"", [(journal_key(prefix, lsn), encode_journal(batch, stamp))])
    meta.lsn = lsn
    view.change_meta(partition, meta)
    return lsn


def _check_expectations(view: WriteView, prefix: bytes, batch: Batch) -> None:
    get = view.get
    for expectation in batch.expectations:
        value = get(prefix + expectation.key)
        wanted = expectation.begins_with
        if value is not None if wanted is None else value is None or not value.startswith(wanted):
            raise ExpectationFailed(expectation.key)


def _grows(batch: Batch) -> bool:
    """Estimate growth by the number of entries: removing an item deletes several and adds one to the change log."""
    put_count = len(batch.puts) + len(batch.versioned_puts) + len(batch.stamped_puts)
    return not batch.range_deletes and put_count > len(batch.deletes)


def _add_up(view: WriteView, prefix: bytes, batch: Batch) -> list[tuple[bytes, bytes | None]]:
    """Return the totals after the batch's adds, None for a record to delete; refuse before anything is written."""
    totals: dict[bytes, tuple[int, ...]] = {}
    for add in batch.adds:
        key, deltas = add.key, add.deltas
        counters = totals.get(key)
        if counters is None:
            is_emptied = batch.range_deletes and any(span.contains(key) for span in batch.range_deletes)
            try:
                counters = () if is_emptied else decode_counters(view.get(prefix + key))
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
    return view.remove_span(low, high, limit=REMOVE_ENTRIES_PER_CHANGE) == REMOVE_ENTRIES_PER_CHANGE


def drop_some(view: WriteView, partition: PartitionNumber) -> bool:
    """Close the partition for good and remove some of its entries; return True if none are left."""
    meta = view.stored_meta(partition)
    if meta is None:
        return True
    prefix = view.prefix(partition)
    budget = REMOVE_ENTRIES_PER_CHANGE
    for head in (prefix, JOURNAL_PREFIX + prefix):
        budget -= view.remove_span(head, after_prefix(head), limit=budget)
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
    for span in range_deletes:
        view.remove_span(*bounds(prefix, span))
    for key in deletes:
        view.delete(prefix + key)
    view.put_many(prefix, puts)


def rewrite_format(view: WriteView) -> None:
    """Change nothing, in a transaction that is committed all the same."""
    view.put_many(b"", [(FORMAT_KEY, encode_format())])


# --- from the log into the tree -------------------------------------------------------------------------------------


def fold(view: Writes, changes: Mapping[bytes, Overlaid]) -> None:
    """Write changes of the overlay as they are."""
    if None not in changes.values():
        view.put_many(b"", changes.items())  # type: ignore[arg-type]  # no value is None
        return
    view.put_many(b"", [(key, value) for key, value in changes.items() if value is not None])
    for key, value in changes.items():
        if value is None:
            view.delete(key)


def set_checkpoint(view: WriteView, checkpoint: Checkpoint) -> None:
    view.put_many(b"", [(CHECKPOINT_KEY, checkpoint.encode())])
