"""Two gateways over one fleet of PostgreSQL nodes: either can move partitions, and clients do not notice."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, PartitionKey

from tests.support.postgres import shared_server
from tests.support.rekey import until_true
from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment, running_server


def describe(path: Path, *names: str) -> Path:
    """A fleet file; each node is a database of its own."""
    server = shared_server()
    nodes = [f'[[node]]\nname = "{name}"\ndsn = "{server.dsn(f"gateways_{name}")}"\n' for name in names]
    path.write_text("".join(nodes))
    return path


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    for name in "abc":
        asyncio.run(shared_server().empty_database(f"gateways_{name}"))
    return describe(tmp_path / "fleet.toml", "a", "b")


@pytest.fixture
def gateways(tmp_path: Path, fleet_file: Path) -> Iterator[tuple[RunningServer, RunningServer]]:
    options = ("--fleet", str(fleet_file), "--no-throttle")
    # Alone: the number of other processes is reported, and checked.
    with (
        running_server(tmp_path / "one", *options, alone=True) as first,
        running_server(tmp_path / "two", *options, alone=True) as second,
    ):
        yield first, second


def run(server: RunningServer, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *words, "--endpoint", server.endpoint]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment(), timeout=2 * WAIT_SECONDS_MAX, check=False
    )


def answer_of(server: RunningServer, *words: str) -> Any:
    done = run(server, *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def nodes_of(server: RunningServer) -> list[str]:
    return [partition["node"] for partition in answer_of(server, "partitions", "shop", "orders")["partitions"]]


def served_by(server: RunningServer) -> int:
    """The request units that all gateways have served, as this one reports them."""
    return sum(node["ru_consumed"] for node in answer_of(server, "nodes")["nodes"])


class Writer(threading.Thread):
    def __init__(self, container: ContainerProxy, name: str) -> None:
        super().__init__()
        self.known: dict[str, int] = {}
        self.errors: list[Exception] = []
        self.stopping = threading.Event()
        self._container = container
        self._name = name

    def run(self) -> None:
        number = 0
        while not self.stopping.is_set():
            number += 1
            item_id = f"{self._name}-{number % 50}"
            try:
                self._container.upsert_item({"id": item_id, "pk": item_id, "n": number})
                self.known[item_id] = number
                assert self._container.read_item(item_id, item_id)["n"] == number
            except Exception as error:
                self.errors.append(error)


def container_at(server: RunningServer) -> ContainerProxy:
    return server.client().get_database_client("shop").get_container_client("orders")


def test_partitions_move_under_two_gateways_and_no_client_notices(
    gateways: tuple[RunningServer, RunningServer], fleet_file: Path, tmp_path: Path
) -> None:
    first, second = gateways
    database = first.client().create_database("shop")
    database.create_container("orders", PartitionKey("/pk"), offer_throughput=24_000)
    assert Counter(nodes_of(second)) == {"a": 2, "b": 2}
    writers = [Writer(container_at(server), name) for server, name in ((first, "x"), (second, "y"))]
    for writer in writers:
        writer.start()
    try:
        # The one that leads and the one that does not are asked alike.
        for server, target in ((first, "b"), (second, "a"), (first, "b"), (second, "a")):
            range_id = nodes_of(server).index("a" if target == "b" else "b")
            moved = run(server, "move", f"shop/orders/{range_id}", "--to", target, "--wait")
            assert moved.returncode == 0, moved.stderr
        refused = run(second, "migrate", "--from", str(fleet_file), "--to", str(tmp_path / "data"))
        assert "1 other processes serve the same data" in refused.stderr
        describe(fleet_file, "a", "b", "c")
        with running_server(tmp_path / "three", "--fleet", str(fleet_file), "--no-throttle") as three:
            # The older gateways hear of the new node, and find its address in the file.
            until_true(lambda: all(node["health"] == "ok" for node in answer_of(first, "nodes")["nodes"]))
            drained = run(three, "drain", "b")
            assert drained.returncode == 0, drained.stderr
            assert three.end() == (0, "")
        # Heard of from the gateway that made the moves.
        until_true(lambda: Counter(nodes_of(second)) == {"a": 2, "c": 2})
    finally:
        for writer in writers:
            writer.stopping.set()
            writer.join()
    assert [writer.errors for writer in writers] == [[], []]
    found = {item["id"]: item["n"] for item in container_at(first).read_all_items()}
    assert found == writers[0].known | writers[1].known
    # Either gateway reports the requests that both have served, as soon as the other one answers in time.
    until_true(lambda: served_by(first) == served_by(second) > 0)
