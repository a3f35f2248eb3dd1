"""kill -9 while edges are created, turned, deleted and created again: both directions agree afterwards (D11)."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import threading
from pathlib import Path

import pytest

from tests.support.incoming_edges import edge, false_entries
from tests.support.ports import free_port
from tests.support.raw import wait_until
from tests.support.server import PlainClient, RunningServer, running_server
from tests.support.world import open_world

ROUNDS = 3
WRITERS = 4
STORM_SECONDS = 0.6
LINK = "dbs/d/colls/c"
DEFINITION = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}


class Writer(threading.Thread):
    """A client that changes a few edges until the server is gone; all clients change the same ones."""

    def __init__(self, port: int, seed: int) -> None:
        super().__init__()
        self._port = port
        self._chance = random.Random(seed)
        self.answers: list[int] = []

    @property
    def has_written(self) -> bool:
        return not {200, 201, 204}.isdisjoint(self.answers)

    def run(self) -> None:
        client, chance = PlainClient(self._port), self._chance
        try:
            while True:
                edge_id, key = f"e{chance.randrange(30)}", f"k{chance.randrange(3)}"
                document = edge(edge_id, pk=key, sink=f"s{chance.randrange(3)}", sink_pk=f"k{chance.randrange(9)}")
                headers = {"x-ms-documentdb-partitionkey": json.dumps([key])}
                if chance.randrange(3):
                    headers["x-ms-documentdb-is-upsert"] = str(chance.randrange(2) == 0)
                    status, _, _ = client.send(
                        "POST", f"/{LINK}/docs/", document, resource_type="docs", link=LINK, headers=headers
                    )
                else:
                    link = f"{LINK}/docs/{edge_id}"
                    status, _, _ = client.send("DELETE", f"/{link}", resource_type="docs", link=link, headers=headers)
                self.answers.append(status)
        except (OSError, http.client.HTTPException):
            client.close()


def create_container(server: RunningServer, *, is_on: bool) -> None:
    client = PlainClient(server.port)
    client.send("POST", "/dbs", {"id": "d"}, resource_type="dbs", link="")
    # Several physical partitions.
    headers = {"x-ms-offer-throughput": "40000"}
    body = {**DEFINITION, "incomingEdges": True} if is_on else DEFINITION
    status, _, answer = client.send("POST", "/dbs/d/colls", body, resource_type="colls", link="dbs/d", headers=headers)
    assert status == 201, answer
    assert isinstance(answer, dict)
    assert answer.get("incomingEdges", False) is is_on
    client.close()


def switch(server: RunningServer, *, is_on: bool) -> None:
    client = PlainClient(server.port)
    body = {**DEFINITION, "incomingEdges": is_on}
    status, _, answer = client.send("PUT", f"/{LINK}", body, resource_type="colls", link=LINK)
    assert status == 200, answer
    client.close()


def storm(server: RunningServer, seed: int) -> None:
    writers = [Writer(server.port, seed * WRITERS + place) for place in range(WRITERS)]
    for writer in writers:
        writer.start()
    threading.Event().wait(STORM_SECONDS / 2)
    if seed % 2:
        # Half of the containers are being walked when the server is killed.
        switch(server, is_on=False)
        switch(server, is_on=True)
    threading.Event().wait(STORM_SECONDS / 2)
    assert wait_until(lambda: all(writer.has_written or not writer.is_alive() for writer in writers))
    server.kill()
    for writer in writers:
        writer.join()
        assert writer.has_written, "nothing was written before the kill"
        assert max(writer.answers) < 500


async def check_both_directions(data: Path) -> None:
    async with asyncio.timeout(180), open_world(data / "store") as world:
        (keyspace,) = world.catalog.keyspaces.values()
        container = world.store.container(world.catalog.databases[keyspace.record.database_rid], "c")
        await world.store.reindexer.finished(keyspace)
        assert container.has_all_incoming_edges
        assert len(keyspace.record.map.ranges) > 1
        await false_entries(world, container)
        await world.check_statistics(container)


@pytest.mark.parametrize("is_on", [True, False])
def test_every_edge_has_its_entry_after_kill_9(tmp_path: Path, is_on: bool) -> None:
    port = free_port()
    for seed in range(ROUNDS):
        with running_server(tmp_path, "--no-throttle", port=port, embedded=True) as server:
            if seed == 0:
                create_container(server, is_on=is_on)
            if seed == 0 and not is_on:
                switch(server, is_on=True)
            storm(server, seed)
        asyncio.run(check_both_directions(tmp_path))
