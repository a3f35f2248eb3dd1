"""The program over a fleet of three stores: what an operator does with nodes, through a running server."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, PartitionKey

from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment, running_server

FLEET = """
[fleet]
name = "test"

[[node]]
name = "a"
dsn = "lmdb:a"
regions = ["eu"]

[[node]]
name = "b"
dsn = "lmdb:b"
regions = ["eu"]

[[node]]
name = "c"
dsn = "lmdb:c"
regions = ["us"]

[[placement.rule]]
containers = "*/spread"
spread = true
"""


@contextmanager
def running_fleet(directory: Path) -> Iterator[RunningServer]:
    fleet_file = directory / "fleet.toml"
    fleet_file.write_text(FLEET)
    with running_server(directory / "data", "--fleet", str(fleet_file), "--no-throttle") as running:
        yield running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with running_fleet(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with a container `shop/orders`, for commands that change nothing."""
    with running_fleet(tmp_path_factory.mktemp("fleet")) as running:
        container_of(running, "orders", 400)
        yield running


def run(server: RunningServer, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words, "--endpoint", server.endpoint],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=2 * WAIT_SECONDS_MAX,
        check=False,
    )


def answer_of(server: RunningServer, *words: str) -> Any:
    done = run(server, *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def container_of(server: RunningServer, name: str, throughput: int) -> ContainerProxy:
    database = server.client().create_database_if_not_exists("shop")
    return database.create_container(name, PartitionKey("/pk"), offer_throughput=throughput)


def nodes_of(server: RunningServer, container: str) -> list[str]:
    return [partition["node"] for partition in answer_of(server, "partitions", "shop", container)["partitions"]]


def test_a_fleet_places_moves_rebalances_and_drains_under_load(server: RunningServer) -> None:
    assert "Fleet              test: a, b, c" in server.greeting
    container = container_of(server, "spread", 36_000)
    assert Counter(nodes_of(server, "spread")) == {"a": 2, "b": 2, "c": 2}

    # A client that never stops, and must never see an error.
    stopping, known, errors = threading.Event(), {}, []

    def write() -> None:
        number = 0
        while not stopping.is_set():
            number += 1
            try:
                item = {"id": str(number % 200), "pk": str(number % 200), "n": number}
                container.upsert_item(item)
                known[item["id"]] = number
                assert container.read_item(item["id"], item["pk"])["n"] == number
            except Exception as error:
                errors.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        home = nodes_of(server, "spread")[0]
        target = "c" if home != "c" else "b"
        moved = run(server, "move", "shop/spread/0", "--to", target, "--wait")
        assert moved.returncode == 0, moved.stderr
        assert "The move of partition 0 of shop/spread is done" in moved.stdout
        assert nodes_of(server, "spread")[0] == target

        planned = answer_of(server, "rebalance")
        assert len(planned["moves"]) >= 1
        applied = run(server, "rebalance", "--apply")
        assert applied.returncode == 0, applied.stderr
        assert "made." in applied.stdout
        assert Counter(nodes_of(server, "spread")) == {"a": 2, "b": 2, "c": 2}
        assert answer_of(server, "rebalance")["moves"] == []

        drained = run(server, "drain", "b")
        assert drained.returncode == 0, drained.stderr
        assert "can be shut down" in drained.stdout
        assert Counter(nodes_of(server, "spread")) == {"a": 3, "c": 3}
    finally:
        stopping.set()
        writer.join()
    assert errors == []
    assert len(known) > 20
    found = {item["id"]: item["n"] for item in container.read_all_items()}
    assert found == known
    by_name = {node["name"]: node for node in answer_of(server, "nodes")["nodes"]}
    assert [by_name[name]["state"] for name in "abc"] == ["online", "removed", "online"]
    assert [by_name[name]["partitions"] for name in "abc"] == [3, 0, 3]
    assert {node["health"] for node in by_name.values()} == {"ok"}
    assert "a (catalog)" in run(server, "nodes").stdout


def test_a_container_is_kept_in_a_region(server: RunningServer) -> None:
    container_of(server, "orders", 24_000)
    assert run(server, "placement", "shop", "orders", "--label", "us").stdout.startswith(
        "shop/orders: on nodes with us. Partitions: "
    )
    assert answer_of(server, "placement", "shop", "orders")["is_default"] is False
    assert run(server, "rebalance", "--apply").returncode == 0
    assert set(nodes_of(server, "orders")) == {"c"}
    refused = run(server, "drain", "c")
    assert refused.returncode == 1
    assert "4 partitions cannot move" in refused.stderr
    assert "shop/orders/0" in refused.stderr
    assert run(server, "drain", "c", "--undo").returncode == 0
    assert run(server, "placement", "shop", "orders", "--default").stdout.count("the fleet's default") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["move", "shop/0", "--to", "b"], "is not a partition"),
        (["move", "shop/orders/0", "--to", "z"], "There is no node 'z'."),
        (["drain", "z"], "There is no node 'z'."),
    ],
)
def test_a_command_that_fails_is_refused_in_one_line(unchanged: RunningServer, words: list[str], said: str) -> None:
    done = run(unchanged, *words)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
