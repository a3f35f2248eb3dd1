"""Stages that read or write collections, with MongoDB's own driver."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import OperationFailure

from tests.support.server import RunningServer

Client = MongoClient[dict[str, Any]]
Shop = Database[dict[str, Any]]


def address(server: RunningServer) -> str:
    return f"mongodb://127.0.0.1:{server.ports['mongo']}/?replicaSet=globaldb"


@pytest.fixture(scope="session")
def mongo(server: RunningServer) -> Iterator[Client]:
    with MongoClient[dict[str, Any]](address(server), serverSelectionTimeoutMS=30_000) as connected:
        yield connected


@pytest.fixture
def shop(mongo: Client) -> Iterator[Shop]:
    name = f"stages-{uuid.uuid4().hex[:8]}"
    yield mongo[name]
    mongo.drop_database(name)


def contents(shop: Shop, collection: str) -> list[dict[str, Any]]:
    return list(shop[collection].find().sort("_id"))


def refusal(shop: Shop, collection: str, *stages: dict[str, Any], **options: Any) -> int:
    with pytest.raises(OperationFailure) as refused:
        list(shop[collection].aggregate(list(stages), **options))
    return refused.value.code or 0


# --- $out ---------------------------------------------------------------------------------------------------------


def test_out_replaces_a_collection_as_a_whole_and_keeps_its_indexes(shop: Shop) -> None:
    shop.orders.insert_many([{"_id": n, "n": n} for n in range(5)])
    shop.copy.insert_one({"_id": "old"})
    shop.copy.create_index("n", unique=True)
    assert list(shop.orders.aggregate([{"$match": {"n": {"$gt": 2}}}, {"$out": "copy"}])) == []
    assert contents(shop, "copy") == [{"_id": 3, "n": 3}, {"_id": 4, "n": 4}]
    assert set(shop.copy.index_information()) == {"_id_", "n_1"}


def test_out_leaves_everything_as_it_was_when_a_document_cannot_be_written(shop: Shop) -> None:
    shop.orders.insert_many([{"_id": 1, "n": 1}, {"_id": 2, "n": 1}])
    shop.copy.insert_one({"_id": "old", "n": 0})
    shop.copy.create_index("n", unique=True)
    assert refusal(shop, "orders", {"$out": "copy"}) == 11000
    assert contents(shop, "copy") == [{"_id": "old", "n": 0}]
    assert sorted(shop.list_collection_names()) == ["copy", "orders"]


def test_out_writes_to_another_database_and_onto_its_own_source(shop: Shop, mongo: Client) -> None:
    shop.orders.insert_many([{"_id": n, "n": n} for n in range(3)])
    other = mongo[f"{shop.name}-other"]
    shop.orders.aggregate([{"$out": {"db": other.name, "coll": "copy"}}])
    assert other.copy.count_documents({}) == 3
    mongo.drop_database(other.name)
    shop.orders.aggregate([{"$set": {"n": {"$add": ["$n", 1]}}}, {"$out": "orders"}])
    assert [document["n"] for document in contents(shop, "orders")] == [1, 2, 3]


def test_out_refuses_targets_that_cannot_be_replaced(shop: Shop) -> None:
    shop.orders.insert_one({"_id": 1})
    shop.create_collection("capped", capped=True, size=4096)
    shop.create_collection("view", viewOn="orders", pipeline=[])
    assert refusal(shop, "orders", {"$out": "capped"}) == 17152
    assert refusal(shop, "orders", {"$out": "view"}) == 166
    assert refusal(shop, "orders", {"$out": {"db": "admin", "coll": "x"}}) == 31321
    assert refusal(shop, "orders", {"$out": "x"}, {"$limit": 1}) == 40601
    assert refusal(shop, "orders", {"$lookup": {"from": "o", "as": "x", "pipeline": [{"$out": "x"}]}}) == 51047


# --- $merge -------------------------------------------------------------------------------------------------------


def test_merge_by_default_adds_fields_and_inserts_and_is_idempotent(shop: Shop) -> None:
    shop.source.insert_many([{"_id": 1, "b": 2}, {"_id": 2, "z": 1, "a": 1}])
    shop.target.insert_many([{"_id": 1, "a": 1, "b": 1}, {"_id": 3}])
    expected = [{"_id": 1, "a": 1, "b": 2}, {"_id": 2, "a": 1, "z": 1}, {"_id": 3}]
    for _ in range(2):
        assert list(shop.source.aggregate([{"$merge": "target"}])) == []
        assert contents(shop, "target") == expected


@pytest.mark.parametrize(
    ("matched", "first"),
    [
        ("replace", {"_id": 1, "v": 5}),
        ("keepExisting", {"_id": 1, "a": 1}),
        ("merge", {"_id": 1, "a": 1, "v": 5}),
        ([{"$set": {"sum": {"$add": ["$a", "$$new.v", "$$more"]}}}], {"_id": 1, "a": 1, "sum": 16}),
    ],
)
def test_merge_treats_documents_that_exist_as_it_was_told(shop: Shop, matched: Any, first: dict[str, Any]) -> None:
    shop.source.insert_many([{"_id": 1, "v": 5}, {"_id": 2, "v": 6}])
    shop.target.insert_one({"_id": 1, "a": 1})
    let = {"let": {"more": {"$multiply": ["$v", 2]}}} if isinstance(matched, list) else {}
    shop.source.aggregate([{"$merge": {"into": "target", "whenMatched": matched, **let}}])
    assert contents(shop, "target") == [first, {"_id": 2, "v": 6}]


def test_merge_by_other_fields_needs_a_unique_index_over_them(shop: Shop) -> None:
    shop.source.insert_many([{"_id": 1, "k": "a", "v": 1}, {"_id": 2, "k": "b", "v": 2}])
    shop.target.insert_one({"_id": 9, "k": "a"})
    stages = [{"$unset": "_id"}, {"$merge": {"into": "target", "on": "k"}}]
    assert refusal(shop, "source", *stages) == 51183
    shop.target.create_index("k", unique=True)
    shop.source.aggregate(stages)
    assert list(shop.target.find({}, {"_id": 0}).sort("k")) == [{"k": "a", "v": 1}, {"k": "b", "v": 2}]
    assert refusal(shop, "source", {"$merge": {"into": "target", "on": "k"}}) == 66


def test_merge_reports_a_failure_after_it_has_written_the_others(shop: Shop) -> None:
    shop.source.insert_many([{"_id": n} for n in range(4)])
    shop.target.insert_one({"_id": 1})
    assert refusal(shop, "source", {"$merge": {"into": "target", "whenMatched": "fail"}}) == 11000
    assert [document["_id"] for document in contents(shop, "target")] == [0, 1, 2, 3]
    modes = {"whenMatched": "replace", "whenNotMatched": "fail"}
    assert refusal(shop, "source", {"$merge": {"into": "target2", **modes}}) == 13113
    assert "target2" not in shop.list_collection_names()


def test_merge_obeys_the_validator_of_its_target(shop: Shop) -> None:
    shop.source.insert_many([{"_id": 1, "n": 1}, {"_id": 2, "n": "x"}])
    shop.create_collection("target", validator={"n": {"$type": "int"}})
    assert refusal(shop, "source", {"$merge": "target"}) == 121
    assert contents(shop, "target") == [{"_id": 1, "n": 1}]


# --- $graphLookup -------------------------------------------------------------------------------------------------


def test_graph_lookup_follows_edges_to_the_depth_that_it_may(shop: Shop) -> None:
    shop.nodes.insert_many([{"_id": n, "next": [n * 2, n * 2 + 1], "odd": n % 2 == 1} for n in range(1, 16)])
    stage = {
        "from": "nodes",
        "startWith": "$_id",
        "connectFromField": "next",
        "connectToField": "_id",
        "as": "below",
        "depthField": "depth",
    }

    def below(**options: Any) -> dict[int, int]:
        (root,) = shop.nodes.aggregate([{"$match": {"_id": 2}}, {"$graphLookup": {**stage, **options}}])
        return {node["_id"]: node["depth"] for node in root["below"]}

    assert below() == {2: 0, 4: 1, 5: 1, 8: 2, 9: 2, 10: 2, 11: 2}
    assert below(maxDepth=1) == {2: 0, 4: 1, 5: 1}
    assert below(startWith=[4, 5], restrictSearchWithMatch={"odd": True}) == {5: 0, 11: 1}
    shop.nodes.update_one({"_id": 8}, {"$set": {"next": [2]}})
    assert len(below()) == 7


def test_graph_lookup_refuses_what_it_cannot_read(shop: Shop) -> None:
    stage = {"from": "n", "startWith": "$x", "connectFromField": "a", "connectToField": "b", "as": "c"}
    assert refusal(shop, "nodes", {"$graphLookup": {**stage, "maxDepth": -1}}) == 40101
    assert refusal(shop, "nodes", {"$graphLookup": {**stage, "as": 1}}) == 40103
    assert refusal(shop, "nodes", {"$graphLookup": {"from": "n"}}) == 40105


# --- stages that describe -----------------------------------------------------------------------------------------


def test_collection_statistics_count_documents_reads_and_scans(shop: Shop) -> None:
    shop.orders.insert_many([{"_id": n, "n": n} for n in range(10)])
    list(shop.orders.find({"n": 3}))
    sections = {"latencyStats": {"histograms": True}, "storageStats": {}, "count": {}, "queryExecStats": {}}
    (found,) = shop.orders.aggregate([{"$collStats": sections}])
    assert (found["ns"], found["count"], found["storageStats"]["count"]) == (f"{shop.name}.orders", 10, 10)
    assert found["storageStats"]["size"] > 0
    assert found["latencyStats"]["writes"]["ops"] == 1
    assert sum(step["count"] for step in found["latencyStats"]["reads"]["histogram"]) == 1
    assert found["queryExecStats"]["collectionScans"]["total"] == 1
    (scaled,) = shop.orders.aggregate([{"$collStats": {"storageStats": {"scale": 10}}}])
    assert scaled["storageStats"]["size"] == found["storageStats"]["size"] // 10
    assert refusal(shop, "nothing", {"$collStats": {"count": {}}}) == 26
    assert refusal(shop, "orders", {"$collStats": {"count": {"x": 1}}}) == 31170


def test_index_statistics_count_the_commands_that_used_an_index(shop: Shop) -> None:
    shop.orders.insert_many([{"_id": n, "n": n} for n in range(10)])
    shop.orders.create_index("n")

    def uses() -> dict[str, int]:
        return {index["name"]: index["accesses"]["ops"] for index in shop.orders.aggregate([{"$indexStats": {}}])}

    assert uses() == {"_id_": 0, "n_1": 0}
    list(shop.orders.find({"n": 3}))
    shop.orders.find_one({"_id": 3})
    assert uses() == {"_id_": 1, "n_1": 1}
    shop.orders.drop_index("n_1")
    shop.orders.create_index("n")
    assert uses()["n_1"] == 0


def test_current_operations_show_idle_cursors_connections_and_the_command_itself(shop: Shop, mongo: Client) -> None:
    shop.orders.insert_many([{"_id": n} for n in range(10)])
    with shop.orders.find(batch_size=2) as cursor:
        next(cursor)
        options = {"idleCursors": True, "idleConnections": True}
        found = list(mongo.admin.aggregate([{"$currentOp": options}]))
    own = [operation for operation in found if operation["type"] == "op" and operation["active"]]
    assert any("aggregate" in operation["command"] for operation in own)
    cursors = [operation["ns"] for operation in found if operation["type"] == "idleCursor"]
    assert f"{shop.name}.orders" in cursors
    assert refusal(shop, "orders", {"$currentOp": {}}) == 73


def test_local_sessions_are_listed_until_their_client_ends_them(shop: Shop, server: RunningServer) -> None:
    def listed(session_id: Any) -> int:
        stages = [{"$listLocalSessions": {}}, {"$match": {"_id.id": session_id}}]
        return len(list(shop.aggregate(stages)))

    with MongoClient[dict[str, Any]](address(server)) as other, other.start_session() as session:
        other.admin.command("ping", session=session)
        session_id = session.session_id["id"]
        assert listed(session_id) == 1
    assert listed(session_id) == 0


def test_the_catalog_lists_collections_views_and_their_options(shop: Shop) -> None:
    shop.create_collection("plain")
    shop.create_collection("view", viewOn="plain", pipeline=[])
    found = {entry["ns"]: entry for entry in shop.aggregate([{"$listClusterCatalog": {"shards": True}}])}
    assert {name: (entry["type"], entry["sharded"]) for name, entry in found.items()} == {
        f"{shop.name}.plain": ("collection", False),
        f"{shop.name}.view": ("view", False),
    }
