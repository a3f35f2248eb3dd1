"""Collections of MongoDB's driver as operators see them: commands, metrics, splits and plans."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from bson import ObjectId
from pymongo import MongoClient

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.cli.client import AdminClient
from asterism.cli.failure import CommandFailed
from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment

Documents = dict[str, Any]


@pytest.fixture(scope="module")
def mongo(server: RunningServer) -> Iterator[MongoClient[Documents]]:
    address = f"mongodb://127.0.0.1:{server.ports['mongo']}/?replicaSet=globaldb"
    with MongoClient[Documents](address, serverSelectionTimeoutMS=30_000) as connected:
        yield connected


@pytest.fixture(scope="module")
def name(mongo: MongoClient[Documents]) -> Iterator[str]:
    """A database with an indexed collection, a sharded one and a view."""
    made = f"operated-{uuid.uuid4().hex[:8]}"
    shop = mongo[made]
    shop.users.insert_many([{"_id": number, "n": number % 3} for number in range(60)])
    shop.users.create_index([("n", 1), ("mail", -1)], name="by_n", unique=False, sparse=True)
    shop.letters.insert_one({"_id": 1})
    shop.create_collection("adults", viewOn="users", pipeline=[])
    shop.command({"customAction": "CreateCollection", "collection": "orders", "shardKey": "city"})
    cities: list[Any] = ["Rome", "Oslo", "Bern", "Graz", ObjectId("0" * 24)]
    shop.orders.insert_many([{"_id": place, "city": cities[place % 5]} for place in range(50)])
    yield made
    mongo.drop_database(made)


@pytest.fixture(scope="module")
def admin(server: RunningServer) -> AdminClient:
    return AdminClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=True)


def run_command(server: RunningServer, *arguments: str) -> str:
    finished = subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        env={**environment(), "ASTERISM_ENDPOINT": server.endpoint},
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_collections_are_listed_with_their_indexes(server: RunningServer, name: str) -> None:
    shown = json.loads(run_command(server, "collections", name, "--format", "json"))["collections"]
    by_name = {each["name"]: each for each in shown}
    assert list(by_name) == ["adults", "letters", "orders", "users"]
    assert [by_name[each]["type"] for each in by_name] == ["view", "collection", "collection", "collection"]
    assert by_name["orders"]["shard_key"] == {"city": "hashed"}
    assert (by_name["users"]["items"], by_name["users"]["shard_key"]) == (60, {})
    assert by_name["users"]["indexes"][1] == {
        "name": "by_n",
        "key": {"n": 1, "mail": -1},
        "options": {"sparse": True},
        "state": "ready",
    }
    table = run_command(server, "collections", name, "users")
    assert "by_n" in table
    assert "n: 1, mail: -1" in table


def test_unsharded_collections_are_logical_partitions_of_their_home(server: RunningServer, name: str) -> None:
    shown = json.loads(run_command(server, "partitions", name, "users", "--details", "--format", "json"))
    assert (shown["kind"], shown["collections"]) == ("collection", ["letters", "users"])
    sizes = {logical["partition_key"][0]: logical["items"] for logical in shown["largest"]}
    assert sizes == {"users": 60, "letters": 1}
    assert "shared by 2 collections" in run_command(server, "partitions", name, "system.home")


def test_a_sharded_collection_shows_its_shard_keys(admin: AdminClient, name: str) -> None:
    shown = admin.get("partitions", database=name, container="orders")
    assert shown["partition_key"]["paths"] == ["/city"]
    keys = {logical["partition_key"][0]: logical["items"] for logical in shown["largest"]}
    assert keys == {"Rome": 10, "Oslo": 10, "Bern": 10, "Graz": 10, "0" * 24: 10}
    assert {hot["partition_key"][0] for hot in shown["hottest"]} <= set(keys)
    assert admin.get("usage", database=name, container="orders")["partitions"][0]["id"] == "0"
    plan = admin.get("plan/throughput", database=name, container="orders", throughput="20000")
    assert (plan["allowed"], plan["partitions"]) == (True, {"now": 1, "after": 2})


def test_a_split_keeps_every_document(server: RunningServer, mongo: MongoClient[Documents], name: str) -> None:
    out = run_command(server, "split", name, "orders", "0", "--wait")
    assert f"{name}/orders is done: partitions 1 and 2" in out
    assert mongo[name].orders.count_documents({}) == 50
    out = run_command(server, "split", name, "system.home", "0", "--wait")
    assert f"{name}/system.home is done" in out
    assert mongo[name].users.count_documents({}) == 60


def test_the_overview_has_a_row_for_each_collection(admin: AdminClient, name: str) -> None:
    for sort in ("name", "bytes", "items", "ru"):
        shown = admin.get("overview", search=name, sort=sort)
        rows = {row["name"]: (row["kind"], row["items"], row["partition_key"]) for row in shown["collections"]}
        assert rows == {
            "letters": ("collection", 1, []),
            "orders": ("collection", 50, ["/city"]),
            "users": ("collection", 60, []),
        }
    (database,) = (found for found in admin.get("overview")["databases"] if found["name"] == name)
    assert (database["kind"], database["containers"]) == ("collection", 3)


def test_queries_of_operators_run_over_collections(server: RunningServer, admin: AdminClient, name: str) -> None:
    query = "SELECT VALUE c._id FROM c WHERE c.n = 1 ORDER BY c._id DESC"
    lines = run_command(server, "query", name, "users", query, "--format", "json").split()
    assert [int(line) for line in lines] == [number for number in range(59, -1, -1) if number % 3 == 1]
    body = {"database": name, "container": "orders", "query": "SELECT * FROM c WHERE c.city = 'Oslo'", "explain": True}
    explained = admin.post("query", body)
    assert (len(explained["results"]), explained["explanation"]["items_loaded"]) == (10, 10)


def test_what_does_not_exist_is_refused(admin: AdminClient, name: str) -> None:
    for route, asked in (
        ("partitions", {"database": name, "container": "missing"}),
        ("collections", {"database": name, "container": "missing"}),
        ("collections", {"database": "missing"}),
    ):
        with pytest.raises(CommandFailed):
            admin.get(route, **asked)
    with pytest.raises(CommandFailed, match="share their partitions"):
        admin.get("plan/delete", database=name, container="users")
