"""Run as a process of its own: writes, reshapes, and dies by SIGKILL at the given step.

Every acknowledged write is a line on standard output, so that the test knows what must have survived.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from asterism.keyspaces.reshaping.job import Step
from asterism.models.documents.container import Container
from asterism.partitioning.placement import Rules
from asterism.throughput.budgets import Manual
from asterism.values.identifiers import NodeNumber
from tests.support.world import World, open_world

ITEMS = 400
# A move needs a second node; a split or a merge may be on one.
NODE_LABELS = {"split": ("",), "merge": ("",), "move": ("home", "away")}


def say(text: str) -> None:
    os.write(1, (text + "\n").encode())


async def write_for_ever(container: Container, writer: int) -> None:
    number = 0
    while True:
        number += 1
        key = f"k{number % 30}"
        item_id = f"w{writer}-{number % 50}"
        if number % 7 == 0:
            say(f"try delete {key} {item_id}")
            try:
                await container.delete_item(item_id.encode(), (key,))
            except Exception as error:
                say(f"none {key} {item_id} {type(error).__name__}")
                continue
            say(f"deleted {key} {item_id}")
        else:
            say(f"try {number} {key} {item_id}")
            await container.upsert_item({"id": item_id, "pk": key, "n": number, "pad": "x" * (number % 90)}, (key,))
            say(f"wrote {number} {key} {item_id}")


async def prepare(world: World, kind: str) -> Container:
    world.reshaper.placer.default_rules = lambda *_: Rules(frozenset({"home"} if kind == "move" else ()))
    container = await world.container(throughput=Manual(12_000 if kind == "merge" else 400))
    for number in range(ITEMS):
        await container.create_item({"id": f"old-{number}", "pk": f"k{number % 30}"}, None)
    if kind == "merge":
        offer = world.catalog.offer_for(container.record.rid)
        assert offer is not None
        await world.store.replace_offer(offer, Manual(400))
    return container


async def main(directory: Path, kind: str, step: Step) -> None:
    armed = False

    def on_step(reached: Step) -> None:
        if armed and reached is step:
            os.kill(os.getpid(), signal.SIGKILL)

    async with open_world(directory, on_step=on_step, node_labels=NODE_LABELS[kind]) as world:
        container = await prepare(world, kind)
        say("ready")
        armed = True
        writers = [asyncio.create_task(write_for_ever(container, writer)) for writer in range(3)]
        await asyncio.sleep(0.05)
        if kind == "merge":
            job = await world.reshaper.merge(container.keyspace, 0, 1)
        elif kind == "move":
            job = await world.reshaper.move(container.keyspace, 0, NodeNumber(1))
        else:
            job = await world.reshaper.split(container.keyspace, 0)
        await world.reshaper.finished(job)
        say("survived")
        for writer in writers:
            writer.cancel()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], Step[sys.argv[3]]))
