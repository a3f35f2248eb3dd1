"""The store as a unit of work sees it: a snapshot with what the unit has staged laid over, index entries included.

It keeps the promise of `keyspaces.owner.Reads`, so that whatever reads a partition through that (queries, above all)
reads the unit's own world. Meant for the unit's logical partition: of others it shows the snapshot.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from asterism.documents.planning import NewItem, Place
from asterism.documents.transaction import Transaction
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import COUNTERS, LOGICAL_SIZES
from asterism.keyspaces.records import KeyspaceRecord
from asterism.keyspaces.statistics import size_from
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import LSN_BYTES, ScanPage, Snapshot, Span
from asterism.values.identifiers import Lsn

# Stands where the LSN of a stored item does: this one has none yet.
_NO_LSN = bytes(LSN_BYTES)


class UnitReads:
    """Made for one unit of work, and good while its snapshot is open."""

    def __init__(self, work: Transaction, snapshot: Snapshot) -> None:
        self._work = work
        self._snapshot = snapshot
        # Item key -> what was staged when its entries were laid over, and those entries; None for one that goes.
        self._known: dict[bytes, tuple[tuple[Place, NewItem | None], dict[bytes, bytes | None]]] = {}
        self._over: dict[bytes, bytes | None] = {}
        self._sorted: list[bytes] = []

    async def read(
        self, keyspace: Keyspace, point: bytes, keys: Sequence[bytes]
    ) -> tuple[PartitionRange, Lsn, list[bytes | None]]:
        await self._catch_up()
        stored = await self._snapshot.read(keys)
        values = [self._over.get(key, value) for key, value in zip(keys, stored, strict=True)]
        return keyspace.record.map.find(point), self._snapshot.lsn, values

    async def scan(
        self,
        keyspace: Keyspace,  # noqa: ARG002
        seen: KeyspaceRecord,  # noqa: ARG002
        partition: PartitionRange,  # noqa: ARG002
        span: Span,
        *,
        limit: int,
        bytes_max: int | None,
        reverse: bool = False,
    ) -> ScanPage:
        """Like a page of the store, but for what is laid over, which may make it longer than `limit`."""
        await self._catch_up()
        while True:
            page = await self._snapshot.scan(span, reverse=reverse, limit=limit, bytes_max=bytes_max)
            covered, rest = _parted(span, page, reverse=reverse)
            entries = self._merged(page, covered, reverse=reverse)
            # A page that is not the last tells by its last entry where the next one begins, so it needs one.
            if entries or not page.more:
                return ScanPage(entries, page.more)
            span = rest

    def _merged(self, page: ScanPage, covered: Span, *, reverse: bool) -> list[tuple[bytes, bytes]]:
        first = bisect_left(self._sorted, covered.start)
        last = len(self._sorted) if covered.end is None else bisect_left(self._sorted, covered.end)
        if first >= last:
            return list(page.entries)
        merged: dict[bytes, bytes | None] = dict(page.entries)
        merged.update((key, self._over[key]) for key in self._sorted[first:last])
        return sorted(((key, value) for key, value in merged.items() if value is not None), reverse=reverse)

    async def _catch_up(self) -> None:
        """Lays over what was staged since the last look, and takes away what was unstaged."""
        staged = self._work.staged
        changed = [key for key, one in staged.items() if key not in self._known or self._known[key][0] is not one]
        gone = [key for key in self._known if key not in staged]
        if not changed and not gone:
            return
        for key in (*changed, *gone):
            _, laid_over = self._known.pop(key, (None, {}))
            for entry in laid_over:
                del self._over[entry]
        for key in changed:
            entries = self._entries(key)
            self._known[key] = staged[key], entries
            self._over.update(entries)
        await self._count()
        self._sorted = sorted(self._over)

    def _entries(self, key: bytes) -> dict[bytes, bytes | None]:
        planned = self._work.planned(key)
        entries: dict[bytes, bytes | None] = dict.fromkeys(planned.deletes)
        entries.update(planned.puts)
        entries.update((put, _NO_LSN + value) for put, value in planned.versioned_puts)
        return entries

    async def _count(self) -> None:
        """The size of the logical partition, which queries answer counts from."""
        size_key = LOGICAL_SIZES + self._work.point
        (stored,) = await self._snapshot.read((size_key,))
        size = size_from(stored)
        bytes_delta, items_delta = self._work.sizes_delta()
        self._over[size_key] = COUNTERS.pack(size.bytes + bytes_delta, size.items + items_delta)


def _parted(span: Span, page: ScanPage, *, reverse: bool) -> tuple[Span, Span]:
    """What of a span the page has read, and what not."""
    if not page.more:
        return span, span
    last = page.entries[-1][0]
    if reverse:
        return Span(last, span.end), Span(span.start, last)
    behind = last + b"\x00"
    return Span(span.start, behind), Span(behind, span.end)
