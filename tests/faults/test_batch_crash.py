"""The server killed in the middle of batches and of background deletions: each is whole, or not done at all."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from azure.cosmos import ContainerProxy, PartitionKey

from tests.support.ports import free_port
from tests.support.raw import wait_until
from tests.support.server import PlainClient, RunningServer, running_server
from tests.support.world import open_world

ROUNDS = 2
WRITERS = 3
BATCH_ITEMS = 20
DELETED_ITEMS = 6000
WAIT_SECONDS_MAX = 180.0

LINK = "dbs/d/colls/c"


class BatchWriter(threading.Thread):
    """A client that writes all items of one logical partition with one number per batch, until the server is gone."""

    def __init__(self, port: int, name: int) -> None:
        super().__init__()
        self._port = port
        self.key = f"k{name}"
        self.acknowledged = 0

    def run(self) -> None:
        client = PlainClient(self._port)
        headers = {
            "x-ms-documentdb-partitionkey": json.dumps([self.key]),
            "x-ms-cosmos-is-batch-request": "True",
            "x-ms-cosmos-batch-atomic": "True",
        }
        number = int(time.monotonic() * 1000)
        try:
            while True:
                number += 1
                body = [upsert(self.key, f"i{place}", number) for place in range(BATCH_ITEMS)]
                status, _, answer = client.send(
                    "POST", f"/{LINK}/docs/", body, resource_type="docs", link=LINK, headers=headers
                )
                assert status == 200, answer
                self.acknowledged = number
        except (OSError, http.client.HTTPException):
            client.close()


def upsert(key: str, item_id: str, number: int) -> dict[str, Any]:
    item = {"id": item_id, "pk": key, "n": number, "unique": f"{item_id}-{number}"}
    return {"operationType": "Upsert", "resourceBody": item}


def have_written(writers: list[BatchWriter]) -> bool:
    return all(writer.acknowledged or not writer.is_alive() for writer in writers)


def make_container(server: RunningServer) -> ContainerProxy:
    database = server.client().create_database_if_not_exists("d")
    return database.create_container_if_not_exists(
        "c", PartitionKey("/pk"), unique_key_policy={"uniqueKeys": [{"paths": ["/unique"]}]}, default_ttl=-1
    )


async def check_statistics(data: Path) -> None:
    async with open_world(data / "store") as world:
        (keyspace,) = world.catalog.keyspaces.values()
        database = world.catalog.databases[keyspace.record.database_rid]
        await world.check_statistics(world.store.container(database, "c"))


def test_a_batch_is_whole_or_not_at_all_after_kill_9(tmp_path: Path) -> None:
    port = free_port()
    for _ in range(ROUNDS):
        with running_server(tmp_path, "--no-throttle", port=port) as server:
            make_container(server)
            writers = [BatchWriter(server.port, name) for name in range(WRITERS)]
            for writer in writers:
                writer.start()
            threading.Event().wait(0.6)
            assert wait_until(partial(have_written, writers))
            server.kill()
            for writer in writers:
                writer.join()
        with running_server(tmp_path, "--no-throttle", port=port) as server:
            container = make_container(server)
            for writer in writers:
                numbers = [item["n"] for item in container.query_items("SELECT * FROM c", partition_key=writer.key)]
                assert len(numbers) == BATCH_ITEMS
                assert len(set(numbers)) == 1
                assert writer.acknowledged > 0
                assert numbers[0] in (writer.acknowledged, writer.acknowledged + 1)
    asyncio.run(check_statistics(tmp_path))


def test_a_deletion_by_key_that_was_answered_is_finished_after_kill_9(tmp_path: Path) -> None:
    port = free_port()
    with running_server(tmp_path, "--no-throttle", port=port) as server:
        container = make_container(server)
        for first in range(0, DELETED_ITEMS, 100):
            many: Any = [("create", (item("gone", number),)) for number in range(first, first + 100)]
            container.execute_item_batch(many, "gone")
        container.create_item(item("stays", 1))
        # Answered when all is deleted, or when the task is recorded and has run for a while.
        container.delete_all_items_by_partition_key("gone")
        server.kill()
    with running_server(tmp_path, "--no-throttle", port=port) as server:
        container = make_container(server)
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        left = ["?"]
        while left != ["stays"] and time.monotonic() < deadline:
            left = [found["pk"] for found in container.read_all_items(max_item_count=1000)]
    assert left == ["stays"]
    asyncio.run(check_statistics(tmp_path))


def item(key: str, number: int) -> dict[str, Any]:
    return {"id": f"i{number}", "pk": key, "unique": number}
