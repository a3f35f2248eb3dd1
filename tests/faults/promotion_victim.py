"""Run as a process of its own: writes, promotes a partition key, and dies by SIGKILL at the given step.

Every acknowledged write is a line on standard output, so that the test knows what must have survived.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from enum import StrEnum
from pathlib import Path

from asterism.errors import ItemNotFound
from asterism.models.documents.container import Container
from asterism.models.documents.forwarding import PartitionFenced, PartitionForwarded
from asterism.models.documents.promotion.job import PromotionPhase
from asterism.models.documents.promotion.requests import Promotion, begin_promotion
from tests.support.world import ACCOUNT, World, open_world

ITEMS = 200
BIG = "big"


def say(text: str) -> None:
    os.write(1, (text + "\n").encode())


async def write(world: World, container: Container, key: str, item_id: str, number: int) -> None:
    """Write as the door does: after a hand-over, and where the items are. -1 deletes."""
    while True:
        try:
            if number == -1:
                await container.delete_item(item_id.encode(), (key,))
            else:
                await container.upsert_item({"id": item_id, "pk": key, "n": number}, (key,))
        except ItemNotFound:
            return
        except PartitionFenced:
            await asyncio.sleep(0.002)
        except PartitionForwarded:
            container = world.store.container(world.store.database(ACCOUNT, "d"), "new")
        else:
            return


async def write_for_ever(world: World, container: Container, writer: int) -> None:
    number = 0
    while True:
        number += 1
        key, item_id = (BIG, "k1")[number % 4 == 0], f"w{writer}-{number % 30}"
        wanted = -1 if number % 7 == 0 else number
        say(f"try {key} {item_id} {wanted}")
        await write(world, container, key, item_id, wanted)
        say(f"done {key} {item_id} {wanted}")
        await asyncio.sleep(0.002)


async def main(directory: Path, step: str) -> None:
    def on_step(reached: StrEnum) -> None:
        if reached.name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    async with open_world(directory) as world:
        container = await world.container()
        for number in range(ITEMS):
            key = BIG if number % 2 else "k1"
            await container.create_item({"id": f"old-{number}", "pk": key, "n": number}, None)
        await world.catalog.scripts.functions.create(container.record.rid, "f", {"body": "function f() {}"}, now=1)
        world.store.promoter.on_step = on_step
        writers = [asyncio.create_task(write_for_ever(world, container, writer)) for writer in range(2)]
        job = await begin_promotion(world.store, Promotion(container, (BIG,), "new"))
        while job.phase is not PromotionPhase.FORWARDING:
            await asyncio.sleep(0.01)
        # The last step is reported right after its mark in the job.
        await asyncio.sleep(60)
        say("survived")
        for task in writers:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
