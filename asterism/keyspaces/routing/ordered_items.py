"""Items whose keys sort as texts do: their keys, and scans in their order over all partitions.

An item has two texts: the first determines its point on the line (by its order or by its hash), the second its place
among the items that share the first. A text too long for a key is cut (see `values.ordered_text`); items that share the
rest of a cut text are adjacent in no order, a *collision run*, and a scan sorts them by the texts in their values.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from operator import itemgetter

from asterism.keyspaces.routing import slice_sizes
from asterism.keyspaces.routing.families import ITEMS, after_prefix
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.scan import Entry, read_slice, scan_line
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.partitioning.effective_key import effective_key
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_key import PartitionKeyDefinition, PartitionKeyKind
from asterism.partitioning.partition_map import PartitionRange
from asterism.values.ordered_text import (
    PART_BYTES_MAX,
    end_of_leading_part,
    last_part,
    leading_part,
    ordered_text,
)

# The two texts of an item as bytes that compare as they do.
Order = tuple[bytes, bytes]

# The length of a point of the hash line.
_HASH_BYTES = 16
# All of a collision run is read for each page of it; a page is all that is kept in memory.
_RUN_PAGE_ENTRIES = 500
# Behind every text: no ordered text has this byte.
_LAST = b"\xff"


@dataclass(frozen=True, slots=True)
class Bound:
    """A position among the items: a key without its family and, in a collision run, the texts of an item."""

    key: bytes
    order: Order | None = None


@dataclass(frozen=True, slots=True)
class ItemsPage:
    """Some items of one partition, in order; the keys are without their family."""

    partition: PartitionRange
    entries: list[Entry]


class OrderedKeys:
    """The keys of the items of a keyspace."""

    __slots__ = ("_definition", "is_range")

    def __init__(self, definition: PartitionKeyDefinition) -> None:
        self._definition = definition
        self.is_range = definition.kind is PartitionKeyKind.RANGE

    def point(self, first: str) -> bytes:
        return leading_part(first) if self.is_range else effective_key(self._definition, (first,))

    def lower(self, first: str, second: str | None) -> Bound:
        """Return the position of an item, or of the first item with this first text."""
        return self._bound(first, "" if second is None else second, None, is_upper=False)

    def upper(self, first: str, second: str | None) -> Bound:
        """Return the position of an item, or that behind all items with this first text."""
        return self._bound(first, second, _LAST, is_upper=True)

    def _bound(self, first: str, second: str | None, at_none: bytes | None, *, is_upper: bool) -> Bound:
        point = self.point(first)
        if self.is_range and len(point) > PART_BYTES_MAX:
            order = ordered_text(first), ordered_text(second) if second is not None else at_none or b""
            return _in_run(point[:PART_BYTES_MAX], order, is_upper=is_upper)
        if second is None:
            return Bound(_behind(point))
        last = last_part(second)
        if len(last) > PART_BYTES_MAX:
            order = ordered_text(first), ordered_text(second)
            return _in_run(point + last[:PART_BYTES_MAX], order, is_upper=is_upper)
        return Bound(point + last)

    def run_of(self, key: bytes) -> bytes | None:
        """Return the prefix of the keys of a collision run; None if the key is not in a run."""
        if len(key) <= PART_BYTES_MAX:
            return None
        end = end_of_leading_part(key) if self.is_range else _HASH_BYTES
        if end is None:
            return key[:PART_BYTES_MAX]
        return key[: end + PART_BYTES_MAX] if len(key) - end > PART_BYTES_MAX else None


def _in_run(prefix: bytes, order: Order, *, is_upper: bool) -> Bound:
    return Bound(_behind(prefix) if is_upper else _first_in_run(prefix), order)


def _first_in_run(prefix: bytes) -> bytes:
    # The prefix itself may be the whole key of an item, which then comes before all of the run.
    return prefix + b"\x00"


def _behind(prefix: bytes) -> bytes:
    behind = after_prefix(prefix)
    assert behind is not None, "no point of the line begins with the last byte"
    return behind


@dataclass(slots=True)
class OrderedScan:
    """A scan of the items between two positions. `order_of` returns the texts of an item from its value."""

    router: PartitionRouter
    keyspace: Keyspace
    keys: OrderedKeys
    start: Bound
    end: Bound
    order_of: Callable[[bytes], Order]

    async def pages(self, size: SliceSize) -> AsyncGenerator[ItemsPage, None]:
        """Yield pages until the end. Every page is of one moment, not all of them together."""
        start, end = self.start.key, self.end.key
        rest = KeyRange(start, max(start, end))
        while rest.start < rest.end:
            partition, entries, rest = await read_slice(self.router, self.keyspace, ITEMS, rest, size)
            entries = [(key[1:], value) for key, value in entries]
            plain, run = self._until_run(entries)
            if plain:
                yield ItemsPage(partition, plain)
            if run is not None:
                async for sorted_page in self._run_pages(run):
                    yield sorted_page
                rest = KeyRange(min(_behind(run), end), end)
            # Other requests run between two pages.
            await asyncio.sleep(0)

    def _until_run(self, entries: list[Entry]) -> tuple[list[Entry], bytes | None]:
        for index, (key, _) in enumerate(entries):
            if len(key) > PART_BYTES_MAX:
                run = self.keys.run_of(key)
                if run is not None:
                    return entries[:index], run
        return entries, None

    # --- collision runs ---------------------------------------------------------------------------------------------

    async def _run_pages(self, prefix: bytes) -> AsyncIterator[ItemsPage]:
        """Yield the items of a collision run in order. Each page has the smallest of those left, found by reading the
        whole run: slow for a large run, but with a single page in memory."""
        # A bound inside this run names its first or last key, and no other run's.
        lower = self.start.order if self.start.key == _first_in_run(prefix) else None
        wanted = _Wanted(lower, self.end.order if self.end.key == _behind(prefix) else None)
        more = True
        while more:
            partition, found = await self._smallest(prefix, wanted)
            more = len(found) > _RUN_PAGE_ENTRIES
            page = found[:_RUN_PAGE_ENTRIES]
            if page:
                wanted.after = page[-1][0]
                yield ItemsPage(partition, [entry for _, entry in page])

    async def _smallest(self, prefix: bytes, wanted: _Wanted) -> tuple[PartitionRange, list[tuple[Order, Entry]]]:
        """Return the smallest of the wanted items, one more than a page if there are so many, and their partition."""
        smallest: list[tuple[Order, Entry]] = []
        interval = KeyRange(_first_in_run(prefix), _behind(prefix))
        partition = self.keyspace.record.map.find(interval.start)
        async for found in scan_line(self.router, self.keyspace, ITEMS, interval, slice_sizes.COLLISIONS):
            partition = found.partition
            for key, value in found.entries:
                order = self.order_of(value)
                if wanted.has(order):
                    smallest.append((order, (key[1:], value)))
            smallest = heapq.nsmallest(_RUN_PAGE_ENTRIES + 1, smallest, key=itemgetter(0))
        return partition, smallest


@dataclass(slots=True)
class _Wanted:
    """The bounds of the items of a run that are still to be yielded."""

    lower: Order | None
    upper: Order | None
    after: Order | None = None

    def has(self, order: Order) -> bool:
        if self.after is not None and order <= self.after:
            return False
        return (self.lower is None or self.lower <= order) and (self.upper is None or order < self.upper)
