"""Two gateways over a fleet, and one of them dies: the other serves on, and takes over what was begun."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.fleet_of_two import (
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


@pytest.fixture
async def fleet(tmp_path: Path) -> Path:
    server = shared_server()
    addresses = {name: await server.empty_database(f"crash_{name}") for name in "ab"}
    return fleet_file(tmp_path / "fleet.toml", **addresses)


def test_a_gateway_is_killed_in_the_middle_of_a_split_and_the_other_finishes_it(tmp_path: Path, fleet: Path) -> None:
    slowly = ("--announce-seconds", "5")
    with gateway(tmp_path / "one", fleet, *slowly) as one, gateway(tmp_path / "two", fleet, *slowly) as two:
        make_container(one)
        assert {part["node"] for part in partitions(two)} == {"a", "b"}
        before, after = Clients(one, "before", is_doomed=True), Clients(two, "after")
        before.start()
        after.start()
        after.wait_for_more()
        # The one that started first does the background work; it has announced the splits and not yet made them.
        container_at(two).replace_throughput(24_000)
        until(lambda: any(part["state"] != "online" for part in partitions(one)), what="no split was announced")
        assert len(partitions(two)) == 2
        one.kill()
        after.wait_for_more(50)
        until(lambda: len(partitions(two)) == 3, what="the split was not taken over")
        after.wait_for_more()
        told = (before.end(), after.end())
        # Whoever talks to the living gateway hears nothing of it.
        assert after.told.refused == {}
        check(container_at(two), *told)
        # A third finds the two that were, and everything as they left it.
        with gateway(tmp_path / "three", fleet) as three:
            check(container_at(three), *told)
