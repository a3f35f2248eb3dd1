"""Collections that pymongo writes, read with the official client of the NoSQL door."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceNotFoundError
from azure.cosmos.partition_key import NonePartitionKeyValue
from bson import Decimal128, Int64, ObjectId
from pymongo import MongoClient

from tests.support.server import RunningServer

Documents = dict[str, Any]


@pytest.fixture(scope="module")
def mongo(server: RunningServer) -> Iterator[MongoClient[Documents]]:
    address = f"mongodb://127.0.0.1:{server.ports['mongo']}/?replicaSet=globaldb"
    with MongoClient[Documents](address, serverSelectionTimeoutMS=30_000) as connected:
        yield connected


@pytest.fixture
def name(mongo: MongoClient[Documents]) -> Iterator[str]:
    made = f"shop-{uuid.uuid4().hex[:8]}"
    yield made
    mongo.drop_database(made)


@pytest.fixture
def users(mongo: MongoClient[Documents], client: CosmosClient, name: str) -> ContainerProxy:
    mongo[name].users.insert_many([{"_id": number, "n": number % 7, "t": f"t{number}"} for number in range(250)])
    return client.get_database_client(name).get_container_client("users")


@pytest.fixture
def orders(mongo: MongoClient[Documents], client: CosmosClient, name: str) -> ContainerProxy:
    """A sharded collection with text, numbers and ObjectIds in its shard key."""
    custom = {"customAction": "CreateCollection", "collection": "orders", "shardKey": "city", "offerThroughput": 30000}
    mongo[name].command(custom)
    cities: list[Any] = ["Rome", "Oslo", "Bern", 5, ObjectId("0" * 24), None]
    mongo[name].orders.insert_many([{"_id": place, "city": cities[place % 6], "n": place} for place in range(120)])
    return client.get_database_client(name).get_container_client("orders")


def refused(call: Any) -> CosmosHttpResponseError:
    with pytest.raises(CosmosHttpResponseError) as caught:
        call()
    return caught.value


def test_databases_and_collections_are_listed_and_read(
    mongo: MongoClient[Documents], client: CosmosClient, name: str
) -> None:
    mongo[name].users.create_index([("mail", 1)])
    mongo[name].users.create_index([("a", 1), ("b", -1)])
    mongo[name].create_collection("adults", viewOn="users", pipeline=[])
    assert name in [found["id"] for found in client.list_databases()]
    database = client.get_database_client(name)
    assert database.read()["id"] == name
    assert [found["id"] for found in database.list_containers()] == ["users"]
    asked = database.query_containers("SELECT * FROM c WHERE c.id = 'users'")
    assert [found["id"] for found in asked] == ["users"]
    read = database.get_container_client("users").read()
    assert read["partitionKey"]["systemKey"] is True
    assert {"path": "/mail/?"} in read["indexingPolicy"]["includedPaths"]
    assert read["indexingPolicy"]["compositeIndexes"] == [
        [{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]
    ]


def test_documents_are_items_of_json(mongo: MongoClient[Documents], client: CosmosClient, name: str) -> None:
    key = ObjectId()
    mongo[name].users.insert_one({"_id": key, "big": Int64(2**60), "price": Decimal128("9.90"), "id": "own", "l": [1]})
    container = client.get_database_client(name).get_container_client("users")
    item = container.read_item(str(key), NonePartitionKeyValue)
    assert {name: item[name] for name in ("id", "_id", "big", "price", "id_", "l")} == {
        "id": str(key),
        "_id": str(key),
        "big": str(2**60),
        "price": "9.90",
        "id_": "own",
        "l": [1],
    }
    assert {"_rid", "_self", "_etag", "_ts"} <= set(item)
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("missing", NonePartitionKeyValue)
    before = item["_etag"]
    mongo[name].users.update_one({"_id": key}, {"$set": {"l": [2]}})
    assert container.read_item(str(key), NonePartitionKeyValue)["_etag"] != before


def test_feeds_and_queries_return_every_document_once(users: ContainerProxy) -> None:
    assert sorted(item["_id"] for item in users.read_all_items(max_item_count=17)) == list(range(250))
    asked = users.query_items("SELECT VALUE c._id FROM c WHERE c.n = 3", max_item_count=5)
    assert sorted(asked) == [number for number in range(250) if number % 7 == 3]
    ordered = users.query_items("SELECT VALUE c._id FROM c ORDER BY c._id DESC", max_item_count=30)
    assert list(ordered) == list(range(249, -1, -1))
    top = users.query_items("SELECT TOP 3 VALUE c._id FROM c ORDER BY c.n DESC, c._id")
    assert list(top) == [6, 13, 20]
    assert list(users.query_items("SELECT VALUE COUNT(1) FROM c WHERE c.n > 2")) == [142]
    groups = users.query_items("SELECT c.n, SUM(c._id) AS s FROM c GROUP BY c.n", max_item_count=2)
    assert {group["n"]: group["s"] for group in groups} == {
        rest: sum(number for number in range(250) if number % 7 == rest) for rest in range(7)
    }
    assert sorted(users.query_items("SELECT DISTINCT VALUE c.n FROM c", max_item_count=3)) == list(range(7))
    page = users.query_items("SELECT VALUE c._id FROM c ORDER BY c._id OFFSET 10 LIMIT 5", max_item_count=2)
    assert list(page) == [10, 11, 12, 13, 14]


def test_a_sharded_collection_has_its_partitions_and_its_key(
    orders: ContainerProxy, mongo: MongoClient[Documents], name: str
) -> None:
    assert orders.read()["partitionKey"]["paths"] == ["/city"]
    assert len(list(orders.read_feed_ranges())) == 5
    everything = orders.query_items("SELECT VALUE c._id FROM c", enable_cross_partition_query=True, max_item_count=9)
    assert sorted(everything) == list(range(120))
    ordered = orders.query_items(
        "SELECT VALUE c.n FROM c ORDER BY c.n", enable_cross_partition_query=True, max_item_count=11
    )
    assert list(ordered) == list(range(120))
    total = orders.query_items("SELECT VALUE SUM(c.n) FROM c", enable_cross_partition_query=True)
    assert list(total) == [sum(range(120))]
    assert mongo[name].orders.count_documents({}) == 120


@pytest.mark.parametrize(("key", "first"), [("Rome", 0), (5, 3), ("0" * 24, 4)])
def test_a_partition_key_finds_the_values_that_it_shows(orders: ContainerProxy, key: Any, first: int) -> None:
    expected = list(range(first, 120, 6))
    found = orders.query_items("SELECT VALUE c._id FROM c", partition_key=key)
    assert sorted(found) == expected
    assert orders.read_item(str(first), key)["n"] == first
    condition = {"name": "@city", "value": key}
    pinned = orders.query_items(
        "SELECT VALUE c._id FROM c WHERE c.city = @city", parameters=[condition], enable_cross_partition_query=True
    )
    assert sorted(pinned) == expected
    with pytest.raises(CosmosResourceNotFoundError):
        orders.read_item(str(first + 1), key)


def test_writes_are_refused_with_the_address_that_takes_them(
    users: ContainerProxy, client: CosmosClient, name: str, server: RunningServer
) -> None:
    database = client.get_database_client(name)
    attempts = [
        lambda: users.create_item({"id": "x"}),
        lambda: users.upsert_item({"id": "x"}),
        lambda: users.replace_item("1", {"id": "1"}),
        lambda: users.delete_item("1", NonePartitionKeyValue),
        lambda: users.patch_item("1", NonePartitionKeyValue, [{"op": "add", "path": "/a", "value": 1}]),
        lambda: users.execute_item_batch([("create", ({"id": "x"},))], NonePartitionKeyValue),
        lambda: database.create_container("more", PartitionKey("/pk")),
        lambda: database.replace_container("users", PartitionKey("/pk")),
        lambda: database.delete_container("users"),
        lambda: client.delete_database(name),
        lambda: users.scripts.create_stored_procedure({"id": "p", "body": "function () {}"}),
        lambda: database.create_user({"id": "ann"}),
    ]
    for attempt in attempts:
        error = refused(attempt)
        assert error.status_code == 403
        assert f"mongodb://127.0.0.1:{server.ports['mongo']}/" in str(error)
    assert list(users.query_items("SELECT VALUE COUNT(1) FROM c")) == [250]
    assert list(users.scripts.list_stored_procedures()) == []


def test_throughput_is_read_and_not_changed(orders: ContainerProxy) -> None:
    assert orders.get_throughput().offer_throughput == 30_000
    assert refused(lambda: orders.replace_throughput(40_000)).status_code == 403


def test_a_database_of_containers_comes_first(users: ContainerProxy, client: CosmosClient, name: str) -> None:
    made = client.create_database(name)
    try:
        made.create_container("users", PartitionKey("/pk")).create_item({"id": "mine", "pk": 1})
        assert {name, f"mongo:{name}"} <= {found["id"] for found in client.list_databases()}
        assert [item["id"] for item in made.get_container_client("users").read_all_items()] == ["mine"]
        collection = client.get_database_client(f"mongo:{name}").get_container_client("users")
        assert list(collection.query_items("SELECT VALUE COUNT(1) FROM c")) == [250]
        assert refused(lambda: collection.create_item({"id": "x"})).status_code == 403
    finally:
        client.delete_database(made)
    assert list(users.query_items("SELECT VALUE COUNT(1) FROM c")) == [250]


def test_tokens_for_a_collection_read_it_and_nothing_else(
    users: ContainerProxy, client: CosmosClient, name: str, server: RunningServer
) -> None:
    owner = client.create_database(f"owner-{uuid.uuid4()}")
    try:
        user = owner.create_user({"id": "ann"})
        granted = f"dbs/{name}/colls/users"
        grant = user.create_permission({"id": "p", "permissionMode": "Read", "resource": granted})
        token = grant.properties["_token"]
        with CosmosClient(server.endpoint, {granted: token}) as reader:
            container = reader.get_database_client(name).get_container_client("users")
            assert list(container.query_items("SELECT VALUE COUNT(1) FROM c")) == [250]
        keyed = user.create_permission(
            {"id": "k", "permissionMode": "Read", "resource": granted, "resourcePartitionKey": ["x"]}
        )
        with CosmosClient(server.endpoint, {granted: keyed.properties["_token"]}) as reader:
            container = reader.get_database_client(name).get_container_client("users")
            assert refused(lambda: list(container.query_items("SELECT * FROM c"))).status_code == 403
    finally:
        client.delete_database(owner)


def test_the_change_feed_is_refused(users: ContainerProxy) -> None:
    error = refused(lambda: list(users.query_items_change_feed(start_time="Beginning")))
    assert error.status_code == 400
    assert "change stream" in str(error)
