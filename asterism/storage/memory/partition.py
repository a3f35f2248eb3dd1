"""One partition in memory, and what each writing call does to it.

A call first looks at everything that may refuse it; from its first write on nothing can fail, so it is all or nothing.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from operator import attrgetter

from asterism.storage.contract import (
    KEY_BYTES_MAX,
    LSN_BYTES,
    Batch,
    CeilingPassed,
    EngineFailed,
    EpochFenced,
    ExpectationFailed,
    Fence,
    FenceChanged,
    JournalEntry,
    RecordDamaged,
    Span,
    decode_counters,
    encode_counters,
)
from asterism.storage.memory.ordered_map import OrderedMap
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber


class MemoryPartition:
    """A namespace with its fence, its LSN and its journal."""

    __slots__ = ("announced", "dropping", "entries", "fence", "journal", "lsn", "number")

    def __init__(self, number: PartitionNumber, fence: Fence, lsn: Lsn, *, announced: bool) -> None:
        self.number = number
        self.fence = fence
        self.lsn = lsn
        self.announced = announced
        self.dropping = False
        self.entries = OrderedMap()
        # Of the batches since journaling began, in LSN order.
        self.journal: list[JournalEntry] = []

    def check_epoch(self, epoch: Epoch) -> None:
        fence = self.fence
        if fence.epoch != epoch or fence.sealed:
            raise EpochFenced(self.number)

    # --- batches ----------------------------------------------------------------------------------------------------

    def apply(self, batch: Batch) -> Lsn:
        entries = self.entries
        self._check_expectations(batch)
        totals = self._add_up(batch)
        lsn = Lsn(self.lsn + 1)
        stamp = lsn.to_bytes(LSN_BYTES, "big")
        stamped = [(head + stamp + tail, value) for head, tail, value in batch.stamped_puts]
        _check_key_lengths(chain(batch.puts, batch.versioned_puts, stamped, totals))
        for span in batch.range_deletes:
            entries.remove_span(span)
        for key in batch.deletes:
            entries.remove(key)
        for key, value in batch.puts:
            entries.put(key, value)
        for key, value in batch.versioned_puts:
            entries.put(key, stamp + value)
        for key, value in stamped:
            entries.put(key, value)
        for key, counters in totals:
            if counters is None:
                entries.remove(key)
            else:
                entries.put(key, counters)
        self.lsn = lsn
        if self.fence.journaling:
            written = chain(batch.puts, batch.versioned_puts, stamped, totals)
            keys = (*batch.deletes, *(key for key, _ in written))
            self.journal.append(JournalEntry(lsn, keys, tuple(batch.range_deletes)))
        return lsn

    def _check_expectations(self, batch: Batch) -> None:
        get = self.entries.get
        for expectation in batch.expectations:
            value, wanted = get(expectation.key), expectation.begins_with
            holds = value is None if wanted is None else value is not None and value.startswith(wanted)
            if not holds:
                raise ExpectationFailed(expectation.key)

    def _add_up(self, batch: Batch) -> list[tuple[bytes, bytes | None]]:
        """Return what the adds leave under each of their keys, None for a key that goes."""
        totals: dict[bytes, tuple[int, ...]] = {}
        for add in batch.adds:
            key, deltas = add.key, add.deltas
            counters = totals.get(key)
            if counters is None:
                counters = self._counters(key, batch.range_deletes)
            counters = tuple(map(sum, zip_longest(counters, deltas, fillvalue=0)))
            if add.first_max is not None and deltas and deltas[0] > 0 and counters[0] > add.first_max:
                raise CeilingPassed(key)
            totals[key] = counters
        try:
            return [(key, encode_counters(counters) if any(counters) else None) for key, counters in totals.items()]
        except struct.error as error:
            raise EngineFailed("a counter of the batch leaves 64 bits") from error

    def _counters(self, key: bytes, range_deletes: Sequence[Span]) -> tuple[int, ...]:
        if any(span.contains(key) for span in range_deletes):
            return ()
        try:
            return decode_counters(self.entries.get(key))
        except struct.error:
            raise RecordDamaged(key) from None

    # --- fences and copies ------------------------------------------------------------------------------------------

    def set_fence(self, fence: Fence, *, lsn: Lsn | None, expected: Fence | None) -> Lsn:
        if expected is not None and self.fence != expected:
            raise FenceChanged(self.number)
        if lsn is not None and lsn > self.lsn:
            self.lsn = lsn
        if not fence.journaling:
            self.journal = []
        self.fence = fence
        return self.lsn

    def journal_after(self, after: Lsn, limit: int) -> list[JournalEntry]:
        first = bisect_right(self.journal, after, key=attrgetter("lsn"))
        return self.journal[first : first + limit]

    def write_copied(
        self,
        epoch: Epoch,
        *,
        puts: Sequence[tuple[bytes, bytes]],
        deletes: Sequence[bytes],
        range_deletes: Sequence[Span],
    ) -> None:
        if not self.fence.sealed or self.fence.epoch != epoch:
            raise EpochFenced(self.number)
        _check_key_lengths(puts)
        for span in range_deletes:
            self.entries.remove_span(span)
        for key in deletes:
            self.entries.remove(key)
        for key, value in puts:
            self.entries.put(key, value)


def _check_key_lengths(written: Iterable[tuple[bytes, bytes | None]]) -> None:
    longest = max([len(key) for key, _ in written], default=0)
    if longest > KEY_BYTES_MAX:
        raise EngineFailed(f"a key has {longest} bytes; at most {KEY_BYTES_MAX} can be stored")
