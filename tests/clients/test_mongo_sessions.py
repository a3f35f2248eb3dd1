"""Sessions and retryable writes: with the driver, and message by message."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient, WriteConcern
from pymongo.database import Database
from pymongo.errors import AutoReconnect, ExecutionTimeout, OperationFailure, PyMongoError, WriteConcernError

from tests.support.mongo_commands import BareClient, bare_client, new_session, retryable
from tests.support.server import RunningServer, running_server

Client = MongoClient[dict[str, Any]]
Shop = Database[dict[str, Any]]
SELECTION_MILLISECONDS = 30_000


@pytest.fixture(scope="module")
def controlled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    data = tmp_path_factory.mktemp("sessions") / "data"
    with running_server(data, "--no-throttle", "--test-controls", doors=("mongo",), alone=True) as running:
        yield running


@pytest.fixture(scope="module")
def mongo(controlled: RunningServer) -> Iterator[Client]:
    address = f"mongodb://127.0.0.1:{controlled.ports['mongo']}/?replicaSet=globaldb"
    with MongoClient[dict[str, Any]](address, serverSelectionTimeoutMS=SELECTION_MILLISECONDS) as connected:
        yield connected


@pytest.fixture
def bare(controlled: RunningServer) -> Iterator[BareClient]:
    with bare_client(controlled) as connected:
        yield connected


@pytest.fixture
def shop(mongo: Client) -> Iterator[Shop]:
    name = f"shop-{uuid.uuid4().hex[:8]}"
    yield mongo[name]
    mongo.drop_database(name)


def set_fail_point(mongo: Client, data: dict[str, Any], mode: Any = None, name: str = "failCommand") -> None:
    mongo.admin.command("configureFailPoint", name, mode=mode or {"times": 1}, data=data)


STATEMENTS: list[dict[str, Any]] = [
    {"insert": "users", "documents": [{"_id": 7}, {"_id": 8}]},
    {"update": "users", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]},
    {"update": "users", "updates": [{"q": {"n": 0}, "u": {"$inc": {"n": 1}}},
                                    {"q": {"_id": 2}, "u": {"$set": {"n": 1}}}]},
    {"update": "users", "updates": [{"q": {"name": "new"}, "u": {"$inc": {"n": 1}}, "upsert": True}]},
    {"delete": "users", "deletes": [{"q": {"n": 0}, "limit": 1}]},
    {"findAndModify": "users", "query": {"n": 0}, "update": {"$inc": {"n": 1}}, "fields": {"n": 1}},
    {"findAndModify": "users", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}, "new": True},
    {"findAndModify": "users", "query": {"n": 0}, "remove": True},
    {"findAndModify": "users", "query": {"name": "new"}, "update": {"$inc": {"n": 1}}, "upsert": True, "new": True},
]  # fmt: skip


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: str(statement)[:60])
def test_a_repeated_write_answers_the_same_and_writes_nothing(
    bare: BareClient, shop: Shop, statement: dict[str, Any]
) -> None:
    shop.users.insert_many([{"_id": number, "n": 0} for number in range(4)])
    command = {**statement, **retryable(new_session(), 1)}
    first = bare.command(command, shop.name)
    after = list(shop.users.find())
    again = bare.command(command, shop.name)
    again.pop("retriedStmtIds", None)
    assert first["ok"] == 1
    assert again == first
    assert list(shop.users.find()) == after


def test_a_repeated_bulk_write_answers_the_same_and_writes_nothing(bare: BareClient, shop: Shop) -> None:
    command = {
        "bulkWrite": 1,
        "ops": [
            {"insert": 0, "document": {"_id": 1, "n": 0}},
            {"update": 0, "filter": {"_id": 1}, "updateMods": {"$inc": {"n": 1}}},
            {"update": 0, "filter": {"_id": 2}, "updateMods": {"$inc": {"n": 1}}, "upsert": True},
            {"insert": 1, "document": {"_id": 1}},
            {"delete": 1, "filter": {"_id": 1}},
        ],
        "nsInfo": [{"ns": f"{shop.name}.users"}, {"ns": f"{shop.name}.orders"}],
        **retryable(new_session(), 1),
    }
    first, again = (bare.command(command, "admin") for _ in range(2))
    assert again.pop("retriedStmtIds") == [0, 1, 2, 3, 4]
    assert again == first
    assert list(shop.users.find()) == [{"_id": 1, "n": 1}, {"_id": 2, "n": 1}]
    assert shop.orders.count_documents({}) == 0


def test_a_number_below_the_last_one_is_too_old(bare: BareClient, shop: Shop) -> None:
    session = new_session()
    insert = {"insert": "users", "documents": [{"_id": 1}]}
    assert bare.command({**insert, **retryable(session, 2)}, shop.name)["n"] == 1
    assert bare.command({**insert, **retryable(session, 1)}, shop.name)["code"] == 225
    many = {"update": "users", "updates": [{"q": {}, "u": {"$set": {"n": 1}}, "multi": True}]}
    assert bare.command({**many, **retryable(session, 3)}, shop.name)["code"] == 72


def test_repeated_writes_are_known_to_a_server_that_was_killed(tmp_path: Path) -> None:
    session = new_session()
    insert = {"insert": "users", "documents": [{"_id": 1, "n": 0}], **retryable(session, 1)}
    add = {"findAndModify": "users", "query": {"n": {"$lt": 5}}, "update": {"$inc": {"n": 1}}, **retryable(session, 2)}
    with running_server(tmp_path / "data", doors=("mongo",), alone=True, embedded=True) as server:
        with bare_client(server) as bare:
            bare.command(insert)
            first = bare.command(add)
        server.kill()
    with (
        running_server(tmp_path / "data", doors=("mongo",), alone=True, embedded=True) as server,
        bare_client(server) as bare,
    ):
        assert bare.command(add) == first
        assert bare.command({"find": "users"})["cursor"]["firstBatch"] == [{"_id": 1, "n": 1}]
        assert bare.command(insert)["code"] == 225


@pytest.mark.parametrize(
    "data",
    [
        {"failCommands": ["insert"], "closeConnection": True},
        {"failCommands": ["insert"], "errorCode": 91},
        {"failCommands": ["insert"], "writeConcernError": {"code": 262, "errmsg": "late"}},
    ],
    ids=["closed", "error", "write concern"],
)
def test_the_driver_repeats_what_may_be_repeated(mongo: Client, shop: Shop, data: dict[str, Any]) -> None:
    shop.users.insert_one({"_id": 0})
    set_fail_point(mongo, data)
    assert shop.users.insert_one({"_id": 1}).acknowledged
    assert shop.users.count_documents({}) == 2


def test_a_write_that_was_cut_off_behind_its_batch_counts_once(mongo: Client, shop: Shop) -> None:
    shop.users.insert_one({"_id": 1, "n": 0})
    set_fail_point(mongo, {}, name="onPrimaryTransactionalWrite")
    assert shop.users.update_one({"_id": 1}, {"$inc": {"n": 1}}).modified_count == 1
    assert shop.users.find_one() == {"_id": 1, "n": 1}


def test_a_write_without_a_number_is_not_repeated(controlled: RunningServer, mongo: Client, shop: Shop) -> None:
    shop.users.insert_one({"_id": 0})
    address = f"mongodb://127.0.0.1:{controlled.ports['mongo']}/?replicaSet=globaldb&retryWrites=false"
    with MongoClient[dict[str, Any]](address) as plain:
        set_fail_point(mongo, {"failCommands": ["insert"], "closeConnection": True})
        with pytest.raises(AutoReconnect):
            plain[shop.name].users.insert_one({"_id": 1})
        set_fail_point(mongo, {"failCommands": ["insert"], "errorCode": 11000})
        with pytest.raises(OperationFailure) as failed:
            plain[shop.name].users.insert_one({"_id": 1})
        assert not failed.value.has_error_label("RetryableWriteError")
    assert shop.users.count_documents({}) == 1


def test_a_write_concern_that_cannot_be_met_is_told_behind_the_write(mongo: Client, shop: Shop) -> None:
    users = shop.get_collection("users", write_concern=WriteConcern(w=3, wtimeout=1))
    with pytest.raises(WriteConcernError) as unmet:
        users.insert_one({"_id": 1})
    assert unmet.value.code == 100
    assert shop.users.count_documents({}) == 1


def test_time_limits_can_be_made_to_pass(mongo: Client, shop: Shop) -> None:
    shop.users.insert_many([{"_id": number} for number in range(10)])
    cursor = shop.users.find(batch_size=2, max_time_ms=60_000)
    next(cursor)
    set_fail_point(mongo, {}, "alwaysOn", "maxTimeAlwaysTimeOut")
    try:
        with pytest.raises(ExecutionTimeout):
            list(shop.users.find(max_time_ms=60_000))
        with pytest.raises(ExecutionTimeout):
            list(cursor)
        assert len(list(shop.users.find())) == 10
    finally:
        set_fail_point(mongo, {}, "off", "maxTimeAlwaysTimeOut")


def test_sessions_are_started_refreshed_and_ended(mongo: Client, bare: BareClient, shop: Shop) -> None:
    shop.users.insert_many([{"_id": number} for number in range(10)])
    started = bare.command({"startSession": 1}, "admin")
    assert started["timeoutMinutes"] == 30
    session = started["id"]
    find = {"find": "users", "batchSize": 2, "lsid": session}
    cursor = bare.command(find, shop.name)["cursor"]["id"]
    more = {"getMore": cursor, "collection": "users", "batchSize": 2}
    assert bare.command({**more, "lsid": new_session()}, shop.name)["code"] == 50738
    assert bare.command({"refreshSessions": [session]}, "admin") == {"ok": 1.0}
    assert len(bare.command({**more, "lsid": session}, shop.name)["cursor"]["nextBatch"]) == 2
    assert bare.command({"endSessions": [session]}, "admin") == {"ok": 1.0}
    assert bare.command({**more, "lsid": session}, shop.name)["code"] == 43
    for ending in ({"killAllSessions": []}, {"killAllSessionsByPattern": [{"lsid": session}]}, {"killSessions": []}):
        cursor = bare.command(find, shop.name)["cursor"]["id"]
        assert bare.command(ending, "admin") == {"ok": 1.0}
        gone = {"getMore": cursor, "collection": "users", "lsid": session}
        assert bare.command(gone, shop.name)["code"] == 43


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"lsid": 1}, 14),
        ({"lsid": {}}, 40414),
        ({"lsid": {"id": b"0123456789abcdef"}}, 14),
        ({"txnNumber": 1}, 14),
        ({"lsid": new_session(), "autocommit": "no"}, 14),
        ({"lsid": new_session(), "autocommit": False}, 72),
    ],
)
def test_fields_of_sessions_are_checked(bare: BareClient, fields: dict[str, Any], code: int) -> None:
    assert bare.command({"find": "users", **fields})["code"] == code


def test_without_test_controls_there_are_no_fail_points(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", doors=("mongo",), alone=True) as server, bare_client(server) as bare:
        refused = bare.command({"configureFailPoint": "failCommand", "mode": "off"}, "admin")
        assert refused["code"] == 59
        assert bare.command({"ping": 1})["ok"] == 1


def test_drivers_end_their_sessions_when_they_close(controlled: RunningServer) -> None:
    address = f"mongodb://127.0.0.1:{controlled.ports['mongo']}/?replicaSet=globaldb"
    with MongoClient[dict[str, Any]](address) as other:
        session = other.start_session()
        other.shop.users.insert_one({}, session=session)
        other.drop_database("shop")
    with pytest.raises(PyMongoError):
        other.shop.users.find_one()
