"""Text search with MongoDB's own driver."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import TEXT, MongoClient
from pymongo.database import Database
from pymongo.errors import OperationFailure, WriteError

from tests.support.server import RunningServer

Client = MongoClient[dict[str, Any]]
Shop = Database[dict[str, Any]]
SCORE = {"$meta": "textScore"}


@pytest.fixture(scope="session")
def mongo(server: RunningServer) -> Iterator[Client]:
    address = f"mongodb://127.0.0.1:{server.ports['mongo']}/?replicaSet=globaldb"
    with MongoClient[dict[str, Any]](address, serverSelectionTimeoutMS=30_000) as connected:
        yield connected


@pytest.fixture
def shop(mongo: Client) -> Iterator[Shop]:
    name = f"text-{uuid.uuid4().hex[:8]}"
    yield mongo[name]
    mongo.drop_database(name)


def ids(found: Any) -> list[Any]:
    return [document["_id"] for document in found]


def text(search: str, **options: Any) -> dict[str, Any]:
    return {"$text": {"$search": search, **{f"${name}": value for name, value in options.items()}}}


def refusal(action: Any) -> int | None:
    with pytest.raises(OperationFailure) as refused:
        action()
    return refused.value.code


BOOKS = (
    {"_id": 1, "title": "Coffee", "body": "A history of coffee and of coffee houses"},
    {"_id": 2, "title": "Tea", "body": "Leaves, water, patience. No coffee."},
    {"_id": 3, "title": "Running", "body": "Shoes"},
)


def test_searches_find_stems_and_are_ordered_by_score(shop: Shop) -> None:
    shop.books.create_index([("title", TEXT), ("body", TEXT)], weights={"title": 10})
    shop.books.insert_many(BOOKS)
    assert ids(shop.books.find(text("run"))) == [3]
    assert sorted(ids(shop.books.find(text("coffee")))) == [1, 2]
    assert ids(shop.books.find(text("coffee -patience"))) == [1]
    assert ids(shop.books.find(text('"coffee houses"'))) == [1]
    ranked = list(shop.books.find(text("coffee shoe"), {"score": SCORE, "title": 1}).sort([("score", SCORE)]))
    assert ids(ranked) == [1, 3, 2]
    assert ranked[0]["score"] > 10 > ranked[1]["score"] > ranked[2]["score"] > 0
    assert ids(shop.books.find(text("coffee")).sort([("score", SCORE)]).limit(1)) == [1]
    assert shop.books.count_documents(text("coffee")) == 2


def test_pipelines_begin_with_a_search_and_read_its_score(shop: Shop) -> None:
    shop.books.create_index([("$**", TEXT)])
    shop.books.insert_many(BOOKS)
    match = {"$match": text("coffee tea")}
    project = {"$project": {"score": SCORE}}
    by_stage = list(shop.books.aggregate([match, project, {"$sort": {"score": -1}}]))
    by_meta = list(shop.books.aggregate([match, {"$sort": {"x": SCORE}}, {"$addFields": {"score": SCORE}}]))
    assert ids(by_stage) == ids(by_meta)
    assert [found["score"] for found in by_stage] == [found["score"] for found in by_meta]
    assert by_meta[0].keys() == {"_id", "title", "body", "score"}
    later = list(shop.books.aggregate([match, project, {"$sort": {"y": SCORE}}, {"$project": {"z": SCORE, "_id": 0}}]))
    assert [found["z"] for found in later] == [found["score"] for found in by_stage]
    assert refusal(lambda: list(shop.books.aggregate([project]))) == 40218
    assert refusal(lambda: list(shop.books.aggregate([{"$limit": 1}, match]))) == 17313


def test_the_index_follows_the_documents(shop: Shop) -> None:
    shop.books.insert_many(BOOKS)
    shop.books.create_index([("kind", 1), ("body", TEXT)], default_language="english")
    (shown,) = [index for index in shop.books.list_indexes() if index["name"] != "_id_"]
    assert shown["key"] == {"kind": 1, "_fts": "text", "_ftsx": 1}
    assert (shown["weights"], shown["textIndexVersion"]) == ({"body": 1}, 3)
    shop.books.update_many({}, {"$set": {"kind": "new"}})
    shop.books.update_one({"_id": 3}, {"$set": {"body": "Coffee shoes"}})
    shop.books.delete_one({"_id": 1})
    assert sorted(ids(shop.books.find({"kind": "new", **text("coffee")}))) == [2, 3]
    assert ids(shop.books.find({"kind": "old", **text("coffee")})) == []
    assert refusal(lambda: list(shop.books.find(text("coffee")))) == 291
    with pytest.raises(WriteError) as refused:
        shop.books.insert_one({"kind": "new", "body": "x", "language": "klingon"})
    assert refused.value.code == 17262


def test_searches_say_what_they_miss(shop: Shop) -> None:
    shop.books.insert_many(BOOKS)
    assert refusal(lambda: list(shop.books.find(text("coffee")))) == 27
    shop.books.create_index([("title", TEXT)])
    assert refusal(lambda: shop.books.create_index([("body", TEXT)])) in (67, 85)
    assert refusal(lambda: list(shop.books.find(text("x")).hint("_id_"))) == 2
    assert refusal(lambda: list(shop.books.find({"$or": [text("tea"), {"body": "Shoes"}]}))) == 291
    shop.books.create_index("body")
    assert sorted(ids(shop.books.find({"$or": [text("tea"), {"body": "Shoes"}]}))) == [2, 3]
    assert refusal(lambda: list(shop.books.find({}, {"score": SCORE}))) == 40218
