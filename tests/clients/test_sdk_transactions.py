"""Batches, patches, unique keys, time to live and deletion by key, through the official client."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos.aio import ContainerProxy as AsyncContainer
from azure.cosmos.aio import CosmosClient as AsyncClient
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosBatchOperationError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.support.server import RunningServer

WAIT_SECONDS_MAX = 60.0


@pytest.fixture
async def things(server: RunningServer) -> AsyncIterator[AsyncContainer]:
    async with AsyncClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY) as client:
        database = await client.create_database(f"database-{uuid.uuid4()}")
        yield await database.create_container("things", PartitionKey("/pk"))
        await client.delete_database(database)


def test_a_batch_of_a_hundred_is_one_change(container: ContainerProxy) -> None:
    container.create_item({"id": "first", "pk": "x"})
    before = int(container.client_connection.last_response_headers["lsn"])
    made: Any = container.execute_item_batch([("create", ({"id": f"i{n}", "pk": "x"},)) for n in range(100)], "x")
    assert [result["statusCode"] for result in made] == [201] * 100
    assert int(made.get_response_headers()["lsn"]) == before + 1


def test_a_batch_that_fails_leaves_nothing(container: ContainerProxy) -> None:
    operations: Any = [("create", ({"id": "a", "pk": "x"},)), ("replace", ("none", {"id": "none", "pk": "x"}))]
    with pytest.raises(CosmosBatchOperationError) as failure:
        container.execute_item_batch(operations, "x")
    assert (failure.value.error_index, failure.value.status_code) == (1, 404)
    assert [result["statusCode"] for result in failure.value.operation_responses] == [424, 404]
    assert list(container.read_all_items()) == []


def test_a_patch_changes_parts_on_a_condition(container: ContainerProxy) -> None:
    created = container.create_item({"id": "a", "pk": "x", "n": 1, "list": [1]})
    operations = [
        {"op": "incr", "path": "/n", "value": 1},
        {"op": "add", "path": "/list/-", "value": 2},
        {"op": "move", "from": "/n", "path": "/m"},
    ]
    patched = container.patch_item("a", "x", operations, filter_predicate="from c where c.n = 1")
    assert (patched["m"], patched["list"]) == (2, [1, 2])
    assert container.read_item("a", "x") == patched
    with pytest.raises(CosmosAccessConditionFailedError):
        container.patch_item("a", "x", operations, filter_predicate="from c where c.n = 1")
    with pytest.raises(CosmosAccessConditionFailedError):
        container.patch_item(
            "a",
            "x",
            [{"op": "set", "path": "/z", "value": 1}],
            etag=created["_etag"],
            match_condition=MatchConditions.IfNotModified,
        )
    with pytest.raises(CosmosHttpResponseError) as refusal:
        container.patch_item("a", "x", [{"op": "replace", "path": "/nothing", "value": 1}])
    assert refusal.value.status_code == 400


def test_a_unique_key_is_unique_within_its_partition(database: DatabaseProxy) -> None:
    policy = {"uniqueKeys": [{"paths": ["/mail"]}, {"paths": ["/name/first", "/name/last"]}]}
    container = database.create_container("people", PartitionKey("/pk"), unique_key_policy=policy)
    container.create_item({"id": "a", "pk": "x", "mail": "m", "name": {"first": "A", "last": "B"}})
    container.create_item({"id": "a", "pk": "y", "mail": "m", "name": {"first": "A", "last": "B"}})
    container.create_item({"id": "b", "pk": "x", "mail": "n", "name": {"first": "A", "last": "C"}})
    with pytest.raises(CosmosResourceExistsError):
        container.create_item({"id": "c", "pk": "x", "mail": "m", "name": {"first": "Z"}})
    with pytest.raises(CosmosResourceExistsError):
        container.upsert_item({"id": "b", "pk": "x", "mail": "n", "name": {"first": "A", "last": "B"}})
    container.delete_item("a", "x")
    container.upsert_item({"id": "b", "pk": "x", "mail": "m", "name": {"first": "A", "last": "B"}})


def test_expired_items_are_hidden_and_then_removed(database: DatabaseProxy) -> None:
    container = database.create_container("brief", PartitionKey("/pk"), default_ttl=1)
    container.create_item({"id": "stays", "pk": "x", "ttl": -1})
    for number in range(20):
        container.create_item({"id": f"i{number}", "pk": "x"})
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while stored_items(container) > 1 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert stored_items(container) == 1
    assert [item["id"] for item in container.read_all_items()] == ["stays"]
    assert [item["id"] for item in container.query_items("SELECT * FROM c", partition_key="x")] == ["stays"]
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("i0", "x")
    assert container.create_item({"id": "i0", "pk": "x", "ttl": 100})["ttl"] == 100


def stored_items(container: ContainerProxy) -> int:
    container.read(populate_quota_info=True)
    usage = container.client_connection.last_response_headers["x-ms-resource-usage"]
    return int(usage.partition("documentsCount=")[2].partition(";")[0])


@pytest.mark.parametrize("ttl", [0, None, -2, "x"])
def test_an_invalid_ttl_is_refused(container: ContainerProxy, ttl: Any) -> None:
    with pytest.raises(CosmosHttpResponseError) as refusal:
        container.create_item({"id": "a", "pk": "x", "ttl": ttl})
    assert refusal.value.status_code == 400


def test_all_items_of_a_key_are_deleted(container: ContainerProxy) -> None:
    for number in range(10):
        container.create_item({"id": f"i{number}", "pk": "x" if number % 2 else "y"})
    container.delete_all_items_by_partition_key("x")
    assert {item["pk"] for item in container.read_all_items()} == {"y"}


async def test_the_asyncio_client_batches_patches_and_deletes_by_key(things: AsyncContainer) -> None:
    operations: Any = [
        ("create", ({"id": "a", "pk": "x", "n": 1},)),
        ("upsert", ({"id": "b", "pk": "x"},)),
        ("patch", ("a", [{"op": "incr", "path": "/n", "value": 1}])),
        ("read", ("a",)),
        ("delete", ("b",)),
    ]
    results: Any = await things.execute_item_batch(operations, "x")
    assert [result["statusCode"] for result in results] == [201, 201, 200, 200, 204]
    patched = await things.patch_item("a", "x", [{"op": "set", "path": "/n", "value": 7}])
    assert (results[3]["resourceBody"]["n"], patched["n"]) == (2, 7)
    with pytest.raises(CosmosBatchOperationError):
        await things.execute_item_batch([("create", ({"id": "a", "pk": "x"},))], "x")
    await things.delete_all_items_by_partition_key("x")
    assert [item async for item in things.read_all_items()] == []
