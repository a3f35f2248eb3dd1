"""Reading items in key order, in pages that survive splits: a position is a place on the hash line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from asterism.documents.answers import ItemsPage, Scope, Stopped
from asterism.documents.container import Container
from asterism.documents.item_record import body_of
from asterism.keyspaces.layout import ITEMS
from asterism.keyspaces.owner import Owner
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
    """Some consecutive items of one partition: (place on the hash line, body) each."""

    partition: PartitionRange
    items: list[tuple[bytes, bytes]]


async def scan_items(
    owner: Owner, container: Container, scope: Scope, *, position: bytes | None, slice_items: int = SLICE_ENTRIES
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
        items = [(key[1:], body_of(stored)) for key, stored in page.entries]
        yield Slice(partition, items)
        at = items[-1][0] + b"\x00" if page.more else end
        await asyncio.sleep(0)


async def read_items_page(
    owner: Owner, container: Container, scope: Scope, *, position: bytes | None, items_max: int
) -> ItemsPage:
    """The next page of a feed. Each partition pays for what was read from it."""
    bodies: list[bytes] = []
    page_bytes = 0
    total_charge = 0.0
    partition = container.keyspace.record.map.find(scope.start if position is None else max(position, scope.start))
    async for piece in scan_items(
        owner, container, scope, position=position, slice_items=min(items_max + 1, SLICE_ENTRIES)
    ):
        partition = piece.partition
        taken_bytes = taken_items = 0
        stopped_at: tuple[bytes, Stopped] | None = None
        for place, body in piece.items:
            if len(bodies) == items_max:
                stopped_at = (place, Stopped.ITEM_COUNT)
                break
            if bodies and page_bytes + len(body) > PAGE_BYTES_MAX:
                stopped_at = (place, Stopped.PAGE_BYTES)
                break
            bodies.append(body)
            page_bytes += len(body)
            taken_items += 1
            taken_bytes += len(body)
        cost = charge.feed_page(taken_items, taken_bytes)
        container.keyspace.spend(partition, cost, scope.start)
        total_charge += cost
        if stopped_at is not None:
            return await _page(owner, container, partition, bodies, stopped_at[0], stopped_at[1], total_charge)
    return await _page(owner, container, partition, bodies, None, Stopped.END_OF_DATA, total_charge)


async def _page(
    owner: Owner,
    container: Container,
    partition: PartitionRange,
    bodies: list[bytes],
    position: bytes | None,
    stopped: Stopped,
    total_charge: float,
) -> ItemsPage:
    _, lsn, _ = await owner.read(container.keyspace, partition.range.start, ())
    return ItemsPage(bodies, position, stopped, round(total_charge, 2), partition.id, lsn)


def range_scope(interval: KeyRange) -> Scope:
    return Scope(interval.start, interval.end)
