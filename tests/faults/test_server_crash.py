"""The server killed, again and again, under load; and a full disk."""

from __future__ import annotations

import asyncio
import http.client
import resource
import threading
from pathlib import Path

from azure.cosmos import ContainerProxy, PartitionKey

from asterism.limits import MIB
from tests.support.ports import free_port
from tests.support.raw import wait_until
from tests.support.server import PlainClient, RunningServer, running_server
from tests.support.world import open_world

ROUNDS = 4
WRITERS = 4


class Writer(threading.Thread):
    """A client that upserts until the server is gone, with the acknowledged numbers and the unanswered attempt."""

    def __init__(self, port: int, name: int, start_number: int) -> None:
        super().__init__()
        self._port = port
        self._name = name
        self.number = start_number
        self.acknowledged: dict[str, int] = {}
        self.attempted: tuple[str, int] | None = None

    def run(self) -> None:
        client = PlainClient(self._port)
        try:
            while True:
                self.number += 1
                item_id = f"{self._name}-{self.number % 40}"
                self.attempted = (item_id, self.number)
                item: dict[str, object] = {"id": item_id, "pk": f"k{self.number % 7}{item_id}", "n": self.number}
                # One partition key per id, so that an id is one item.
                item["pk"] = item_id
                status, _, answer = client.write_item("c", item, key=item_id)
                assert status in (200, 201), answer
                self.acknowledged[item_id] = self.number
                self.attempted = None
        except (OSError, http.client.HTTPException):
            client.close()


def make_container(server: RunningServer) -> ContainerProxy:
    database = server.client().create_database_if_not_exists("d")
    return database.create_container_if_not_exists("c", PartitionKey("/pk"))


def write_and_kill(server: RunningServer, round_number: int) -> list[Writer]:
    writers = [Writer(server.port, name, round_number * 100_000) for name in range(WRITERS)]
    for writer in writers:
        writer.start()
    threading.Event().wait(0.7)
    assert wait_until(lambda: all(writer.acknowledged or not writer.is_alive() for writer in writers))
    server.kill()
    for writer in writers:
        writer.join()
    return writers


def test_every_acknowledged_write_survives_kill_9_in_a_loop(tmp_path: Path) -> None:
    port = free_port()
    known: dict[str, int] = {}
    for round_number in range(1, ROUNDS + 1):
        with running_server(tmp_path, "--no-throttle", port=port) as server:
            make_container(server)
            writers = write_and_kill(server, round_number)
        open_attempts: dict[str, int] = {}
        for writer in writers:
            assert writer.acknowledged, "nothing was written before the kill"
            known.update(writer.acknowledged)
            open_attempts.update([writer.attempted] if writer.attempted else [])
        with running_server(tmp_path, "--no-throttle", port=port) as server:
            found = {item["id"]: item["n"] for item in make_container(server).read_all_items()}
        for item_id, number in found.items():
            assert number in (known.get(item_id), open_attempts.get(item_id))
        assert known.keys() <= found.keys()
        known = found
    asyncio.run(check_statistics(tmp_path))


async def check_statistics(data: Path) -> None:
    async with open_world(data / "store") as world:
        (keyspace,) = world.catalog.keyspaces.values()
        database = world.catalog.databases[keyspace.record.database_rid]
        await world.check_statistics(world.store.container(database, "c"))


def test_a_full_disk_refuses_writes_cleanly_and_recovers(tmp_path: Path) -> None:
    # A limit on the size of files is a full disk that a test can make and unmake.
    room = 8 * MIB

    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

    with running_server(tmp_path, "--no-throttle", before_start=limit_files) as server:
        make_container(server)
        client = PlainClient(server.port)
        written: list[str] = []
        status, answer = 201, None
        while status == 201:
            item_id = f"i{len(written)}"
            status, _, answer = client.write_item("c", {"id": item_id, "pk": "a", "pad": "x" * 100_000}, key="a")
            written += [item_id] if status == 201 else []
        assert status == 507
        assert isinstance(answer, dict)
        assert "no room" in answer["message"]
        container = make_container(server)
        assert sorted(item["id"] for item in container.query_items("SELECT * FROM c", partition_key="a")) == sorted(
            written
        )
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        status, _, answer = client.write_item("c", {"id": "after", "pk": "a"}, key="a")
        assert status == 201, answer
        assert len(list(container.read_all_items())) == len(written) + 1
