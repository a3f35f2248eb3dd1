"""The store as a unit of work sees it: a snapshot overlaid with the unit's staged changes, index entries included.

It keeps the promise of `keyspaces.routing.router.Reads`, so that readers of partitions (queries, above all) see the
unit's own changes. Meant for the unit's logical partition: of others it shows the snapshot.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.families import COUNTERS, LOGICAL_SIZES
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.statistics import size_from
from asterism.models.documents.item_key import ItemKey
from asterism.models.documents.item_record import StoredItem, unpack_item
from asterism.models.documents.planner import NewItem
from asterism.models.documents.transaction import Transaction
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import LSN_BYTES, ScanPage, Snapshot, Span
from asterism.values.identifiers import Lsn

# In the position of a stored item's LSN: a staged item has none yet.
_NO_LSN = bytes(LSN_BYTES)


class UnitReads:
    """The reads of one unit of work; valid while its snapshot is open."""

    def __init__(self, work: Transaction, snapshot: Snapshot) -> None:
        self._work = work
        self._snapshot = snapshot
        # Stored key of an item -> the staged change whose entries were laid over, and the entries; None for a delete.
        self._known: dict[bytes, tuple[tuple[ItemKey, NewItem | None], dict[bytes, bytes | None]]] = {}
        self._over: dict[bytes, bytes | None] = {}
        self._sorted: list[bytes] = []

    async def read(
        self, keyspace: Keyspace, point: bytes, keys: Sequence[bytes]
    ) -> tuple[PartitionRange, Lsn, list[bytes | None]]:
        await self._catch_up()
        stored = await self._snapshot.read(keys)
        values = [self._over.get(key, value) for key, value in zip(keys, stored, strict=True)]
        return keyspace.record.map.find(point), self._snapshot.lsn, values

    async def find_body(self, item_id: bytes) -> bytes | None:
        """Return the body of the unit's item with this id; None if it is absent, expired, or left out of the index,
        where no query by a property finds it.

        A staged item is returned as it is: its index entries are not planned for this.
        """
        planner = self._work.planner
        key = self._work.item_key(item_id).key
        staged = self._work.staged.get(key)
        found: NewItem | StoredItem | None
        if staged is not None:
            found = staged[1]
        else:
            (stored,) = await self._snapshot.read((key,))
            found = None if stored is None else unpack_item(stored)
        if found is None or not planner.is_visible(found.body):
            return None
        return found.body if found.is_indexed or not planner.rules.enabled else None

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
        """Return a page of the store with the staged entries laid over, which may make it longer than `limit`."""
        await self._catch_up()
        while True:
            page = await self._snapshot.scan(span, reverse=reverse, limit=limit, bytes_max=bytes_max)
            rest = page.rest(span, reverse=reverse)
            entries = self._merged(page, _read_part(span, rest, reverse=reverse), reverse=reverse)
            # The last entry of a page that is not the last says where the next one begins, so there must be one.
            if entries or rest is None:
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
        """Lay over what was staged since the last call, and take away what was unstaged."""
        staged = self._work.staged
        changed = [key for key, change in staged.items() if key not in self._known or self._known[key][0] is not change]
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
        await self._overlay_size()
        self._sorted = sorted(self._over)

    def _entries(self, key: bytes) -> dict[bytes, bytes | None]:
        planned = self._work.planned(key)
        entries: dict[bytes, bytes | None] = dict.fromkeys(planned.deletes)
        entries.update(planned.puts)
        entries.update((put, _NO_LSN + value) for put, value in planned.versioned_puts)
        return entries

    async def _overlay_size(self) -> None:
        """Lay over the size of the logical partition, from which queries answer counts."""
        size_key = LOGICAL_SIZES + self._work.point
        (stored,) = await self._snapshot.read((size_key,))
        size = size_from(stored)
        bytes_delta, items_delta = self._work.sizes_delta()
        self._over[size_key] = COUNTERS.pack(size.bytes + bytes_delta, size.items + items_delta)


def _read_part(span: Span, rest: Span | None, *, reverse: bool) -> Span:
    """Return the part of a span that was read, given the rest."""
    if rest is None:
        return span
    assert rest.end is not None or not reverse, "what is left of a reversed scan has an end"
    return Span(rest.end or b"", span.end) if reverse else Span(span.start, rest.start)
