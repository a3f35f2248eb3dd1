"""A keyspace gets the partitions that its throughput needs, whatever comes between. The simulation has found these."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from asterism.errors import StorageUnavailable
from asterism.keyspaces.reshaping import reshaper
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.statistics import bytes_by_range
from asterism.models.documents.container import Container
from asterism.throughput.budgets import Manual
from asterism.values.identifiers import NodeNumber, PartitionNumber
from tests.support.world import World, open_world


@asynccontextmanager
async def container_of_one_partition(directory: Path) -> AsyncIterator[tuple[World, Container]]:
    async with asyncio.timeout(180), open_world(directory, node_labels=("", "")) as world:
        container = await world.container(throughput=Manual(400))
        await container.create_item({"id": "1", "pk": "a"}, None)
        yield world, container


async def raise_throughput(world: World, keyspace: Keyspace, ru_per_second: int) -> None:
    offer = world.catalog.offer_for(keyspace.record.rid)
    assert offer is not None
    await world.store.replace_offer(offer, Manual(ru_per_second))


async def until_there_are(count: int, keyspace: Keyspace) -> None:
    while len(keyspace.record.map.ranges) != count:
        await asyncio.sleep(0.01)


async def test_although_the_range_begins_to_move_in_the_moment_it_is_to_be_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with container_of_one_partition(tmp_path) as (world, container):
        keyspace = container.keyspace
        allocate: Callable[[Sequence[NodeNumber]], Awaitable[list[PartitionNumber]]] = world.catalog.allocate_partitions
        target = NodeNumber(1 - keyspace.record.map.ranges[0].node)

        async def move_first(nodes: Sequence[NodeNumber]) -> list[PartitionNumber]:
            monkeypatch.undo()
            await world.reshaper.move(keyspace, 0, target)
            return await allocate(nodes)

        monkeypatch.setattr(world.catalog, "allocate_partitions", move_first)
        await raise_throughput(world, keyspace, 12_000)
        await until_there_are(2, keyspace)


async def test_although_a_merge_that_was_begun_before_takes_one_away(tmp_path: Path) -> None:
    async with container_of_one_partition(tmp_path) as (world, container):
        keyspace = container.keyspace
        await raise_throughput(world, keyspace, 12_000)
        await until_there_are(2, keyspace)
        await raise_throughput(world, keyspace, 400)
        left, right = keyspace.record.map.ranges
        merge = await world.reshaper.merge(keyspace, left.id, right.id)
        await raise_throughput(world, keyspace, 12_000)
        await world.reshaper.finished(merge)
        await until_there_are(2, keyspace)
        assert {child.id for child in keyspace.record.map.ranges}.isdisjoint((left.id, right.id))


async def test_although_the_store_cannot_be_asked_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with container_of_one_partition(tmp_path) as (world, container):
        ask, refusals = bytes_by_range, [StorageUnavailable(reason="the node does not answer")]

        async def refuse_once(router: PartitionRouter, keyspace: Keyspace) -> dict[int, int]:
            if refusals:
                raise refusals.pop()
            return await ask(router, keyspace)

        monkeypatch.setattr(reshaper, "bytes_by_range", refuse_once)
        monkeypatch.setattr(reshaper, "_RETRY_SECONDS", 0.01)
        await raise_throughput(world, container.keyspace, 12_000)
        await until_there_are(2, container.keyspace)
        assert not refusals
