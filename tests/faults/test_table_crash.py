"""kill -9 while groups of entities are written, and at each step of a range split and of a merge.

After the restart every group is whole or absent, nothing acknowledged is lost, the statistics agree with the
data, the entities are in order, and the reshaping has been finished.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from asterism.keyspaces.reshaping.job import Step
from asterism.models.tables.entities import StoredEntity
from tests.faults.table_victim import NEVER, OLD, ROWS_IN_GROUP, TABLE
from tests.faults.victims import run_victim
from tests.support.tables import ACCOUNT, everything, open_tables

Group = tuple[str, str]


@dataclass
class Outcomes:
    """The groups that must exist by the victim's lines (0: none), and those that its last attempts may have left."""

    sure: dict[Group, int] = field(default_factory=dict)
    open: dict[Group, int] = field(default_factory=dict)

    def read(self, line: str) -> None:
        what, *rest = line.split()
        if what == "try":
            self.open[rest[0], rest[1]] = int(rest[2])
        elif what == "done":
            self.sure[rest[0], rest[1]] = int(rest[2])
            del self.open[rest[0], rest[1]]


def outcomes_of_victim(directory: Path, kind: str, at: str) -> Outcomes:
    outcomes = Outcomes()
    for line in run_victim("table_victim", directory, kind, at):
        outcomes.read(line)
    assert outcomes.sure, "nothing was acknowledged before the end"
    return outcomes


def groups_of(entities: list[StoredEntity]) -> dict[Group, int]:
    """Return the number of each group, which all of its rows must have."""
    numbers: dict[Group, list[bytes]] = {}
    for entity in entities:
        group, _, _ = entity.row_key.rpartition("-")
        numbers.setdefault((entity.partition_key, group), []).append(entity.properties)
    for group, found in numbers.items():
        assert len(found) == ROWS_IN_GROUP, f"{group} is there in part"
        assert len(set(found)) == 1, f"{group} is of two writes"
    return {group: int(found[0].removeprefix(b'"n":')) for group, found in numbers.items()}


async def check_after_restart(directory: Path, kind: str, outcomes: Outcomes) -> None:
    async with open_tables(directory, patience=NEVER) as world:
        table = world.tables.find_table(ACCOUNT, TABLE)
        assert table is not None
        async with asyncio.timeout(180):
            while world.world.reshaper.progress or world.world.catalog.garbage:
                await asyncio.sleep(0.02)
        entities = await everything(table)
        names = [(entity.partition_key, entity.row_key) for entity in entities]
        assert names == sorted(set(names))
        assert sum(name[1].startswith("old-") for name in names) == OLD
        found = groups_of([entity for entity in entities if not entity.row_key.startswith("old-")])
        for group in found.keys() | outcomes.sure.keys() | outcomes.open.keys():
            allowed = {outcomes.sure.get(group, 0), outcomes.open.get(group, outcomes.sure.get(group, 0))}
            assert found.get(group, 0) in allowed
        await world.check_statistics(table)
        maps = table.keyspace.record.map
        assert len(maps.ranges) == (2 if kind == "split" else 1)
        assert set(await world.world.engine.partitions()) == {0} | {partition.partition for partition in maps.ranges}


@pytest.mark.parametrize("kind", ["split", "merge"])
@pytest.mark.parametrize("step", list(Step), ids=lambda step: step.name)
def test_a_killed_process_resumes_the_reshaping_of_a_table(tmp_path: Path, kind: str, step: Step) -> None:
    outcomes = outcomes_of_victim(tmp_path, kind, step.name)
    asyncio.run(check_after_restart(tmp_path, kind, outcomes))


@pytest.mark.parametrize("seconds", ["0.02", "0.11", "0.29"])
def test_a_group_is_there_whole_or_not_at_all_after_a_kill(tmp_path: Path, seconds: str) -> None:
    outcomes = outcomes_of_victim(tmp_path, "none", seconds)
    asyncio.run(check_after_restart(tmp_path, "none", outcomes))
