"""kill -9 at each step of a copying to another partition key.

After the restart the job goes on without anybody asking, nothing acknowledged is lost, no target is without its job,
the source refuses writes from the switch on, and both containers are equal.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from asterism.documents.container import Container
from asterism.documents.pages import range_scope, scan_items
from asterism.documents.rekey_job import RekeyPhase, RekeyStep
from asterism.errors import Forbidden
from asterism.partitioning.key_range import FULL
from asterism.values.json_text import loads
from tests.support.world import ACCOUNT, World, open_world

ROOT = Path(__file__).parents[2]
# Those after which the operator's word is recorded, so that nobody has to ask for the switch again.
ASKED = list(RekeyStep)[list(RekeyStep).index(RekeyStep.SWITCH_ASKED) :]
FENCED = list(RekeyStep)[list(RekeyStep).index(RekeyStep.FENCED) :]
Name = tuple[str, str]


def run_victim(directory: Path, step: RekeyStep) -> tuple[dict[Name, int], dict[Name, int]]:
    """What is sure about the victim's items (-1: gone), and what it was about to do when it died."""
    command = [sys.executable, "-m", "tests.faults.rekey_victim", str(directory), step.name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stdout[-200:] + done.stderr
    sure: dict[Name, int] = {}
    begun: dict[Name, int] = {}
    for word, key, item_id, *number in (line.split() for line in done.stdout.splitlines()):
        begun.pop((key, item_id), None)
        if word != "refused":
            (begun if word == "try" else sure)[key, item_id] = int(number[0])
    return sure, begun


async def contents(world: World, container: Container) -> dict[Name, int]:
    found: dict[Name, int] = {}
    async for piece in scan_items(world.owner, container, range_scope(FULL), position=None):
        for _, body in piece.items:
            item = loads(body)
            assert isinstance(item, dict)
            found[item["pk"], item["id"]] = item.get("n", 0)
    return found


async def check_after_restart(directory: Path, step: RekeyStep, sure: dict[Name, int], begun: dict[Name, int]) -> None:
    async with open_world(directory) as world:
        database = world.store.database(ACCOUNT, "d")
        source = world.store.container(database, "c")
        # Once the operator's word is recorded, the restarted job may have fenced the source already.
        may_be_open, may_be_fenced = step not in FENCED, step in ASKED
        assert may_be_fenced if source.keyspace.record.writes_refused else may_be_open
        (job,) = world.store.rekeying.jobs.values()
        target = world.store.container(database, "new")
        async with asyncio.timeout(60):
            if step not in ASKED:
                await world.store.rekeying.switch(target)
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
def test_a_killed_process_takes_its_copying_up_again(tmp_path: Path, step: RekeyStep) -> None:
    sure, begun = run_victim(tmp_path, step)
    asyncio.run(check_after_restart(tmp_path, step, sure, begun))
