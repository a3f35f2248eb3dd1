"""The reads of a page of a query: the items an index names, all items of a scope, or entries in an index's order.

Partitions may be split, merged or moved while they are read; callers do not notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from asterism.errors import StoredDamage
from asterism.keyspaces.routing.families import ITEMS
from asterism.keyspaces.routing.router import Reads
from asterism.keyspaces.routing.statistics import items_between
from asterism.models.documents.container import Container
from asterism.models.documents.creation_order import (
    SLICE_ITEMS,
    ItemLoader,
    Listed,
    Slice,
    cut_at,
    listed_items,
    walk_pieces,
)
from asterism.models.documents.indexes.reader import PAGE_ENTRIES, MapChanged, PartitionReader
from asterism.models.documents.item_position import Piece, Position, pieces_of
from asterism.models.documents.item_record import StoredItem
from asterism.models.documents.pages import scan_items
from asterism.models.documents.results import Scope
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionRange
from asterism.reading.access_plan import Access
from asterism.reading.candidate_sets import CandidateSets
from asterism.reading.candidates import CANDIDATES_BESIDE_STREAM_MAX, CANDIDATES_MAX, ENTRIES_MAX, CandidateSearch
from asterism.reading.lookup_stream import stream_lookup, streamed_lookup
from asterism.reading.order_plan import IndexOrder, OrderPosition
from asterism.reading.ordered_walk import FoundEntry, OrderedWalk
from asterism.reading.page_progress import PageProgress
from asterism.reading.turns import TURN_SECONDS

# Index entries followed at once; a page that wants more asks again.
_ENTRIES_AT_ONCE_MAX = 100

# Items are handed on in portions. The work of a query on an item takes microseconds, or, if it calls user-defined
# functions, as long as those are allowed: after TURN_SECONDS the page yields to other requests.
_PORTION_ITEMS = 4
_PORTION_ITEMS_MAX = 128
# Index entries that are read in the time that it takes to read an item and to evaluate the filter on it.
_ENTRIES_PER_ITEM = 4


@dataclass(slots=True)
class ItemReads:
    """The reads of one page, over `scopes`; `progress` counts them."""

    router: Reads
    container: Container
    scopes: Sequence[Scope]
    progress: PageProgress
    # A query that uses the index does not find items that were left out of it, even if it then scans.
    hides_unindexed: bool = False
    # True if facts about the container may be remembered.
    is_remembered: bool = False
    # The candidates of each piece.
    candidates: CandidateSets = field(default_factory=lambda: CandidateSets(None))
    _portion_items: int = _PORTION_ITEMS
    # The items that were handed on last, among which a damaged one is found.
    _latest: list[tuple[bytes, bytes]] | list[FoundEntry] = field(default_factory=list)
    # Readers of the partitions of an ordered walk.
    _walked: list[PartitionReader] = field(default_factory=list)

    async def items(
        self, scope: Scope, position: Position | None, access: Access | None, *, in_key_order: bool = False
    ) -> AsyncIterator[Slice]:
        """Yield every item of the scope that may match and is visible to clients, in the order of creation, or, if
        nothing depends on it, `in_key_order`, which is faster. No slice is empty, and each is small enough not to
        delay other requests."""
        now = self.progress.monotonic_seconds
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
            self.progress.has_scanned = True
            async for items in self._scan(scope, position):
                yield items
            return

        def read_piece(reader: PartitionReader, left: Sequence[Piece]) -> AsyncIterator[Slice]:
            return self._counted(reader, self._of_piece(reader, left, access))

        async for items in walk_pieces(self.router, self.container.keyspace, scope, position, read_piece):
            self.progress.client.check()
            if items.items:
                yield items

    async def _counted(self, reader: PartitionReader, slices: AsyncIterator[Slice]) -> AsyncIterator[Slice]:
        """Count the partition, and the lookups of its index, before each slice and at the end."""
        self.progress.enter(reader.partition)
        try:
            async for items in slices:
                self._count_lookups(reader)
                yield items
        finally:
            self._count_lookups(reader)

    def _count_lookups(self, reader: PartitionReader) -> None:
        self.progress.index_lookups += reader.index_lookups
        reader.index_lookups = 0

    async def _of_piece(
        self, reader: PartitionReader, left: Sequence[Piece], access: Access | None
    ) -> AsyncIterator[Slice]:
        """Yield the items of the first piece, by the access that reads least."""
        loader = ItemLoader(self.container, indexed_only=self.hides_unindexed)
        async for listed in self._listed(reader, left[0], access):
            async for items in loader.slices(reader, listed, left):
                yield items

    async def _listed(self, reader: PartitionReader, piece: Piece, access: Access | None) -> AsyncIterator[Listed]:
        """Yield the items of a piece that may match, in the order of creation."""
        self.candidates.enter_piece()
        used = self.progress.indexes_used
        is_whole = piece.start <= reader.partition.range.start and reader.partition.range.end <= piece.end
        stream = streamed_lookup(access) if is_whole else None
        if access is not None and stream is not access:
            candidates = await self.candidates.of_piece(
                reader,
                piece,
                access,
                used=used,
                entries_max=ENTRIES_MAX if is_whole else await self._entries_max(piece),
                candidates_max=CANDIDATES_MAX if stream is None else CANDIDATES_BESIDE_STREAM_MAX,
            )
            if candidates is not None:
                yield Listed.of(candidates)
                return
        if stream is not None:
            async for listed in stream_lookup(reader, stream, piece, used=used):
                yield listed
            return
        self.progress.has_scanned = True
        async for listed in listed_items(reader, self.container, piece, SLICE_ITEMS):
            yield listed

    async def _entries_max(self, piece: Piece) -> int:
        """Return how many index entries are worth reading. The index of a physical partition has the entries of all of
        its logical partitions: reading many more of them than one has items takes longer than reading those items."""
        scope = Scope(piece.start, piece.end)
        if not self.container.is_one_key(scope):
            return ENTRIES_MAX
        return max(PAGE_ENTRIES, min(ENTRIES_MAX, _ENTRIES_PER_ITEM * await self._count(scope)))

    async def _count(self, scope: Scope) -> int:
        return await items_between(self.router, self.container.keyspace, scope.start, scope.end)

    async def _scan(self, scope: Scope, position: Position | None) -> AsyncIterator[Slice]:
        start = None if position is None else position.start
        hides = self.hides_unindexed
        async for items in scan_items(self.router, self.container, scope, position=start, indexed_only=hides):
            self.progress.enter(items.partition)
            self.progress.client.check()
            if items.items:
                yield items

    # --- counts -----------------------------------------------------------------------------------------------------

    async def are_few(self, access: Access | None, most: int) -> bool:
        """Return True if the scopes have at most `most` items, or the filter leaves so few of them: sorting them is
        then faster than following an index."""
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
                reader = PartitionReader(self.router, self.container.keyspace, record, partition)
                try:
                    search = CandidateSearch(reader, left[0], set(), candidates_max=min(most, CANDIDATES_MAX))
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

    def ordered_walk(self, order: IndexOrder, after: OrderPosition | None) -> OrderedWalk:
        """Return the walk over an order's index from a position on, in all partitions of the scopes."""
        return OrderedWalk(
            self.container,
            order,
            self.scopes,
            after=after,
            open_readers=self._open_readers,
            is_remembered=self.is_remembered,
        )

    def _open_readers(self) -> list[PartitionReader]:
        self._count_walked()
        keyspace, record = self.container.keyspace, self.container.keyspace.record
        self._walked = [PartitionReader(self.router, keyspace, record, partition) for partition in self.partitions()]
        for partition in self.partitions():
            self.progress.enter(partition)
        return self._walked

    def _count_walked(self) -> None:
        for reader in self._walked:
            self._count_lookups(reader)

    async def next_entries(self, walk: OrderedWalk, count: int) -> tuple[list[FoundEntry], bool]:
        """Return some index entries in order with their items (None if an item is gone), and True if they are the
        last."""
        try:
            found, is_last = await walk.next_entries(min(count, _ENTRIES_AT_ONCE_MAX))
        finally:
            self._count_walked()
        self._latest = found
        return found, is_last

    def name_damage(self, damage: StoredDamage) -> None:
        """Set the key of a damaged body, found among the items that were handed on last."""
        for entry, held in self._latest:
            body = held.body if isinstance(held, StoredItem) else held
            if body is damage.value and not damage.key:
                damage.key = (ITEMS + (entry if isinstance(entry, bytes) else entry.reference)).hex()

    def partitions(self) -> list[PartitionRange]:
        """Return the partitions that the scopes touch, each once."""
        ranges = self.container.keyspace.record.map
        found: dict[int, PartitionRange] = {}
        for scope in self.scopes:
            for partition in ranges.overlapping(KeyRange(scope.start, scope.end)):
                found[partition.id] = partition
        return list(found.values())

    async def count_items(self) -> int:
        """Return the number of items, from the statistics that are kept with every write."""
        count = 0
        for scope in self.scopes:
            count += await self._count(scope)
        for partition in self.partitions():
            self.progress.enter(partition)
        return count
