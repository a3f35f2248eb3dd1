"""The setting for incoming edges is switched on and off under load; splits, merges and moves come in between."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from asterism.errors import ItemExists, ItemNotFound
from asterism.keyspaces.routing.families import INCOMING_EDGES
from asterism.models.documents.container import Container
from asterism.models.documents.incoming.reads import entries_for
from asterism.models.documents.upkeep.reindexer import ReindexStep
from asterism.throughput.budgets import Manual
from asterism.values.identifiers import NodeNumber, node_of
from tests.support.incoming_edges import edge, false_entries
from tests.support.stores import open_store
from tests.support.world import ACCOUNT, World, open_gateway, open_world

EDGES = 300
KEYS = 11
LABELS_ALONE = {"includedPaths": [{"path": "/label/?"}], "excludedPaths": [{"path": "/*"}]}


async def filled(world: World, *, throughput: int = 400, **settings: object) -> Container:
    container = await world.container(throughput=Manual(throughput), **settings)
    documents = [
        edge(f"e{number}", pk=f"k{number % KEYS}", sink=f"s{number % 7}", sink_pk=f"k{number % 5}")
        for number in range(EDGES)
    ]
    await asyncio.gather(*(container.create_item(document, None) for document in documents))
    return container


async def switch(world: World, container: Container, *, is_on: bool) -> Container:
    body = {**container.keyspace.record.settings, "incomingEdges": is_on}
    return await world.store.replace_container(container, body)


async def entry_count(world: World, container: Container) -> int:
    ranges = container.keyspace.record.map.ranges
    return sum([len(await world.everything(partition.partition, INCOMING_EDGES)) for partition in ranges])


async def write_until(stopped: asyncio.Event, container: Container, seed: int) -> None:
    """Create, turn, touch and delete a few edges, all writers the same ones."""
    chance = random.Random(seed)
    while not stopped.is_set():
        number = chance.randrange(20)
        pk, edge_id = f"k{number % KEYS}", f"e{number}"
        document = edge(edge_id, pk=pk, sink=f"s{chance.randrange(3)}", sink_pk=f"k{chance.randrange(KEYS)}")
        try:
            match chance.randrange(4):
                case 0:
                    await container.create_item(document, None)
                case 1:
                    await container.delete_item(edge_id.encode(), (pk,))
                case _:
                    await container.upsert_item(document, None)
        except (ItemExists, ItemNotFound):
            await asyncio.sleep(0)


@pytest.mark.parametrize("throughput", [400, 40_000])
async def test_edges_that_were_there_get_entries_and_lose_them(tmp_path: Path, throughput: int) -> None:
    async with asyncio.timeout(180), open_world(tmp_path) as world:
        container = await filled(world, throughput=throughput)
        point = container.planner.point(("k3",))
        container = await switch(world, container, is_on=True)
        assert container.record.settings["incomingEdges"] is True
        assert await entries_for(container, [(point, b"s3")], reads=world.router) is None
        await world.store.reindexer.finished(container.keyspace)
        assert container.has_all_incoming_edges
        assert await false_entries(world, container) == 0
        found = await entries_for(container, [(point, b"s3")], reads=world.router)
        assert found is not None
        assert len(found[0]) == len([number for number in range(EDGES) if number % 7 == 3 and number % 5 == 3])
        container = await switch(world, container, is_on=False)
        assert await entries_for(container, [(point, b"s3")], reads=world.router) is None
        await world.store.reindexer.finished(container.keyspace)
        assert await entry_count(world, container) == 0


@pytest.mark.parametrize("throughput", [400, 40_000])
async def test_switching_on_while_edges_are_written_leaves_none_without_its_entry(
    tmp_path: Path, throughput: int
) -> None:
    async with asyncio.timeout(180), open_world(tmp_path) as world:
        container = await filled(world, throughput=throughput)
        stopped = asyncio.Event()
        writers = [asyncio.create_task(write_until(stopped, container, seed)) for seed in range(4)]
        await asyncio.sleep(0.02)
        for _ in range(2):
            for is_on in (True, False, True):
                await switch(world, container, is_on=is_on)
            await world.store.reindexer.finished(container.keyspace)
            assert container.has_all_incoming_edges
            await asyncio.sleep(0.05)
            await switch(world, container, is_on=False)
            await world.store.reindexer.finished(container.keyspace)
            assert await entry_count(world, container) == 0
        await switch(world, container, is_on=True)
        await world.store.reindexer.finished(container.keyspace)
        await asyncio.sleep(0.05)
        stopped.set()
        await asyncio.gather(*writers)
        await false_entries(world, container)
        await world.check_statistics(container)


async def test_a_change_of_the_indexing_policy_on_the_way_does_not_forget_the_edges(tmp_path: Path) -> None:
    async with asyncio.timeout(180), open_world(tmp_path) as world:
        container = await filled(world)
        steps: list[ReindexStep] = []
        world.store.reindexer.on_step = steps.append
        container = await switch(world, container, is_on=True)
        while ReindexStep.WALKING not in steps:
            await asyncio.sleep(0.001)
        body = {**container.record.settings, "indexingPolicy": LABELS_ALONE}
        container = await world.store.replace_container(container, body)
        assert not container.has_all_incoming_edges
        await world.store.reindexer.finished(container.keyspace)
        assert container.has_all_incoming_edges
        assert await false_entries(world, container) == 0


async def test_entries_follow_their_sinks_through_splits_merges_and_moves(tmp_path: Path) -> None:
    async with asyncio.timeout(180), open_world(tmp_path, node_labels=("", "")) as world:
        container = await filled(world, incomingEdges=True)
        stopped = asyncio.Event()
        writers = [asyncio.create_task(write_until(stopped, container, seed)) for seed in range(4)]
        keyspace, reshaper = container.keyspace, world.reshaper
        for _ in range(2):
            await reshaper.finished(await reshaper.split(keyspace, keyspace.record.map.ranges[0].id))
            for partition in keyspace.record.map.ranges:
                other = NodeNumber(1 - node_of(partition.partition))
                await reshaper.finished(await reshaper.move(keyspace, partition.id, other))
            first, second = keyspace.record.map.ranges[:2]
            await reshaper.finished(await reshaper.split(keyspace, second.id))
            first, second = keyspace.record.map.ranges[:2]
            await reshaper.finished(await reshaper.merge(keyspace, first.id, second.id))
        stopped.set()
        await asyncio.gather(*writers)
        await false_entries(world, container)
        await world.check_statistics(container)


async def test_a_process_that_has_not_heard_of_the_setting_writes_entries_all_the_same(tmp_path: Path) -> None:
    engine = await open_store(tmp_path, shared=True)
    try:
        async with asyncio.timeout(180), open_gateway(engine, is_first=True) as first, open_gateway(engine) as second:
            container = await filled(first, throughput=40_000)
            await second.catalog.follow()
            elsewhere = second.store.container_for_items(ACCOUNT, "d", "c")
            stopped = asyncio.Event()
            writers = [
                asyncio.create_task(write_until(stopped, each, seed))
                for seed, each in enumerate([container, elsewhere, elsewhere])
            ]
            await switch(second, elsewhere, is_on=True)
            while not container.has_all_incoming_edges or not elsewhere.has_all_incoming_edges:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            stopped.set()
            await asyncio.gather(*writers)
            await false_entries(first, container)
            point = elsewhere.planner.point(("k3",))
            assert await entries_for(elsewhere, [(point, b"s3")], reads=second.router) is not None
            # The other process reads by the older settings, until a fence makes it look.
            await switch(first, container, is_on=False)
            assert await entries_for(elsewhere, [(point, b"s3")], reads=second.router) is None
    finally:
        await engine.close()
