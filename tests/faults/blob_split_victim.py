"""Run as a process of its own: writes blobs, splits their container, and dies by SIGKILL at the given step.

Each write is a line on standard output before it and after it, so that the test knows what must have survived.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

from asterism.keyspaces.reshaping.job import Step
from asterism.models.blobs.calls import BlockEntry, BlockSource, NewBlob
from asterism.models.blobs.container import Container
from asterism.models.blobs.record import BlobKind
from tests.support.blobs import append, open_blobs, put, put_block

OLD_BLOBS = 60
NAMES = 12
# Of records, chunks, and uploads in several parts.
SIZES = (500, 20_000, 500, 1_300_000, 500)
# Between the writes of one writer: a copy under full load takes long, and that is not what the test is about.
REST_SECONDS = 0.02


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def content_of(name: str, number: int) -> bytes:
    return random.Random(f"{name} {number}").randbytes(SIZES[number % len(SIZES)])


def block_of(name: str, number: int) -> bytes:
    return random.Random(f"{name} {number}").randbytes(3000)


def old_name(number: int) -> str:
    return f"old/{number:03d}"


async def replace_for_ever(container: Container, writer: int, has_written: asyncio.Event) -> None:
    number = 0
    while True:
        number += 1
        name = f"{number % NAMES:02d}-w{writer}"
        say("try", name, number)
        content = content_of(name, number)
        if number % 2:
            await put(container, name, content)
        else:
            await put_block(container, name, b"one", content)
            await container.commit_blocks(name, [BlockEntry(BlockSource.LATEST, b"one")], NewBlob(BlobKind.BLOCK))
        say("wrote", name, number)
        has_written.set()
        await asyncio.sleep(REST_SECONDS)
        if number % 5 == 0:
            say("try", name, 0)
            await container.delete(name)
            say("wrote", name, 0)


async def append_for_ever(container: Container, name: str) -> None:
    number = 0
    while True:
        number += 1
        say("try", name, number)
        await append(container, name, block_of(name, number))
        say("wrote", name, number)
        await asyncio.sleep(REST_SECONDS)


async def main(directory: Path, step: Step) -> None:
    armed = False

    def on_step(reached: Step) -> None:
        if armed and reached is step:
            os.kill(os.getpid(), signal.SIGKILL)

    async with open_blobs(directory, on_step=on_step) as world:
        container = await world.container()
        for number in range(OLD_BLOBS):
            await put(container, old_name(number), content_of(old_name(number), number))
        for writer in range(2):
            await container.put_blob(f"appended-{writer}", None, NewBlob(BlobKind.APPEND))
        armed = True
        has_written = asyncio.Event()
        tasks = [asyncio.create_task(replace_for_ever(container, writer, has_written)) for writer in range(3)]
        tasks += [asyncio.create_task(append_for_ever(container, f"appended-{writer}")) for writer in range(2)]
        await asyncio.sleep(0.2)
        # However slow the disk is.
        await has_written.wait()
        (only,) = container.keyspace.record.map.ranges
        job = await world.world.reshaper.split(container.keyspace, only.id)
        await world.world.reshaper.finished(job)
        say("survived", *(task.exception() for task in tasks if task.done()))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Step[sys.argv[2]]))
