"""What a page of a query reads: the items an index names, all items of a scope, or entries in an index's order.

Partitions may be split, merged or moved while they are read; callers do not notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from asterism.documents.answers import Scope
from asterism.documents.container import Container
from asterism.documents.creation_order import (
    SLICE_ITEMS,
    ItemLoader,
    Listed,
    Slice,
    cut_at,
    listed_items,
    walk_pieces,
)
from asterism.documents.index_reader import PAGE_ENTRIES, MapChanged, PartitionReader
from asterism.documents.item_position import Piece, Position, pieces_of
from asterism.documents.item_record import StoredItem
from asterism.documents.pages import scan_items
from asterism.errors import StoredDamage
from asterism.keyspaces.layout import ITEMS
from asterism.keyspaces.owner import Reads
from asterism.keyspaces.statistics import items_between
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionRange
from asterism.query.candidates import CANDIDATES_MAX, ENTRIES_MAX, CandidateSearch, stream_lookup, streamed_lookup
from asterism.query.index_aggregates import Column, column_states
from asterism.query.index_order import FoundEntry, OrderPosition, ordered_entries
from asterism.query.index_plan import Access, IndexOrder
from asterism.query.work import Work

# Index entries followed at once; a page that wants more comes again.
_ENTRIES_MAX = 100

# Items are handed on in portions. What a query does with one takes microseconds, or, where it calls functions of the
# user, as long as those are allowed: other requests have their turn when this much time has gone.
_PORTION_ITEMS = 4
_PORTION_ITEMS_MAX = 128
TURN_SECONDS = 0.005
# So many index entries are read in the time that it takes to read an item and to see whether it matches.
_ENTRIES_PER_ITEM = 4


@dataclass(slots=True)
class ItemReads:
    """The reads of one page, over `scopes`; what they did is told to `work`."""

    owner: Reads
    container: Container
    scopes: Sequence[Scope]
    work: Work
    # Items that were left out of the index are found by no query that goes by it, whichever way it then takes.
    hides_unindexed: bool = False
    # Whether what is found out about the container may be remembered.
    is_remembered: bool = False
    _portion_items: int = _PORTION_ITEMS
    # The items that were handed on last, among which a damaged one is found.
    _latest: list[tuple[bytes, bytes]] | list[FoundEntry] = field(default_factory=list)

    async def items(
        self, scope: Scope, position: Position | None, access: Access | None, *, in_key_order: bool = False
    ) -> AsyncIterator[Slice]:
        """Yield every item of the scope that may match and is visible to clients, in the order of creation, or, where
        nothing depends on it, `in_key_order`, which is quicker. No slice is empty, and each is what can be worked on
        without holding up others."""
        now = self.work.monotonic_seconds
        async for items in self._slices(scope, position, access, in_key_order):
            start = 0
            while start < len(items.items):
                portion = items.portion(start, start + self._portion_items)
                begun = now()
                self._latest = portion.items
                yield portion
                start += len(portion.items)
                seconds = now() - begun
                if seconds > TURN_SECONDS:
                    self._portion_items = max(1, int(len(portion.items) * TURN_SECONDS / seconds))
                    await asyncio.sleep(0)
                elif seconds < TURN_SECONDS / 8:
                    self._portion_items = min(4 * self._portion_items, _PORTION_ITEMS_MAX)

    async def _slices(
        self, scope: Scope, position: Position | None, access: Access | None, in_key_order: bool
    ) -> AsyncIterator[Slice]:
        if access is None and in_key_order:
            self.work.has_scanned = True
            async for items in self._scan(scope, position):
                yield items
            return

        def read_piece(reader: PartitionReader, left: Sequence[Piece]) -> AsyncIterator[Slice]:
            return self._counted(reader, self._of_piece(reader, left, access))

        async for items in walk_pieces(self.owner, self.container.keyspace, scope, position, read_piece):
            self.work.client.check()
            if items.items:
                yield items

    async def _counted(self, reader: PartitionReader, slices: AsyncIterator[Slice]) -> AsyncIterator[Slice]:
        """Tells `work` of the partition, and of what its index was asked, before each slice and at the end."""
        self.work.enter(reader.partition)
        try:
            async for items in slices:
                self._count_lookups(reader)
                yield items
        finally:
            self._count_lookups(reader)

    def _count_lookups(self, reader: PartitionReader) -> None:
        self.work.index_lookups += reader.index_lookups
        reader.index_lookups = 0

    async def _of_piece(
        self, reader: PartitionReader, left: Sequence[Piece], access: Access | None
    ) -> AsyncIterator[Slice]:
        """Yield the items of the first piece, by the way that reads least."""
        loader = ItemLoader(self.container, indexed_only=self.hides_unindexed)
        piece, used = left[0], self.work.indexes_used
        is_whole = piece.start <= reader.partition.range.start and reader.partition.range.end <= piece.end
        lookup = streamed_lookup(access) if is_whole else None
        if access is not None and lookup is not access:
            entries_max = ENTRIES_MAX if is_whole else await self._entries_max(piece)
            candidates = await CandidateSearch(reader, piece, used, entries_max=entries_max).find(access)
            if candidates is not None:
                async for items in loader.slices(reader, Listed.of(sorted(candidates)), left):
                    yield items
                return
        if lookup is not None:
            async for listed in stream_lookup(reader, lookup, piece, used=used):
                async for items in loader.slices(reader, listed, left):
                    yield items
            return
        self.work.has_scanned = True
        async for listed in listed_items(reader, self.container, piece, SLICE_ITEMS):
            async for items in loader.slices(reader, listed, left):
                yield items

    async def _entries_max(self, piece: Piece) -> int:
        """How many index entries are worth reading. The index of a physical partition has the entries of all of its
        logical partitions: to read more of them than one has items takes longer than to read these."""
        scope = Scope(piece.start, piece.end)
        if not self.container.is_one_key(scope):
            return ENTRIES_MAX
        return max(PAGE_ENTRIES, min(ENTRIES_MAX, _ENTRIES_PER_ITEM * await self._count(scope)))

    async def _count(self, scope: Scope) -> int:
        return await items_between(self.owner, self.container.keyspace, scope.start, scope.end)

    async def _scan(self, scope: Scope, position: Position | None) -> AsyncIterator[Slice]:
        start = None if position is None else position.start
        hides = self.hides_unindexed
        async for items in scan_items(self.owner, self.container, scope, position=start, indexed_only=hides):
            self.work.enter(items.partition)
            self.work.client.check()
            if items.items:
                yield items

    # --- how many there are -----------------------------------------------------------------------------------------

    async def are_few(self, access: Access | None, most: int) -> bool:
        """Whether the scopes have so few items, or the filter leaves so few of them, that sorting them is shorter than
        to follow an index."""
        if all(self.container.is_one_key(scope) for scope in self.scopes):
            total = 0
            for scope in self.scopes:
                total += await self._count(scope)
                if total > most:
                    break
            else:
                return True
        return access is not None and await self._has_few_candidates(access, most)

    async def _has_few_candidates(self, access: Access, most: int) -> bool:
        total = 0
        for scope in self.scopes:
            pieces = pieces_of(scope, None)
            while pieces:
                record = self.container.keyspace.record
                partition = record.map.find(pieces[0].start)
                left = cut_at(pieces, partition.range.end)
                reader = PartitionReader(self.owner, self.container.keyspace, record, partition)
                try:
                    search = CandidateSearch(reader, left[0], set(), most=min(most, CANDIDATES_MAX))
                    found = await search.find(access)
                except MapChanged:
                    continue
                self._count_lookups(reader)
                total += most + 1 if found is None else len(found)
                if total > most:
                    return False
                pieces = left[1:]
        return True

    # --- by an index ------------------------------------------------------------------------------------------------

    async def next_entries(
        self, order: IndexOrder, *, after: OrderPosition | None, count: int
    ) -> tuple[list[FoundEntry], bool]:
        """Some index entries in order over all partitions of the scopes, with their items (None where one is gone)."""
        while True:
            record = self.container.keyspace.record
            readers = [PartitionReader(self.owner, self.container.keyspace, record, one) for one in self.partitions()]
            for reader in readers:
                self.work.enter(reader.partition)
            try:
                found = await ordered_entries(
                    readers,
                    self.container,
                    order,
                    self.scopes,
                    after=after,
                    count=min(count, _ENTRIES_MAX),
                    is_remembered=self.is_remembered,
                )
                self._latest = found[0]
                return found
            except MapChanged:
                continue
            finally:
                for reader in readers:
                    self._count_lookups(reader)

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
            count += await self._count(scope)
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
            reader = PartitionReader(self.owner, self.container.keyspace, record, partition)
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
