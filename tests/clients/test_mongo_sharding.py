"""Sharded collections, and cursors and transactions over several processes, with MongoDB's own driver."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from bson import Int64
from pymongo import MongoClient, ReturnDocument
from pymongo.database import Database
from pymongo.errors import DuplicateKeyError, OperationFailure

from tests.clients.test_mongo import SELECTION_MILLISECONDS, address
from tests.support.server import RunningServer

Document = dict[str, Any]
Client = MongoClient[Document]


@pytest.fixture(scope="session")
def mongo(server: RunningServer) -> Iterator[Client]:
    with MongoClient[Document](address(server), serverSelectionTimeoutMS=SELECTION_MILLISECONDS) as connected:
        yield connected


@pytest.fixture
def shop(mongo: Client) -> Iterator[Database[Document]]:
    name = f"sharded-{uuid.uuid4().hex[:8]}"
    yield mongo[name]
    mongo.drop_database(name)


def shard(database: Database[Document], name: str, key: Document, **options: Any) -> Document:
    return database.command("shardCollection", f"{database.name}.{name}", key=key, **options)


def code_of(run: Callable[[], Any]) -> int | None:
    with pytest.raises(OperationFailure) as refused:
        run()
    return refused.value.code


# --- several processes ----------------------------------------------------------------------------------------------


def test_cursors_go_on_over_any_connection(shop: Database[Document]) -> None:
    shop.users.insert_many([{"_id": number} for number in range(300)])

    def read(batch_size: int) -> list[int]:
        return [user["_id"] for user in shop.users.find({}, batch_size=batch_size)]

    with ThreadPoolExecutor(8) as threads:
        for seen in threads.map(read, range(7, 31)):
            assert seen == list(range(300))


def test_cursors_are_closed_over_any_connection(shop: Database[Document]) -> None:
    shop.users.insert_many([{"_id": number} for number in range(50)])
    numbers = [shop.command("find", "users", batchSize=2)["cursor"]["id"] for _ in range(12)]

    def kill(number: Int64) -> list[int]:
        killed: list[int] = shop.command("killCursors", "users", cursors=[number])["cursorsKilled"]
        return killed

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(kill, numbers[2:])) == [[number] for number in numbers[2:]]
    answer = shop.command("killCursors", "users", cursors=[*numbers, Int64(12345 << 10)])
    assert sorted(answer["cursorsKilled"]) == sorted(numbers[:2])
    assert code_of(lambda: shop.command("getMore", numbers[0], collection="users")) == 43


def test_transactions_go_on_over_any_connection(mongo: Client, shop: Database[Document]) -> None:
    shop.users.insert_many([{"_id": number, "n": 0} for number in range(8)])

    def run(number: int) -> None:
        with mongo.start_session() as session:
            for _ in range(5):
                session.with_transaction(lambda own: move(number, own))

    def move(number: int, session: Any) -> None:
        shop.users.update_one({"_id": number}, {"$inc": {"n": 1}}, session=session)
        assert len(list(shop.users.find({}, batch_size=3, session=session))) == 8
        shop.log.insert_one({"by": number}, session=session)

    shop.log.insert_one({"_id": "first"})
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(run, range(8)))
    assert [user["n"] for user in shop.users.find({})] == [5] * 8
    assert shop.log.count_documents({}) == 41


def test_collections_are_known_to_every_process_at_once(shop: Database[Document]) -> None:
    def use(number: int) -> None:
        for turn in range(5):
            name = f"c{number}"
            shop.create_collection(name)
            shop[name].insert_one({"_id": turn})
            assert [found["_id"] for found in shop[name].find({})] == [turn]
            assert [found["n"] for found in shop[name].aggregate([{"$count": "n"}])] == [1]
            shop.drop_collection(name)
            assert shop[name].find_one({}) is None

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(use, range(6)))
    assert shop.list_collection_names() == []


# --- shard keys -----------------------------------------------------------------------------------------------------


def test_a_collection_with_documents_is_re_keyed_under_load(shop: Database[Document]) -> None:
    shop.users.insert_many([{"_id": number, "city": f"c{number % 9}", "n": 0} for number in range(400)])
    shop.users.create_index("n")
    stopping = threading.Event()

    def write(own: int) -> int:
        done = 0
        while not stopping.is_set():
            assert shop.users.update_one({"_id": own}, {"$inc": {"n": 1}}).modified_count == 1
            shop.users.insert_one({"_id": f"{own}-{done}", "city": "new", "n": -1})
            assert shop.users.count_documents({"_id": own}) == 1
            done += 1
        return done

    with ThreadPoolExecutor(4) as threads:
        writers = [threads.submit(write, own) for own in range(3)]
        try:
            answer = shard(shop, "users", {"city": 1})
            assert answer["collectionsharded"] == f"{shop.name}.users"
            shop.client.admin.command("reshardCollection", f"{shop.name}.users", key={"_id": "hashed"})
            shop.client.admin.command("unshardCollection", f"{shop.name}.users")
        finally:
            stopping.set()
        counts = [writer.result() for writer in writers]
    assert [shop.users.find_one({"_id": own})["n"] for own in range(3)] == counts  # type: ignore[index]
    assert shop.users.count_documents({"n": -1}) == sum(counts)
    assert shop.users.count_documents({}) == 400 + sum(counts)
    assert "n_1" in shop.users.index_information()


def test_splits_and_merges_go_unnoticed(mongo: Client, shop: Database[Document]) -> None:
    shard(shop, "places", {"city": 1})
    shop.places.insert_many([{"_id": number, "city": f"c{number}", "n": 0} for number in range(600)])
    namespace = f"{shop.name}.places"
    cursor = shop.places.find({}, batch_size=40)
    seen = [next(cursor)["_id"] for _ in range(60)]
    stopping = threading.Event()

    def write(own: int) -> int:
        done = 0
        while not stopping.is_set():
            shop.places.update_one({"_id": own, "city": f"c{own}"}, {"$inc": {"n": 1}})
            shop.places.update_one({"_id": own}, {"$inc": {"n": 1}})
            done += 2
        return done

    with ThreadPoolExecutor(3) as threads:
        writers = [threads.submit(write, own) for own in range(2)]
        try:
            mongo.admin.command("split", namespace, find={"city": "c1"})
            mongo.admin.command("split", namespace, find={"city": "c2"})
            chunks = chunks_of(mongo, namespace)
            assert len(chunks) == 3
            seen += [next(cursor)["_id"] for _ in range(300)]
            mongo.admin.command("mergeChunks", namespace, bounds=[chunks[0]["min"], chunks[-1]["max"]])
            assert len(chunks_of(mongo, namespace)) == 1
            mongo.admin.command("split", namespace, middle={"city": "c77"})
        finally:
            stopping.set()
        counts = [writer.result() for writer in writers]
    seen += [place["_id"] for place in cursor]
    assert sorted(seen) == list(range(600))
    assert [shop.places.find_one({"_id": own})["n"] for own in range(2)] == counts  # type: ignore[index]


def chunks_of(mongo: Client, namespace: str) -> list[Document]:
    collection = mongo.config.collections.find_one({"_id": namespace})
    assert collection is not None
    return list(mongo.config.chunks.find({"uuid": collection["uuid"]}))


def test_shard_keys_hold_as_the_service_says(mongo: Client, shop: Database[Document]) -> None:
    shard(shop, "places", {"city": "hashed"})
    assert shard(shop, "places", {"city": "hashed"})["ok"] == 1
    places = shop.places
    places.insert_many([{"_id": 1, "city": "a"}, {"_id": 1, "city": "b"}, {"_id": 2, "city": "a"}])
    assert code_of(lambda: places.insert_one({"_id": 3})) == 61
    assert code_of(lambda: places.insert_one({"_id": 3, "city": ["a"]})) == 61
    assert code_of(lambda: places.update_one({"_id": 2}, {"$set": {"city": "b"}})) == 66
    assert code_of(lambda: places.update_one({"_id": 2}, {"$unset": {"city": 1}})) == 66
    assert code_of(lambda: places.replace_one({"_id": 2}, {"x": 1})) == 66
    assert code_of(lambda: places.update_one({"_id": 9}, {"$set": {"x": 1}}, upsert=True)) == 61
    assert places.update_one({"city": "z"}, {"$set": {"x": 1}}, upsert=True).upserted_id is not None
    with pytest.raises(DuplicateKeyError):
        places.insert_one({"_id": 1, "city": "a"})
    assert places.count_documents({"_id": 1}) == 2
    changed = places.find_one_and_update({"_id": 2}, {"$set": {"x": 2}}, return_document=ReturnDocument.AFTER)
    assert changed == {"_id": 2, "city": "a", "x": 2}
    assert places.update_many({}, {"$set": {"all": 1}}).modified_count == 4
    assert places.delete_one({"_id": 1}).deleted_count == 1
    assert places.delete_many({"all": 1}).deleted_count == 3
    assert code_of(lambda: places.create_index("x", unique=True)) == 67
    places.create_index([("city", 1), ("x", 1)], unique=True)
    assert code_of(lambda: shard(shop, "places", {"other": 1})) == 23
    assert code_of(lambda: shard(shop, "others", {"a": 5})) == 2
    assert code_of(lambda: mongo.admin.command("reshardCollection", f"{shop.name}.none", key={"a": 1})) == 26


def test_a_shell_sees_the_partitions(mongo: Client, shop: Database[Document]) -> None:
    shard(shop, "places", {"city": 1})
    config = mongo.config
    assert config.version.find_one({"_id": 1}) is not None
    shards = [found["_id"] for found in config.shards.find({})]
    assert [entry["_id"] for entry in mongo.admin.command("listShards")["shards"]] == shards
    assert [found["shard"] for found in chunks_of(mongo, f"{shop.name}.places")] == shards[:1]
    assert config.databases.count_documents({"_id": shop.name}) == 1
    grouped = config.chunks.aggregate([{"$group": {"_id": "$shard", "chunks": {"$sum": 1}}}])
    assert shards[0] in [found["_id"] for found in grouped]
    assert code_of(lambda: config.chunks.insert_one({"_id": 1})) == 20
    assert code_of(lambda: mongo.admin.command("moveChunk", f"{shop.name}.places", find={"city": 1}, to="no")) == 70


def test_statistics_come_from_each_shard(mongo: Client, shop: Database[Document]) -> None:
    shard(shop, "users", {"city": "hashed"})
    shop.users.insert_many([{"_id": number, "city": f"c{number}"} for number in range(40)])
    per_shard = list(shop.users.aggregate([{"$collStats": {"storageStats": {}, "count": {}}}]))
    assert {found["shard"] for found in per_shard} <= {found["_id"] for found in mongo.config.shards.find()}
    assert sum(found["count"] for found in per_shard) == 40
    assert sum(found["storageStats"]["count"] for found in per_shard) == 40


def test_the_commands_of_the_service_set_throughput_and_indexes(shop: Database[Document]) -> None:
    def action(name: str, **fields: Any) -> Document:
        return shop.command({"customAction": name, **fields})

    assert action("CreateDatabase", offerThroughput=1000)["ok"] == 1
    assert action("GetDatabase")["provisionedThroughput"] == 1000
    action("UpdateDatabase", offerThroughput=2000)
    assert action("GetDatabase")["provisionedThroughput"] == 2000
    by_id = {"key": {"_id": 1}, "name": "_id_"}
    action(
        "CreateCollection",
        collection="c",
        shardKey="a.b",
        offerThroughput=1200,
        indexes=[by_id, {"key": {"x": 1}, "name": "x_1"}],
    )
    found = action("GetCollection", collection="c", showIndexes=True)
    assert found["shardKeyDefinition"] == {"a.b": "hashed"}
    assert found["provisionedThroughput"] == 1200
    assert [index["name"] for index in found["indexes"]] == ["_id_", "x_1"]
    action("UpdateCollection", collection="c", autoScaleSettings={"maxThroughput": 4000})
    action("UpdateCollection", collection="c", indexes=[by_id, {"key": {"y": 1}, "name": "y_1"}])
    found = action("GetCollection", collection="c", showIndexes=True)
    assert found["autoScaleSettings"] == {"maxThroughput": 4000}
    assert [index["name"] for index in found["indexes"]] == ["_id_", "y_1"]
    with pytest.raises(OperationFailure) as refused:
        action("CreateCollection", collection="large", offerThroughput=20_000)
    assert (refused.value.code, (refused.value.details or {})["errMsg"]) == (2, (refused.value.details or {})["errmsg"])
    assert code_of(lambda: action("GetCollection", collection="none")) == 26
    shop.c.insert_one({"_id": 1, "a": {"b": 1}})
    shop.c.find_one({"_id": 1})
    assert shop.command("getLastRequestStatistics")["_t"] == "GetRequestStatisticsResponse"


def test_drops_while_others_write_leave_a_sound_collection(shop: Database[Document]) -> None:
    stopping = threading.Event()

    def write(own: int) -> int:
        done = 0
        # At least once, however late the thread begins.
        while done == 0 or not stopping.is_set():
            shop.users.insert_one({"_id": f"{own}-{done}"})
            shop.users.update_one({"_id": f"{own}-{done}"}, {"$set": {"x": 1}})
            shop.users.delete_many({"x": 2})
            done += 1
        return done

    with ThreadPoolExecutor(3) as threads:
        writers = [threads.submit(write, own) for own in range(3)]
        try:
            for turn in range(10):
                if turn % 3 == 2:
                    shop.client.drop_database(shop.name)
                else:
                    shop.users.drop()
        finally:
            stopping.set()
        assert all(writer.result() for writer in writers)
    shop.users.drop()
    assert shop.users.count_documents({}) == 0
    shop.users.insert_one({"_id": 1})
    assert [user["_id"] for user in shop.users.find({})] == [1]
