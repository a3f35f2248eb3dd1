"""`asterism migrate`: with a server that goes on serving, and without one. It begins in a data directory, and so do
these tests, whatever store the others run on."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from azure.cosmos import ContainerProxy, PartitionKey

from tests.support.ports import free_port
from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, environment, running_server

FLEET = '[[node]]\nname = "a"\ndsn = "lmdb:a"\n[[node]]\nname = "b"\ndsn = "lmdb:b"\n'


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text(FLEET)
    return path


def migrate(source: Path, to: Path, endpoint: str) -> subprocess.CompletedProcess[str]:
    words = [*PROGRAM, "migrate", "--from", str(source), "--to", str(to), "--endpoint", endpoint]
    return subprocess.run(
        words, capture_output=True, text=True, env=environment(), timeout=2 * WAIT_SECONDS_MAX, check=False
    )


def serve_in_vain(*options: str) -> str:
    words = [*PROGRAM, "serve", "--port", str(free_port()), *options]
    done = subprocess.run(
        words, capture_output=True, text=True, env=environment(), timeout=WAIT_SECONDS_MAX, check=False
    )
    assert done.returncode == 1
    return done.stderr


class Writer(threading.Thread):
    """A client that never stops, and remembers what was acknowledged and what went wrong."""

    def __init__(self, container: ContainerProxy) -> None:
        super().__init__()
        self.known: dict[str, int] = {}
        self.errors: list[Exception] = []
        self.stopping = threading.Event()
        self._container = container

    def run(self) -> None:
        number = 0
        while not self.stopping.is_set():
            number += 1
            name = str(number % 100)
            try:
                self._container.upsert_item({"id": name, "pk": name, "n": number})
                self.known[name] = number
                assert self._container.read_item(name, name)["n"] == number
            except Exception as error:
                self.errors.append(error)

    def end(self) -> None:
        self.stopping.set()
        self.join()


def test_a_server_goes_on_serving_while_its_data_goes_to_a_fleet_and_back(tmp_path: Path, fleet_file: Path) -> None:
    data = tmp_path / "data"
    with running_server(data, "--no-throttle", alone=True, embedded=True) as server:
        database = server.client().create_database("shop")
        container = database.create_container("orders", PartitionKey("/pk"), offer_throughput=24_000)
        writer = Writer(container)
        writer.start()
        forth = migrate(data, fleet_file, server.endpoint)
        database.create_container("made-after", PartitionKey("/pk"))
        back = migrate(fleet_file, tmp_path / "data2", server.endpoint)
        writer.end()
        assert (forth.returncode, back.returncode) == (0, 0), forth.stderr + back.stderr
        assert forth.stdout == f"Everything is in {fleet_file} now.\n"
        assert writer.errors == []
        assert {item["id"]: item["n"] for item in container.read_all_items()} == writer.known
        assert server.end() == (0, "")
    assert f"is in {fleet_file} now; serve it from there" in serve_in_vain("--data", str(data))
    assert f"is in {tmp_path}/data2 now" in serve_in_vain("--data", str(tmp_path / "x"), "--fleet", str(fleet_file))
    with running_server(tmp_path / "data2", embedded=True) as server:
        container = server.client().get_database_client("shop").get_container_client("orders")
        assert {item["id"]: item["n"] for item in container.read_all_items()} == writer.known


def test_without_a_server_the_command_does_it_and_goes_on_when_it_was_killed(tmp_path: Path, fleet_file: Path) -> None:
    data, nobody = tmp_path / "data", f"http://127.0.0.1:{free_port()}"
    with running_server(data, "--no-throttle", embedded=True) as server:
        database = server.client().create_database("shop")
        container = database.create_container("orders", PartitionKey("/pk"), offer_throughput=12_000)
        for number in range(100):
            container.create_item({"id": str(number), "pk": str(number), "pad": "x" * 2000})
        server.end()
    words = [*PROGRAM, "migrate", "--from", str(data), "--to", str(fleet_file), "--endpoint", nobody]
    killed = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True)
    assert killed.stderr is not None
    assert "No server is using it" in killed.stderr.readline()
    time.sleep(0.6)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    again = migrate(data, fleet_file, nobody)
    assert again.returncode == 0 or "now; serve it from there" in again.stderr, again.stderr
    with running_server(tmp_path / "x", "--fleet", str(fleet_file)) as server:
        container = server.client().get_database_client("shop").get_container_client("orders")
        assert len(list(container.read_all_items())) == 100


def test_a_wrong_wish_is_refused_in_one_line(tmp_path: Path, fleet_file: Path) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    assert "one of the two must be a fleet file" in migrate(tmp_path / "a", tmp_path / "b", nobody).stderr
    with running_server(tmp_path / "data", embedded=True):
        refused = migrate(tmp_path / "data", fleet_file, nobody)
        assert "a server is using" in refused.stderr
        assert refused.stderr.count("\n") == 1
