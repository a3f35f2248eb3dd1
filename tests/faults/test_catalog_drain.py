"""The node that has the catalog is drained like any other: under load, under kill -9, and for good."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.faults.catalog_victim import POINTS
from tests.faults.fleet_of_two import (
    DATABASE,
    RETRY_STATUSES,
    Clients,
    check,
    container_at,
    fleet_file,
    gateway,
    make_container,
    run,
    until,
)
from tests.support.postgres import shared_server
from tests.support.server import PROJECT, PlainClient, RunningServer, environment


@pytest.fixture
def addresses() -> dict[str, str]:
    return {name: asyncio.run(shared_server().empty_database(f"catalog_{name}")) for name in "ab"}


class Creator(threading.Thread):
    """A client that makes containers, one after the other, each of which changes the catalog."""

    def __init__(self, server: RunningServer, name: str) -> None:
        super().__init__(daemon=True)
        self.made: list[str] = []
        # Those whose creation was refused for now: what has become of them is not known.
        self.unknown: list[str] = []
        self.surprises: list[object] = []
        self._server = server
        self._name = name
        self._stopping = threading.Event()

    def run(self) -> None:
        client, link, number = PlainClient(self._server.port), f"dbs/{DATABASE}", 0
        while not self._stopping.is_set():
            number += 1
            name = f"{self._name}{number}"
            body = {"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
            status, _, answer = client.send("POST", f"/{link}/colls", body, resource_type="colls", link=link)
            if status == 201:
                self.made.append(name)
            elif status in RETRY_STATUSES:
                self.unknown.append(name)
            else:
                self.surprises.append((status, answer))
            # Each of them is moved in the end.
            self._stopping.wait(0.3)

    def end(self) -> list[str]:
        self._stopping.set()
        self.join(180)
        assert not self.is_alive()
        assert not self.surprises
        return self.made


def nodes(server: RunningServer) -> dict[str, tuple[str, bool]]:
    """Return the state of each node, and True for the one that has the catalog."""
    listed = json.loads(run(server, "nodes", "--format", "json"))["nodes"]
    return {node["name"]: (node["state"], node["catalog"]) for node in listed}


def containers(server: RunningServer) -> set[str]:
    return {container["id"] for container in server.client().get_database_client(DATABASE).list_containers()}


def test_the_catalog_leaves_its_node_and_no_client_of_any_gateway_notices(
    tmp_path: Path, addresses: dict[str, str]
) -> None:
    file = fleet_file(tmp_path / "fleet.toml", **addresses)
    with gateway(tmp_path / "first", file) as first, gateway(tmp_path / "second", file) as second:
        make_container(first)
        clients = [Clients(first, "first"), Clients(second, "second")]
        creators = [Creator(first, "m"), Creator(second, "n")]
        for each in (*clients, *creators):
            each.start()
        clients[0].wait_for_more()
        assert "The catalog is on b." in run(second, "drain", "a")
        for each in clients:
            each.wait_for_more()
        drained = {"a": ("removed", False), "b": ("online", True)}
        until(lambda: nodes(first) == nodes(second) == drained, what="not all gateways follow")
        before = [len(creator.made) for creator in creators]
        until(
            lambda: all(len(creator.made) > count for creator, count in zip(creators, before, strict=True)),
            what="stuck",
        )
        made = {"c"}.union(*(creator.end() for creator in creators))
        unknown = {name for creator in creators for name in creator.unknown}
        answers = [each.end() for each in clients]
        assert [each.refused for each in answers] == [{}, {}]
        check(container_at(second), *answers)
        until(
            lambda: containers(first) == containers(second) and made <= containers(first) <= made | unknown,
            what="not all containers are known",
        )
        made = containers(first)
        # A description that still names the old place is led to the new one; and back it goes.
        with gateway(tmp_path / "third", file) as third:
            assert containers(third) == made
            run(third, "drain", "a", "--undo")
            assert "The catalog is on a." in run(third, "drain", "b")
            until(lambda: nodes(first) == {"a": ("online", True), "b": ("removed", False)}, what="it is not followed")
            assert third.end()[0] == 0
        until(lambda: containers(first) == containers(second) == made, what="not all containers are known")
    without_b = fleet_file(tmp_path / "without.toml", a=addresses["a"])
    with gateway(tmp_path / "fourth", without_b) as fourth:
        assert containers(fourth) == made


@pytest.mark.parametrize("point", POINTS)
def test_a_leader_that_dies_while_it_moves_the_catalog_leaves_nothing_undone(
    tmp_path: Path, addresses: dict[str, str], point: str
) -> None:
    file = fleet_file(tmp_path / "fleet.toml", **addresses)
    command = [sys.executable, "-m", "tests.faults.catalog_victim", str(file), str(tmp_path / "victim"), point]
    with subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    ) as victim:
        assert victim.stdin is not None
        assert victim.stdout is not None
        assert victim.stdout.readline() == "leads\n"
        with gateway(tmp_path / "survivor", file) as survivor:
            make_container(survivor)
            client = Clients(survivor, "client")
            client.start()
            client.wait_for_more()
            victim.stdin.write("now\n")
            victim.stdin.flush()
            assert victim.wait(180) == -signal.SIGKILL
            assert victim.stdout.read() == ""
            until(lambda: nodes(survivor) == {"a": ("removed", False), "b": ("online", True)}, what="not drained")
            client.wait_for_more()
            answers = client.end()
            assert answers.refused.keys() <= RETRY_STATUSES
            check(container_at(survivor), answers)
            creator = Creator(survivor, "m")
            creator.start()
            until(lambda: len(creator.made) > 3, what="no containers can be made")
            made = {*creator.end(), "c"}
            assert made <= containers(survivor) <= made.union(creator.unknown)
            assert survivor.end()[0] == 0
