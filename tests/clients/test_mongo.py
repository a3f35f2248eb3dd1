"""Collections with MongoDB's own driver."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymongo
import pytest
from bson import Decimal128, Int64
from pymongo import AsyncMongoClient, InsertOne, MongoClient, UpdateOne
from pymongo.database import Database
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure, PyMongoError, WriteError

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.support.server import RunningServer, running_server

Client = MongoClient[dict[str, Any]]
SELECTION_MILLISECONDS = 30_000


def address(server: RunningServer) -> str:
    return f"mongodb://127.0.0.1:{server.ports['mongo']}/?replicaSet=globaldb"


@pytest.fixture(scope="session")
def mongo(server: RunningServer) -> Iterator[Client]:
    with MongoClient[dict[str, Any]](address(server), serverSelectionTimeoutMS=SELECTION_MILLISECONDS) as connected:
        yield connected


@pytest.fixture
def shop(mongo: Client) -> Iterator[Database[dict[str, Any]]]:
    name = f"shop-{uuid.uuid4().hex[:8]}"
    yield mongo[name]
    mongo.drop_database(name)


def test_the_server_is_a_replica_set_of_one(mongo: Client) -> None:
    hello = mongo.admin.command("hello")
    assert (hello["setName"], hello["isWritablePrimary"]) == ("globaldb", True)
    assert mongo.admin.command("buildInfo")["version"].startswith("7.")


def test_documents_come_back_as_they_were_sent(shop: Database[dict[str, Any]]) -> None:
    document = {"_id": 1, "z": Int64(2), "a": [1, {"b": 2.5}], "d": Decimal128("1.10"), "n": None, "t": "é"}
    shop.users.insert_one(document)
    found = shop.users.find_one({"_id": 1.0})
    assert found == document
    assert list(found or ()) == list(document)


def test_filters_sorts_and_cursors_return_every_document_once(shop: Database[dict[str, Any]]) -> None:
    shop.users.insert_many([{"_id": number, "n": number % 7, "tags": [number, -number]} for number in range(300)])
    expected = [number for number in range(299, -1, -1) if number % 7 in (2, 3)]
    for _ in range(2):
        cursor = shop.users.find({"n": {"$gte": 2, "$lt": 4}}, batch_size=11).sort("_id", -1)
        assert [found["_id"] for found in cursor] == expected
        shop.users.create_index([("n", 1), ("_id", -1)])
    assert [found["_id"] for found in shop.users.find({"tags": -5})] == [5]
    assert shop.users.count_documents({"n": 3}) == 43
    assert sorted(shop.users.distinct("n")) == list(range(7))


def test_updates_change_what_they_say(shop: Database[dict[str, Any]]) -> None:
    shop.users.insert_many([{"_id": number, "n": number} for number in range(10)])
    assert shop.users.update_one({"_id": 1}, {"$inc": {"n": 5}, "$push": {"log": "a"}}).modified_count == 1
    assert shop.users.update_many({"n": {"$gt": 7}}, {"$set": {"big": True}}).modified_count == 2
    assert shop.users.update_one({"_id": 1}, {"$set": {"n": 6}}).modified_count == 0
    assert shop.users.update_one({"_id": "new"}, {"$set": {"x": 1}}, upsert=True).upserted_id == "new"
    assert shop.users.find_one_and_update({"_id": 1}, {"$unset": {"log": 1}}) == {"_id": 1, "n": 6, "log": ["a"]}
    assert shop.users.delete_many({"big": True}).deleted_count == 2
    with pytest.raises(WriteError) as refused:
        shop.users.update_one({"_id": 1}, {"$set": {"_id": 2}})
    assert refused.value.code == 66


def test_unique_indexes_hold_on_documents_that_exist(shop: Database[dict[str, Any]]) -> None:
    shop.users.insert_many([{"_id": 1, "mail": "a"}, {"_id": 2, "mail": "b"}])
    shop.users.create_index("mail", unique=True)
    with pytest.raises(DuplicateKeyError) as refused:
        shop.users.insert_one({"mail": "a"})
    details = refused.value.details or {}
    assert (details["keyPattern"], details["keyValue"]) == ({"mail": 1}, {"mail": "a"})
    with pytest.raises(BulkWriteError) as stopped:
        shop.users.insert_many([{"_id": 3}, {"_id": 1}, {"_id": 4, "mail": "d"}], ordered=False)
    assert stopped.value.details["nInserted"] == 2


def test_pipelines_group_join_and_divide(shop: Database[dict[str, Any]]) -> None:
    shop.orders.insert_many([{"_id": number, "user": number % 3, "sum": number} for number in range(9)])
    shop.users.insert_many([{"_id": number, "name": f"u{number}"} for number in range(3)])
    totals = shop.orders.aggregate(
        [
            {"$match": {"sum": {"$gt": 0}}},
            {"$group": {"_id": "$user", "total": {"$sum": "$sum"}}},
            {"$lookup": {"from": "users", "localField": "_id", "foreignField": "_id", "as": "user"}},
            {"$unwind": "$user"},
            {"$project": {"_id": 0, "name": "$user.name", "total": 1}},
            {"$sort": {"name": 1}},
        ]
    )
    assert list(totals) == [
        {"total": 9, "name": "u0"},
        {"total": 12, "name": "u1"},
        {"total": 15, "name": "u2"},
    ]


def test_a_transaction_over_collections_is_whole_or_nothing(mongo: Client, shop: Database[dict[str, Any]]) -> None:
    shop.users.insert_one({"_id": 1, "n": 0})
    with mongo.start_session() as session:
        with session.start_transaction():
            shop.orders.insert_one({"_id": "a"}, session=session)
            shop.users.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
            assert shop.orders.find_one({"_id": "a"}) is None
            assert shop.orders.find_one({"_id": "a"}, session=session) == {"_id": "a"}
        session.start_transaction()
        shop.orders.insert_one({"_id": "b"}, session=session)
        session.abort_transaction()
    assert shop.users.find_one({"_id": 1}) == {"_id": 1, "n": 1}
    assert [order["_id"] for order in shop.orders.find()] == ["a"]


def test_a_transaction_that_was_overtaken_is_repeated_by_the_driver(
    mongo: Client, shop: Database[dict[str, Any]]
) -> None:
    shop.users.insert_one({"_id": 1, "n": 0})
    attempts = []

    def increment(session: Any) -> None:
        attempts.append(1)
        shop.users.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        if len(attempts) == 1:
            shop.users.update_one({"_id": 1}, {"$inc": {"n": 10}})

    with mongo.start_session() as session:
        session.with_transaction(increment)
    assert shop.users.find_one({"_id": 1}) == {"_id": 1, "n": 11}
    assert len(attempts) == 2


def test_a_sharded_collection_asks_for_its_key(shop: Database[dict[str, Any]]) -> None:
    answer = shop.command("shardCollection", f"{shop.name}.places", key={"city": "hashed"})
    assert answer["collectionsharded"] == f"{shop.name}.places"
    shop.places.insert_many([{"city": f"c{number % 9}", "n": number} for number in range(90)])
    assert shop.places.count_documents({"city": "c3"}) == 10
    assert shop.places.count_documents({"n": {"$lt": 30}}) == 30
    with pytest.raises(WriteError) as refused:
        shop.places.insert_one({"n": 1})
    assert refused.value.code == 61


def test_one_bulk_writes_to_several_collections(mongo: Client, shop: Database[dict[str, Any]]) -> None:
    done = mongo.bulk_write(
        [
            InsertOne(namespace=f"{shop.name}.a", document={"_id": 1}),
            InsertOne(namespace=f"{shop.name}.b", document={"_id": 1}),
            UpdateOne(namespace=f"{shop.name}.a", filter={"_id": 1}, update={"$set": {"x": 1}}),
        ]
    )
    assert (done.inserted_count, done.modified_count) == (2, 1)


def test_bad_input_gets_a_code_and_the_connection_goes_on(shop: Database[dict[str, Any]]) -> None:
    for command, code in (
        ({"nonsense": 1}, 59),
        ({"find": "c", "filter": 5}, 14),
        ({"find": "c", "unknown": 5}, 40415),
        ({"aggregate": "c", "pipeline": [{"$nonsense": 1}], "cursor": {}}, 40324),
        ({"getMore": Int64(5), "collection": "c"}, 43),
    ):
        with pytest.raises(OperationFailure) as refused:
            shop.command(command)
        assert refused.value.code == code
    assert shop.command("ping")["ok"] == 1.0


def test_a_login_with_the_key_is_accepted_and_one_with_another_is_not(server: RunningServer) -> None:
    port = server.ports["mongo"]
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-1"):
        options: dict[str, Any] = {"username": "localhost", "authMechanism": mechanism, "authSource": "admin"}
        with MongoClient[dict[str, Any]]("127.0.0.1", port, password=WELL_KNOWN_EMULATOR_KEY, **options) as client:
            assert client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"]
        with (
            MongoClient[dict[str, Any]]("127.0.0.1", port, password="wrong", **options) as client,
            pytest.raises(OperationFailure) as refused,
        ):
            client.admin.command("ping")
        assert refused.value.code == 18


@pytest.mark.asyncio
async def test_the_asynchronous_driver_connects(server: RunningServer) -> None:
    async with AsyncMongoClient[dict[str, Any]](address(server)) as client:
        database = client[f"async-{uuid.uuid4().hex[:8]}"]
        await database.users.insert_one({"_id": 1})
        assert await database.users.find_one({"_id": 1}) == {"_id": 1}
        await client.drop_database(database.name)


def test_acknowledged_writes_survive_a_kill(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--no-throttle", doors=("mongo",), alone=True) as server:
        acknowledged = []
        with MongoClient[dict[str, Any]](address(server), retryWrites=False) as client:
            client.shop.users.create_index("n")
            for number in range(50):
                client.shop.users.insert_one({"_id": number, "n": number % 5})
                client.shop.users.update_one({"_id": number}, {"$inc": {"n": 5}})
                acknowledged.append(number)
            server.kill()
            # No server answers any more, also when the client ends its sessions.
            with pymongo.timeout(1):
                with pytest.raises(PyMongoError):
                    client.shop.users.insert_one({"_id": "late"})
                client.close()
    with (
        running_server(tmp_path / "data", "--no-throttle", doors=("mongo",), alone=True) as server,
        MongoClient[dict[str, Any]](address(server)) as client,
    ):
        assert [user["_id"] for user in client.shop.users.find({})] == acknowledged
        assert client.shop.users.count_documents({"n": 7}, hint="n_1") == 10
