"""`asterism advise` on a container of a running server, with the requests that its capture has."""

from __future__ import annotations

import json
import subprocess
import uuid

import pytest
from azure.cosmos import DatabaseProxy, PartitionKey

from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment

CUSTOMERS = 20


def run_program(server: RunningServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        env={**environment(), "ASTERISM_ENDPOINT": server.endpoint},
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )


@pytest.fixture
def orders(server: RunningServer, database: DatabaseProxy) -> str:
    """Return the name of a container whose requests name customers, though its key is the status."""
    name = f"orders-{uuid.uuid4()}"
    container = database.create_container(name, PartitionKey("/status"), offer_throughput=12_000)
    for number in range(120):
        container.create_item({"id": f"o{number}", "customer": f"c{number % CUSTOMERS}", "status": f"s{number % 2}"})
    begun = run_program(server, "capture", "start", database.id, name, "--sample", "1")
    assert begun.returncode == 0, begun.stderr
    for number in range(100):
        asked = f"SELECT * FROM c WHERE c.customer = 'c{number % CUSTOMERS}'"
        list(container.query_items(asked, enable_cross_partition_query=True))
    return name


def test_a_running_container_is_judged_by_its_items_and_its_capture(
    server: RunningServer, database: DatabaseProxy, orders: str
) -> None:
    result = run_program(server, "advise", database.id, orders, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["present"] == "/status"
    assert (report["items"], report["ruPerSecond"], report["partitions"]) == (120, 12_000, 2)
    assert report["requests"] >= 100
    assert "/customer" in report["candidates"][0]["definition"]["paths"]
    assert report["command"].startswith(f"asterism rekey {database.id} {orders} --to ")


def test_a_container_that_does_not_exist_is_refused_in_a_line(server: RunningServer, database: DatabaseProxy) -> None:
    result = run_program(server, "advise", database.id, "nowhere")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
