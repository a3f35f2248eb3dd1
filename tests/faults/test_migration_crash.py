"""kill -9 at each moment of a migration from a data directory to a fleet.

After the restart it goes on by itself, until everything is in the fleet and nothing acknowledged is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from asterism.keyspaces.reshape_job import Step
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig, StartRefused
from asterism.server.data_directory import DataDirectory
from asterism.server.fleet_config import FleetConfig, NodeConfig
from asterism.values.json_text import loads
from tests.faults.migration_victim import CATALOG_STEPS, ITEMS

ROOT = Path(__file__).parents[2]
STEPS = (Step.TARGETS_CREATED, Step.COPYING, Step.SEALED, Step.TARGETS_OPENED, Step.PUBLISHED)


def fleet_of(directory: Path) -> FleetConfig:
    return FleetConfig(tuple(NodeConfig(name, f"lmdb:{directory / name}") for name in "ab"), catalog="a")


def run_victim(directory: Path, point: str) -> tuple[dict[str, int], dict[str, int]]:
    """What is surely there, and what may be."""
    command = [sys.executable, "-m", "tests.faults.migration_victim", str(directory), point]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stdout[-200:] + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    sure = {words[2]: int(words[1]) for words in lines if words[0] == "wrote"}
    tried = {words[2]: int(words[1]) for words in lines if words[0] == "try"}
    return sure, tried


async def finish(data: DataDirectory) -> None:
    """Starts the server again, as an operator would; it goes on, or says that all is done."""
    with contextlib.suppress(StartRefused):
        async with assembled(ServerConfig(), data) as assembly, asyncio.timeout(60):
            while assembly.migration.progress().phase != "done":
                await asyncio.sleep(0.02)


async def check_fleet(directory: Path, sure: dict[str, int], tried: dict[str, int]) -> None:
    config = ServerConfig(fleet=fleet_of(directory))
    async with assembled(config, DataDirectory(directory / "other")) as assembly:
        container = assembly.store.container_for_items("asterism", "d", "c")
        assert {one.node for one in container.keyspace.record.map.ranges} <= {1, 2}
        for number in range(ITEMS):
            await container.read_item(f"old-{number}", (str(number % 60),))
        for item_id, number in sure.items():
            item = loads((await container.read_item(item_id, (item_id,))).body)
            assert isinstance(item, dict)
            assert item["n"] in (number, tried[item_id])


@pytest.mark.parametrize("point", [*(step.name for step in STEPS), *CATALOG_STEPS])
def test_a_killed_migration_goes_on_at_the_next_start(tmp_path: Path, point: str) -> None:
    sure, tried = run_victim(tmp_path, point)
    data = DataDirectory(tmp_path / "data")
    asyncio.run(finish(data))
    asyncio.run(check_fleet(tmp_path, sure, tried))
    with pytest.raises(StartRefused, match="is in the fleet now"):
        asyncio.run(finish_strictly(data))


async def finish_strictly(data: DataDirectory) -> None:
    async with assembled(ServerConfig(), data):
        pass
