"""kill -9 in the middle of a split of a container that is being written to: after the restart the split is finished,
every acknowledged blob is there whole, and the counters agree with the data."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from asterism.keyspaces.reshaping.job import Step
from asterism.models.blobs.calls import ListQuery
from asterism.models.blobs.container import Container
from tests.faults.blob_split_victim import OLD_BLOBS, block_of, content_of, old_name
from tests.faults.victims import run_victim
from tests.support.blobs import ACCOUNT, get, listed, open_blobs, put

# Number of a write by name; of a deletion 0.
Numbers = dict[str, int]


@dataclass
class Outcomes:
    sure: Numbers = field(default_factory=dict)
    attempted: Numbers = field(default_factory=dict)

    def read(self, line: str) -> None:
        kind, name, number = line.split()
        (self.sure if kind == "wrote" else self.attempted)[name] = int(number)

    def possible(self, name: str) -> set[int]:
        return {self.sure.get(name, 0), self.attempted[name]}


def outcomes_of_victim(directory: Path, step: Step) -> Outcomes:
    outcomes = Outcomes()
    for line in run_victim("blob_split_victim", directory, step.name):
        outcomes.read(line)
    return outcomes


def expected_contents(name: str, numbers: set[int]) -> list[bytes]:
    if name.startswith("appended-"):
        return [b"".join(block_of(name, each) for each in range(1, number + 1)) for number in numbers]
    return [content_of(name, number) for number in numbers if number]


async def check_after_restart(directory: Path, outcomes: Outcomes) -> None:
    async with open_blobs(directory) as world, asyncio.timeout(180):
        container = world.blobs.find_container(ACCOUNT, "c")
        assert container is not None
        while world.world.reshaper.progress or world.world.catalog.garbage:
            await asyncio.sleep(0.02)
        assert len(container.keyspace.record.map.ranges) == 2
        await check_blobs(container, outcomes)
        await world.check_statistics(container)
        await put(container, "after", b"data")
        assert await get(container, "after") == b"data"


async def check_blobs(container: Container, outcomes: Outcomes) -> None:
    found = {record.name: await get(container, record.name) for record in await listed(container, ListQuery())}
    for number in range(OLD_BLOBS):
        assert found.pop(old_name(number)) == content_of(old_name(number), number)
    for name, content in found.items():
        assert content in expected_contents(name, outcomes.possible(name)), name
    missing = outcomes.attempted.keys() - found.keys()
    assert all(0 in outcomes.possible(name) for name in missing)


@pytest.mark.parametrize("step", [Step.COPYING, Step.SEALED, Step.PUBLISHED], ids=lambda step: step.name)
def test_a_killed_split_of_a_container_is_finished_without_loss(tmp_path: Path, step: Step) -> None:
    outcomes = outcomes_of_victim(tmp_path, step)
    assert outcomes.sure
    asyncio.run(check_after_restart(tmp_path, outcomes))
