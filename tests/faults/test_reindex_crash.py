"""kill -9 at each step of an index transformation: after the restart it is finished, and the index is exact."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from asterism.models.documents.upkeep.reindexer import ReindexStep
from tests.faults.victims import run_victim
from tests.support.index_check import check_index
from tests.support.world import ACCOUNT, open_world

MOMENTS = [(step, 1) for step in ReindexStep] + [(ReindexStep.WALKING, 4)]


async def check_after_restart(directory: Path) -> None:
    async with open_world(directory) as world:
        container = world.store.container_for_items(ACCOUNT, "d", "c")
        async with asyncio.timeout(180):
            await world.store.reindexer.finished(container.keyspace)
        assert await world.store.reindexer.percent(container.keyspace) == 100
        await check_index(world, container)
        await world.check_statistics(container)
        await container.create_item({"id": "after", "pk": "after"}, None)


@pytest.mark.parametrize(("step", "times"), MOMENTS)
def test_a_killed_process_resumes_its_index_transformation(tmp_path: Path, step: ReindexStep, times: int) -> None:
    run_victim("reindex_victim", tmp_path, step.name, str(times))
    asyncio.run(check_after_restart(tmp_path))
