"""Reads are answered by a standby where an old answer will do, and by the primary where it will not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.faults.fleet_of_two import fleet_file, gateway
from tests.support.postgres import PostgresServer, both_hosts, replicated_server
from tests.support.server import WAIT_SECONDS_MAX, RunningServer

Servers = tuple[PostgresServer, PostgresServer]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with replicated_server() as (primary, standby):
        primary.create_database()
        yield primary, standby


@pytest.fixture(scope="module")
def strong(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """An account whose clients may ask for every level."""
    directory = tmp_path_factory.mktemp("standby")
    fleet = fleet_file(directory / "fleet.toml", a=both_hosts(*servers))
    with gateway(directory / "one", fleet, "--consistency", "Strong") as running:
        database = running.client().create_database("d")
        container = database.create_container("c", PartitionKey("/pk"))
        container.create_item({"id": "1", "pk": "1", "v": "old"})
        yield running


def container_at(server: RunningServer, level: str | None) -> ContainerProxy:
    # Another client each time: none has a session with what was written.
    client = CosmosClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY, consistency_level=level)
    return client.get_database_client("d").get_container_client("c")


def all_replayed(primary: PostgresServer, standby: PostgresServer) -> None:
    position = primary.sql("SELECT pg_current_wal_lsn()").strip()
    standby.wait_until(f"SELECT pg_last_wal_replay_lsn() >= '{position}'")


@pytest.fixture
def lagging(servers: Servers, strong: RunningServer) -> Iterator[RunningServer]:
    """The item is new at the primary and old at the standby, which has stopped following."""
    primary, standby = servers
    container = container_at(strong, None)
    container.upsert_item({"id": "1", "pk": "1", "v": "old"})
    all_replayed(primary, standby)
    standby.sql("SELECT pg_wal_replay_pause()")
    standby.wait_until("SELECT pg_get_wal_replay_pause_state() = 'paused'")
    container.upsert_item({"id": "1", "pk": "1", "v": "new"})
    yield strong
    standby.sql("SELECT pg_wal_replay_resume()")


@pytest.mark.parametrize(
    ("level", "version"),
    [
        ("Eventual", "old"),
        ("ConsistentPrefix", "old"),
        ("Session", "old"),
        ("BoundedStaleness", "new"),
        ("Strong", "new"),
        (None, "new"),
    ],
)
def test_the_level_says_who_answers(lagging: RunningServer, level: str | None, version: str) -> None:
    def answer(ask: Callable[[ContainerProxy], Iterable[dict[str, Any]]]) -> str:
        give_up_at = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            (found,) = ask(container_at(lagging, level))
            # A standby that is slow for a moment leaves the answer to the primary, which has no old one.
            if version == "new" or found["v"] == version or time.monotonic() > give_up_at:
                return str(found["v"])
            time.sleep(0.5)

    assert answer(lambda container: [container.read_item("1", "1")]) == version
    assert answer(lambda c: c.query_items("SELECT * FROM c WHERE c.id = '1'", partition_key="1")) == version
    assert answer(lambda c: c.query_items("SELECT * FROM c", enable_cross_partition_query=True)) == version


def test_a_session_reads_what_it_has_written_although_the_standby_lags(lagging: RunningServer) -> None:
    give_up_at = time.monotonic() + WAIT_SECONDS_MAX
    container = container_at(lagging, "Session")
    # A standby that is slow for a moment leaves the answer to the primary, and then the session knows it.
    while container.read_item("1", "1")["v"] != "old":
        assert time.monotonic() < give_up_at
        time.sleep(0.5)
        container = container_at(lagging, "Session")
    container.upsert_item({"id": "1", "pk": "1", "v": "mine"})
    assert container.read_item("1", "1")["v"] == "mine"
    (found,) = container.query_items("SELECT * FROM c WHERE c.id = '1'", partition_key="1")
    assert found["v"] == "mine"
