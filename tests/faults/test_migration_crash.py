"""kill -9 at each moment of a migration from a data directory to a fleet.

After the restart it is resumed by itself, until everything is in the fleet and nothing acknowledged is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from asterism.keyspaces.reshaping.job import Step
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig, StartRefused
from asterism.server.data_directory import DataDirectory
from asterism.server.fleet.config import FleetConfig, NodeConfig
from asterism.values.json.text import loads
from tests.faults.migration_victim import CATALOG_STEPS, ITEMS
from tests.faults.victims import run_victim

STEPS = (Step.TARGETS_CREATED, Step.COPYING, Step.SEALED, Step.TARGETS_OPENED, Step.PUBLISHED)


def fleet_of(directory: Path) -> FleetConfig:
    return FleetConfig(tuple(NodeConfig(name, f"lmdb:{directory / name}") for name in "ab"), catalog="a")


def outcomes_of_victim(directory: Path, point: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the items that must exist, and those that may."""
    lines = [line.split() for line in run_victim("migration_victim", directory, point)]
    sure = {words[2]: int(words[1]) for words in lines if words[0] == "wrote"}
    tried = {words[2]: int(words[1]) for words in lines if words[0] == "try"}
    return sure, tried


async def finish(data: DataDirectory) -> None:
    """Start the server again, as an operator would; it resumes the migration, or says that all is done."""
    with contextlib.suppress(StartRefused):
        async with assembled(ServerConfig(), data) as assembly, asyncio.timeout(180):
            while assembly.migration.progress().phase != "done":
                await asyncio.sleep(0.02)


async def check_fleet(directory: Path, sure: dict[str, int], tried: dict[str, int]) -> None:
    config = ServerConfig(fleet=fleet_of(directory))
    async with assembled(config, DataDirectory(directory / "other")) as assembly:
        container = assembly.services.documents.container_for_items("asterism", "d", "c")
        assert {partition.node for partition in container.keyspace.record.map.ranges} <= {1, 2}
        for number in range(ITEMS):
            await container.read_item(f"old-{number}".encode(), (str(number % 60),))
        for item_id, number in sure.items():
            item = loads((await container.read_item(item_id.encode(), (item_id,))).body)
            assert isinstance(item, dict)
            assert item["n"] in (number, tried[item_id])


@pytest.mark.parametrize("point", [*(step.name for step in STEPS), *CATALOG_STEPS])
def test_a_killed_migration_is_resumed_at_the_next_start(tmp_path: Path, point: str) -> None:
    sure, tried = outcomes_of_victim(tmp_path, point)
    data = DataDirectory(tmp_path / "data")
    asyncio.run(finish(data))
    asyncio.run(check_fleet(tmp_path, sure, tried))
    with pytest.raises(StartRefused, match="is in the fleet now"):
        asyncio.run(finish_strictly(data))


async def finish_strictly(data: DataDirectory) -> None:
    async with assembled(ServerConfig(), data):
        pass
