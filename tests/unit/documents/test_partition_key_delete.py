"""Deleting a logical partition's items in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from asterism.errors import PartitionKeyMismatch
from asterism.keyspaces.catalog.store import TASK
from asterism.keyspaces.routing.families import CHANGE_LOG, INDEX, ITEMS
from asterism.models.documents.container import Container
from asterism.models.documents.upkeep import housekeeper as housekeeper
from asterism.models.documents.upkeep.housekeeper import Housekeeper
from tests.support.world import ACCOUNT, World, open_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as opened:
        yield opened


async def fill(container: Container, *, keys: int = 3, items: int = 150) -> None:
    await asyncio.gather(
        *(
            container.create_item({"id": f"i{number}", "pk": f"k{key}", "n": number}, None)
            for key in range(keys)
            for number in range(items)
        )
    )


async def count(world: World, container: Container, family: bytes = ITEMS) -> int:
    ranges = container.keyspace.record.map.ranges
    return sum([len(await world.everything(interval.partition, family)) for interval in ranges])


async def finished(work: Housekeeper) -> None:
    while work.tasks:
        await asyncio.sleep(0.005)


async def test_the_items_of_one_key_go_and_no_others(world: World) -> None:
    container = await world.container()
    await fill(container)
    await world.store.housekeeper.delete_partition_key(container, ("k1",))
    assert await count(world, container) == 300
    assert await count(world, container, CHANGE_LOG) == 300
    assert await count(world, container, INDEX) == 900 + 300
    assert await world.catalog.store.scan(TASK) == []
    await world.check_statistics(container)


async def test_what_is_written_later_stays(world: World) -> None:
    container = await world.container()
    await fill(container, keys=1, items=500)
    deleting = asyncio.create_task(world.store.housekeeper.delete_partition_key(container, ("k0",)))
    while not world.store.housekeeper.tasks:
        await asyncio.sleep(0)
    await container.upsert_item({"id": "i499", "pk": "k0", "kept": True}, None)
    await container.create_item({"id": "new", "pk": "k0"}, None)
    await deleting
    await finished(world.store.housekeeper)
    assert await count(world, container) == 2
    await world.check_statistics(container)


async def test_a_prefix_of_a_key_is_refused(world: World) -> None:
    definition = {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}
    container = await world.container(partitionKey=definition)
    with pytest.raises(PartitionKeyMismatch):
        await world.store.housekeeper.delete_partition_key(container, ("x",))


async def test_it_goes_on_in_the_next_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeper, "_WAIT_SECONDS_MAX", 0.0)
    async with open_world(tmp_path) as world:
        container = await world.container()
        await fill(container)
        await world.store.housekeeper.delete_partition_key(container, ("k1",))
        assert len(await world.catalog.store.scan(TASK)) == 1
    async with open_world(tmp_path) as world:
        await finished(world.store.housekeeper)
        container = world.store.container_for_items(ACCOUNT, "d", "c")
        assert await count(world, container) == 300
        assert await world.catalog.store.scan(TASK) == []
        await world.check_statistics(container)


async def test_it_goes_on_across_a_split(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeper, "_WAIT_SECONDS_MAX", 0.0)
    container = await world.container()
    await fill(container, keys=10, items=60)
    job = await world.reshaper.split(container.keyspace, 0)
    for key in range(5):
        await world.store.housekeeper.delete_partition_key(container, (f"k{key}",))
    await world.reshaper.finished(job)
    await finished(world.store.housekeeper)
    assert await count(world, container) == 300
    await world.check_statistics(container)


async def test_a_container_that_is_deleted_ends_the_work(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeper, "_WAIT_SECONDS_MAX", 0.0)
    container = await world.container()
    await fill(container)
    await world.store.housekeeper.delete_partition_key(container, ("k1",))
    await world.store.delete_container(container)
    await finished(world.store.housekeeper)
    assert await world.catalog.store.scan(TASK) == []
