"""Stores with a write log for tests: written, killed, opened again, damaged."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from asterism.storage.contract import Batch, Fence, Span
from asterism.storage.lmdb import FoldPace, LmdbEngine
from asterism.storage.lmdb.log_record import find_records
from asterism.values.identifiers import Lsn
from tests.faults.storage_worker import EPOCH, PARTITION, batch_of, whole_batches
from tests.support.store_images import (
    NEVER,
    fold_held_up,
    killed_copy,
    logged_sequences,
)

ALL = Span()
NAMES = [b"batch-%d" % number for number in range(6)]


async def new_store(directory: Path, *, fold_pace: FoldPace = NEVER) -> LmdbEngine:
    engine = LmdbEngine.open(directory, durable=False, fold_pace=fold_pace)
    await engine.create_partition(PARTITION, Fence(EPOCH))
    return engine


async def write(engine: LmdbEngine, *names: bytes) -> list[Lsn]:
    """Apply batches one after the other, each in a record of its own."""
    return [await engine.apply(PARTITION, EPOCH, batch_of(name)) for name in names]


async def write_together(engine: LmdbEngine, *names: bytes) -> list[Lsn | BaseException]:
    calls = (engine.apply(PARTITION, EPOCH, batch_of(name)) for name in names)
    return await asyncio.gather(*calls, return_exceptions=True)


async def stored_names(engine: LmdbEngine) -> list[bytes]:
    """Return the names of all batches in the order of their LSNs; check that each is whole."""
    lsn = (await engine.read_fence(PARTITION))[1]
    page = await engine.scan(PARTITION, EPOCH, ALL, limit=10**9)
    return list(whole_batches(lsn, dict(page.entries)).values())


async def names_in(directory: Path, **options: Any) -> list[bytes]:
    async with opened(directory, **options) as engine:
        return await stored_names(engine)


@asynccontextmanager
async def opened(directory: Path, **options: Any) -> AsyncIterator[LmdbEngine]:
    engine = LmdbEngine.open(directory, durable=False, **options)
    try:
        yield engine
    finally:
        await engine.close()


async def killed_store(directory: Path, *names: bytes) -> Path:
    """Return a copy of a store of which the log has everything, one record for each batch after the first record."""
    engine = await new_store(directory / "running")
    await write(engine, *names)
    copy = killed_copy(directory / "running", directory / "killed")
    await engine.close()
    return copy


async def folded_and_killed_store(directory: Path, *, folded: int, logged: int) -> Path:
    """Return a copy of a store with a checkpoint: some of the batches are in the tree, the rest are in the log."""
    await (await new_store(directory / "running")).close()
    async with opened(directory / "running", fold_pace=NEVER) as engine:
        await write(engine, *NAMES[:folded])
    async with opened(directory / "running", fold_pace=NEVER) as engine:
        await write(engine, *NAMES[folded : folded + logged])
        return killed_copy(directory / "running", directory / "killed")


async def store_with_two_logs(directory: Path) -> Path:
    """Return a copy of a store that was killed while it folded: a file has the records 1 to 4, the other 5 to 7."""
    engine = await new_store(directory / "running", fold_pace=FoldPace(changes=20, seconds=10**6))
    async with fold_held_up(engine):
        await write(engine, *NAMES[:6])
        copy = killed_copy(directory / "running", directory / "killed")
    await engine.close()
    assert logged_sequences(copy) == [[1, 2, 3, 4], [5, 6, 7]]
    return copy


def record_starts(file: Path) -> dict[int, int]:
    """Return where each record of a file of the log begins, by its number."""
    data = file.read_bytes()
    places = list(find_records(data))
    starts = [0, *(place.next_at for place in places)]
    return {place.sequence: start for place, start in zip(places, starts, strict=False)}


def damage(file: Path, *, at: int) -> None:
    """Flip a bit."""
    with file.open("r+b") as handle:
        handle.seek(at)
        byte = handle.read(1)[0]
        handle.seek(at)
        handle.write(bytes([byte ^ 1]))


OPENS_IN_ANOTHER_PROCESS = """
import asyncio, sys
from asterism.storage.contract import EngineFailed
from asterism.storage.lmdb import LmdbEngine, store_lock

# A process that has the store to itself never shares it, however long another waits.
store_lock._SECONDS_MAX = store_lock._ALONE_SECONDS_MAX = 0.05

async def main():
    try:
        engine = LmdbEngine.open(sys.argv[1], durable=False, shared=sys.argv[2] == "True")
    except EngineFailed as refusal:
        print(refusal)
    else:
        print("opened")
        await engine.close()

asyncio.run(main())
"""


async def open_in_another_process(directory: Path, *, shared: bool) -> str:
    command = (sys.executable, "-c", OPENS_IN_ANOTHER_PROCESS, str(directory), str(shared))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode().strip()


def random_batch(chance: random.Random, keys: list[bytes]) -> Batch:
    chosen = chance.sample(keys, 12)
    span = sorted(chance.sample(keys, 2))
    return Batch(
        puts=[(key, chance.randbytes(3)) for key in chosen[:6]],
        deletes=chosen[6:],
        range_deletes=[Span(*span)] * (chance.random() < 0.1),
    )


def after_batch(state: dict[bytes, bytes], batch: Batch) -> dict[bytes, bytes]:
    kept = {key: value for key, value in state.items() if not any(span.contains(key) for span in batch.range_deletes)}
    return {key: value for key, value in kept.items() if key not in batch.deletes} | dict(batch.puts)
