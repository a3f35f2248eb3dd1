"""kill -9 at each step of an index transformation: after the restart it is finished, and the index is exact."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from asterism.documents.reindexing import ReindexStep
from tests.support.index_check import check_index
from tests.support.world import ACCOUNT, open_world

ROOT = Path(__file__).parents[2]
MOMENTS = [(step, 1) for step in ReindexStep] + [(ReindexStep.WALKING, 4)]


async def check_after_restart(directory: Path) -> None:
    async with open_world(directory) as world:
        container = world.store.container_for_items(ACCOUNT, "d", "c")
        async with asyncio.timeout(60):
            await world.store.reindexing.finished(container.keyspace)
        assert await world.store.reindexing.percent(container.keyspace) == 100
        await check_index(world, container)
        await world.check_statistics(container)
        await container.create_item({"id": "after", "pk": "after"}, None)


@pytest.mark.parametrize(("step", "times"), MOMENTS)
def test_a_killed_process_takes_its_index_transformation_up_again(
    tmp_path: Path, step: ReindexStep, times: int
) -> None:
    command = [sys.executable, "-m", "tests.faults.reindex_victim", str(tmp_path), step.name, str(times)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    asyncio.run(check_after_restart(tmp_path))
