"""Run as a process of its own: writes, copies a container to another key, and dies by SIGKILL at the given step.

Every acknowledged write is a line on standard output, so that the test knows what must have survived.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from asterism.errors import Forbidden, ItemNotFound
from asterism.models.documents.container import Container
from asterism.models.documents.rekey.job import RekeyPhase, RekeyStep
from tests.support.world import ACCOUNT, World, open_world

ITEMS = 200


def say(text: str) -> None:
    os.write(1, (text + "\n").encode())


async def write_until_refused(container: Container, writer: int) -> None:
    number = 0
    while True:
        number += 1
        key, item_id = f"k{number % 30}", f"w{writer}-{number % 30}"
        try:
            if number % 7 == 0:
                say(f"try {key} {item_id} -1")
                await container.delete_item(item_id.encode(), (key,))
                say(f"done {key} {item_id} -1")
            else:
                say(f"try {key} {item_id} {number}")
                await container.upsert_item({"id": item_id, "pk": key, "day": number % 5, "n": number}, (key,))
                say(f"done {key} {item_id} {number}")
        except ItemNotFound:
            say(f"done {key} {item_id} -1")
        except Forbidden:
            say(f"refused {key} {item_id}")
            return
        await asyncio.sleep(0.002)


async def main(directory: Path, step: RekeyStep) -> None:
    def on_step(reached: RekeyStep) -> None:
        if reached is step:
            os.kill(os.getpid(), signal.SIGKILL)

    async with open_world(directory) as world:
        container = await world.container()
        for number in range(ITEMS):
            await container.create_item({"id": f"old-{number}", "pk": f"k{number % 30}", "day": number % 9}, None)
        await world.catalog.scripts.functions.create(container.record.rid, "f", {"body": "function f() {}"}, now=1)
        world.store.rekeyer.on_step = on_step
        writers = [asyncio.create_task(write_until_refused(container, writer)) for writer in range(2)]
        await rekey(world, container)
        say("survived")
        for writer in writers:
            writer.cancel()


async def rekey(world: World, container: Container) -> None:
    job = await world.store.begin_rekey(container, "new", ["/day"])
    while not job.is_caught_up:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    await world.store.rekeyer.switch(world.store.container(world.store.database(ACCOUNT, "d"), "new"))
    while job.phase is not RekeyPhase.SWITCHED or job.retention_before is not None:
        await asyncio.sleep(0.01)
    # The last step is reported right after its mark in the job.
    await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), RekeyStep[sys.argv[2]]))
