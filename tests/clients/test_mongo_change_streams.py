"""Change streams with MongoDB's own driver."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bson import Timestamp
from pymongo import MongoClient
from pymongo.change_stream import ChangeStream
from pymongo.database import Database
from pymongo.errors import OperationFailure

from tests.support.server import RunningServer, running_server

Client = MongoClient[dict[str, Any]]
Shop = Database[dict[str, Any]]
Stream = ChangeStream[dict[str, Any]]
SELECTION_MILLISECONDS = 30_000
WAIT_MILLISECONDS = 120_000


def connect(server: RunningServer) -> Client:
    address = f"mongodb://127.0.0.1:{server.ports['mongo']}/?replicaSet=globaldb"
    return MongoClient[dict[str, Any]](address, serverSelectionTimeoutMS=SELECTION_MILLISECONDS)


@pytest.fixture(scope="module")
def mongo(server: RunningServer) -> Iterator[Client]:
    with connect(server) as connected:
        yield connected


@pytest.fixture
def shop(mongo: Client) -> Iterator[Shop]:
    name = f"shop-{uuid.uuid4().hex[:8]}"
    yield mongo[name]
    mongo.drop_database(name)


def next_of(stream: Stream, count: int) -> list[dict[str, Any]]:
    return [next(stream) for _ in range(count)]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["operationType"] for event in events]


def test_a_stream_tells_inserts_updates_replacements_and_deletes(shop: Shop) -> None:
    users = shop.users
    with users.watch() as stream:
        users.insert_one({"_id": 1, "a": 1, "list": [1, 2, 3]})
        users.update_one({"_id": 1}, {"$set": {"b": 2}, "$unset": {"a": 1}, "$push": {"list": 4}})
        users.replace_one({"_id": 1}, {"c": 3})
        users.delete_one({"_id": 1})
        inserted, updated, replaced, deleted = next_of(stream, 4)
    assert inserted["fullDocument"] == {"_id": 1, "a": 1, "list": [1, 2, 3]}
    assert inserted["ns"] == {"db": shop.name, "coll": "users"}
    assert isinstance(inserted["clusterTime"], Timestamp)
    assert updated["updateDescription"] == {
        "updatedFields": {"b": 2, "list.3": 4},
        "removedFields": ["a"],
        "truncatedArrays": [],
    }
    assert "fullDocument" not in updated
    assert replaced["fullDocument"] == {"_id": 1, "c": 3}
    assert deleted["documentKey"] == {"_id": 1}
    assert inserted["clusterTime"] < updated["clusterTime"] < deleted["clusterTime"]


def test_documents_before_and_after_are_kept_where_the_collection_says_so(shop: Shop) -> None:
    shop.create_collection("users", changeStreamPreAndPostImages={"enabled": True})
    shop.users.insert_one({"_id": 1, "n": 0})
    with shop.users.watch(full_document="required", full_document_before_change="whenAvailable") as stream:
        for _ in range(3):
            shop.users.update_one({"_id": 1}, {"$inc": {"n": 1}})
        shop.users.delete_one({"_id": 1})
        events = next_of(stream, 4)
    assert [event.get("fullDocument") for event in events] == [{"_id": 1, "n": n} for n in (1, 2, 3)] + [None]
    assert [event["fullDocumentBeforeChange"] for event in events] == [{"_id": 1, "n": n} for n in (0, 1, 2, 3)]
    with shop.plain.watch(full_document_before_change="required") as stream:
        shop.plain.insert_one({"_id": 1})
        shop.plain.delete_one({"_id": 1})
        assert next(stream)["operationType"] == "insert"
        with pytest.raises(OperationFailure) as refused:
            next(stream)
    assert refused.value.code == 47


def test_a_waiting_stream_is_woken_by_a_change(shop: Shop) -> None:
    with shop.users.watch(max_await_time_ms=WAIT_MILLISECONDS) as stream:
        seen: list[dict[str, Any]] = []
        reading = threading.Thread(target=lambda: seen.append(next(stream)))
        reading.start()
        shop.users.insert_one({"_id": 1})
        reading.join(WAIT_MILLISECONDS / 1000)
    assert kinds(seen) == ["insert"]


def test_an_idle_stream_answers_an_empty_batch_with_a_token_to_resume_from(shop: Shop) -> None:
    with shop.users.watch(max_await_time_ms=10) as stream:
        assert stream.try_next() is None
        token = stream.resume_token
    shop.users.insert_one({"_id": 1})
    with shop.users.watch(resume_after=token) as stream:
        assert next(stream)["documentKey"] == {"_id": 1}


def test_every_event_is_a_place_to_resume_from(shop: Shop) -> None:
    with shop.users.watch() as stream:
        shop.users.insert_many([{"_id": number} for number in range(5)])
        events = next_of(stream, 5)
    for at, event in enumerate(events[:-1]):
        with shop.users.watch(resume_after=event["_id"]) as stream:
            assert [seen["documentKey"]["_id"] for seen in next_of(stream, 4 - at)] == list(range(at + 1, 5))


def test_killing_the_cursor_ends_a_wait(shop: Shop) -> None:
    answer = shop.command({"aggregate": "users", "pipeline": [{"$changeStream": {}}], "cursor": {}})
    number = answer["cursor"]["id"]
    problems: list[OperationFailure] = []

    def wait() -> None:
        try:
            shop.command({"getMore": number, "collection": "users", "maxTimeMS": WAIT_MILLISECONDS})
        except OperationFailure as problem:
            problems.append(problem)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not any("getMore" in op.get("command", {}) for op in shop.client.admin.command("currentOp")["inprog"]):
        pass
    shop.command({"killCursors": "users", "cursors": [number]})
    waiting.join(WAIT_MILLISECONDS / 1000)
    assert [problem.code for problem in problems] == [237]


def test_a_dropped_collection_ends_its_stream_and_start_after_goes_on(shop: Shop) -> None:
    shop.users.insert_one({"_id": 1})
    with shop.users.watch() as stream:
        shop.users.drop()
        dropped, invalidated = next_of(stream, 2)
        assert (kinds([dropped, invalidated]), stream.alive) == (["drop", "invalidate"], False)
    with pytest.raises(OperationFailure) as refused:
        shop.users.watch(resume_after=invalidated["_id"])
    assert refused.value.code == 260
    with shop.users.watch(start_after=invalidated["_id"]) as stream:
        shop.users.insert_one({"_id": 2})
        assert next(stream)["documentKey"] == {"_id": 2}


def test_a_database_and_the_cluster_are_watched(mongo: Client, shop: Shop) -> None:
    with shop.watch() as of_database, mongo.watch([{"$match": {"ns.db": shop.name}}]) as of_cluster:
        shop.users.insert_one({"_id": 1})
        shop.orders.insert_one({"_id": 2})
        shop.users.rename("people")
        mongo.drop_database(shop.name)
        expected = ["insert", "insert", "rename", "drop", "drop", "dropDatabase"]
        assert kinds(next_of(of_cluster, 6)) == expected
        assert kinds(next_of(of_database, 7)) == [*expected, "invalidate"]


def test_expanded_events_tell_of_indexes_and_options(shop: Shop) -> None:
    with shop.watch(show_expanded_events=True) as stream:
        shop.create_collection("users")
        shop.users.create_index("n")
        shop.users.drop_index("n_1")
        shop.command("collMod", "users", validationLevel="moderate")
        created, indexed, unindexed, modified = next_of(stream, 4)
    assert kinds([created, indexed, unindexed, modified]) == ["create", "createIndexes", "dropIndexes", "modify"]
    assert indexed["operationDescription"]["indexes"][0]["key"] == {"n": 1}
    assert created["collectionUUID"] == modified["collectionUUID"]


def test_events_of_a_transaction_have_its_session_and_one_time(mongo: Client, shop: Shop) -> None:
    shop.create_collection("users")
    with shop.watch() as stream, mongo.start_session() as session:
        with session.start_transaction():
            shop.users.insert_one({"_id": 1}, session=session)
            shop.users.insert_one({"_id": 2}, session=session)
        first, second = next_of(stream, 2)
        assert first["lsid"]["id"] == session.session_id["id"]
    assert first["txnNumber"] == second["txnNumber"]
    assert first["clusterTime"] == second["clusterTime"]


def test_stages_of_the_client_shape_events_but_not_their_ids(shop: Shop) -> None:
    stages = [{"$match": {"fullDocument.n": {"$gt": 1}}}, {"$project": {"documentKey": 1}}]
    with shop.users.watch(stages) as stream:
        shop.users.insert_many([{"_id": number, "n": number} for number in range(3)])
        event = next(stream)
        assert set(event) == {"_id", "documentKey"}
        assert event["documentKey"] == {"_id": 2}
    with shop.users.watch([{"$project": {"_id": 0}}]) as stream:
        shop.users.insert_one({"_id": 9})
        with pytest.raises(OperationFailure) as refused:
            next(stream)
    assert refused.value.code == 280


def test_a_stream_begins_at_a_time(shop: Shop) -> None:
    shop.users.insert_one({"_id": 1})
    time = shop.command("ping")["operationTime"]
    with shop.users.watch() as stream:
        shop.users.insert_one({"_id": 2})
        started = next(stream)["clusterTime"]
    assert started > time
    with shop.users.watch(start_at_operation_time=started) as stream:
        assert next(stream)["documentKey"] == {"_id": 2}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ({"aggregate": 1, "pipeline": [{"$changeStream": {"allChangesForCluster": True}}]}, 72),
        ({"aggregate": "system.views", "pipeline": [{"$changeStream": {}}]}, 73),
        ({"aggregate": "over", "pipeline": [{"$changeStream": {}}]}, 166),
        ({"aggregate": "users", "pipeline": [{"$changeStream": {}}], "readConcern": {"level": "local"}}, 72),
        ({"aggregate": "users", "pipeline": [{"$changeStream": {}}, {"$sort": {"a": 1}}]}, 20),
    ],
)
def test_streams_are_refused_where_there_are_none(shop: Shop, command: dict[str, Any], code: int) -> None:
    shop.create_collection("over", viewOn="users", pipeline=[])
    with pytest.raises(OperationFailure) as refused:
        shop.command({**command, "cursor": {}})
    assert refused.value.code == code


def test_a_sharded_collection_has_its_key_in_the_key_of_the_document(shop: Shop) -> None:
    shop.command({"shardCollection": f"{shop.name}.orders", "key": {"city": "hashed"}})
    with shop.orders.watch() as stream:
        shop.orders.insert_one({"_id": 1, "city": "Bern"})
        shop.orders.delete_one({"_id": 1, "city": "Bern"})
        inserted, deleted = next_of(stream, 2)
    assert inserted["documentKey"] == deleted["documentKey"] == {"city": "Bern", "_id": 1}


def test_each_partition_has_a_token_of_its_own(shop: Shop) -> None:
    shop.command(
        {"customAction": "CreateCollection", "collection": "orders", "shardKey": "city", "offerThroughput": 20_000}
    )
    answer = shop.command({"customAction": "GetChangeStreamTokens", "collection": "orders"})
    tokens = answer["resumeAfterTokens"]
    assert len(tokens) > 1
    shop.orders.insert_many([{"_id": number, "city": f"c{number}"} for number in range(30)])
    seen: list[int] = []
    for token in tokens:
        with shop.orders.watch(resume_after=token, max_await_time_ms=10) as stream:
            while (event := stream.try_next()) is not None:
                seen.append(event["documentKey"]["_id"])
    assert sorted(seen) == list(range(30))


def test_a_token_outlives_the_server(tmp_path: Path) -> None:
    def started() -> Any:
        return running_server(tmp_path, doors=("nosql", "mongo"), embedded=True)

    with started() as server, connect(server) as client, client.shop.watch() as stream:
        client.shop.users.insert_many([{"_id": number} for number in range(4)])
        client.shop.users.update_one({"_id": 0}, {"$set": {"a": 1}})
        client.shop.old.insert_one({"_id": "x"})
        client.shop.old.drop()
        token = next_of(stream, 2)[1]["_id"]
    with started() as server, connect(server) as client:
        with client.shop.watch(resume_after=token) as stream:
            events = next_of(stream, 5)
            client.shop.users.insert_one({"_id": 9})
            events.append(next(stream))
        assert kinds(events) == ["insert", "insert", "update", "insert", "drop", "insert"]
        assert [event.get("documentKey", {}).get("_id") for event in events] == [2, 3, 0, "x", None, 9]


def test_a_stream_hears_of_changes_that_another_process_made(tmp_path: Path) -> None:
    options = ("--workers", "2")
    with (
        running_server(tmp_path, *options, doors=("nosql", "mongo"), embedded=True) as server,
        connect(server) as client,
        client.shop.users.watch(max_await_time_ms=WAIT_MILLISECONDS) as stream,
    ):
        for number in range(20):
            # Each client has connections of its own, which reach either process.
            with connect(server) as other:
                other.shop.users.insert_one({"_id": number})
        assert [event["documentKey"]["_id"] for event in next_of(stream, 20)] == list(range(20))
