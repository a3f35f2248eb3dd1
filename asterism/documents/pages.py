"""Pages of items in the order of their creation, and scans in the order of their keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from asterism.documents.answers import Scope, Stopped
from asterism.documents.container import Container
from asterism.documents.creation_order import SLICE_BYTES, SLICE_ITEMS, Slice, walk_items
from asterism.documents.item_position import Position
from asterism.documents.item_record import HEADER_BYTES, NUMBER_AT, NUMBER_END, body_of, is_indexed
from asterism.errors import RequestRateTooLarge, StoredDamage
from asterism.keyspaces.layout import ITEMS
from asterism.keyspaces.owner import Owner, Reads
from asterism.limits import PAGE_BYTES_MAX
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span
from asterism.throughput import charge


@dataclass(frozen=True, slots=True)
class ItemsPage:
    """A page of items in the order of creation. `position` is where the next page begins; None only at the end of the
    data."""

    bodies: list[bytes]
    position: Position | None
    stopped: Stopped
    charge: float
    # The newest partition read, for the response's headers: clients learn of a split by an id they do not know.
    range_id: int
    lsn: int
    # Which of the bodies, by their places, are of items that were left out of the index; empty unless asked for.
    unindexed: list[int]


async def scan_items(
    owner: Reads,
    container: Container,
    scope: Scope,
    *,
    position: bytes | None,
    slice_items: int = SLICE_ITEMS,
    indexed_only: bool = False,
) -> AsyncIterator[Slice]:
    """Yield every item of the scope from the reference `position` on, in the order of the keys: the quickest way for
    readers that need no other order. Between slices other requests have their turn."""
    keyspace = container.keyspace
    at = max(scope.start, position) if position is not None else scope.start
    while at < scope.end:
        record = keyspace.record
        partition = record.map.find(at)
        end = min(scope.end, partition.range.end)
        page = await owner.scan(
            keyspace,
            record,
            partition,
            Span(ITEMS + at, ITEMS + end),
            limit=slice_items,
            bytes_max=SLICE_BYTES,
        )
        if page is None:
            continue
        entries = page.entries
        if indexed_only:
            entries = [entry for entry in entries if is_indexed(entry[1])]
        if container.planner.time_to_live is not None:
            entries = [entry for entry in entries if container.planner.is_visible(body_of(entry[1]))]
        items = [(key[1:], stored[HEADER_BYTES:]) for key, stored in entries]
        keys = [stored[NUMBER_AT:NUMBER_END] for _, stored in entries]
        at = page.entries[-1][0][1:] + b"\x00" if page.more else end
        yield Slice(partition, keys, items, (), Position(at), is_in_key_order=True)
        await asyncio.sleep(0)


async def read_items_page(
    owner: Owner,
    container: Container,
    scope: Scope,
    *,
    position: Position | None,
    items_max: int,
    tells_unindexed: bool = False,
) -> ItemsPage:
    """Return the next page of a feed, in the order of creation. Each partition pays for what was read from it."""
    start = scope.start if position is None else max(position.start, scope.start)
    page = _Page(items_max, container.keyspace.record.map.find(start))
    slice_items = min(items_max + 1, SLICE_ITEMS)
    ended: tuple[Position | None, Stopped] = (None, Stopped.END_OF_DATA)
    pieces = walk_items(
        owner, container, scope, position=position, slice_items=slice_items, tells_unindexed=tells_unindexed
    )
    async for piece in pieces:
        page.enter(piece.partition)
        is_first = page.charge == 0.0
        stopped_at = page.take(piece)
        try:
            page.pay(container, scope.start)
        except RequestRateTooLarge:
            # A page that was begun is finished with what it has: refusing it would have the client ask for all of it
            # again, and perhaps for ever.
            if is_first:
                raise
            ended = stopped_at or (piece.behind, Stopped.BUDGET_SPENT)
            break
        if stopped_at is not None:
            ended = stopped_at
            break
    if page.charge == 0.0:
        page.pay(container, scope.start)
    told, lsn, _ = await owner.read(container.keyspace, page.newest.range.start, ())
    return ItemsPage(page.bodies, *ended, round(page.charge, 2), told.id, lsn, page.unindexed)


@dataclass(slots=True)
class _Page:
    """What a page has collected so far."""

    items_max: int
    partition: PartitionRange
    entered: list[PartitionRange] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    unindexed: list[int] = field(default_factory=list)
    bytes_taken: int = 0
    charge: float = 0.0

    @property
    def newest(self) -> PartitionRange:
        """Of the partitions read, the one that was made last."""
        return max(self.entered, key=lambda one: one.id, default=self.partition)

    def enter(self, partition: PartitionRange) -> None:
        self.partition = partition
        self.entered.append(partition)

    def take(self, piece: Slice) -> tuple[Position, Stopped] | None:
        """Adds a slice; says where and why the page ended, if it did."""
        for index, (reference, body) in enumerate(piece.items):
            if len(self.bodies) == self.items_max:
                return piece.before(index), Stopped.ITEM_COUNT
            if self.bodies and self.bytes_taken + len(body) > PAGE_BYTES_MAX:
                return piece.before(index), Stopped.PAGE_BYTES
            if reference in piece.unindexed:
                self.unindexed.append(len(self.bodies))
            if body[:1] != b"{" or body[-1:] != b"}":
                raise StoredDamage(what="item record", key=(ITEMS + reference).hex())
            self.bodies.append(body)
            self.bytes_taken += len(body)
        return None

    def pay(self, container: Container, effective_key: bytes) -> None:
        """Takes what the page has cost since the last payment from the partition it was read from."""
        due = charge.feed_page(items=len(self.bodies), page_bytes=self.bytes_taken) - self.charge
        container.keyspace.spend(self.partition, due, effective_key)
        self.charge += due


def range_scope(interval: KeyRange) -> Scope:
    return Scope(interval.start, interval.end)
