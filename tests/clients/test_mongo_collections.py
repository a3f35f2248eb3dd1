"""Commands about collections and indexes, with MongoDB's own driver."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from bson import Decimal128, Int64
from pymongo import ASCENDING, IndexModel
from pymongo.database import Database
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure

from tests.clients.test_mongo import Client, mongo, shop

__all__ = ["mongo", "shop"]

Shop = Database[dict[str, Any]]
EXPIRY_SECONDS = 180


def code_of(shop: Shop, command: dict[str, Any]) -> int:
    with pytest.raises(OperationFailure) as refused:
        shop.command(command)
    assert refused.value.code is not None
    return refused.value.code


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"capped": True}, 72),
        ({"capped": True, "size": 0}, 2),
        ({"capped": True, "size": float("nan")}, 2),
        ({"size": 10}, 72),
        ({"viewOn": "c", "pipeline": [{"$out": "x"}]}, 167),
        ({"viewOn": "fresh"}, 5),
        ({"viewOn": "c", "pipeline": [{"$nope": 1}]}, 40324),
        ({"timeseries": {}}, 40414),
        ({"timeseries": {"timeField": "a.b"}}, 72),
        ({"timeseries": {"timeField": "t", "bucketMaxSpanSeconds": 5}}, 72),
        ({"clusteredIndex": True}, 5979703),
        ({"clusteredIndex": {"key": {"x": 1}, "unique": True}}, 197),
        ({"idIndex": {"key": {"_id": -1}, "name": "_id_"}}, 2),
        ({"collation": {"locale": "en", "strength": float("inf")}}, 2),
        ({"collation": {"locale": "en", "strength": Decimal128("NaN")}}, 2),
        ({"changeStreamPreAndPostImages": {"enabled": 1}}, 14),
        ({"validator": {"$text": {"$search": "x"}}}, 2),
        ({"validationLevel": "none"}, 2),
        ({"storageEngine": {"other": {}}}, 72),
        ({"encryptedFields": {"fields": []}}, 115),
        ({"nothing": 1}, 40415),
    ],
)
def test_create_refuses_options_that_cannot_be(shop: Shop, options: dict[str, Any], code: int) -> None:
    assert code_of(shop, {"create": "fresh", **options}) == code


def test_the_same_collection_can_be_created_twice(shop: Shop) -> None:
    command = {"create": "log", "capped": True, "size": 4096, "max": 3}
    shop.command(command)
    shop.command(command)
    assert code_of(shop, {**command, "max": 4}) == 48
    (shown,) = shop.list_collections(filter={"name": "log"})
    assert shown["options"] == {"capped": True, "size": 4096, "max": 3}


def test_a_capped_collection_keeps_the_newest_documents_in_their_order(shop: Shop) -> None:
    log = shop.create_collection("log", capped=True, size=100_000, max=4)
    ids = ["z", "y", "x", "c", "b", "a"]
    for name in ids:
        log.insert_one({"_id": name})
    assert [found["_id"] for found in log.find()] == ["x", "c", "b", "a"]
    assert [found["_id"] for found in log.find().sort("$natural", -1)] == ["a", "b", "c", "x"]
    log.update_one({"_id": "c"}, {"$set": {"seen": True}})
    assert [found["_id"] for found in log.find({"_id": {"$exists": True}})] == ["x", "c", "b", "a"]
    shop.command({"collMod": "log", "cappedMax": 2})
    log.insert_one({"_id": "new"})
    assert [found["_id"] for found in log.find()] == ["a", "new"]


def test_a_document_larger_than_its_capped_collection_is_kept_until_the_next(shop: Shop) -> None:
    log = shop.create_collection("log", capped=True, size=100)
    for name in ("b", "a"):
        log.insert_one({"_id": name, "text": "x" * 500})
        assert [found["_id"] for found in log.find()] == [name]


def test_a_capped_collection_stays_within_its_bytes(shop: Shop) -> None:
    log = shop.create_collection("log", capped=True, size=4096)
    log.insert_many([{"_id": number, "text": "x" * 500} for number in range(20)])
    kept = [found["_id"] for found in log.find()]
    assert kept == list(range(20 - len(kept), 20))
    assert 0 < len(kept) * 500 <= 4096


def test_views_cannot_lead_back_to_themselves(shop: Shop) -> None:
    shop.command({"create": "first", "viewOn": "source"})
    shop.command({"create": "second", "viewOn": "first"})
    assert code_of(shop, {"collMod": "first", "viewOn": "second"}) == 5
    join = [{"$lookup": {"from": "second", "localField": "a", "foreignField": "a", "as": "b"}}]
    assert code_of(shop, {"collMod": "first", "viewOn": "source", "pipeline": join}) == 5


def test_an_index_becomes_unique_once_no_documents_share_a_key(shop: Shop) -> None:
    shop.users.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 1}])
    shop.users.create_index("a", name="a")
    to_unique = {"collMod": "users", "index": {"name": "a", "unique": True}}
    assert code_of(shop, to_unique) == 72
    answer = shop.command({"collMod": "users", "index": {"name": "a", "prepareUnique": True}})
    assert (answer["prepareUnique_old"], answer["prepareUnique_new"]) == (False, True)
    with pytest.raises(DuplicateKeyError):
        shop.users.insert_one({"_id": 3, "a": 1})
    assert code_of(shop, to_unique) == 359
    shop.users.delete_one({"_id": 2})
    assert shop.command(to_unique)["unique_new"] is True
    assert shop.users.index_information()["a"]["unique"] is True
    with pytest.raises(DuplicateKeyError):
        shop.users.insert_one({"_id": 3, "a": 1})
    assert [found["_id"] for found in shop.users.find({"a": 1}, hint="a")] == [1]


@pytest.mark.parametrize(
    ("index", "code"),
    [
        ("a", 14),
        ({}, 72),
        ({"name": "a"}, 72),
        ({"name": "a", "keyPattern": {"a": 1}, "hidden": True}, 72),
        ({"name": "missing", "hidden": True}, 27),
        ({"name": "a", "other": 1}, 40415),
        ({"name": "_id_", "hidden": True}, 2),
        ({"name": "a", "expireAfterSeconds": -1}, 72),
        ({"name": "a", "unique": False}, 2),
    ],
)
def test_coll_mod_refuses_changes_of_an_index_that_cannot_be(shop: Shop, index: Any, code: int) -> None:
    shop.users.create_index("a", name="a")
    assert code_of(shop, {"collMod": "users", "index": index}) == code


def test_a_hidden_index_is_kept_up_but_not_used(shop: Shop) -> None:
    shop.users.create_index("a", name="a")
    assert shop.command({"collMod": "users", "index": {"name": "a", "hidden": True}})["hidden_new"] is True
    shop.users.insert_one({"_id": 1, "a": 1})
    plan = shop.users.find({"a": 1}).explain()["queryPlanner"]["winningPlan"]
    assert plan["stage"] == "COLLSCAN"
    shop.command({"collMod": "users", "index": {"keyPattern": {"a": 1}, "hidden": False}})
    assert [found["_id"] for found in shop.users.find({"a": 1}, hint="a")] == [1]


def test_a_collection_can_be_moved_to_another_database(mongo: Client, shop: Shop) -> None:
    other = f"{shop.name}-moved"
    shop.users.insert_many([{"_id": number, "a": number} for number in range(300)])
    shop.users.create_index("a", unique=True)
    try:
        mongo.admin.command({"renameCollection": f"{shop.name}.users", "to": f"{other}.people"})
        assert shop.list_collection_names() == []
        assert mongo[other].people.count_documents({}) == 300
        with pytest.raises(DuplicateKeyError):
            mongo[other].people.insert_one({"_id": 500, "a": 7})
    finally:
        mongo.drop_database(other)


def test_a_document_that_an_index_cannot_have_is_an_error_of_its_own(shop: Shop) -> None:
    shop.users.create_index([("a", ASCENDING), ("b", ASCENDING)])
    documents = [{"_id": 1, "a": 1}, {"_id": 2, "a": [1], "b": [2]}, {"_id": 3, "a": [1]}]
    with pytest.raises(BulkWriteError) as refused:
        shop.users.insert_many(documents, ordered=False)
    details: Any = refused.value.details
    assert [(error["index"], error["code"]) for error in details["writeErrors"]] == [(1, 171)]
    assert sorted(found["_id"] for found in shop.users.find()) == [1, 3]


def test_an_empty_array_and_null_are_two_keys(shop: Shop) -> None:
    shop.users.create_index("a", unique=True, sparse=True)
    shop.users.insert_many([{"_id": 1, "a": []}, {"_id": 2, "a": None}, {"_id": 3}, {"_id": 4}])
    assert sorted(found["_id"] for found in shop.users.find(hint="a_1")) == [1, 2]


def test_indexes_that_differ_by_their_conditions_live_side_by_side(shop: Shop) -> None:
    plain = IndexModel("a", name="plain")
    shop.users.create_indexes([plain, IndexModel("a", name="sparse", sparse=True)])
    assert code_of(shop, {"dropIndexes": "users", "index": {"a": 1}}) == 181
    shop.users.drop_index("sparse")
    assert set(shop.users.index_information()) == {"_id_", "plain"}


def test_documents_expire_by_a_date_by_their_last_change_and_by_their_id(shop: Shop) -> None:
    past, future = datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC)
    shop.by_date.create_index("at", expireAfterSeconds=60, hidden=True)
    shop.by_date.insert_many([{"_id": 1, "at": past}, {"_id": 2, "at": future}, {"_id": 3, "at": [future, past]}])
    shop.by_change.create_index("_ts", expireAfterSeconds=0)
    shop.by_change.insert_many([{"_id": 1}, {"_id": 2, "_ts": future}])
    clustered = {"key": {"_id": 1}, "unique": True}
    shop.create_collection("by_id", clusteredIndex=clustered, expireAfterSeconds=60)
    shop.by_id.insert_many([{"_id": past}, {"_id": future}, {"_id": "no date"}])
    left = {"by_date": 1, "by_change": 0, "by_id": 2}
    deadline = time.monotonic() + EXPIRY_SECONDS
    while {name: shop[name].count_documents({}) for name in left} != left:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert shop.by_date.find_one() == {"_id": 2, "at": future.replace(tzinfo=None)}


def test_databases_are_listed_by_a_filter(mongo: Client, shop: Shop) -> None:
    shop.users.insert_one({"_id": 1})
    assert [found["name"] for found in mongo.list_databases(filter={"name": shop.name})] == [shop.name]
    with pytest.raises(OperationFailure) as refused:
        mongo.admin.command({"listDatabases": 1, "filter": {"$text": {"$search": "x"}}})
    assert refused.value.code == 2


def test_drop_database_takes_nothing_but_1(shop: Shop) -> None:
    shop.users.insert_one({"_id": 1})
    assert code_of(shop, {"dropDatabase": Int64(2)}) == 5255100
    assert code_of(shop, {"dropDatabase": "1"}) == 14
    shop.command({"dropDatabase": 1})
    assert shop.list_collection_names() == []
