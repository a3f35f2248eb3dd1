"""Places with MongoDB's own driver: searches with and without indexes, and the stage $geoNear."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import GEO2D, GEOSPHERE, MongoClient
from pymongo.database import Database
from pymongo.errors import BulkWriteError, OperationFailure, WriteError

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
    name = f"geo-{uuid.uuid4().hex[:8]}"
    yield mongo[name]
    mongo.drop_database(name)


def point(x: float, y: float) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [x, y]}


def ids(found: Any) -> list[Any]:
    return [document["_id"] for document in found]


def refusal(action: Any) -> int | None:
    with pytest.raises(OperationFailure) as refused:
        action()
    return refused.value.code


REGIONS: tuple[dict[str, Any], ...] = (
    {"$box": [[-30, -20], [40, 50]]},
    {"$center": [[10, 10], 25]},
    {"$centerSphere": [[175, 0], 0.4]},
    {"$polygon": [[0, 0], [50, 0], [50, 50]]},
    {"$geometry": {"type": "Polygon", "coordinates": [[[-20, -20], [60, -10], [40, 60], [-20, -20]]]}},
)


def test_an_index_finds_the_same_places_as_a_look_at_all_documents(shop: Shop) -> None:
    chance = random.Random(14)
    places = [[chance.uniform(-180, 180), chance.uniform(-90, 90)] for _ in range(600)]
    shop.places.insert_many([{"_id": number, "loc": place} for number, place in enumerate(places)])
    filters = [{"loc": {"$geoWithin": region}} for region in REGIONS]
    expected = [sorted(ids(shop.places.find(filter))) for filter in filters]
    assert all(expected)
    for kind in (GEO2D, GEOSPHERE):
        shop.places.create_index([("loc", kind)])
        assert [sorted(ids(shop.places.find(filter))) for filter in filters] == expected
        plan = shop.command({"explain": {"find": "places", "filter": filters[1]}, "verbosity": "executionStats"})
        assert plan["executionStats"]["totalDocsExamined"] < 300
        shop.places.drop_indexes()


def test_a_search_returns_the_nearest_first_page_by_page(shop: Shop) -> None:
    chance = random.Random(7)
    places = {number: (chance.uniform(-180, 180), chance.uniform(-90, 90)) for number in range(300)}
    shop.places.insert_many([{"_id": number, "loc": point(*place)} for number, place in places.items()])
    shop.places.create_index([("loc", GEOSPHERE)])
    near = {"$geoNear": {"near": point(20, 30), "distanceField": "far.away", "includeLocs": "at", "spherical": True}}
    measured = list(shop.places.aggregate([near]))
    distances = [found["far"]["away"] for found in measured]
    assert (len(measured), distances) == (300, sorted(distances))
    assert all(found["at"] == found["loc"] for found in measured)
    by_find = shop.places.find({"loc": {"$near": {"$geometry": point(20, 30)}}}, batch_size=7)
    assert ids(by_find) == ids(measured)
    reach = {"$geometry": point(20, 30), "$minDistance": distances[10], "$maxDistance": distances[20]}
    assert ids(shop.places.find({"loc": {"$nearSphere": reach}})) == ids(measured[10:21])
    assert ids(shop.places.find({"loc": {"$near": reach}}).sort("_id", -1)) == sorted(
        ids(measured[10:21]), reverse=True
    )
    even = {"$geoNear": {**near["$geoNear"], "query": {"_id": {"$mod": [2, 0]}}, "distanceMultiplier": 0.001}}
    first = next(iter(shop.places.aggregate([even, {"$limit": 1}])))
    nearest = next(found for found in measured if found["_id"] % 2 == 0)
    assert first["_id"] == nearest["_id"]
    assert first["far"]["away"] == pytest.approx(nearest["far"]["away"] / 1000)


def test_metadata_of_a_search_can_be_projected(shop: Shop) -> None:
    shop.places.insert_many([{"_id": 1, "loc": point(1, 0)}, {"_id": 2, "loc": point(0, 0)}])
    shop.places.create_index([("loc", GEOSPHERE)])
    near = {"$geoNear": {"near": point(0, 0), "spherical": True}}
    project = {"$project": {"m": {"$meta": "geoNearDistance"}}}
    assert list(shop.places.aggregate([near, project, {"$limit": 1}])) == [{"_id": 2, "m": 0.0}]
    found = shop.places.find_one({"loc": {"$near": {"$geometry": point(0, 0)}}}, {"p": {"$meta": "geoNearPoint"}})
    assert found == {"_id": 2, "loc": point(0, 0), "p": point(0, 0)}
    assert refusal(lambda: list(shop.places.aggregate([project]))) == 40218


def test_writes_keep_the_index_and_are_refused_if_it_cannot_have_them(shop: Shop) -> None:
    shop.places.create_index([("kind", 1), ("loc", GEOSPHERE)])
    shop.places.insert_many([{"_id": 1, "kind": "a", "loc": point(0, 0)}, {"_id": 2, "kind": "b"}])
    here = {"kind": "a", "loc": {"$geoWithin": {"$centerSphere": [[50, 50], 0.01]}}}
    assert shop.places.count_documents(here) == 0
    shop.places.update_one({"_id": 1}, {"$set": {"loc": point(50, 50)}})
    assert ids(shop.places.find(here)) == [1]
    with pytest.raises(BulkWriteError) as refused:
        shop.places.insert_many([{"_id": 3}, {"_id": 4, "loc": "nowhere"}, {"_id": 5}])
    assert [problem["code"] for problem in refused.value.details["writeErrors"]] == [16755]
    assert sorted(ids(shop.places.find())) == [1, 2, 3]
    with pytest.raises(WriteError) as not_updated:
        shop.places.update_one({"_id": 2}, {"$set": {"loc": point(0, 91)}})
    assert not_updated.value.code == 16755
    shop.places.delete_one({"_id": 1})
    assert shop.places.count_documents(here) == 0


def test_searches_say_which_index_they_miss(shop: Shop) -> None:
    near = {"loc": {"$near": [0, 0]}}
    shop.places.insert_one({"loc": [1, 1]})
    assert refusal(lambda: list(shop.places.find(near))) == 291
    shop.places.create_index([("loc", GEOSPHERE)])
    assert refusal(lambda: list(shop.places.find(near))) == 291
    shop.places.create_index([("loc", GEO2D)])
    assert len(list(shop.places.find(near))) == 1
    stage = {"$geoNear": {"near": [0, 0], "distanceField": "d"}}
    assert refusal(lambda: list(shop.elsewhere.aggregate([stage]))) == 26
    assert refusal(lambda: list(shop.places.aggregate([{"$limit": 1}, stage]))) == 40603
    shop.bare.insert_one({"loc": [1, 1]})
    assert refusal(lambda: list(shop.bare.aggregate([stage]))) == 27
