"""Two gateways over a fleet, and one of them dies: the other serves on, and takes over its work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.cli.client import AdminClient
from tests.faults.fleet_of_two import (
    CONTAINER,
    DATABASE,
    Clients,
    check,
    container_at,
    fleet_file,
    gateway,
    make_container,
    partitions,
    until,
)
from tests.support.postgres import shared_server
from tests.support.server import RunningServer


def parts(server: RunningServer) -> list[dict[str, Any]]:
    """Return the partitions at once: the program that prints them takes as long as a split may take."""
    admin = AdminClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=False)
    return list(admin.get("partitions", database=DATABASE, container=CONTAINER)["partitions"])


@pytest.fixture
async def fleet(tmp_path: Path) -> Path:
    server = shared_server()
    addresses = {name: await server.empty_database(f"crash_{name}") for name in "ab"}
    return fleet_file(tmp_path / "fleet.toml", **addresses)


def test_a_gateway_is_killed_in_the_middle_of_a_split_and_the_other_finishes_it(tmp_path: Path, fleet: Path) -> None:
    # Longer than it takes to see the announcement on a busy machine.
    slowly = ("--announce-seconds", "12")
    with gateway(tmp_path / "first", fleet, *slowly) as first, gateway(tmp_path / "second", fleet, *slowly) as second:
        make_container(first)
        assert {part["node"] for part in partitions(second)} == {"a", "b"}
        before, after = Clients(first, "before", is_doomed=True), Clients(second, "after")
        before.start()
        after.start()
        after.wait_for_more()
        # The one that started first does the background work; it has announced the splits and not yet made them.
        container_at(second).replace_throughput(24_000)
        until(lambda: any(part["state"] != "online" for part in parts(first)), what="no split was announced")
        assert len(parts(second)) == 2
        first.kill()
        after.wait_for_more(50)
        until(lambda: len(partitions(second)) == 3, what="the split was not taken over")
        after.wait_for_more()
        answers = (before.end(), after.end())
        # Clients of the living gateway notice nothing.
        assert after.answers.refused == {}
        check(container_at(second), *answers)
        # A third gateway finds everything as the two left it.
        with gateway(tmp_path / "third", fleet) as third:
            check(container_at(third), *answers)
