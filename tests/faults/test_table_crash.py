"""kill -9 while groups of entities are written, and at each step of a range split and of a merge.

After the restart every group is there whole or not at all, nothing acknowledged is lost, the statistics agree with the
data, the entities are in order, and the reshaping has been finished.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from asterism.apis.table.stored import StoredEntity
from asterism.keyspaces.reshape_job import Step
from tests.faults.table_victim import NEVER, OLD, ROWS_IN_GROUP, TABLE
from tests.support.tables import ACCOUNT, everything, open_tables

ROOT = Path(__file__).parents[2]
Group = tuple[str, str]


@dataclass
class Told:
    """What the victim's lines say must be there (0: nothing), and what its last unanswered attempts may have left."""

    sure: dict[Group, int] = field(default_factory=dict)
    open: dict[Group, int] = field(default_factory=dict)

    def read(self, line: str) -> None:
        what, *rest = line.split()
        if what == "try":
            self.open[rest[0], rest[1]] = int(rest[2])
        elif what == "done":
            self.sure[rest[0], rest[1]] = int(rest[2])
            del self.open[rest[0], rest[1]]


def run_victim(directory: Path, kind: str, at: str) -> Told:
    command = [sys.executable, "-m", "tests.faults.table_victim", str(directory), kind, at]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stdout[-200:] + done.stderr
    told = Told()
    for line in done.stdout.splitlines():
        told.read(line)
    assert told.sure, "nothing was acknowledged before the end"
    return told


def groups_of(entities: list[StoredEntity]) -> dict[Group, int]:
    """The number of each group, which all of its rows must have."""
    numbers: dict[Group, list[bytes]] = {}
    for one in entities:
        group, _, _ = one.row_key.rpartition("-")
        numbers.setdefault((one.partition_key, group), []).append(one.properties)
    for group, found in numbers.items():
        assert len(found) == ROWS_IN_GROUP, f"{group} is there in part"
        assert len(set(found)) == 1, f"{group} is of two writes"
    return {group: int(found[0].removeprefix(b'"n":')) for group, found in numbers.items()}


async def check_after_restart(directory: Path, kind: str, told: Told) -> None:
    async with open_tables(directory, patience=NEVER) as world:
        table = world.tables.find_table(ACCOUNT, TABLE)
        assert table is not None
        async with asyncio.timeout(60):
            while world.world.reshaping.progress or world.world.catalog.garbage:
                await asyncio.sleep(0.02)
        entities = await everything(table)
        names = [(one.partition_key, one.row_key) for one in entities]
        assert names == sorted(set(names))
        assert sum(name[1].startswith("old-") for name in names) == OLD
        found = groups_of([one for one in entities if not one.row_key.startswith("old-")])
        for group in found.keys() | told.sure.keys() | told.open.keys():
            allowed = {told.sure.get(group, 0), told.open.get(group, told.sure.get(group, 0))}
            assert found.get(group, 0) in allowed
        await world.check_statistics(table)
        maps = table.keyspace.record.map
        assert len(maps.ranges) == (2 if kind == "split" else 1)
        assert set(await world.world.engine.partitions()) == {0} | {one.partition for one in maps.ranges}


@pytest.mark.parametrize("kind", ["split", "merge"])
@pytest.mark.parametrize("step", list(Step), ids=lambda step: step.name)
def test_a_killed_process_takes_the_reshaping_of_a_table_up_again(tmp_path: Path, kind: str, step: Step) -> None:
    told = run_victim(tmp_path, kind, step.name)
    asyncio.run(check_after_restart(tmp_path, kind, told))


@pytest.mark.parametrize("seconds", ["0.02", "0.11", "0.29"])
def test_a_group_is_there_whole_or_not_at_all_after_a_kill(tmp_path: Path, seconds: str) -> None:
    told = run_victim(tmp_path, "none", seconds)
    asyncio.run(check_after_restart(tmp_path, "none", told))
