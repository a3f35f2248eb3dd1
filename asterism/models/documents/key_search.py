"""The search for an item whose key is one of several: all of them are asked at once, partition by partition."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asterism.keyspaces.routing.families import ITEMS, id_key
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.models.documents.container import Container, check_session
from asterism.models.documents.item_record import tag_and_body
from asterism.partitioning.partition_key import PartitionKey
from asterism.partitioning.partition_map import PartitionRange
from asterism.throughput import charge

# Reads of physical partitions at the same time; those of an embedded store follow one another anyway.
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item that was found: its place among the keys, and what a read of it answers."""

    place: int
    tag: bytes
    body: bytes
    partition: PartitionRange
    lsn: int


@dataclass(frozen=True, slots=True)
class Search:
    """The outcome of a search. `cost` is that of all look-ups: each was a point read, whether it found the item or not.
    If several keys have an item of the id, `found` is that of the first."""

    found: FoundItem | None
    cost: float


async def search_item(
    container: Container,
    router: PartitionRouter,
    item_id: bytes,
    keys: Sequence[PartitionKey],
    *,
    session: Mapping[int, int] | None = None,
) -> Search:
    """Look for an item under each of the keys, and take the cost from the partitions that were asked."""
    planner, keyspace = container.planner, container.keyspace
    points = [planner.point(key) for key in keys]
    stored_ids = id_key(item_id)
    found: list[FoundItem] = []
    cost = 0.0

    async def ask(places: Sequence[int]) -> None:
        nonlocal cost
        left = list(places)
        while left:
            first = points[left[0]]
            stored_keys = [ITEMS + points[place] + stored_ids for place in left]
            partition, lsn, values = await router.read(keyspace, first, stored_keys)
            if session is not None:
                check_session(session, partition, lsn)
            own, spent = [], 0.0
            for place, stored_key, stored in zip(left, stored_keys, values, strict=True):
                # A split that came between leaves some to another partition.
                if not partition.range.contains(points[place]):
                    continue
                own.append(place)
                item = None
                if stored is not None:
                    tag, body = tag_and_body(stored, stored_key)
                    if planner.is_visible(body):
                        item = FoundItem(place, tag, body, partition, lsn)
                        found.append(item)
                spent += charge.MISS if item is None else charge.point_read(len(item.body))
            keyspace.spend(partition, spent, first)
            cost += spent
            left = [place for place in left if place not in own]

    by_range: dict[int, list[int]] = {}
    for place, point in enumerate(points):
        by_range.setdefault(keyspace.record.map.find(point).id, []).append(place)
    groups = list(by_range.values())
    if len(groups) == 1:
        await ask(groups[0])
    else:
        turns = asyncio.Semaphore(_AT_ONCE)

        async def ask_in_turn(places: Sequence[int]) -> None:
            async with turns:
                await ask(places)

        try:
            async with asyncio.TaskGroup() as group:
                for places in groups:
                    group.create_task(ask_in_turn(places))
        except BaseExceptionGroup as failures:
            # Callers know the errors of a single read.
            raise failures.exceptions[0] from None
    return Search(min(found, key=lambda item: item.place, default=None), round(cost, 2))
