"""Items whose keys sort as texts do: how their keys are made, and how they are read in order, over all partitions.

An item has two texts: the first chooses its place on the line (by its order or by its hash), the second its place among
those that share the first. A text too long for a key is cut (see `values.ordered_text`); items that share what is left
lie side by side in no order, a *heap*, and are sorted by what their values tell when they are read.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass

from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import ITEMS, after_prefix
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.records import KeyspaceRecord
from asterism.partitioning.effective_key import effective_key
from asterism.partitioning.partition_key import PartitionKeyDefinition, PartitionKeyKind
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span
from asterism.values.ordered_text import (
    PART_BYTES_MAX,
    end_of_leading_part,
    last_part,
    leading_part,
    ordered_text,
)

# The two texts of an item as bytes that compare as they do.
Order = tuple[bytes, bytes]
Entry = tuple[bytes, bytes]

# Of a place on the hash line.
_HASH_BYTES = 16
# All of a heap is read for each page of it, in slices of this size; what is kept in memory is one page.
_HEAP_PAGE_ENTRIES = 500
_HEAP_SCAN_ENTRIES = 1000
_HEAP_SCAN_BYTES = 1024 * 1024
# Behind every text: no ordered text has this byte.
_LAST = b"\xff"


@dataclass(frozen=True, slots=True)
class Bound:
    """A place among the items: a key without its family and, if that is a heap, the place in it."""

    key: bytes
    order: Order | None = None


@dataclass(frozen=True, slots=True)
class ItemsPage:
    """Some items of one partition, in order; the keys are without their family."""

    partition: PartitionRange
    entries: list[Entry]


class OrderedKeys:
    """How the keys of one keyspace are made."""

    __slots__ = ("_definition", "is_range")

    def __init__(self, definition: PartitionKeyDefinition) -> None:
        self._definition = definition
        self.is_range = definition.kind is PartitionKeyKind.RANGE

    def point(self, first: str) -> bytes:
        return leading_part(first) if self.is_range else effective_key(self._definition, (first,))

    def lower(self, first: str, second: str | None) -> Bound:
        """The place of an item, or of the first with this first text."""
        return self._bound(first, "" if second is None else second, None, is_upper=False)

    def upper(self, first: str, second: str | None) -> Bound:
        """The place of an item, or the one behind all with this first text."""
        return self._bound(first, second, _LAST, is_upper=True)

    def _bound(self, first: str, second: str | None, at_none: bytes | None, *, is_upper: bool) -> Bound:
        point = self.point(first)
        if self.is_range and len(point) > PART_BYTES_MAX:
            order = ordered_text(first), ordered_text(second) if second is not None else at_none or b""
            return _in_heap(point[:PART_BYTES_MAX], order, is_upper=is_upper)
        if second is None:
            return Bound(_behind(point))
        last = last_part(second)
        if len(last) > PART_BYTES_MAX:
            order = ordered_text(first), ordered_text(second)
            return _in_heap(point + last[:PART_BYTES_MAX], order, is_upper=is_upper)
        return Bound(point + last)

    def heap_of(self, key: bytes) -> bytes | None:
        """What the keys of a heap begin with, if the key is in one."""
        if len(key) <= PART_BYTES_MAX:
            return None
        end = end_of_leading_part(key) if self.is_range else _HASH_BYTES
        if end is None:
            return key[:PART_BYTES_MAX]
        return key[: end + PART_BYTES_MAX] if len(key) - end > PART_BYTES_MAX else None


def _in_heap(prefix: bytes, order: Order, *, is_upper: bool) -> Bound:
    return Bound(_behind(prefix) if is_upper else _first_in_heap(prefix), order)


def _first_in_heap(prefix: bytes) -> bytes:
    # The prefix itself may be the whole key of an item, which then comes before all of the heap.
    return prefix + b"\x00"


def _behind(prefix: bytes) -> bytes:
    behind = after_prefix(prefix)
    assert behind is not None, "no point of the line begins with the last byte"
    return behind


@dataclass(slots=True)
class OrderedScan:
    """Reads the items between two places, page by page. `order_of` tells an item's texts from its value."""

    owner: Owner
    keyspace: Keyspace
    keys: OrderedKeys
    start: Bound
    end: Bound
    order_of: Callable[[bytes], Order]

    async def pages(self, *, entries_max: int, bytes_max: int) -> AsyncGenerator[ItemsPage, None]:
        """Pages until the end. Every page is of one moment, not all of them together."""
        at, end = self.start.key, self.end.key
        while at < end:
            record = self.keyspace.record
            partition = record.map.find(at)
            stop = min(end, partition.range.end)
            span = Span(ITEMS + at, ITEMS + stop)
            page = await self.owner.scan(self.keyspace, record, partition, span, limit=entries_max, bytes_max=bytes_max)
            if page is None:
                continue
            entries = [(key[1:], value) for key, value in page.entries]
            plain, heap = self._until_heap(entries)
            if plain:
                yield ItemsPage(partition, plain)
            if heap is not None:
                async for sorted_page in self._heap_pages(heap):
                    yield sorted_page
                at = _behind(heap)
            else:
                at = entries[-1][0] + b"\x00" if page.more else stop
            # A read of the embedded store never suspends; between two pages other requests have their turn.
            await asyncio.sleep(0)

    def _until_heap(self, entries: list[Entry]) -> tuple[list[Entry], bytes | None]:
        for index, (key, _) in enumerate(entries):
            if len(key) > PART_BYTES_MAX:
                heap = self.keys.heap_of(key)
                if heap is not None:
                    return entries[:index], heap
        return entries, None

    # --- heaps ------------------------------------------------------------------------------------------------------

    async def _heap_pages(self, prefix: bytes) -> AsyncIterator[ItemsPage]:
        """The items of a heap in order. Each page is the smallest of those not told yet, found by reading the whole
        heap: slow for a large one, but never more than a page in memory."""
        # A bound inside this heap names its first or last key, and no other heap's.
        lower = self.start.order if self.start.key == _first_in_heap(prefix) else None
        wanted = _Wanted(lower, self.end.order if self.end.key == _behind(prefix) else None)
        more = True
        while more:
            partition, found = await self._smallest(prefix, wanted)
            more = len(found) > _HEAP_PAGE_ENTRIES
            page = found[:_HEAP_PAGE_ENTRIES]
            if page:
                wanted.after = page[-1][0]
                yield ItemsPage(partition, [entry for _, entry in page])

    async def _smallest(self, prefix: bytes, wanted: _Wanted) -> tuple[PartitionRange, list[tuple[Order, Entry]]]:
        while True:
            record = self.keyspace.record
            # All of a heap lies in one partition: the line is never divided inside one.
            partition = record.map.find(_first_in_heap(prefix))
            found = await self._smallest_in(record, partition, prefix, wanted)
            if found is not None:
                return partition, found

    async def _smallest_in(
        self, record: KeyspaceRecord, partition: PartitionRange, prefix: bytes, wanted: _Wanted
    ) -> list[tuple[Order, Entry]] | None:
        """One more than a page, if there are so many; None when another map is in force by now."""
        smallest: list[tuple[Order, Entry]] = []
        at, end, more = ITEMS + _first_in_heap(prefix), ITEMS + _behind(prefix), True
        while more:
            page = await self.owner.scan(
                self.keyspace, record, partition, Span(at, end), limit=_HEAP_SCAN_ENTRIES, bytes_max=_HEAP_SCAN_BYTES
            )
            if page is None:
                return None
            for key, value in page.entries:
                order = self.order_of(value)
                if wanted.has(order):
                    smallest.append((order, (key[1:], value)))
            smallest = heapq.nsmallest(_HEAP_PAGE_ENTRIES + 1, smallest, key=lambda one: one[0])
            more = page.more
            if more:
                at = page.entries[-1][0] + b"\x00"
                await asyncio.sleep(0)
        return smallest


@dataclass(slots=True)
class _Wanted:
    """Which items of a heap are still to be told."""

    lower: Order | None
    upper: Order | None
    after: Order | None = None

    def has(self, order: Order) -> bool:
        if self.after is not None and order <= self.after:
            return False
        return (self.lower is None or self.lower <= order) and (self.upper is None or order < self.upper)
