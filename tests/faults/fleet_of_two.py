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
# The statuses that a client may get while a part of the fleet is away: they ask for a retry.
RETRY_STATUSES = {449, 503}
WAIT_SECONDS_MAX = 180.0


def fleet_file(path: Path, **addresses: str) -> Path:
    """Write a description of nodes by name; the first has the catalog."""
    path.write_text("".join(f'[[node]]\nname = "{name}"\ndsn = "{dsn}"\n' for name, dsn in addresses.items()))
    return path


@contextmanager
def gateway(data: Path, fleet: Path, *options: str) -> Iterator[RunningServer]:
    """Run a gateway as one process, because these tests count them."""
    with running_server(data, "--fleet", str(fleet), "--no-throttle", *options, alone=True) as running:
        yield running


def make_container(server: RunningServer, *, throughput: int = 12_000, **settings: Any) -> ContainerProxy:
    """Make a container with two partitions, one on each node."""
    database = server.client().create_database(DATABASE)
    return database.create_container(CONTAINER, PartitionKey("/pk"), offer_throughput=throughput, **settings)


def container_at(server: RunningServer) -> ContainerProxy:
    return server.client().get_database_client(DATABASE).get_container_client(CONTAINER)


def run(server: RunningServer, *words: str) -> str:
    command = [*PROGRAM, *words, "--endpoint", server.endpoint]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def partitions(server: RunningServer) -> list[dict[str, Any]]:
    report = json.loads(run(server, "partitions", DATABASE, CONTAINER, "--format", "json"))
    return list(report["partitions"])


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
class Answers:
    """The answers that the clients got."""

    acknowledged: set[str] = field(default_factory=set)
    refused: Counter[int] = field(default_factory=Counter)
    attempted: set[str] = field(default_factory=set)
    # Additions to a number: those acknowledged, and those with an unknown outcome.
    added: int = 0
    unknown: int = 0
    surprises: list[str] = field(default_factory=list)


class Clients(threading.Thread):
    """Clients that create items, read them back and count them in a number, through one gateway.

    They do not retry, and check every answer.
    """

    def __init__(self, server: RunningServer, name: str, *, is_doomed: bool = False) -> None:
        """`is_doomed`: the gateway will be killed, and the outcome of the last request is unknown."""
        super().__init__(daemon=True)
        self.answers = Answers()
        self._is_doomed = is_doomed
        self._server = server
        self._name = name
        self._stopping = threading.Event()
        self._counter = f"counter-{name}"

    def run(self) -> None:
        client = PlainClient(self._server.port)
        number = 0
        try:
            self._make_counter(client)
            while not self._stopping.is_set():
                number += 1
                self._create(client, f"{self._name}-{number}")
                self._add(client)
        except (OSError, http.client.HTTPException) as problem:
            self.answers.unknown += 1
            if not self._is_doomed:
                self.answers.surprises.append(repr(problem))

    def _make_counter(self, client: PlainClient) -> None:
        counter: dict[str, object] = {"id": self._counter, "pk": self._counter, "n": 0}
        status, _, body = client.write_item(CONTAINER, counter, key=self._counter)
        while status not in (200, 201) and not self.answers.surprises:
            self._note_refusal(status, body)
            status, _, body = client.write_item(CONTAINER, counter, key=self._counter)

    def _create(self, client: PlainClient, name: str) -> None:
        answers = self.answers
        answers.attempted.add(name)
        headers = {"x-ms-documentdb-partitionkey": json.dumps([name])}
        status, answered, body = client.send(
            "POST", f"/{LINK}/docs", {"id": name, "pk": name}, resource_type="docs", link=LINK, headers=headers
        )
        if status != 201:
            self._note_refusal(status, body)
            return
        answers.acknowledged.add(name)
        # Without its session it might be a standby that answers, with what was there before.
        session = {"x-ms-session-token": answered["x-ms-session-token"]}
        status, _, body = read_item(client, name, **session)
        if status != 200:
            self._note_refusal(status, body)

    def _add(self, client: PlainClient) -> None:
        link = f"{LINK}/docs/{self._counter}"
        headers = {"x-ms-documentdb-partitionkey": json.dumps([self._counter])}
        body = {"operations": [{"op": "incr", "path": "/n", "value": 1}]}
        status, _, answer = client.send("PATCH", f"/{link}", body, resource_type="docs", link=link, headers=headers)
        if status == 200:
            self.answers.added += 1
        else:
            self.answers.unknown += 1
            self._note_refusal(status, answer)

    def _note_refusal(self, status: int, body: object) -> None:
        self.answers.refused[status] += 1
        if status not in RETRY_STATUSES:
            self.answers.surprises.append(f"{status} {body}")

    def wait_for_more(self, count: int = 10) -> None:
        wanted = len(self.answers.acknowledged) + count
        until(
            lambda: len(self.answers.acknowledged) >= wanted or not self.is_alive(),
            what=f"{self._name} does not get on: {self.answers.refused}",
        )

    def end(self) -> Answers:
        self._stopping.set()
        self.join(WAIT_SECONDS_MAX)
        assert not self.is_alive()
        return self.answers


class OfficialClient(threading.Thread):
    """The vendor's client with its own retries: a program has to handle the errors that remain."""

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
                if problem.status_code not in RETRY_STATUSES:
                    self.surprises.append(str(problem))
            except Exception as problem:
                self.surprises.append(repr(problem))
                return

    def end(self) -> None:
        self._stopping.set()
        self.join(WAIT_SECONDS_MAX)
        assert not self.is_alive()


def check(container: ContainerProxy, *answers_of_clients: Answers) -> None:
    """Check that every acknowledged item exists once, no other does, and no addition was made twice."""
    items = [(item["id"], item.get("n")) for item in container.read_all_items()]
    found = dict(items)
    assert len(found) == len(items)
    for answers in answers_of_clients:
        assert not answers.surprises, answers.surprises
        assert answers.acknowledged <= found.keys()
    written = {name for name in found if not name.startswith(("counter-", "official-"))}
    assert written <= set().union(*(answers.attempted for answers in answers_of_clients))
    numbers = sorted(number for name, number in items if name.startswith("counter-"))
    assert sum(answers.added for answers in answers_of_clients) <= sum(numbers)
    assert sum(numbers) <= sum(answers.added + answers.unknown for answers in answers_of_clients)
