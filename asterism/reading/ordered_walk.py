"""A walk along the entries of an index in its order, over several partitions at once."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple

from asterism.keyspaces.routing.families import ITEM_NUMBER_BYTES
from asterism.models.documents.container import Container
from asterism.models.documents.indexes.reader import IndexEntry, MapChanged, PartitionReader
from asterism.models.documents.item_record import StoredItem
from asterism.models.documents.results import Scope
from asterism.reading.order_plan import IndexOrder, OrderPosition

FoundEntry = tuple[IndexEntry, StoredItem | None]

# Most pages want few entries of each partition, so the first read is of this many; the next ones are of more.
_FIRST_ENTRIES = 32
# Behind every item number.
_NUMBER_END = 1 << 64


class _Head(NamedTuple):
    """The next entry of a source; sorts as the index does."""

    value: bytes
    number: int
    # The index of its source.
    source: int
    # None for a source that was not read yet; it then comes before all entries that the source may have.
    entry: IndexEntry | None


class _Source:
    """The entries of one partition, or its items without a value, a page of them at a time."""

    __slots__ = ("_next", "_page", "_pages", "reader")

    def __init__(self, reader: PartitionReader, pages: AsyncIterator[list[IndexEntry]]) -> None:
        self.reader = reader
        self._pages = pages
        self._page: list[IndexEntry] = []
        self._next = 0

    async def take(self) -> IndexEntry | None:
        while self._next >= len(self._page):
            page = await anext(self._pages, None)
            if page is None:
                return None
            self._page, self._next = page, 0
        entry = self._page[self._next]
        self._next += 1
        return entry


class OrderedWalk:
    """A walk along an order from a position on. Entries that were read and not yet asked for are kept for the next
    call, so that even under a selective filter each entry is read once."""

    def __init__(
        self,
        container: Container,
        order: IndexOrder,
        scopes: Sequence[Scope],
        *,
        after: OrderPosition | None,
        open_readers: Callable[[], Sequence[PartitionReader]],
        is_remembered: bool,
    ) -> None:
        """`open_readers` returns one reader for each partition that the scopes touch now."""
        self._container = container
        self._order = order
        self._scopes = scopes
        self._starts = [scope.start for scope in scopes]
        self._after = after
        self._open_readers = open_readers
        self._is_remembered = is_remembered
        self._sources: list[_Source] | None = None
        self._heads: list[_Head] = []

    async def next_entries(self, count: int) -> tuple[list[FoundEntry], bool]:
        """Return the next `count` entries with their items, None for an item that is gone; and True if they are the
        last. Items without a value count as entries of undefined."""
        while True:
            try:
                heads = await self._next_heads(count)
                found = await self._with_items(heads)
            except MapChanged:
                self._sources = None
                continue
            if heads:
                self._after = OrderPosition(heads[-1].value, heads[-1].number)
            return found, not self._heads

    async def _next_heads(self, count: int) -> list[_Head]:
        if self._sources is None:
            await self._begin()
        taken: list[_Head] = []
        while self._heads and len(taken) < count:
            head = self._heads.pop(-1 if self._order.reverse else 0)
            if head.entry is not None:
                taken.append(head)
            await self._advance(head.source)
        # The heads that are left may all be of sources that turn out to be empty.
        while self._heads and all(head.entry is None for head in self._heads):
            await self._advance(self._heads.pop().source)
        return taken

    async def _begin(self) -> None:
        readers = self._open_readers()
        self._sources = [_Source(reader, self._entries(reader)) for reader in readers]
        self._heads = []
        for source in range(len(readers)):
            await self._advance(source)
        path, undefined = self._order.incomplete_path, self._order.index.order.undefined
        if path is not None:
            # Items without a value are read when the walk comes to their place.
            bound = _NUMBER_END if self._order.reverse else -1
            for reader in readers:
                insort(self._heads, _Head(undefined, bound, len(self._sources), None))
                self._sources.append(_Source(reader, self._without_value(reader, path)))

    async def _advance(self, source: int) -> None:
        assert self._sources is not None
        entry = await self._sources[source].take()
        if entry is not None:
            insort(self._heads, _Head(entry.value, entry.number, source, entry))

    async def _with_items(self, heads: Sequence[_Head]) -> list[FoundEntry]:
        entries = [head.entry for head in heads if head.entry is not None]
        items: dict[bytes, StoredItem] = {}
        assert self._sources is not None
        for source in dict.fromkeys(head.source for head in heads):
            own = [entry for head, entry in zip(heads, entries, strict=True) if head.source == source]
            items.update(await self._sources[source].reader.load([entry.reference for entry in own]))
        return [(entry, items.get(entry.reference)) for entry in entries]

    # --- one partition ----------------------------------------------------------------------------------------------

    async def _entries(self, reader: PartitionReader) -> AsyncIterator[list[IndexEntry]]:
        """Yield pages of the entries of one partition."""
        order, after = self._order, self._after
        known = None if after is None else (after.key, after.number)
        is_inclusive = after is not None and after.rows > 0
        for span in order.index_spans():
            async for page in reader.entries(
                span, reverse=order.reverse, after=known, is_inclusive=is_inclusive, first_limit=_FIRST_ENTRIES
            ):
                yield self._within_scopes(reader, page)

    def _within_scopes(self, reader: PartitionReader, page: list[IndexEntry]) -> list[IndexEntry]:
        interval = reader.partition.range
        if any(scope.start <= interval.start and interval.end <= scope.end for scope in self._scopes):
            return page
        return [entry for entry in page if self._is_within(entry.reference)]

    def _is_within(self, reference: bytes) -> bool:
        index = bisect_right(self._starts, reference) - 1
        return index >= 0 and reference < self._scopes[index].end

    async def _without_value(self, reader: PartitionReader, path: tuple[str, ...]) -> AsyncIterator[list[IndexEntry]]:
        """Yield the items of one partition that have no value at the path, as entries of undefined."""
        order, after, undefined = self._order, self._after, self._order.index.order.undefined
        first = None
        if after is not None:
            if after.key == undefined:
                step = -1 if order.reverse else 1
                first = after.number if after.rows else after.number + step
            elif (after.key < undefined) is order.reverse:
                return
        found = self._container.missing_values.items(
            reader, path, first=first, reverse=order.reverse, is_remembered=self._is_remembered
        )
        async for numbered in found:
            number = int.from_bytes(numbered[:ITEM_NUMBER_BYTES], "big")
            reference = numbered[ITEM_NUMBER_BYTES:]
            if self._is_within(reference):
                yield [IndexEntry(undefined, number, reference)]
