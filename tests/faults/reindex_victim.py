"""Run as a process of its own: writes, changes its indexing policy, and dies by SIGKILL at the given step."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from asterism.models.documents.container import Container
from asterism.models.documents.upkeep.reindexer import ReindexStep
from tests.support.world import open_world

ITEMS = 400
POLICY = {
    "includedPaths": [{"path": "/n/?"}],
    "excludedPaths": [{"path": "/*"}],
    "compositeIndexes": [[{"path": "/n"}, {"path": "/pad", "order": "descending"}]],
}


async def write_for_ever(container: Container, writer: int) -> None:
    number = 0
    while True:
        number += 1
        key = f"k{number % 30}"
        await container.upsert_item({"id": f"w{writer}-{number % 50}", "pk": key, "n": number, "pad": "x"}, (key,))


async def main(directory: Path, step: ReindexStep, times: int) -> None:
    left = times

    def on_step(reached: ReindexStep) -> None:
        nonlocal left
        left -= reached is step
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    async with open_world(directory) as world:
        container = await world.container()
        for number in range(ITEMS):
            await container.create_item({"id": f"old-{number}", "pk": f"k{number % 30}", "n": number, "pad": "y"}, None)
        writers = [asyncio.create_task(write_for_ever(container, writer)) for writer in range(3)]
        await asyncio.sleep(0.05)
        reindexer = world.store.reindexer
        reindexer.on_step = on_step
        # Remembered after every slice, so that the next start can resume from it.
        reindexer.position_seconds = 0.0
        await world.store.replace_container(container, {**container.record.settings, "indexingPolicy": POLICY})
        await reindexer.finished(container.keyspace)
        for writer in writers:
            writer.cancel()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), ReindexStep[sys.argv[2]], int(sys.argv[3])))
