"""The server killed while a collection gets another shard key: the job goes on, and no acknowledged write is lost."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from tests.support.server import RunningServer, running_server

Client = MongoClient[dict[str, Any]]
NAMESPACE = "shop.users"
DOCUMENTS = 1000
WAIT_SECONDS_MAX = 180.0


def connected(server: RunningServer) -> Client:
    address = f"mongodb://127.0.0.1:{server.ports['mongo']}/?directConnection=true&retryWrites=false"
    return MongoClient(address, serverSelectionTimeoutMS=5000)


def is_under_way(client: Client) -> bool:
    found = client.shop.command({"customAction": "GetCollection", "collection": "users"})
    return "rekeying" in found


def write_until_killed(server: RunningServer, start: int, acknowledged: dict[Any, int]) -> None:
    with connected(server) as client:
        number = start
        try:
            while True:
                number += 1
                client.shop.users.insert_one({"_id": number, "city": number % 11, "n": number})
                acknowledged[number] = number
                changed = number % DOCUMENTS
                client.shop.users.update_one({"_id": changed}, {"$set": {"n": number}})
                acknowledged[changed] = number
        except PyMongoError:
            return


def ask(server: RunningServer, key: dict[str, Any]) -> None:
    with connected(server) as client:
        try:
            client.admin.command("reshardCollection", NAMESPACE, key=key)
        except PyMongoError:
            return


def test_a_re_keying_goes_on_after_kills_and_loses_nothing(tmp_path: Path) -> None:
    acknowledged = dict.fromkeys(range(DOCUMENTS), 0)
    patterns: list[dict[str, Any]] = [{"city": 1}, {"n2": 1}, {"_id": "hashed"}]
    with (
        running_server(tmp_path / "data", "--no-throttle", doors=("mongo",), alone=True) as server,
        connected(server) as client,
    ):
        client.admin.command("shardCollection", NAMESPACE, key={"_id": 1})
        client.shop.users.insert_many([{"_id": number, "city": number % 11, "n": 0} for number in acknowledged])
    for turn, pattern in enumerate(patterns):
        with running_server(
            tmp_path / "data",
            "--no-throttle",
            "--mongo-missing-shard-key",
            doors=("mongo",),
            alone=True,
        ) as server:
            with connected(server) as client:
                wait_until(lambda: not is_under_way(client))
                writer = threading.Thread(target=write_until_killed, args=(server, 10_000 * (turn + 1), acknowledged))
                asking = threading.Thread(target=ask, args=(server, pattern))
                writer.start()
                asking.start()
                wait_for_the_job(client, asking)
            # In another phase of the job each time.
            time.sleep(0.05 * turn)
            server.kill()
            writer.join()
            asking.join()
    with (
        running_server(tmp_path / "data", "--no-throttle", doors=("mongo",), alone=True) as server,
        connected(server) as client,
    ):
        wait_until(lambda: not is_under_way(client))
        found = client.config.collections.find_one({"_id": NAMESPACE})
        assert found is not None
        assert found["key"] == patterns[-1]
        kept = {user["_id"]: user["n"] for user in client.shop.users.find({})}
        assert {key: value for key, value in acknowledged.items() if kept.get(key, -1) < value} == {}
        assert client.shop.users.count_documents({}) == len(kept)


def wait_for_the_job(client: Client, asking: threading.Thread) -> None:
    wait_until(lambda: is_under_way(client) or not asking.is_alive())


def wait_until(is_so: Any) -> None:
    give_up_at = time.monotonic() + WAIT_SECONDS_MAX
    while not is_so():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
