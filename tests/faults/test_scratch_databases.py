"""Databases for trials end with their lease, also after a kill -9; databases of users never do."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosResourceNotFoundError

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, AccountKeys
from asterism.cli.client import AdminClient, Refused
from tests.support.ports import free_port
from tests.support.scratch import PREFIX, make_scratch_database, scratch_databases, wait_for_replay, wait_until_gone
from tests.support.server import PROJECT, WAIT_SECONDS_MAX, PlainClient, RunningServer, running_server

HOUR_SECONDS = 3600
LEASE_SECONDS = 6
# A command that is killed leaves its lease behind; one that is interrupted deletes the database at once.
LEASES_SECONDS = {signal.SIGKILL: HOUR_SECONDS + 1, signal.SIGINT: 0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory: Path = tmp_path_factory.mktemp("scratch")
    with running_server(directory / "data", "--test-controls", alone=True) as running:
        yield running


def admin_of(server: RunningServer) -> AdminClient:
    return AdminClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=False)


def test_a_scratch_database_is_dropped_when_its_lease_ends(server: RunningServer) -> None:
    admin, client = admin_of(server), server.client()
    name = make_scratch_database(admin, lease_seconds=HOUR_SECONDS)
    container = client.get_database_client(name).create_container("trial", PartitionKey("/pk"))
    container.create_item({"id": "1", "pk": "a"})
    assert scratch_databases(client) == [name]
    admin.post("testing/clock-skew", {"seconds": HOUR_SECONDS + 1})
    wait_until_gone(client)
    admin.post("testing/clock-skew", {"seconds": 0})
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("1", "a")


def test_a_database_that_a_user_gives_the_name_of_a_scratch_database_stays(server: RunningServer) -> None:
    admin, client = admin_of(server), server.client()
    users = client.create_database(f"{PREFIX}0123456789abcdef")
    make_scratch_database(admin)
    admin.post("testing/clock-skew", {"seconds": HOUR_SECONDS + 1})
    wait_until_gone(client, but=[users.id])
    admin.post("testing/clock-skew", {"seconds": 0})
    assert scratch_databases(client) == [users.id]
    client.delete_database(users)


def test_a_lease_that_ended_while_no_server_ran_ends_at_the_next_start(tmp_path: Path) -> None:
    port = free_port()
    with running_server(tmp_path, port=port) as server:
        client = server.client()
        kept = client.create_database("kept")
        # Long enough to make a container on a busy machine.
        name = make_scratch_database(admin_of(server), lease_seconds=LEASE_SECONDS)
        made_at = time.monotonic()
        client.get_database_client(name).create_container("trial", PartitionKey("/pk"))
        server.kill()
    time.sleep(max(0.0, made_at + LEASE_SECONDS - time.monotonic()))
    with running_server(tmp_path, port=port) as server:
        wait_until_gone(server.client())
        assert [found["id"] for found in server.client().list_databases()] == [kept.id]


def test_a_container_for_trials_has_the_partitions_that_were_asked_for_and_no_reserve(server: RunningServer) -> None:
    admin, client = admin_of(server), server.client()
    database = client.get_database_client(make_scratch_database(admin, partitions=5))
    container = database.create_container("trial", PartitionKey("/pk"), offer_throughput=500)
    shown = admin.get("partitions", database=database.id, container="trial")
    assert len(shown["partitions"]) == 5
    # Seven times the 100 RU that a partition has for a second.
    container.create_item({"id": "large", "pk": "a", "text": "x" * 1_500_000})
    plain, link = PlainClient(server.port), f"dbs/{database.id}/colls/trial/docs/large"
    headers = {"x-ms-documentdb-partitionkey": '["a"]'}
    # If seconds have passed since then, the first read spends what there is by now.
    statuses = [plain.send("GET", f"/{link}", resource_type="docs", link=link, headers=headers)[0] for _ in range(3)]
    plain.close()
    client.delete_database(database)
    assert 429 in statuses


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"lease_seconds": 0, "partitions": 1},
        {"lease_seconds": 1, "partitions": 0},
        {"lease_seconds": 3601, "partitions": 1},
        {"lease_seconds": 60, "partitions": 65},
        {"lease_seconds": True, "partitions": 1},
        {"lease_seconds": "60", "partitions": 1},
    ],
)
def test_terms_without_bounds_are_refused(server: RunningServer, terms: dict[str, object]) -> None:
    with pytest.raises(Refused, match="must be a whole number from 1 to"):
        admin_of(server).post("scratch", terms)


def test_a_read_only_key_makes_no_scratch_database(server: RunningServer) -> None:
    keys = AccountKeys.complete(primary=WELL_KNOWN_EMULATOR_KEY)
    reader = AdminClient(server.endpoint, keys.primary_readonly, insecure=False)
    with pytest.raises(Refused, match="A read-only key cannot change anything"):
        reader.post("scratch", {"lease_seconds": 60, "partitions": 1})


@pytest.mark.parametrize("stop_signal", [signal.SIGKILL, signal.SIGINT])
def test_a_replay_that_is_stopped_leaves_nothing_behind(server: RunningServer, stop_signal: signal.Signals) -> None:
    admin, client = admin_of(server), server.client()
    command = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.replay_victim", server.endpoint], cwd=PROJECT, stderr=subprocess.DEVNULL
    )
    wait_for_replay(client)
    command.send_signal(stop_signal)
    command.wait(WAIT_SECONDS_MAX)
    admin.post("testing/clock-skew", {"seconds": LEASES_SECONDS[stop_signal]})
    wait_until_gone(client)
    admin.post("testing/clock-skew", {"seconds": 0})


def test_a_replay_and_its_server_that_are_killed_leave_nothing_behind(tmp_path: Path) -> None:
    port = free_port()
    with running_server(tmp_path, "--test-controls", port=port, alone=True) as server:
        command = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.replay_victim", server.endpoint],
            cwd=PROJECT,
            stderr=subprocess.DEVNULL,
        )
        wait_for_replay(server.client())
        server.kill()
        command.kill()
        command.wait(WAIT_SECONDS_MAX)
    with running_server(tmp_path, "--test-controls", port=port, alone=True) as server:
        assert len(scratch_databases(server.client())) == 1
        admin_of(server).post("testing/clock-skew", {"seconds": HOUR_SECONDS + 1})
        wait_until_gone(server.client())
