"""Request units: charged per command, and throttling in the words that make drivers back off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.errors import BulkWriteError

from tests.support.mongo_commands import BareClient, bare_client, new_session, retryable
from tests.support.server import RunningServer, running_server

Client = MongoClient[dict[str, Any]]
# Enough to spend more than the burst of a small collection.
COMMANDS_MAX = 2_000
BODY = "x" * 2_000


@pytest.fixture(scope="module")
def throttling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    data = tmp_path_factory.mktemp("throttling") / "data"
    with running_server(data, "--test-controls", doors=("mongo",), alone=True) as running:
        yield running


@pytest.fixture
def bare(throttling: RunningServer) -> Iterator[BareClient]:
    with bare_client(throttling) as connected:
        yield connected
        connected.command({"dropDatabase": 1})


def create_small(bare: BareClient) -> None:
    created = {"customAction": "CreateCollection", "collection": "users", "shardKey": "city", "offerThroughput": 400}
    assert bare.command(created)["ok"] == 1


def first_throttled(bare: BareClient) -> tuple[dict[str, Any], dict[str, Any]]:
    """Insert until the budget is spent; return the command that was throttled, and its answer."""
    for number in range(COMMANDS_MAX):
        documents = [{"_id": f"{number}-{place}", "city": "rome", "body": BODY} for place in range(20)]
        command = {"insert": "users", "documents": documents}
        answer = bare.command(command)
        if not answer["ok"]:
            return command, answer
    raise AssertionError("the budget was never spent")


def test_a_spent_budget_is_a_command_error_that_drivers_back_off_from(bare: BareClient) -> None:
    create_small(bare)
    command, refused = first_throttled(bare)
    assert (refused["code"], refused["codeName"]) == (16500, "RequestRateTooLarge")
    assert refused["errorLabels"] == ["SystemOverloadedError", "RetryableError"]
    shown = re.match(r"Error=16500, RetryAfterMs=(\d+), Details='", refused["errmsg"])
    assert shown is not None
    assert refused["baseBackoffMS"] >= int(shown[1]) > 0
    first = command["documents"][0]["_id"]
    found = {"count": "users", "query": {"_id": first, "city": "rome"}}
    answers = (bare.command(found) for _ in range(1_000_000))
    assert next(answer for answer in answers if answer["ok"])["n"] == 0


def test_the_driver_backs_off_and_repeats_so_that_every_document_is_written_once(
    throttling: RunningServer, bare: BareClient
) -> None:
    create_small(bare)
    data = {"failCommands": ["insert"], "errorCode": 16500, "errorLabels": ["SystemOverloadedError", "RetryableError"]}
    address = f"mongodb://127.0.0.1:{throttling.ports['mongo']}/?replicaSet=globaldb"
    with MongoClient[dict[str, Any]](address) as mongo:
        mongo.admin.command("configureFailPoint", "failCommand", mode={"times": 2}, data=data)
        documents = [{"_id": number, "city": "rome"} for number in range(5)]
        assert len(mongo.shop.users.insert_many(documents).inserted_ids) == 5
    assert bare.command({"count": "users", "query": {"city": "rome"}})["n"] == 5


def test_a_batch_that_is_throttled_in_the_middle_tells_what_was_not_written(bare: BareClient) -> None:
    create_small(bare)
    documents = [{"_id": number, "city": f"c{number // 100}", "body": BODY} for number in range(3_000)]
    answer = bare.command({"insert": "users", "documents": documents})
    assert answer["ok"] == 1
    (error,) = answer["writeErrors"]
    assert (error["code"], error["index"]) == (16500, answer["n"])
    assert 0 < answer["n"] < 3_000


def test_a_retryable_batch_that_is_throttled_in_the_middle_can_be_repeated_as_a_whole(bare: BareClient) -> None:
    create_small(bare)
    documents = [{"_id": number, "city": f"c{number // 100}", "body": BODY} for number in range(1_000)]
    command = {"insert": "users", "documents": documents, **retryable(new_session(), 1)}
    answer = bare.command(command)
    assert (answer["ok"], answer["code"]) == (0, 16500)
    answers = (bare.command(command) for _ in range(1_000_000))
    assert next(answer for answer in answers if answer["ok"])["n"] == 1_000


def test_charges_are_told_and_depend_on_the_work(bare: BareClient) -> None:
    bare.command({"insert": "notes", "documents": [{"_id": 1, "body": "x" * 1_000}]})
    written = bare.command({"getLastRequestStatistics": 1})
    bare.command({"find": "notes", "filter": {"_id": 1}})
    read = bare.command({"getLastRequestStatistics": 1})
    assert (written["CommandName"], read["CommandName"]) == ("insert", "find")
    assert written["RequestCharge"] > read["RequestCharge"] >= 1


def test_a_server_may_hold_requests_until_there_are_units(tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("holding") / "data"
    with (
        running_server(data, "--mongo-server-side-retry", doors=("mongo",), alone=True) as server,
        bare_client(server) as bare,
    ):
        create_small(bare)
        documents = [{"_id": number, "city": "rome", "body": BODY} for number in range(100)]
        for place in range(8):
            renamed = [{**document, "_id": f"{place}-{document['_id']}"} for document in documents]
            assert bare.command({"insert": "users", "documents": renamed})["n"] == 100


def test_bulk_errors_of_the_driver_name_the_code(throttling: RunningServer, bare: BareClient) -> None:
    create_small(bare)
    address = f"mongodb://127.0.0.1:{throttling.ports['mongo']}/?replicaSet=globaldb&retryWrites=false"
    with MongoClient[dict[str, Any]](address) as mongo:
        documents = [{"_id": number, "city": f"c{number // 100}", "body": BODY} for number in range(3_000)]
        with pytest.raises(BulkWriteError) as stopped:
            mongo.shop.users.insert_many(documents)
    details = stopped.value.details
    assert details["writeErrors"][0]["code"] == 16500
    assert details["nInserted"] == details["writeErrors"][0]["index"]
