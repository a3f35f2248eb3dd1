"""kill -9 at each step of a split, of a merge and of a move between two nodes.

After the restart nothing acknowledged is lost, nothing is half done, the statistics agree with the data, and the job
has been finished.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from asterism.keyspaces.reshaping.job import Step
from asterism.models.documents.pages import read_items_page
from asterism.models.documents.results import Scope
from asterism.values.json.text import loads
from tests.faults.reshape_victim import NODE_LABELS
from tests.faults.victims import run_victim
from tests.support.world import ACCOUNT, World, open_world

Name = tuple[str, str]


@dataclass
class Outcomes:
    """The items that must exist by the victim's lines, and those that its last unanswered attempts may have left."""

    sure: dict[Name, int | None] = field(default_factory=dict)
    open: dict[Name, int | None] = field(default_factory=dict)

    def read(self, line: str) -> None:
        words = line.split()
        if words[0] == "wrote":
            self.sure[words[2], words[3]] = int(words[1])
        elif words[0] in ("deleted", "none"):
            self.sure[words[1], words[2]] = None
        elif words[:2] == ["try", "delete"]:
            self.open[words[2], words[3]] = None
            return
        elif words[0] == "try":
            self.open[words[2], words[3]] = int(words[1])
            return
        else:
            return
        self.open.pop((words[-2], words[-1]) if words[0] != "none" else (words[1], words[2]), None)


def outcomes_of_victim(directory: Path, kind: str, step: Step) -> Outcomes:
    outcomes = Outcomes()
    for line in run_victim("reshape_victim", directory, kind, step.name):
        outcomes.read(line)
    return outcomes


async def numbers_found(world: World) -> dict[Name, int | None]:
    container = world.store.container_for_items(ACCOUNT, "d", "c")
    found: dict[Name, int | None] = {}
    position, more = None, True
    while more:
        page = await read_items_page(world.router, container, Scope(b"", b"\xff"), position=position, items_max=100)
        for body in page.bodies:
            item = loads(body)
            assert isinstance(item, dict)
            assert (item["pk"], item["id"]) not in found
            found[item["pk"], item["id"]] = item.get("n")
        position, more = page.position, page.position is not None
    return found


async def check_after_restart(directory: Path, kind: str, outcomes: Outcomes) -> None:
    async with open_world(directory, node_labels=NODE_LABELS[kind]) as world:
        container = world.store.container_for_items(ACCOUNT, "d", "c")
        async with asyncio.timeout(180):
            while world.reshaper.progress or world.catalog.garbage:
                await asyncio.sleep(0.02)
        found = await numbers_found(world)
        old = {name for name in found if name[1].startswith("old-")}
        assert len(old) == 400
        written = {name: found.get(name) for name in found.keys() | outcomes.sure.keys() if name not in old}
        settled = {name: number for name, number in written.items() if name not in outcomes.open}
        assert settled == {name: number for name, number in outcomes.sure.items() if name not in outcomes.open}
        for name, attempted in outcomes.open.items():
            assert found.get(name) in (attempted, outcomes.sure.get(name))
        await world.check_statistics(container)
        maps = container.keyspace.record.map
        assert [partition.node for partition in maps.ranges] == {"split": [0, 0], "merge": [0], "move": [1]}[kind]
        assert set(await world.engine.partitions()) == {0} | {partition.partition for partition in maps.ranges}
        await container.create_item({"id": "after", "pk": "after"}, None)


# K10 of asterism/keyspaces/DESIGN.md.
@pytest.mark.parametrize("kind", ["split", "merge", "move"])
@pytest.mark.parametrize("step", list(Step), ids=lambda step: step.name)
def test_a_killed_process_resumes_its_reshaping(tmp_path: Path, kind: str, step: Step) -> None:
    outcomes = outcomes_of_victim(tmp_path, kind, step)
    asyncio.run(check_after_restart(tmp_path, kind, outcomes))
