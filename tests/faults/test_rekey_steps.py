"""kill -9 at each step of a copying to another partition key.

After the restart the job is resumed without a request, nothing acknowledged is lost, no target is without its job,
the source refuses writes from the switch on, and both containers are equal.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from asterism.errors import Forbidden
from asterism.models.documents.container import Container
from asterism.models.documents.pages import range_scope, scan_items
from asterism.models.documents.rekey.job import RekeyPhase, RekeyStep
from asterism.partitioning.key_range import FULL
from asterism.values.json.text import loads
from tests.faults.victims import run_victim
from tests.support.world import ACCOUNT, World, open_world

# The steps after which the operator's order is recorded, so that the switch needs no second request.
ASKED = list(RekeyStep)[list(RekeyStep).index(RekeyStep.SWITCH_ASKED) :]
FENCED = list(RekeyStep)[list(RekeyStep).index(RekeyStep.FENCED) :]
Name = tuple[str, str]


def outcomes_of_victim(directory: Path, step: RekeyStep) -> tuple[dict[Name, int], dict[Name, int]]:
    """Return the known numbers of the victim's items (-1: deleted), and the changes it had begun when it died."""
    sure: dict[Name, int] = {}
    begun: dict[Name, int] = {}
    for word, key, item_id, *number in (line.split() for line in run_victim("rekey_victim", directory, step.name)):
        begun.pop((key, item_id), None)
        if word != "refused":
            (begun if word == "try" else sure)[key, item_id] = int(number[0])
    return sure, begun


async def contents(world: World, container: Container) -> dict[Name, int]:
    found: dict[Name, int] = {}
    async for piece in scan_items(world.router, container, range_scope(FULL), position=None):
        for _, body in piece.items:
            item = loads(body)
            assert isinstance(item, dict)
            found[item["pk"], item["id"]] = item.get("n", 0)
    return found


async def check_after_restart(directory: Path, step: RekeyStep, sure: dict[Name, int], begun: dict[Name, int]) -> None:
    async with open_world(directory) as world:
        database = world.store.database(ACCOUNT, "d")
        source = world.store.container(database, "c")
        # Once the operator's order is recorded, the restarted job may have fenced the source already.
        may_be_open, may_be_fenced = step not in FENCED, step in ASKED
        assert may_be_fenced if source.keyspace.record.writes_refused else may_be_open
        (job,) = world.store.rekeyer.jobs.values()
        target = world.store.container(database, "new")
        async with asyncio.timeout(180):
            if step not in ASKED:
                await world.store.rekeyer.switch(target)
            while job.phase is not RekeyPhase.SWITCHED or job.retention_before is not None:
                await asyncio.sleep(0.02)
        found = await contents(world, world.store.container(database, "c"))
        assert found == await contents(world, target)
        assert sum(item_id.startswith("old-") for _, item_id in found) == 200
        for name, number in sure.items():
            assert found.get(name, -1) in (number, begun.get(name, number))
        with pytest.raises(Forbidden):
            await world.store.container(database, "c").create_item({"id": "after", "pk": "after"}, None)
        assert not world.store.container(database, "c").keeps_versions
        scripts = world.catalog.scripts.functions
        assert [script.name for script in scripts.owned_by(target.record.rid)] == ["f"]
        await world.check_statistics(target)


@pytest.mark.parametrize("step", list(RekeyStep), ids=lambda step: step.name)
def test_a_killed_process_resumes_its_copying(tmp_path: Path, step: RekeyStep) -> None:
    sure, begun = outcomes_of_victim(tmp_path, step)
    asyncio.run(check_after_restart(tmp_path, step, sure, begun))
