"""kill -9 at each step of the move of a partition key into a container of its own.

After the restart the job is resumed without a request, nothing acknowledged is lost or doubled, clients of the old
container are never shut out for long, and no copy of the key's items stays behind.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from pathlib import Path

import pytest

from asterism.models.documents.container import Container
from asterism.models.documents.forwarding import PartitionForwarded
from asterism.models.documents.pages import range_scope, scan_items
from asterism.models.documents.promotion.job import PromotionPhase, PromotionStep
from asterism.models.documents.rekey.job import RekeyStep
from asterism.partitioning.key_range import FULL
from asterism.values.json.text import loads
from tests.faults.promotion_victim import BIG, ITEMS
from tests.faults.victims import run_victim
from tests.support.world import ACCOUNT, World, open_world

# Steps of re-keyings that promotions have too.
SHARED = (
    RekeyStep.TARGET_MADE,
    RekeyStep.SCRIPTS_COPIED,
    RekeyStep.VERSIONS_KEPT,
    RekeyStep.PREPARED,
    RekeyStep.PIECE_COPIED,
    RekeyStep.COPIED,
    RekeyStep.CHANGES_FOLLOWED,
    RekeyStep.FENCED,
    RekeyStep.COMPARED,
    RekeyStep.RESTORED,
)
Name = tuple[str, str]


def outcomes_of_victim(directory: Path, step: StrEnum) -> tuple[dict[Name, int], dict[Name, int]]:
    """Return the known numbers of the victim's items (-1: deleted), and the changes it had begun when it died."""
    sure: dict[Name, int] = {}
    begun: dict[Name, int] = {}
    for word, key, item_id, number in (line.split() for line in run_victim("promotion_victim", directory, step.name)):
        begun.pop((key, item_id), None)
        (begun if word == "try" else sure)[key, item_id] = int(number)
    return sure, begun


async def contents(world: World, container: Container) -> dict[Name, int]:
    found: dict[Name, int] = {}
    async for piece in scan_items(world.router, container, range_scope(FULL), position=None):
        for _, body in piece.items:
            item = loads(body)
            assert isinstance(item, dict)
            found[item["pk"], item["id"]] = item["n"]
    return found


async def check_after_restart(directory: Path, sure: dict[Name, int], begun: dict[Name, int]) -> None:
    async with open_world(directory) as world:
        database = world.store.database(ACCOUNT, "d")
        source, target = world.store.container(database, "c"), world.store.container(database, "new")
        (job,) = world.store.promoter.jobs.values()
        async with asyncio.timeout(180):
            while job.phase is not PromotionPhase.FORWARDING:
                await asyncio.sleep(0.02)
        left, moved = await contents(world, source), await contents(world, target)
        assert ({key for key, _ in left}, {key for key, _ in moved}) == ({"k1"}, {BIG})
        found = left | moved
        assert sum(item_id.startswith("old-") for _, item_id in found) == ITEMS
        for name, number in sure.items():
            assert found.get(name, -1) in (number, begun.get(name, number))
        with pytest.raises(PartitionForwarded):
            await source.create_item({"id": "after", "pk": BIG}, None)
        await source.create_item({"id": "after", "pk": "k1"}, None)
        assert not world.store.container(database, "c").keeps_versions
        scripts = world.catalog.scripts.functions
        assert [script.name for script in scripts.owned_by(target.record.rid)] == ["f"]
        await world.check_statistics(source)
        await world.check_statistics(target)


@pytest.mark.parametrize("step", [*SHARED, *PromotionStep], ids=lambda step: step.name)
def test_a_killed_process_resumes_its_promotion(tmp_path: Path, step: StrEnum) -> None:
    sure, begun = outcomes_of_victim(tmp_path, step)
    asyncio.run(check_after_restart(tmp_path, sure, begun))
