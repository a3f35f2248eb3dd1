"""`asterism serve --workers N`: several processes on one port, over one store, as one server."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.cosmos import ContainerProxy, PartitionKey

from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, PlainClient, RunningServer, environment, running_server

WORKERS = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("workers") / "data", "--workers", str(WORKERS)) as running:
        yield running


def children(process: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def until(is_so: object, *, what: str) -> None:
    give_up_at = time.monotonic() + WAIT_SECONDS_MAX
    assert callable(is_so)
    while not is_so():
        assert time.monotonic() < give_up_at, what
        time.sleep(0.05)


# --- one server for its clients -------------------------------------------------------------------------------------


def test_a_resource_is_usable_on_every_connection_once_it_is_created(server: RunningServer) -> None:
    """Each connection is served by one of the workers, and there are more connections than workers."""
    clients = [PlainClient(server.port) for _ in range(4 * WORKERS)]
    for number, client in enumerate(clients):
        status, _, _ = client.send("POST", "/dbs", {"id": f"d{number}"}, resource_type="dbs", link="")
        assert status == 201
        body = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        link = f"dbs/d{number}"
        status, _, _ = client.send("POST", f"/{link}/colls", body, resource_type="colls", link=link)
        assert status == 201
        for other in clients:
            status, _, _ = other.send("POST", f"/{link}/colls", body, resource_type="colls", link=link)
            assert status == 409
        coll = f"{link}/colls/c"
        key = {"x-ms-documentdb-partitionkey": '["a"]'}
        item = {"id": "1", "pk": "a", "n": number}
        created = client.send("POST", f"/{coll}/docs", item, resource_type="docs", link=coll, headers=key)
        assert created[0] == 201
        for other in clients:
            status, _, answer = other.send(
                "GET",
                f"/{coll}/docs/1",
                resource_type="docs",
                link=f"{coll}/docs/1",
                # The session of the writer is kept, whichever process answers.
                headers={**key, "x-ms-session-token": created[1]["x-ms-session-token"]},
            )
            assert status == 200, answer
        assert clients[-number].send("DELETE", f"/{link}", resource_type="dbs", link=link)[0] == 204
        for other in clients:
            status, _, _ = other.send(
                "GET", f"/{coll}/docs/1", resource_type="docs", link=f"{coll}/docs/1", headers=key
            )
            assert status == 404
    for client in clients:
        client.close()


class Writer(threading.Thread):
    """A client that replaces its own item as fast as it may, and records the request units granted over time."""

    def __init__(self, server: RunningServer, name: int) -> None:
        super().__init__()
        self._client = PlainClient(server.port)
        self._item: dict[str, object] = {"id": str(name), "pk": str(name), "pad": "x" * 60_000}
        self.granted: list[tuple[float, float]] = []
        self.throttled = 0
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.is_set():
            status, headers, answer = self._client.write_item("budget", self._item, key=str(self._item["id"]))
            if status == 429:
                self.throttled += 1
                time.sleep(min(float(headers["x-ms-retry-after-ms"]) / 1000, 0.2))
            else:
                assert status in (200, 201), answer
                self.granted.append((time.monotonic(), float(headers["x-ms-request-charge"])))


def test_request_unit_budgets_hold_over_all_workers_together(server: RunningServer) -> None:
    # From 3,000 RU/s on there is no burst capacity beside the budget.
    budget = 3_000
    database = server.client().create_database_if_not_exists("d")
    database.create_container(
        "budget", PartitionKey("/pk"), indexing_policy={"indexingMode": "none"}, offer_throughput=budget
    )
    writers = [Writer(server, name) for name in range(5 * WORKERS)]
    for writer in writers:
        writer.start()
    # The second that every bucket starts with is spent by then.
    time.sleep(3.0)
    # A machine that stands still for more than a second spends less than the budget, and then, for one second, more.
    # So the budget must be met within 10 % over some six seconds, and exceeded in none by more than that second.
    parts: list[float] = []
    while len(parts) < 10 and not (parts and 0.9 <= parts[-1] <= 1.1):
        began = time.monotonic()
        time.sleep(6.0)
        ended = time.monotonic()
        granted = sum(cost for writer in writers for at, cost in list(writer.granted) if began <= at < ended)
        parts.append(granted / (budget * (ended - began)))
    for writer in writers:
        writer.stopping.set()
    for writer in writers:
        writer.join()
    assert 0.9 <= parts[-1] <= 1.1, parts
    assert max(parts) <= 1.1 + 1 / 6, parts
    assert sum(writer.throttled for writer in writers) > 0


# --- one server for its operator ------------------------------------------------------------------------------------


def filled(server: RunningServer) -> ContainerProxy:
    container = (
        server.client().create_database_if_not_exists("ops").create_container_if_not_exists("c", PartitionKey("/pk"))
    )
    for number in range(20):
        container.upsert_item({"id": str(number), "pk": f"k{number}"})
    return container


def test_a_worker_that_dies_is_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    with running_server(tmp_path, "--workers", "2") as server:
        container = filled(server)
        before = children(server.process.pid)
        assert len(before) == 2
        for victim in before:
            os.kill(victim, signal.SIGKILL)
        until(
            lambda: len(new := children(server.process.pid)) == 2 and not set(new) & set(before),
            what="the workers were not replaced",
        )
        assert sum(1 for _ in container.read_all_items()) == 20
        container.upsert_item({"id": "after", "pk": "after"})
        status, errors = server.end()
        assert status == 0
        lines = errors.splitlines()
        assert len(lines) == 2
        assert all("has ended; another starts in" in line for line in lines)


def test_all_workers_end_with_the_server_and_the_directory_is_free_again(tmp_path: Path) -> None:
    with running_server(tmp_path, "--workers", "2") as server:
        filled(server)
        workers = children(server.process.pid)
        status, errors = server.end()
        assert (status, errors) == (0, "")
        assert not any(is_running(worker) for worker in workers)
    with running_server(tmp_path) as server:
        assert len(list(filled(server).read_all_items())) == 20


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    with running_server(tmp_path, "--workers", "2") as server:
        workers = children(server.process.pid)
        server.kill()
        until(lambda: not any(is_running(worker) for worker in workers), what="workers went on without their parent")
    with running_server(tmp_path, "--workers", "2") as server:
        assert len(children(server.process.pid)) == 2


def test_a_second_server_on_the_directory_of_workers_is_refused(tmp_path: Path) -> None:
    with running_server(tmp_path, "--workers", "2"):
        finished = subprocess.run(
            [*PROGRAM, "serve", "--data", str(tmp_path), "--port", "0"],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=WAIT_SECONDS_MAX,
            check=False,
        )
        assert finished.returncode == 1
        assert "another server" in finished.stderr


def test_a_port_in_use_is_one_line_and_status_1_with_workers_too(server: RunningServer, tmp_path: Path) -> None:
    finished = subprocess.run(
        [*PROGRAM, "serve", "--data", str(tmp_path), "--port", str(server.port), "--workers", "2"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    assert finished.returncode == 1
    assert "another process is listening there" in finished.stderr
    assert len(finished.stderr.splitlines()) == 1
