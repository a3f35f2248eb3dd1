"""Splits, deletions and dropped partitions while the store has no room left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from asterism.errors import StorageFull
from asterism.models.documents.container import Container
from asterism.storage.contract import OutOfSpace
from asterism.storage.lmdb import environment
from tests.support.stores import is_lmdb
from tests.support.world import World, open_world

pytestmark = [
    pytest.mark.lmdb,
    pytest.mark.skipif(not is_lmdb(), reason="the size of the embedded store is what these are about"),
]
MAP_BYTES = 4 << 20
PAD = "x" * 40_000


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(environment, "MAP_BYTES_DEFAULT", MAP_BYTES)
    async with open_world(tmp_path) as world:
        yield world


async def fill(container: Container) -> int:
    for number in range(10_000):
        try:
            await container.create_item({"id": str(number), "pk": str(number), "pad": PAD}, None)
        except StorageFull:
            return number
    raise AssertionError("there was room for everything")


async def test_a_full_store_takes_deletes_of_items_and_then_creates(world: World) -> None:
    container = await world.container()
    count = await fill(container)
    for number in range(count):
        await container.delete_item(str(number).encode(), (str(number),))
    await container.create_item({"id": "new", "pk": "new", "pad": PAD}, None)
    await world.check_statistics(container)


async def test_a_full_store_is_emptied_by_deleting_a_container(world: World) -> None:
    container = await world.container()
    await fill(container)
    await world.store.delete_container(container)
    async with asyncio.timeout(180):
        while world.catalog.garbage:
            world.reshaper.collect_garbage()
            await asyncio.sleep(0.01)
    again = await world.container()
    assert await fill(again) > 20


async def test_a_split_without_room_is_refused_and_done_when_there_is_some_and_items_can_be_read_and_deleted(
    world: World,
) -> None:
    container = await world.container()
    count = await fill(container)
    with pytest.raises(OutOfSpace):
        await world.reshaper.split(container.keyspace, 0)
    assert (await container.read_item(b"0", ("0",))).body
    # As much as a copy of the rest needs.
    for number in range(count * 3 // 4):
        await container.delete_item(str(number).encode(), (str(number),))
    job = await world.reshaper.split(container.keyspace, 0)
    async with asyncio.timeout(180):
        await world.reshaper.finished(job)
    assert len(container.keyspace.record.map.ranges) == 2
    assert (await container.read_item(str(count - 1).encode(), (str(count - 1),))).body
    await world.check_statistics(container)
