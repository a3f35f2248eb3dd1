"""Run as a process of its own: one of two gateways over one store. One leads and splits; the other serves.

    leader     fills a container, begins a split on a line of standard input, and kills or stops itself at a step
    follower   writes all the time, and reports when the split is done, by either

Every acknowledged write is a line on standard output. A line on standard input makes the process go on; at the end
of standard input it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from asterism.errors import OwnerNotFound
from asterism.keyspaces.processes import coordination
from asterism.keyspaces.reshaping.job import Step
from asterism.models.documents.container import Container
from asterism.storage.lmdb import LmdbEngine
from tests.faults.reshape_victim import prepare, say, write_for_ever
from tests.support.world import ACCOUNT, World, open_gateway

TAKEOVER_SECONDS = 1.0


async def next_line() -> str:
    """Return the next line of standard input; empty at its end."""
    return await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def lead(world: World, arm: Callable[[], None]) -> None:
    container = await prepare(world, "split")
    say("ready")
    await next_line()
    arm()
    job = await world.reshaper.split(container.keyspace, 0)
    await world.reshaper.finished(job)
    # Only a process that was stopped and resumed gets here.
    say("went on")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(30):
            while world.catalog.leads:
                await asyncio.sleep(0.01)
            say("deposed")
    await container.upsert_item({"id": "from-the-old-leader", "pk": "k", "n": 1}, ("k",))
    say("wrote 1 k from-the-old-leader")
    await next_line()


async def serve(world: World) -> None:
    container: Container | None = None
    while container is None:
        await world.catalog.follow()
        try:
            container = world.store.container_for_items(ACCOUNT, "d", "c")
        except OwnerNotFound:
            await asyncio.sleep(0.01)
    writers = [asyncio.create_task(write_for_ever(container, writer)) for writer in range(3)]
    say("ready")
    ended = asyncio.create_task(next_line())
    while len(container.keyspace.record.map.ranges) < 2 or world.catalog.work.jobs:
        await asyncio.sleep(0.01)
    say("split")
    done, _ = await asyncio.wait({ended, *writers}, return_when=asyncio.FIRST_COMPLETED)
    for writer in done & set(writers):
        writer.result()
    for writer in writers:
        writer.cancel()
    await asyncio.wait(writers)
    say("ended")


async def main(directory: Path, role: str, number: signal.Signals, step: Step) -> None:
    is_armed = False

    def arm() -> None:
        nonlocal is_armed
        is_armed = True

    def on_step(reached: Step) -> None:
        nonlocal is_armed
        if is_armed and reached is step:
            is_armed = False
            os.kill(os.getpid(), number)

    coordination.TAKEOVER_SECONDS = TAKEOVER_SECONDS
    engine = LmdbEngine.open(directory, shared=True)
    async with open_gateway(engine, on_step=on_step, is_first=role == "leader") as world:
        if role == "leader":
            await lead(world, arm)
        else:
            await serve(world)
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], signal.Signals[sys.argv[3]], Step[sys.argv[4]]))
