"""Reading items in the order of their creation, in slices that survive splits.

The service answers the items of a physical partition in the order in which they were created. Two families of entries
list items by their numbers: those of a physical partition, and those of each logical partition. A slice is a run of
such entries and the items they name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from asterism.keyspaces.routing import slice_sizes
from asterism.keyspaces.routing.families import (
    CREATION_ORDER,
    ITEM_NUMBER_BYTES,
    LOGICAL_ORDER,
    after_prefix,
    number_bytes,
)
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import Reads
from asterism.models.documents.container import Container
from asterism.models.documents.forwarding import is_hidden
from asterism.models.documents.indexes.reader import MapChanged, PartitionReader
from asterism.models.documents.item_position import Numbered, Piece, Position, pieces_of
from asterism.models.documents.item_record import HEADER_BYTES, NUMBER_AT, NUMBER_END, is_indexed
from asterism.models.documents.results import Scope
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span

SLICE_ITEMS, SLICE_BYTES = slice_sizes.ITEMS
# Before the size of the items is known, so many are loaded.
_FIRST_LOAD_ITEMS = 32
# Of an interval with several logical partitions that is not a whole physical one, so many items are put into the order
# of their creation; of more, one logical partition comes after the other, each in its order.
SORTED_ITEMS_MAX = 1_000


# Made for every portion of a scan, so not frozen: that would double the time it takes.
@dataclass(slots=True)
class Slice:
    """Some consecutive items of one partition: the number, the reference and the body of each. It may be empty although
    more follows, because expired items are left out."""

    partition: PartitionRange
    # Each ends with the number of its item.
    keys: Sequence[bytes]
    items: list[tuple[bytes, bytes]]
    # The pieces left when the slice was read: the one that it is of, and those behind it.
    left: Sequence[Piece]
    behind: Position
    # Of each item the length of its point, where items are read one logical partition after the other.
    point_lengths: Sequence[int] | None = None
    # References of items that were left out of the index; empty unless asked for.
    unindexed: frozenset[bytes] = frozenset()
    # True for items in the order of their keys; positions are then references, and good for such a walk alone.
    is_in_key_order: bool = False

    def number(self, index: int) -> int:
        return number_at_end(self.keys[index])

    def before(self, index: int) -> Position:
        """Return the position at which the item with this index is the next to be read."""
        if self.is_in_key_order:
            return Position(self.items[index][0])
        lengths = self.point_lengths
        point = None if lengths is None else self.items[index][0][: lengths[index]]
        return position_at(self.left, self.number(index), point)

    def portion(self, start: int, stop: int) -> Slice:
        """Return some of the items, as a slice of their own."""
        if start == 0 and stop >= len(self.items):
            return self
        lengths = None if self.point_lengths is None else self.point_lengths[start:stop]
        behind = self.before(stop) if stop < len(self.items) else self.behind
        keys, items = self.keys[start:stop], self.items[start:stop]
        unindexed, is_in_key_order = self.unindexed, self.is_in_key_order
        return Slice(self.partition, keys, items, self.left, behind, lengths, unindexed, is_in_key_order)

    def without(self, hidden: Sequence[Scope]) -> Slice:
        """Return the slice without the items of some scopes."""
        kept = [index for index, (reference, _) in enumerate(self.items) if not is_hidden(hidden, reference)]
        if len(kept) == len(self.items):
            return self
        lengths = self.point_lengths
        return replace(
            self,
            keys=[self.keys[index] for index in kept],
            items=[self.items[index] for index in kept],
            point_lengths=None if lengths is None else [lengths[index] for index in kept],
        )


def position_at(left: Sequence[Piece], number: int, point: bytes | None) -> Position:
    """Return the position in the first of these pieces at which `number` is the next; with a `point`, in the logical
    partition that is there, behind which the rest of the piece is left."""
    own, *rest = left
    if point is None:
        return Position.of([Piece(own.start, own.end, number), *rest])
    end = min(after_prefix(point) or own.end, own.end)
    if end < own.end:
        rest = [Piece(end, own.end, own.least), *rest]
    return Position.of([Piece(point, end, max(number, own.least)), *rest])


def cut_at(pieces: Sequence[Piece], end: bytes) -> list[Piece]:
    """Return the pieces with the first of them ending where its physical partition does."""
    first, *rest = pieces
    if first.end <= end:
        return [first, *rest]
    return [Piece(first.start, end, first.least), Piece(end, first.end, first.least), *rest]


async def walk_pieces(
    router: Reads,
    keyspace: Keyspace,
    scope: Scope,
    position: Position | None,
    read_piece: Callable[[PartitionReader, Sequence[Piece]], AsyncIterator[Slice]],
) -> AsyncIterator[Slice]:
    """Yield what is left of a scope, partition after partition. `read_piece` reads the first of the pieces that it is
    given; where it finds that the partition was split, it is asked again for what is left then."""
    pieces = pieces_of(scope, position)
    while pieces:
        record = keyspace.record
        partition = record.map.find(pieces[0].start)
        reader = PartitionReader(router, keyspace, record, partition)
        left = cut_at(pieces, partition.range.end)
        pieces = left[1:]
        try:
            async for items in read_piece(reader, left):
                position = items.behind
                yield items
                await asyncio.sleep(0)
        except MapChanged:
            pieces = pieces_of(scope, position)


async def walk_items(
    router: Reads,
    container: Container,
    scope: Scope,
    *,
    position: Position | None,
    slice_items: int = SLICE_ITEMS,
    tells_unindexed: bool = False,
) -> AsyncIterator[Slice]:
    """Yield every item of the scope from `position` on; between slices other requests have their turn."""
    loader = ItemLoader(container, slice_items, tells_unindexed=tells_unindexed)

    async def read_piece(reader: PartitionReader, left: Sequence[Piece]) -> AsyncIterator[Slice]:
        async for listed in listed_items(reader, container, left[0], slice_items):
            async for items in loader.slices(reader, listed, left):
                yield items

    async for items in walk_pieces(router, container.keyspace, scope, position, read_piece):
        yield items


async def walk_bodies(
    router: Reads, container: Container, scope: Scope, position: Position | None
) -> AsyncIterator[tuple[Position, bytes]]:
    """Yield every item of the scope from `position` on: the position before it, and its body."""
    async for items in walk_items(router, container, scope, position=position):
        for index, (_, body) in enumerate(items.items):
            yield items.before(index), body


class Listed(NamedTuple):
    """Items in the order in which they are to be answered. Each key ends with the number of its item."""

    keys: Sequence[bytes]
    references: Sequence[bytes]
    # Of each item the length of its point, where one logical partition comes after the other.
    point_lengths: Sequence[int] | None = None

    @classmethod
    def of(cls, numbered: Sequence[Numbered]) -> Listed:
        return cls([item[:ITEM_NUMBER_BYTES] for item in numbered], [item[ITEM_NUMBER_BYTES:] for item in numbered])


async def listed_items(
    reader: PartitionReader, container: Container, piece: Piece, limit: int
) -> AsyncIterator[Listed]:
    """Yield the items of a piece in pages."""
    interval = reader.partition.range
    if piece.start <= interval.start and interval.end <= piece.end:
        span = Span(CREATION_ORDER + number_bytes(piece.least), after_prefix(CREATION_ORDER))
        async for page in reader.pages(span, limit=limit):
            if page:
                yield Listed(*zip(*page, strict=True))
    elif await _is_one_key(reader, container, piece):
        start = piece.start
        span = Span(LOGICAL_ORDER + start + number_bytes(piece.least), LOGICAL_ORDER + piece.end)
        async for page in reader.pages(span, limit=limit):
            yield Listed([key for key, _ in page], [start + id_key for _, id_key in page])
    else:
        async for listed in _of_several_keys(reader, piece, limit):
            yield listed


async def _is_one_key(reader: PartitionReader, container: Container, piece: Piece) -> bool:
    """Return whether a piece is one logical partition."""
    point = piece.start
    is_likely = container.is_one_key(Scope(point, piece.end))
    if not is_likely or container.record.definition.version != 1:
        return is_likely
    # Only an entry tells where a point of version 1 ends.
    async for page in reader.pages(Span(LOGICAL_ORDER + point, LOGICAL_ORDER + piece.end), limit=1):
        return not page or page[0][0][1:-ITEM_NUMBER_BYTES] == point
    return True


async def _of_several_keys(reader: PartitionReader, piece: Piece, limit: int) -> AsyncIterator[Listed]:
    """Few items are put into the order of their creation; of many, one logical partition comes after the other."""
    least = number_bytes(piece.least)
    found: list[tuple[bytes, bytes]] = []
    are_few = True
    async for page in reader.pages(Span(LOGICAL_ORDER + piece.start, LOGICAL_ORDER + piece.end), limit=limit):
        found += [entry for entry in page if entry[0][-ITEM_NUMBER_BYTES:] >= least]
        are_few = are_few and len(found) <= SORTED_ITEMS_MAX
        if not are_few:
            yield _by_key(found)
            found = []
    if are_few:
        found.sort(key=lambda entry: entry[0][-ITEM_NUMBER_BYTES:])
        for start in range(0, len(found), limit):
            yield _by_key(found[start : start + limit])._replace(point_lengths=None)


def _by_key(entries: Sequence[tuple[bytes, bytes]]) -> Listed:
    return Listed(
        [key for key, _ in entries],
        [key[1:-ITEM_NUMBER_BYTES] + id_key for key, id_key in entries],
        [len(key) - 1 - ITEM_NUMBER_BYTES for key, _ in entries],
    )


class ItemLoader:
    """Makes slices of the items that were listed: those that exist, in the order in which they were listed."""

    def __init__(
        self,
        container: Container,
        slice_items: int = SLICE_ITEMS,
        *,
        indexed_only: bool = False,
        tells_unindexed: bool = False,
    ) -> None:
        self._container = container
        self._slice_items = slice_items
        self._load_items = min(_FIRST_LOAD_ITEMS, slice_items)
        self._indexed_only = indexed_only
        self._tells_unindexed = tells_unindexed

    async def slices(self, reader: PartitionReader, listed: Listed, left: Sequence[Piece]) -> AsyncIterator[Slice]:
        keys, references, lengths = listed
        start = 0
        while start < len(keys):
            stop = start + self._load_items
            part = Listed(keys[start:stop], references[start:stop], None if lengths is None else lengths[start:stop])
            yield await self._slice(reader, part, left)
            start += len(part.keys)

    async def _slice(self, reader: PartitionReader, listed: Listed, left: Sequence[Piece]) -> Slice:
        keys, references, lengths = listed
        stored = await reader.load_stored(references)
        if [record[NUMBER_AT:NUMBER_END] for _, record in stored] != [key[-ITEM_NUMBER_BYTES:] for key in keys]:
            stored = _as_listed(stored, listed)
        self._learn(stored)
        unindexed: frozenset[bytes] = frozenset()
        if self._tells_unindexed:
            unindexed = frozenset(reference for reference, record in stored if not is_indexed(record))
        if self._indexed_only:
            stored = [entry for entry in stored if is_indexed(entry[1])]
        items = [(reference, record[HEADER_BYTES:]) for reference, record in stored]
        planner = self._container.planner
        if planner.time_to_live is not None:
            items = [item for item in items if planner.is_visible(item[1])]
        point = None if lengths is None else references[-1][: lengths[-1]]
        behind = position_at(left, number_at_end(keys[-1]) + 1, point)
        if len(items) < len(keys):
            kept = {reference for reference, _ in items}
            chosen = [index for index, reference in enumerate(references) if reference in kept]
            keys = [keys[index] for index in chosen]
            lengths = None if lengths is None else [lengths[index] for index in chosen]
        assert len(keys) == len(items), "an item is listed once by its number (D8)"
        return Slice(reader.partition, keys, items, left, behind, lengths, unindexed)

    def _learn(self, stored: Sequence[tuple[bytes, bytes]]) -> None:
        """Items of one container are of about one size: load as many at once as make a slice."""
        if stored:
            bytes_each = max(len(stored[0][1]), len(stored[len(stored) // 2][1]), len(stored[-1][1]))
            self._load_items = max(1, min(self._slice_items, SLICE_BYTES // bytes_each, 4 * self._load_items))


def _as_listed(stored: Sequence[tuple[bytes, bytes]], listed: Listed) -> list[tuple[bytes, bytes]]:
    """Leave out items that were deleted since they were listed, and created again: these are listed once more."""
    numbers = {
        reference: key[-ITEM_NUMBER_BYTES:] for key, reference in zip(listed.keys, listed.references, strict=True)
    }
    return [entry for entry in stored if entry[1][NUMBER_AT:NUMBER_END] == numbers[entry[0]]]


def number_at_end(key: bytes) -> int:
    return int.from_bytes(key[-ITEM_NUMBER_BYTES:], "big")
