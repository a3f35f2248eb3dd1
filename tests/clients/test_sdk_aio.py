"""The official Python client on asyncio."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosResourceNotFoundError

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.support.server import RunningServer


@pytest.fixture
async def things(server: RunningServer) -> AsyncIterator[ContainerProxy]:
    async with CosmosClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY) as client:
        database = await client.create_database(f"database-{uuid.uuid4()}")
        yield await database.create_container("things", PartitionKey("/pk"), offer_throughput=11000)
        await client.delete_database(database)


async def test_an_item_is_created_read_replaced_and_deleted(things: ContainerProxy) -> None:
    created = await things.create_item({"id": "a", "pk": "x"})
    assert await things.read_item("a", "x") == created
    assert (await things.replace_item(created, {**created, "n": 1}))["n"] == 1
    await things.delete_item("a", "x")
    with pytest.raises(CosmosResourceNotFoundError):
        await things.read_item("a", "x")


async def test_many_writers_at_once_lose_nothing(things: ContainerProxy) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(100):
            group.create_task(things.create_item({"id": f"i{number}", "pk": f"p{number % 9}"}))
    found = [item["id"] async for item in things.query_items("SELECT * FROM c", max_item_count=7)]
    listed = [item["id"] async for item in things.read_all_items()]
    assert sorted(found) == sorted(listed) == sorted(f"i{number}" for number in range(100))


async def test_one_item_changed_by_many_at_once_counts_every_change(things: ContainerProxy) -> None:
    await things.create_item({"id": "a", "pk": "x"})
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(things.upsert_item({"id": "a", "pk": "x", "n": number}))
    assert (await things.read_item("a", "x"))["n"] in range(20)


async def test_a_partition_key_narrows_a_query(things: ContainerProxy) -> None:
    for number in range(10):
        await things.create_item({"id": f"i{number}", "pk": f"p{number % 2}"})
    found = [item["id"] async for item in things.query_items("SELECT * FROM c WHERE c.id != 'i1'", partition_key="p1")]
    assert sorted(found) == ["i3", "i5", "i7", "i9"]
