"""What a page of a query reads: the items an index names, all items of a scope, or entries in an index's order.

Partitions may be split, merged or moved while they are read; whoever asks here does not notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from asterism.documents.answers import Scope
from asterism.documents.container import Container
from asterism.documents.index_reader import LOAD_ITEMS, MapChanged, PartitionReader
from asterism.documents.item_record import StoredItem, body_of
from asterism.documents.pages import scan_items
from asterism.errors import StoredDamage
from asterism.keyspaces.layout import ITEMS
from asterism.keyspaces.owner import Reads
from asterism.keyspaces.statistics import items_between
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionRange
from asterism.query.candidates import CANDIDATES_MAX, find_candidates
from asterism.query.index_aggregates import Column, column_states
from asterism.query.index_order import FoundEntry, ordered_entries
from asterism.query.index_plan import Access, IndexOrder
from asterism.query.work import Work

# Index entries followed in one go; a page that wants more comes again.
_ENTRIES_MAX = 100

# (reference, body) of items that are read in one go.
Slice: TypeAlias = list[tuple[bytes, bytes]]

# Items are handed on in portions. What a query does with one takes microseconds, or, where it calls functions of the
# user, as long as those are allowed: other requests have their turn when this much time has gone.
_PORTION_ITEMS = 4
_PORTION_ITEMS_MAX = 128
TURN_SECONDS = 0.005


@dataclass(slots=True)
class ItemReads:
    """The reads of one page, over `scopes`; what they did is told to `work`."""

    owner: Reads
    container: Container
    scopes: Sequence[Scope]
    work: Work
    # Items that were left out of the index are found by no query that goes by it, whichever way it then takes.
    hides_unindexed: bool = False
    _portion_items: int = _PORTION_ITEMS
    # The items that were handed on last, among which a damaged one is found.
    _latest: Slice | list[FoundEntry] = field(default_factory=list)

    async def items(self, scope: Scope, place: bytes | None, access: Access | None) -> AsyncIterator[Slice]:
        """Every item of the scope that may match and is there for clients, in the order of the hash line; no slice is
        empty, and each is what can be worked on without holding up others."""
        now = self.work.monotonic_seconds
        async for items in self._slices(scope, place, access):
            start = 0
            while start < len(items):
                portion = items[start : start + self._portion_items]
                begun = now()
                self._latest = portion
                yield portion
                start += len(portion)
                seconds = now() - begun
                if seconds > TURN_SECONDS:
                    self._portion_items = max(1, int(len(portion) * TURN_SECONDS / seconds))
                    await asyncio.sleep(0)
                elif seconds < TURN_SECONDS / 8:
                    self._portion_items = min(4 * self._portion_items, _PORTION_ITEMS_MAX)

    async def _slices(self, scope: Scope, place: bytes | None, access: Access | None) -> AsyncIterator[Slice]:
        async for reader, part, candidates in self.pieces(scope, place, access):
            if candidates is None:
                self.work.has_scanned = True
                async for items in self._scan(part):
                    yield items
                continue
            references = sorted(candidates)
            for start in range(0, len(references), LOAD_ITEMS):
                if items := await self._load(reader, references[start : start + LOAD_ITEMS]):
                    yield items

    async def pieces(
        self, scope: Scope, place: bytes | None, access: Access | None, *, most: int = CANDIDATES_MAX
    ) -> AsyncIterator[tuple[PartitionReader, Scope, set[bytes] | None]]:
        """The partitions of a scope from `place` on, each with its candidates; None for all of its items."""
        keyspace = self.container.keyspace
        at = scope.start if place is None else max(scope.start, place)
        while at < scope.end:
            record = keyspace.record
            partition = record.map.find(at)
            part = Scope(at, min(scope.end, partition.range.end))
            reader = PartitionReader(self.owner, self.container, record, partition)
            self.work.enter(partition)
            candidates = None
            if access is not None:
                try:
                    candidates = await find_candidates(reader, access, part, used=self.work.indexes_used, most=most)
                except MapChanged:
                    continue
                self.work.index_lookups += reader.index_lookups
            yield reader, part, candidates
            at = part.end

    async def _load(self, reader: PartitionReader, references: list[bytes]) -> Slice:
        is_visible = self.container.planner.is_visible
        try:
            found = [(reference, stored.body) for reference, stored in await reader.load(references)]
        except MapChanged:
            # Split meanwhile: each item is still where its reference says, in whichever partition that is now.
            found = []
            for reference in references:
                _, _, (stored,) = await self.owner.read(self.container.keyspace, reference, [ITEMS + reference])
                if stored is not None:
                    found.append((reference, body_of(stored)))
        return [(reference, body) for reference, body in found if is_visible(body)]

    async def _scan(self, part: Scope) -> AsyncIterator[Slice]:
        hides = self.hides_unindexed
        async for piece in scan_items(self.owner, self.container, part, position=None, indexed_only=hides):
            self.work.client.check()
            if piece.items:
                yield piece.items

    async def next_entries(
        self, order: IndexOrder, *, after: tuple[bytes, int] | None, count: int
    ) -> tuple[list[FoundEntry], bool]:
        """Some index entries in order over all partitions of the scopes, with their items (None where one is gone)."""
        while True:
            record = self.container.keyspace.record
            readers = [PartitionReader(self.owner, self.container, record, one) for one in self.partitions()]
            for reader in readers:
                self.work.enter(reader.partition)
            try:
                found = await ordered_entries(readers, order, self.scopes, after=after, count=min(count, _ENTRIES_MAX))
                self.work.index_lookups += sum(reader.index_lookups for reader in readers)
                self._latest = found[0]
                return found
            except MapChanged:
                continue

    def name_damage(self, damage: StoredDamage) -> None:
        """Finds the key of what could not be read among the items that were handed on last."""
        for entry, held in self._latest:
            body = held.body if isinstance(held, StoredItem) else held
            if body is damage.value and not damage.key:
                damage.key = (ITEMS + (entry if isinstance(entry, bytes) else entry.reference)).hex()

    def partitions(self) -> list[PartitionRange]:
        """Those that the scopes touch, each once."""
        ranges = self.container.keyspace.record.map
        found: dict[int, PartitionRange] = {}
        for scope in self.scopes:
            for one in ranges.overlapping(KeyRange(scope.start, scope.end)):
                found[one.id] = one
        return list(found.values())

    async def count_items(self) -> int:
        """How many items there are, by the statistics that are kept with every write."""
        count = 0
        for scope in self.scopes:
            count += await items_between(self.owner, self.container.keyspace, scope.start, scope.end)
        for partition in self.partitions():
            self.work.enter(partition)
        return count

    async def column_states(self, columns: Sequence[Column]) -> list[list[object]] | None:
        """The aggregates of each partition, by its index; None when the index cannot tell, and the items must."""
        states: list[list[object]] = []
        record = self.container.keyspace.record
        for partition in self.partitions():
            interval = partition.range
            if not any(scope.start <= interval.start and interval.end <= scope.end for scope in self.scopes):
                return None
            reader = PartitionReader(self.owner, self.container, record, partition)
            self.work.enter(partition)
            try:
                found = await column_states(reader, columns, self.work)
            except MapChanged:
                return None
            finally:
                self.work.index_lookups += reader.index_lookups
            if found is None:
                return None
            states.append(found)
        return states
