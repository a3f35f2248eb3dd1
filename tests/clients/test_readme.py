"""The first example of the README, run as it is printed; only the ports differ, as tests run beside each other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.clients.table_server import TableServer
from tests.support.server import PROGRAM, PROJECT, WAIT_SECONDS_MAX, environment, running_server

README = (PROJECT / "README.md").read_text()
DOORS = ("nosql", "table", "blob", "queue", "amqp", "mongo", "gremlin")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableServer]:
    data = tmp_path_factory.mktemp("readme")
    with running_server(data, "--announce-seconds", "0.1", doors=DOORS) as running:
        yield TableServer(running)


def run(*command: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX, check=False, env=environment()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_run_and_the_container_they_scale_up_splits(server: TableServer) -> None:
    session = "\n".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL))
    ports = server.running.ports
    others = f"BlobEndpoint=http://127.0.0.1:{ports['blob']}/{server.account};"
    others += f"QueueEndpoint=http://127.0.0.1:{ports['queue']}/{server.account};"
    for well_known, own, count in (
        ("http://127.0.0.1:8081", server.running.endpoint, 1),
        ("UseDevelopmentStorage=true", server.connection_string + others, 3),
        ("localhost:5672", f"localhost:{ports['amqp']}", 1),
        ("127.0.0.1:10255", f"127.0.0.1:{ports['mongo']}", 1),
        ("127.0.0.1:8901", f"127.0.0.1:{ports['gremlin']}", 1),
    ):
        assert session.count(well_known) == count
        session = session.replace(well_known, own)
    assert run(sys.executable, "-c", session).splitlines() == [
        "12.5",
        "[{'PartitionKey': '2026-11-16', 'RowKey': '0001', 'total': 12.5}]",
        "resize 2026/cat.jpg ['2026/cat.jpg']",
        "first",
        "second",
        "{'_id': 1, 'customer': 'ada', 'lines': [{'sku': 'a', 'count': 2}]}",
        "['Ada']",
    ]

    def states() -> list[str]:
        command = (*PROGRAM, "partitions", "shop", "orders", "--format", "json", "--endpoint", server.running.endpoint)
        return [partition["state"] for partition in json.loads(run(*command))["partitions"]]

    give_up_at = time.monotonic() + WAIT_SECONDS_MAX
    while states() != ["online", "online"] and time.monotonic() < give_up_at:
        time.sleep(0.1)
    assert states() == ["online", "online"]


def test_every_command_of_the_readme_is_one_of_the_program() -> None:
    named = set(re.findall(r"\basterism ([a-z]+)\b", "\n".join(re.findall(r"```sh\n(.*?)```", README, re.DOTALL))))
    known = run(*PROGRAM, "--help")
    assert named
    assert [name for name in sorted(named) if f" {name} " not in known] == []
