"""A throw-away server, `--data :memory:`: the official client on it, and nothing of it left anywhere."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosResourceExistsError, CosmosResourceNotFoundError

from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment, refused_start, running_server

IN_MEMORY = Path(":memory:")


@contextmanager
def server_in(directory: Path, *options: str) -> Iterator[RunningServer]:
    """A server in memory that is started in an empty directory, with another one for temporary files."""
    (directory / "temporary").mkdir(exist_ok=True)
    with running_server(
        IN_MEMORY,
        *options,
        more_environment={"TMPDIR": str(directory / "temporary")},
        before_start=lambda: os.chdir(directory),
        alone=True,
        embedded=True,
    ) as program:
        yield program


def files_in(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_items_are_created_read_queried_and_go_through_a_split(tmp_path: Path) -> None:
    with server_in(tmp_path) as program, program.client() as client:
        orders = client.create_database("shop").create_container(
            "orders", PartitionKey("/customer"), offer_throughput=400
        )
        made = [{"id": f"i{number:03}", "customer": f"c{number}", "n": number % 7} for number in range(100)]
        for item in made:
            orders.create_item(item)
        with pytest.raises(CosmosResourceExistsError):
            orders.create_item(made[0])
        orders.replace_throughput(25_000)
        give_up_at = time.monotonic() + WAIT_SECONDS_MAX
        while orders.get_throughput().properties["content"].get("isOfferReplacePending"):
            assert time.monotonic() < give_up_at, "the splits did not end"
            time.sleep(0.05)
        assert len(list(orders.read_feed_ranges(force_refresh=True))) == 3
        assert orders.read_item("i042", "c42")["n"] == 0
        orders.upsert_item({**made[42], "n": 3})
        orders.delete_item("i043", "c43")
        with pytest.raises(CosmosResourceNotFoundError):
            orders.read_item("i043", "c43")
        found = orders.query_items("SELECT VALUE c.id FROM c WHERE c.n = 3", enable_cross_partition_query=True)
        threes = {item["id"] for item in made if item["n"] == 3} | {"i042"}
        assert sorted(found) == sorted(threes)
        counted = orders.query_items("SELECT VALUE COUNT(1) FROM c", enable_cross_partition_query=True)
        assert list(counted) == [99]


def test_nothing_is_on_disk_and_nothing_is_there_at_the_next_start(tmp_path: Path) -> None:
    with server_in(tmp_path) as program, program.client() as client:
        client.create_database("shop").create_container("orders", PartitionKey("/customer"))
        assert "in memory only: everything is gone when the server ends" in program.greeting
        assert files_in(tmp_path) == ["temporary"]
        assert program.end() == (0, "")
    with server_in(tmp_path) as program, program.client() as client:
        assert list(client.list_databases()) == []
    assert files_in(tmp_path) == ["temporary"]


def test_a_certificate_is_temporary_and_named_in_the_greeting(tmp_path: Path) -> None:
    with server_in(tmp_path, "--https") as program:
        (line,) = [line for line in program.greeting.splitlines() if line.startswith("  Certificate ")]
        certificate = Path(line.split()[1])
        assert certificate.is_relative_to(tmp_path / "temporary")
        trusting = ssl.create_default_context(cafile=certificate)
        connection = http.client.HTTPSConnection("localhost", program.port, timeout=WAIT_SECONDS_MAX, context=trusting)
        connection.request("GET", "/_asterism/health")
        assert connection.getresponse().status == 200
        connection.close()
        assert program.end() == (0, "")
    assert files_in(tmp_path) == ["temporary"]


def test_a_seed_is_applied_at_every_start(tmp_path: Path) -> None:
    seed = tmp_path / "seed.json"
    seed.write_text(json.dumps({"databases": [{"id": "shop"}]}))
    for _ in range(2):
        with server_in(tmp_path, "--seed", str(seed)) as program, program.client() as client:
            assert "Seeded from" in program.greeting
            assert [database["id"] for database in client.list_databases()] == ["shop"]
    assert files_in(tmp_path) == ["seed.json", "temporary"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "2"], "processes do not share memory; leave out --workers, or give a data directory"),
        (["--store", "lmdb:other"], "cannot be combined with --fleet or --store; give a data directory"),
    ],
)
def test_an_option_that_memory_cannot_have_is_refused_in_one_line(options: list[str], message: str) -> None:
    (line,) = refused_start(IN_MEMORY, *options).splitlines()
    assert message in line


def test_data_in_memory_is_not_migrated_but_exported(tmp_path: Path) -> None:
    command = [*PROGRAM, "migrate", "--from", ":memory:", "--to", str(tmp_path / "data")]
    finished = subprocess.run(
        command, capture_output=True, text=True, env=environment(), timeout=WAIT_SECONDS_MAX, check=False
    )
    assert finished.returncode == 1
    assert "use 'asterism export' and 'asterism import'" in finished.stderr
