"""A fleet of two PostgreSQL nodes for tests that break it: servers, gateways, and clients that never stop."""

from __future__ import annotations

import http.client
import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from azure.cosmos import ContainerProxy, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from tests.support.server import PROGRAM, PlainClient, RunningServer, environment, running_server

DATABASE = "d"
CONTAINER = "c"
LINK = f"dbs/{DATABASE}/colls/{CONTAINER}"
# What a client may be told while a part of the fleet is away: try again.
MAY_BE_TOLD = {449, 503}
WAIT_SECONDS_MAX = 60.0


def fleet_file(path: Path, **addresses: str) -> Path:
    """A description of nodes by name; the first has the catalog."""
    path.write_text("".join(f'[[node]]\nname = "{name}"\ndsn = "{dsn}"\n' for name, dsn in addresses.items()))
    return path


@contextmanager
def gateway(data: Path, fleet: Path, *options: str) -> Iterator[RunningServer]:
    """One process: how many there are is what these tests are about."""
    with running_server(data, "--fleet", str(fleet), "--no-throttle", *options, alone=True) as running:
        yield running


def make_container(server: RunningServer, *, throughput: int = 12_000, **settings: Any) -> ContainerProxy:
    """Two partitions, one on each node."""
    database = server.client().create_database(DATABASE)
    return database.create_container(CONTAINER, PartitionKey("/pk"), offer_throughput=throughput, **settings)


def container_at(server: RunningServer) -> ContainerProxy:
    return server.client().get_database_client(DATABASE).get_container_client(CONTAINER)


def run(server: RunningServer, *words: str) -> str:
    command = [*PROGRAM, *words, "--endpoint", server.endpoint]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def partitions(server: RunningServer) -> list[dict[str, Any]]:
    told = json.loads(run(server, "partitions", DATABASE, CONTAINER, "--format", "json"))
    return list(told["partitions"])


def until(is_so: Callable[[], bool], *, what: str, seconds_max: float = WAIT_SECONDS_MAX) -> None:
    give_up_at = time.monotonic() + seconds_max
    while not is_so():
        assert time.monotonic() < give_up_at, what
        time.sleep(0.05)


def read_item(client: PlainClient, name: str, **headers: str) -> tuple[int, dict[str, str], Any]:
    sent = {"x-ms-documentdb-partitionkey": json.dumps([name]), **headers}
    link = f"{LINK}/docs/{name}"
    return client.send("GET", f"/{link}", resource_type="docs", link=link, headers=sent)


@dataclass
class Told:
    """What the clients were told."""

    acknowledged: set[str] = field(default_factory=set)
    refused: Counter[int] = field(default_factory=Counter)
    attempted: set[str] = field(default_factory=set)
    # Additions to a number: those acknowledged, and those of which a client cannot know.
    added: int = 0
    unknown: int = 0
    surprises: list[str] = field(default_factory=list)


class Clients(threading.Thread):
    """Creates items, reads them back and counts them in a number, through one gateway and without any retry: every
    answer is looked at."""

    def __init__(self, server: RunningServer, name: str, *, is_doomed: bool = False) -> None:
        """`is_doomed`: the gateway will be killed, and what was asked of it last is not known."""
        super().__init__(daemon=True)
        self.told = Told()
        self._is_doomed = is_doomed
        self._server = server
        self._name = name
        self._stopping = threading.Event()
        self._counter = f"counter-{name}"

    def run(self) -> None:
        client = PlainClient(self._server.port)
        number = 0
        try:
            client.write_item(CONTAINER, {"id": self._counter, "pk": self._counter, "n": 0}, key=self._counter)
            while not self._stopping.is_set():
                number += 1
                self._create(client, f"{self._name}-{number}")
                self._add(client)
        except (OSError, http.client.HTTPException) as problem:
            self.told.unknown += 1
            if not self._is_doomed:
                self.told.surprises.append(repr(problem))

    def _create(self, client: PlainClient, name: str) -> None:
        told = self.told
        told.attempted.add(name)
        headers = {"x-ms-documentdb-partitionkey": json.dumps([name])}
        status, answered, body = client.send(
            "POST", f"/{LINK}/docs", {"id": name, "pk": name}, resource_type="docs", link=LINK, headers=headers
        )
        if status != 201:
            self._refused(status, body)
            return
        told.acknowledged.add(name)
        # Without its session it might be a standby that answers, with what was there before.
        session = {"x-ms-session-token": answered["x-ms-session-token"]}
        status, _, body = read_item(client, name, **session)
        if status != 200:
            self._refused(status, body)

    def _add(self, client: PlainClient) -> None:
        link = f"{LINK}/docs/{self._counter}"
        headers = {"x-ms-documentdb-partitionkey": json.dumps([self._counter])}
        body = {"operations": [{"op": "incr", "path": "/n", "value": 1}]}
        status, _, told = client.send("PATCH", f"/{link}", body, resource_type="docs", link=link, headers=headers)
        if status == 200:
            self.told.added += 1
        else:
            self.told.unknown += 1
            self._refused(status, told)

    def _refused(self, status: int, body: object) -> None:
        self.told.refused[status] += 1
        if status not in MAY_BE_TOLD:
            self.told.surprises.append(f"{status} {body}")

    def wait_for_more(self, count: int = 10) -> None:
        wanted = len(self.told.acknowledged) + count
        until(
            lambda: len(self.told.acknowledged) >= wanted or not self.is_alive(),
            what=f"{self._name} does not get on: {self.told.refused}",
        )

    def end(self) -> Told:
        self._stopping.set()
        self.join(WAIT_SECONDS_MAX)
        assert not self.is_alive()
        return self.told


class OfficialClient(threading.Thread):
    """The vendor's client with its own retries: what it raises in the end is what a program has to deal with."""

    def __init__(self, server: RunningServer) -> None:
        super().__init__(daemon=True)
        self.known: dict[str, int] = {}
        self.refused: Counter[int] = Counter()
        self.surprises: list[str] = []
        self._container = container_at(server)
        self._stopping = threading.Event()

    def run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            name = f"official-{number % 20}"
            try:
                self._container.upsert_item({"id": name, "pk": name, "n": number})
                self.known[name] = number
                found = self._container.read_item(name, name)["n"]
                if found != number:
                    self.surprises.append(f"{name} is {found} and was made {number}")
            except CosmosHttpResponseError as problem:
                self.known.pop(name, None)
                self.refused[problem.status_code] += 1
                if problem.status_code not in MAY_BE_TOLD:
                    self.surprises.append(str(problem))
            except Exception as problem:
                self.surprises.append(repr(problem))
                return

    def end(self) -> None:
        self._stopping.set()
        self.join(WAIT_SECONDS_MAX)
        assert not self.is_alive()


def check(container: ContainerProxy, *told_by: Told) -> None:
    """Nothing acknowledged is lost, nothing is there twice or that nobody wrote, and no addition was made twice."""
    items = [(item["id"], item.get("n")) for item in container.read_all_items()]
    found = dict(items)
    assert len(found) == len(items)
    for told in told_by:
        assert not told.surprises, told.surprises
        assert told.acknowledged <= found.keys()
    written = {name for name in found if not name.startswith(("counter-", "official-"))}
    assert written <= set().union(*(told.attempted for told in told_by))
    numbers = sorted(number for name, number in items if name.startswith("counter-"))
    assert sum(told.added for told in told_by) <= sum(numbers)
    assert sum(numbers) <= sum(told.added + told.unknown for told in told_by)
