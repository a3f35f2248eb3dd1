"""Commands about the server, its plans and its collections' health, with MongoDB's own driver."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pymongo.database import Database
from pymongo.errors import OperationFailure

from tests.clients.test_mongo import Client, mongo, shop

__all__ = ["mongo", "shop"]

Shop = Database[dict[str, Any]]
THREAD_SECONDS = 60


def code_of(database: Shop, command: dict[str, Any]) -> int:
    with pytest.raises(OperationFailure) as refused:
        database.command(command)
    assert refused.value.code is not None
    return refused.value.code


# --- explain --------------------------------------------------------------------------------------------------------


def test_explain_counts_what_a_write_would_change_without_changing_it(shop: Shop) -> None:
    shop.users.insert_many([{"_id": number, "a": number % 2} for number in range(6)])
    update = {"update": "users", "updates": [{"q": {"a": 1}, "u": {"$set": {"b": 1}}, "multi": True}]}
    stages = shop.command({"explain": update})["executionStats"]["executionStages"]
    assert (stages["stage"], stages["nWouldModify"]) == ("UPDATE", 3)
    delete = {"delete": "users", "deletes": [{"q": {"a": 0}, "limit": 0}]}
    stages = shop.command({"explain": delete})["executionStats"]["executionStages"]
    assert (stages["stage"], stages["nWouldDelete"]) == ("DELETE", 3)
    assert shop.users.count_documents({"b": 1}) == 0
    assert shop.users.count_documents({}) == 6


def test_explain_shows_the_index_the_partitions_and_the_charge(shop: Shop) -> None:
    shop.users.insert_many([{"_id": number, "a": number} for number in range(50)])
    shop.users.create_index("a", name="a", unique=True)
    explained = shop.command({"explain": {"find": "users", "filter": {"a": {"$gte": 45}}, "limit": 3}})
    limit = explained["queryPlanner"]["winningPlan"]
    assert (limit["stage"], limit["limitAmount"]) == ("LIMIT", 3)
    scan = limit["inputStage"]["inputStage"]
    assert (scan["stage"], scan["indexName"], scan["isUnique"]) == ("IXSCAN", "a", True)
    statistics = explained["executionStats"]
    assert statistics["nReturned"] == 3
    assert statistics["totalDocsExamined"] <= 5
    assert len(statistics["partitions"]) == 1
    assert statistics["requestCharge"] > 0


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ({"explain": None}, 40414),
        ({"explain": 1}, 14),
        ({"explain": {"insert": "c", "documents": [{}]}}, 20),
        ({"explain": {"nothing": 1}}, 59),
        ({"explain": {"find": "c"}, "verbosity": "all"}, 2),
    ],
)
def test_explain_refuses_what_it_cannot_explain(shop: Shop, command: dict[str, Any], code: int) -> None:
    assert code_of(shop, command) == code


# --- index filters --------------------------------------------------------------------------------------------------


def test_an_index_filter_restricts_the_planner(shop: Shop) -> None:
    shop.users.create_index("a", name="a")
    shop.users.create_index([("a", 1), ("b", 1)], name="ab")

    def index_of(value: int) -> str | None:
        plan = shop.users.find({"a": value}).explain()["queryPlanner"]["winningPlan"]
        name: str | None = plan.get("inputStage", {}).get("indexName")
        return name

    assert index_of(1) == "a"
    shop.command({"planCacheSetFilter": "users", "query": {"a": 5}, "indexes": ["ab"]})
    assert index_of(1) == "ab"
    assert shop.users.find({"a": 1}).hint("a").explain()["queryPlanner"]["indexFilterSet"] is True
    (shown,) = shop.command({"planCacheListFilters": "users"})["filters"]
    assert (shown["query"], shown["indexes"]) == ({"a": 5}, ["ab"])
    shop.command({"planCacheSetFilter": "users", "query": {"a": 5}, "indexes": [{"other": 1}]})
    assert index_of(1) is None
    shop.command({"planCacheClearFilters": "users", "query": {"a": 0}})
    assert index_of(1) == "a"


# --- the health of collections --------------------------------------------------------------------------------------


def test_validate_counts_documents_and_index_keys(shop: Shop) -> None:
    shop.users.insert_many([{"_id": number, "tags": [number, -number]} for number in range(1, 31)])
    shop.users.create_index("tags", name="tags")
    found = shop.command({"validate": "users"})
    assert (found["valid"], found["nrecords"]) == (True, 30)
    assert found["keysPerIndex"] == {"_id_": 30, "tags": 60}
    assert code_of(shop, {"validate": "users", "metadata": True, "full": True}) == 72


def test_indexes_take_room_and_can_be_built_anew(shop: Shop) -> None:
    shop.users.insert_many([{"_id": number, "a": number} for number in range(30)])
    shop.users.create_index("a", name="a", unique=True)
    before = shop.command({"collStats": "users"})["indexSizes"]["a"]
    assert before > 0
    rebuilt = shop.command({"reIndex": "users"})
    assert [index["name"] for index in rebuilt["indexes"]] == ["_id_", "a"]
    assert shop.command({"collStats": "users"})["indexSizes"]["a"] == before
    assert [found["_id"] for found in shop.users.find({"a": 7}, hint="a")] == [7]


def test_equal_databases_have_equal_hashes(mongo: Client, shop: Shop) -> None:
    other = mongo[f"{shop.name}-copy"]
    try:
        for database in (shop, other):
            database.users.insert_many([{"_id": number} for number in range(20)])
        assert shop.command("dbHash")["md5"] == other.command("dbHash")["md5"]
        other.users.update_one({"_id": 3}, {"$set": {"a": 1}})
        assert shop.command("dbHash")["md5"] != other.command("dbHash")["md5"]
    finally:
        mongo.drop_database(other.name)


def test_a_collection_is_capped_where_it_is(shop: Shop) -> None:
    for name in ("z", "y", "x", "w"):
        shop.log.insert_one({"_id": name, "text": "t" * 2000})
    shop.log.create_index("text")
    shop.command({"convertToCapped": "log", "size": 5000})
    assert [found["_id"] for found in shop.log.find()] == ["x", "w"]
    shop.log.insert_one({"_id": "v", "text": "t" * 2000})
    assert [found["_id"] for found in shop.log.find().sort("$natural", -1)] == ["v", "w"]
    assert set(shop.log.index_information()) == {"_id_"}
    shop.command({"cloneCollectionAsCapped": "log", "toCollection": "copy", "size": 2500})
    assert [found["_id"] for found in shop["copy"].find()] == ["v"]


# --- the server -----------------------------------------------------------------------------------------------------


def test_parameters_can_be_set_only_to_what_they_can_be(mongo: Client) -> None:
    assert mongo.admin.command({"getParameter": 1, "logLevel": 1})["logLevel"] == 0
    assert code_of(mongo.admin, {"setParameter": 1, "logLevel": "high"}) == 2
    assert code_of(mongo.admin, {"setParameter": 1, "logLevel": 1, "nothing": 1}) == 72
    assert code_of(mongo.admin, {"setParameter": 1, "maxBSONDepth": 100}) == 20
    assert mongo.admin.command({"setParameter": 1, "quiet": True})["was"] is False
    assert mongo.admin.command({"setParameter": 1, "quiet": False})["was"] is True
    shown = mongo.admin.command({"getParameter": {"showDetails": True}, "logLevel": 1})["logLevel"]
    assert shown == {"value": 0, "settableAtRuntime": True, "settableAtStartup": True}


def test_a_command_that_waits_can_be_seen_and_killed(mongo: Client, shop: Shop) -> None:
    codes: list[int | None] = []

    def insert() -> None:
        with pytest.raises(OperationFailure) as killed:
            shop.users.insert_one({"_id": 1})
        codes.append(killed.value.code)

    mongo.admin.command({"fsync": 1, "lock": True})
    thread = threading.Thread(target=insert)
    try:
        thread.start()
        seen: list[dict[str, Any]] = []
        while not seen:
            seen = mongo.admin.command({"currentOp": 1, "ns": f"{shop.name}.users"})["inprog"]
        assert (seen[0]["op"], seen[0]["active"]) == ("insert", True)
        mongo.admin.command({"killOp": 1, "op": seen[0]["opid"]})
        thread.join(THREAD_SECONDS)
    finally:
        mongo.admin.command("fsyncUnlock")
    assert codes == [11601]
    assert shop.users.find_one({"_id": 1}) is None


def test_writes_wait_while_the_server_is_locked(mongo: Client, shop: Shop) -> None:
    shop.users.insert_one({"_id": 1})
    assert mongo.admin.command({"fsync": 1, "lock": True})["lockCount"] == 1
    try:
        assert shop.users.find_one({"_id": 1}) == {"_id": 1}
        assert code_of(shop, {"insert": "users", "documents": [{"_id": 2}], "maxTimeMS": 50}) == 50
        thread = threading.Thread(target=shop.users.insert_one, args=({"_id": 3},))
        thread.start()
        assert shop.users.find_one({"_id": 3}) is None
    finally:
        assert mongo.admin.command("fsyncUnlock")["lockCount"] == 0
    thread.join(THREAD_SECONDS)
    assert shop.users.find_one({"_id": 3}) == {"_id": 3}
    assert code_of(mongo.admin, {"fsyncUnlock": 1}) == 20


def test_the_server_tells_about_itself(mongo: Client, shop: Shop) -> None:
    shop.users.insert_one({"_id": 1})
    status = mongo.admin.command({"serverStatus": 1, "metrics": 0})
    assert status["mem"]["resident"] > 0
    assert status["network"]["bytesIn"] > 0
    assert "metrics" not in status
    assert mongo.admin.command("hostInfo")["system"]["memSizeMB"] > 0
    usage = mongo.admin.command("top")["totals"][f"{shop.name}.users"]
    assert usage["insert"]["count"] == 1
    assert mongo.admin.command({"getLog": "global"})["log"]
    assert "createIndexes" in mongo.admin.command("listCommands")["commands"]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ({"killOp": 1}, 4),
        ({"killOp": 1, "op": "x"}, 14),
        ({"killOp": 1, "op": 1.5}, 2),
        ({"killOp": 1, "op": 2**40}, 26823),
        ({"getLog": 1}, 14),
        ({"logRotate": "audit"}, 4),
        ({"autoCompact": True}, 115),
        ({"profile": 2}, 115),
        ({"profile": 0, "sampleRate": 2}, 2),
        ({"setClusterParameter": {"changeStreams": {}}}, 115),
        ({"setFeatureCompatibilityVersion": "6.0", "confirm": True}, 4926900),
        ({"dropConnections": 1, "hostAndPort": ["host:0"]}, 9),
    ],
)
def test_wrong_and_unserved_commands_have_a_code(mongo: Client, command: dict[str, Any], code: int) -> None:
    assert code_of(mongo.admin, command) == code
