"""Transactions with MongoDB's own driver, on a server whose failures the tests choose."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bson import Int64
from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.database import Database
from pymongo.errors import OperationFailure, PyMongoError

from tests.support.mongo_commands import bare_client, in_transaction, new_session, retryable
from tests.support.server import RunningServer, running_server

Client = MongoClient[dict[str, Any]]
Shop = Database[dict[str, Any]]
SELECTION_MILLISECONDS = 30_000


def connect(server: RunningServer, **options: Any) -> Client:
    address = f"mongodb://127.0.0.1:{server.ports['mongo']}/?replicaSet=globaldb"
    return MongoClient(address, serverSelectionTimeoutMS=SELECTION_MILLISECONDS, **options)


@pytest.fixture(scope="module")
def controlled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    data = tmp_path_factory.mktemp("transactions") / "data"
    with running_server(data, "--no-throttle", "--test-controls", doors=("mongo",), alone=True) as running:
        yield running


@pytest.fixture(scope="module")
def mongo(controlled: RunningServer) -> Iterator[Client]:
    with connect(controlled) as connected:
        yield connected


@pytest.fixture
def shop(mongo: Client) -> Iterator[Shop]:
    name = f"shop-{uuid.uuid4().hex[:8]}"
    yield mongo[name]
    mongo.drop_database(name)


@contextmanager
def fail_point(mongo: Client, mode: Any, data: dict[str, Any], name: str = "failCommand") -> Iterator[None]:
    mongo.admin.command("configureFailPoint", name, mode=mode, data=data)
    try:
        yield
    finally:
        mongo.admin.command("configureFailPoint", name, mode="off")


def code_of(error: pytest.ExceptionInfo[OperationFailure]) -> int | None:
    return error.value.code


def test_two_transactions_on_one_document_conflict_at_once_and_one_wins(mongo: Client, shop: Shop) -> None:
    shop.users.insert_one({"_id": 1, "n": 0})
    with mongo.start_session() as first, mongo.start_session() as second:
        first.start_transaction()
        shop.users.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=first)
        second.start_transaction()
        with pytest.raises(OperationFailure) as refused:
            shop.users.update_one({"_id": 1}, {"$inc": {"n": 10}}, session=second)
        assert code_of(refused) == 112
        assert refused.value.has_error_label("TransientTransactionError")
        second.abort_transaction()
        first.commit_transaction()
    assert shop.users.find_one() == {"_id": 1, "n": 1}


def test_a_transaction_reads_one_moment(mongo: Client, shop: Shop) -> None:
    shop.users.insert_many([{"_id": number, "n": 0} for number in range(5)])
    with mongo.start_session() as session, session.start_transaction():
        assert shop.users.count_documents({"n": 0}, session=session) == 5
        shop.users.update_many({}, {"$set": {"n": 1}})
        shop.users.insert_one({"_id": 9, "n": 0})
        assert shop.users.count_documents({"n": 0}, session=session) == 5
        assert len(list(shop.users.find({}, session=session, batch_size=2))) == 5
    assert shop.users.count_documents({"n": 1}) == 5


@pytest.mark.parametrize("retry_writes", [True, False])
def test_drivers_repeat_a_commit_and_it_counts_once(
    controlled: RunningServer, mongo: Client, shop: Shop, retry_writes: bool
) -> None:
    shop.users.insert_one({"_id": 1, "n": 0})
    with connect(controlled, retryWrites=retry_writes) as other, other.start_session() as session:
        users = other[shop.name].users
        session.start_transaction()
        users.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        with fail_point(mongo, {"times": 1}, {"failCommands": ["commitTransaction"], "closeConnection": True}):
            session.commit_transaction()
        session.commit_transaction()
    assert shop.users.find_one() == {"_id": 1, "n": 1}


def test_with_transaction_repeats_everything_behind_a_transient_error(mongo: Client, shop: Shop) -> None:
    shop.users.insert_one({"_id": 1, "n": 0})
    runs = []

    def both(session: ClientSession) -> None:
        runs.append(1)
        shop.users.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        shop.orders.insert_one({"_id": 1}, session=session)

    with mongo.start_session() as session:
        data = {"failCommands": ["commitTransaction"], "errorCode": 112}
        with fail_point(mongo, {"times": 2}, data):
            session.with_transaction(both)
    assert len(runs) == 3
    assert (shop.users.find_one(), shop.orders.count_documents({})) == ({"_id": 1, "n": 1}, 1)


def test_collections_and_indexes_of_a_transaction_appear_with_it(mongo: Client, shop: Shop) -> None:
    shop.users.insert_one({"_id": 1})
    with mongo.start_session() as session:
        session.start_transaction()
        shop.create_collection("left", session=session)
        session.abort_transaction()
        session.start_transaction()
        shop.create_collection("orders", session=session)
        shop.orders.create_index("n", unique=True, session=session)
        shop.orders.insert_one({"n": 1}, session=session)
        shop.implied.insert_one({"_id": 1}, session=session)
        assert sorted(shop.list_collection_names()) == ["users"]
        with pytest.raises(OperationFailure) as refused:
            shop.users.create_index("n", session=session)
        assert code_of(refused) == 263
        session.abort_transaction()
        with session.start_transaction():
            shop.orders.create_index("n", unique=True, session=session)
            shop.orders.insert_one({"n": 1}, session=session)
            shop.implied.insert_one({"_id": 1}, session=session)
    assert sorted(shop.list_collection_names()) == ["implied", "orders", "users"]
    assert set(shop.orders.index_information()) == {"_id_", "n_1"}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ({"count": "users"}, 263),
        ({"listCollections": 1}, 263),
        ({"aggregate": "users", "pipeline": [{"$indexStats": {}}], "cursor": {}}, 263),
        ({"killCursors": "users", "cursors": [Int64(1)]}, 263),
        ({"insert": "users", "documents": [{}], "writeConcern": {"w": 1}}, 72),
    ],
)
def test_what_a_transaction_does_not_allow_is_refused(
    controlled: RunningServer, shop: Shop, command: dict[str, Any], code: int
) -> None:
    shop.users.insert_one({"_id": 1})
    with bare_client(controlled) as bare:
        statement = {"startTransaction": True, **in_transaction(new_session(), 1)}
        assert bare.command({**command, **statement}, shop.name)["code"] == code


def test_a_transaction_that_is_over_is_unknown(controlled: RunningServer, shop: Shop) -> None:
    shop.users.insert_one({"_id": 1})
    with bare_client(controlled) as bare:
        session = new_session()
        statement = in_transaction(session, 3)
        never = bare.command({"find": "users", **statement}, shop.name)
        assert (never["code"], never["errorLabels"]) == (251, ["TransientTransactionError"])
        first = bare.command({"find": "users", "startTransaction": True, **statement}, shop.name)
        assert first["cursor"]["firstBatch"] == [{"_id": 1}]
        assert bare.command({"abortTransaction": 1, **statement}, "admin") == {"ok": 1.0}
        assert bare.command({"commitTransaction": 1, **statement}, "admin")["code"] == 251
        older = {"find": "users", "startTransaction": True, **in_transaction(session, 2)}
        assert bare.command(older, shop.name)["code"] == 225
        assert bare.command({"find": "users", **retryable(session, 4)}, shop.name)["code"] == 50768


def test_a_transaction_ends_at_the_end_of_its_life(mongo: Client, shop: Shop) -> None:
    shop.users.insert_one({"_id": 1})
    mongo.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=1)
    try:
        with mongo.start_session() as session:
            session.start_transaction()
            shop.users.update_one({"_id": 1}, {"$set": {"n": 1}}, session=session)
            # The document is free again when the transaction has ended.
            with mongo.start_session() as other:
                other.with_transaction(lambda own: shop.users.update_one({"_id": 1}, {"$set": {"n": 2}}, session=own))
            with pytest.raises(OperationFailure) as over:
                session.commit_transaction()
            assert code_of(over) == 251
    finally:
        mongo.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=60)
    assert shop.users.find_one() == {"_id": 1, "n": 2}


def test_a_transaction_over_two_databases_is_refused_by_name(mongo: Client, shop: Shop) -> None:
    shop.users.insert_one({"_id": 1})
    other = mongo[shop.name + "-b"]
    other.orders.insert_one({"_id": 1})
    with mongo.start_session() as session:
        session.start_transaction()
        shop.users.insert_one({"_id": 2}, session=session)
        with pytest.raises(OperationFailure) as refused:
            other.orders.insert_one({"_id": 2}, session=session)
    mongo.drop_database(other.name)
    assert code_of(refused) == 263
    assert f"{shop.name}.users" in str(refused.value)
    assert f"{other.name}.orders" in str(refused.value)


def test_one_shard_key_value_is_a_transaction(mongo: Client, shop: Shop) -> None:
    shop.command({"shardCollection": f"{shop.name}.orders", "key": {"city": "hashed"}})
    with mongo.start_session() as session, session.start_transaction():
        shop.orders.insert_many([{"_id": number, "city": "rome"} for number in range(3)], session=session)
        shop.orders.update_one({"_id": 1, "city": "rome"}, {"$set": {"n": 1}}, session=session)
        assert shop.orders.count_documents({"city": "rome"}, session=session) == 3
        assert shop.orders.count_documents({}) == 0
    assert shop.orders.count_documents({"city": "rome"}) == 3


def test_ended_sessions_leave_no_transaction_and_no_cursor(mongo: Client, shop: Shop) -> None:
    shop.users.insert_many([{"_id": number} for number in range(10)])
    session = mongo.start_session()
    session.start_transaction()
    cursor = shop.users.find({}, session=session, batch_size=2)
    next(cursor)
    shop.users.update_one({"_id": 1}, {"$set": {"n": 1}}, session=session)
    mongo.admin.command("killSessions", [session.session_id])
    with pytest.raises(PyMongoError):
        list(cursor)
    shop.users.update_one({"_id": 1}, {"$set": {"n": 2}})
    with pytest.raises(OperationFailure) as over:
        session.commit_transaction()
    assert code_of(over) == 251
    session.end_session()


def test_a_committed_transaction_is_known_to_a_server_that_was_restarted(tmp_path: Path) -> None:
    session = new_session()
    statement = in_transaction(session, 1)
    with running_server(tmp_path / "data", doors=("mongo",), alone=True, embedded=True) as server:
        with bare_client(server) as bare:
            bare.command({"insert": "users", "documents": [{"_id": 0}]})
            bare.command({"insert": "users", "documents": [{"_id": 1}], "startTransaction": True, **statement})
            assert bare.command({"commitTransaction": 1, **statement}, "admin") == {"ok": 1.0}
        server.kill()
    with (
        running_server(tmp_path / "data", doors=("mongo",), alone=True, embedded=True) as server,
        bare_client(server) as bare,
    ):
        assert bare.command({"commitTransaction": 1, **statement}, "admin") == {"ok": 1.0}
        assert len(bare.command({"find": "users"})["cursor"]["firstBatch"]) == 2
        assert bare.command({"commitTransaction": 1, **in_transaction(session, 2)}, "admin")["code"] == 251
