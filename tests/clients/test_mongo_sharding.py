"""Sharded collections, and cursors and transactions over several processes, with MongoDB's own driver."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from bson import Int64
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import OperationFailure

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
