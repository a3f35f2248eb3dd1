"""Pages of items in the order of their creation, and scans in the order of their keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from asterism.errors import RequestRateTooLarge, StoredDamage
from asterism.keyspaces.routing.families import ITEMS
from asterism.keyspaces.routing.router import PartitionRouter, Reads
from asterism.keyspaces.routing.scan import scan_line
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.limits import PAGE_BYTES_MAX
from asterism.models.documents.container import Container
from asterism.models.documents.creation_order import SLICE_BYTES, SLICE_ITEMS, Slice, walk_items
from asterism.models.documents.forwarding import hidden_scopes
from asterism.models.documents.item_position import Position
from asterism.models.documents.item_record import BODY_ENDS, HEADER_BYTES, NUMBER_AT, NUMBER_END, body_of, is_indexed
from asterism.models.documents.results import Scope, Stopped
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionRange
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
    # Indexes of the bodies whose items were left out of the index; empty unless asked for.
    unindexed: list[int]


async def scan_items(
    router: Reads,
    container: Container,
    scope: Scope,
    *,
    position: bytes | None,
    slice_items: int = SLICE_ITEMS,
    indexed_only: bool = False,
) -> AsyncIterator[Slice]:
    """Yield every item of the scope from the reference `position` on, in the order of the keys: the quickest way for
    readers that need no other order. Other requests run between slices."""
    at = max(scope.start, position) if position is not None else scope.start
    interval, size = KeyRange(at, max(at, scope.end)), SliceSize(slice_items, SLICE_BYTES)
    async for partition, entries, rest in scan_line(router, container.keyspace, ITEMS, interval, size):
        if indexed_only:
            entries = [entry for entry in entries if is_indexed(entry[1])]
        planner = container.planner
        if planner.time_to_live is not None:
            entries = [entry for entry in entries if planner.is_visible(body_of(entry[1]))]
        items = [(key[1:], stored[HEADER_BYTES:]) for key, stored in entries]
        keys = [stored[NUMBER_AT:NUMBER_END] for _, stored in entries]
        yield Slice(partition, keys, items, (), Position(rest.start), is_in_key_order=True)


async def read_items_page(
    router: PartitionRouter,
    container: Container,
    scope: Scope,
    *,
    position: Position | None,
    items_max: int,
    tells_unindexed: bool = False,
) -> ItemsPage:
    """Return the next page of a feed, in the order of creation. Each partition pays for what was read from it."""
    start = scope.start if position is None else max(position.start, scope.start)
    body_ends = BODY_ENDS[container.codec.record_format]
    page = _Page(items_max, container.keyspace.record.map.find(start), body_ends)
    slice_items = min(items_max + 1, SLICE_ITEMS)
    hidden = hidden_scopes(container.keyspace.record)
    ended: tuple[Position | None, Stopped] = (None, Stopped.END_OF_DATA)
    pieces = walk_items(
        router, container, scope, position=position, slice_items=slice_items, tells_unindexed=tells_unindexed
    )
    async for piece in pieces:
        page.enter(piece.partition)
        if hidden:
            piece = piece.without(hidden)
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
    partition, lsn, _ = await router.read(container.keyspace, page.newest.range.start, ())
    return ItemsPage(page.bodies, *ended, round(page.charge, 2), partition.id, lsn, page.unindexed)


@dataclass(slots=True)
class _Page:
    """A page under construction."""

    items_max: int
    partition: PartitionRange
    # First and last byte of a whole body.
    body_ends: tuple[int, int]
    entered: list[PartitionRange] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    unindexed: list[int] = field(default_factory=list)
    bytes_taken: int = 0
    charge: float = 0.0

    @property
    def newest(self) -> PartitionRange:
        """The partition that was created last, of those read."""
        return max(self.entered, key=lambda partition: partition.id, default=self.partition)

    def enter(self, partition: PartitionRange) -> None:
        self.partition = partition
        self.entered.append(partition)

    def take(self, piece: Slice) -> tuple[Position, Stopped] | None:
        """Add a slice; return where and why the page ended, if it did."""
        for index, (reference, body) in enumerate(piece.items):
            if len(self.bodies) == self.items_max:
                return piece.before(index), Stopped.ITEM_COUNT
            if self.bodies and self.bytes_taken + len(body) > PAGE_BYTES_MAX:
                return piece.before(index), Stopped.PAGE_BYTES
            if reference in piece.unindexed:
                self.unindexed.append(len(self.bodies))
            # Clients get the body as it is, so this is where one that was cut short is noticed.
            if not body or (body[0], body[-1]) != self.body_ends:
                raise StoredDamage(what="item record", key=(ITEMS + reference).hex())
            self.bodies.append(body)
            self.bytes_taken += len(body)
        return None

    def pay(self, container: Container, effective_key: bytes) -> None:
        """Take what the page has cost since the last payment from the partition it was read from."""
        due = charge.feed_page(items=len(self.bodies), page_bytes=self.bytes_taken) - self.charge
        container.keyspace.spend(self.partition, due, effective_key)
        self.charge += due


def range_scope(interval: KeyRange) -> Scope:
    return Scope(interval.start, interval.end)
