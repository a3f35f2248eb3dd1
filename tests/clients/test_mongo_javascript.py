"""JavaScript in filters and pipelines, with MongoDB's own driver."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest
from bson import Code, ObjectId
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import OperationFailure

from tests.support.server import RunningServer

Client = MongoClient[dict[str, Any]]
Shop = Database[dict[str, Any]]


@pytest.fixture(scope="session")
def mongo(server: RunningServer) -> Iterator[Client]:
    address = f"mongodb://127.0.0.1:{server.ports['mongo']}/?replicaSet=globaldb"
    with MongoClient[dict[str, Any]](address, serverSelectionTimeoutMS=30_000) as connected:
        yield connected


@pytest.fixture
def shop(mongo: Client) -> Iterator[Shop]:
    name = f"script-{uuid.uuid4().hex[:8]}"
    yield mongo[name]
    mongo.drop_database(name)


def ids(found: Any) -> list[Any]:
    return [document["_id"] for document in found]


def refusal(action: Any) -> int | None:
    with pytest.raises(OperationFailure) as refused:
        action()
    return refused.value.code


def function(body: str, *arguments: Any) -> dict[str, Any]:
    return {"$function": {"body": body, "args": list(arguments), "lang": "js"}}


def test_where_decides_on_documents_in_any_of_its_forms(shop: Shop) -> None:
    shop.things.insert_many(
        [{"_id": number, "n": number, "at": datetime(2020, 1, 1 + number % 28)} for number in range(500)]
    )
    assert len(ids(shop.things.find({"$where": "this.n % 2 === 0"}))) == 250
    assert ids(shop.things.find({"n": {"$lt": 9}, "$where": "function () { return obj.n > 6; }"}).sort("_id")) == [7, 8]
    assert shop.things.count_documents({"n": 3}) == 1
    assert ids(shop.things.find({"$where": Code("return this.at.getDate() === 28")}).sort("n", -1))[0] == 475
    assert shop.things.delete_many({"$where": "this.n >= 400"}).deleted_count == 100
    assert ids(shop.things.find({"$or": [{"n": 1}, {"$where": "this.n === 2"}]}).sort("_id")) == [1, 2]


def test_functions_compute_fields_and_keep_the_types_of_values(shop: Shop) -> None:
    key = ObjectId()
    shop.things.insert_many([{"_id": 1, "x": 5.0, "key": key}, {"_id": 2, "x": 10}])
    doubled = function("function (x, key) { return { twice: x * 2, key: key, list: [x, null] }; }", "$x", "$key")
    first, second = shop.things.aggregate([{"$sort": {"_id": 1}}, {"$project": {"r": doubled}}])
    assert first["r"] == {"twice": 10.0, "key": key, "list": [5.0, None]}
    assert second["r"] == {"twice": 20.0, "key": None, "list": [10.0, None]}
    wanted = {"$expr": {"$gt": [function("x => x + 1", "$x"), 10]}}
    assert ids(shop.things.find(wanted)) == [2]


def test_accumulators_keep_the_state_of_each_group(shop: Shop) -> None:
    shop.things.insert_many([{"n": number, "odd": number % 2} for number in range(500)])
    average = {
        "init": "function (start) { return { count: start, sum: start }; }",
        "initArgs": [0],
        "accumulate": "function (state, n) { return { count: state.count + 1, sum: state.sum + n }; }",
        "accumulateArgs": ["$n"],
        "merge": "function (a, b) { return { count: a.count + b.count, sum: a.sum + b.sum }; }",
        "finalize": "function (state) { return state.sum / state.count; }",
        "lang": "js",
    }
    groups = shop.things.aggregate(
        [{"$group": {"_id": "$odd", "mean": {"$accumulator": average}}}, {"$sort": {"_id": 1}}]
    )
    assert list(groups) == [{"_id": 0, "mean": 249.0}, {"_id": 1, "mean": 250.0}]


def test_scripts_that_do_not_end_are_stopped_and_the_server_goes_on(shop: Shop) -> None:
    shop.things.insert_many([{"_id": number} for number in range(20)])
    endless = ("while (true) {}", "function () { for (;;) {} }")
    with ThreadPoolExecutor(3) as threads:
        stopped = [
            threads.submit(refusal, lambda code=code: list(shop.things.find({"$where": code}))) for code in endless
        ]
        assert all(shop.things.find_one({"_id": number}) for number in range(20))
        assert [found.result() for found in stopped] == [50, 50]
    loop = function("function () { while (true) {} }")
    assert refusal(lambda: list(shop.things.aggregate([{"$project": {"x": loop}}]))) == 50
    assert refusal(lambda: list(shop.things.find({"$where": "this.a.b"}))) == 139
    assert refusal(lambda: list(shop.things.find({"$where": "}{"}))) == 139
    assert refusal(lambda: list(shop.things.find({"$where": 5}))) == 2
    assert refusal(lambda: list(shop.things.aggregate([{"$match": {"$where": "true"}}]))) == 2
    assert len(ids(shop.things.find({"$where": "true"}))) == 20
