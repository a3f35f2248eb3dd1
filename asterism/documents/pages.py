"""Reading items in key order, in pages that survive splits: a position is a place on the hash line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from asterism.documents.answers import ItemsPage, Scope, Stopped
from asterism.documents.container import Container
from asterism.documents.item_record import body_of, is_indexed
from asterism.errors import RequestRateTooLarge, StoredDamage
from asterism.keyspaces.layout import ITEMS
from asterism.keyspaces.owner import Owner, Reads
from asterism.limits import PAGE_BYTES_MAX
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span
from asterism.throughput import charge

# One slice of a scan: small enough that the event loop is held for about a millisecond.
SLICE_ENTRIES = 128
SLICE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Slice:
    """Some consecutive items of one partition: (place on the hash line, body) each.

    `behind` is the place after it; a slice may be empty although more follows, because expired items are left out.
    """

    partition: PartitionRange
    items: list[tuple[bytes, bytes]]
    behind: bytes
    # Places of items that were left out of the index; empty unless asked for.
    unindexed: frozenset[bytes] = frozenset()


async def scan_items(
    owner: Reads,
    container: Container,
    scope: Scope,
    *,
    position: bytes | None,
    slice_items: int = SLICE_ENTRIES,
    indexed_only: bool = False,
    tells_unindexed: bool = False,
) -> AsyncIterator[Slice]:
    """Every item of the scope from `position` on, in slices; between slices other requests have their turn."""
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
        items = [(key[1:], body_of(stored)) for key, stored in entries]
        if container.planner.time_to_live is not None:
            items = [item for item in items if container.planner.is_visible(item[1])]
        at = page.entries[-1][0][1:] + b"\x00" if page.more else end
        unindexed = (key[1:] for key, stored in entries if tells_unindexed and not is_indexed(stored))
        yield Slice(partition, items, at, frozenset(unindexed))
        await asyncio.sleep(0)


async def read_items_page(
    owner: Owner,
    container: Container,
    scope: Scope,
    *,
    position: bytes | None,
    items_max: int,
    tells_unindexed: bool = False,
) -> ItemsPage:
    """The next page of a feed. Each partition pays for what was read from it."""
    start = scope.start if position is None else max(position, scope.start)
    page = _Page(items_max, container.keyspace.record.map.find(start))
    slice_items = min(items_max + 1, SLICE_ENTRIES)
    ended: tuple[bytes | None, Stopped] = (None, Stopped.END_OF_DATA)
    pieces = scan_items(
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

    def take(self, piece: Slice) -> tuple[bytes, Stopped] | None:
        """Adds a slice; says where and why the page ended, if it did."""
        for place, body in piece.items:
            if len(self.bodies) == self.items_max:
                return place, Stopped.ITEM_COUNT
            if self.bodies and self.bytes_taken + len(body) > PAGE_BYTES_MAX:
                return place, Stopped.PAGE_BYTES
            if place in piece.unindexed:
                self.unindexed.append(len(self.bodies))
            if body[:1] != b"{" or body[-1:] != b"}":
                raise StoredDamage(what="item record", key=(ITEMS + place).hex())
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
