"""The process that the storage fault tests kill, or starve of room. Run as `python -m tests.faults.storage_worker`."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from pathlib import Path

from asterism.storage.contract import Add, Batch, Fence, OutOfSpace
from asterism.storage.lmdb import LmdbEngine
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

PARTITION = PartitionNumber(1)
EPOCH = Epoch(1)
TASKS = 8
PUTS_PER_BATCH = 5
COUNTERS_KEY = b"counters"


def batch_of(name: bytes) -> Batch:
    """Five entries, a log record that names them, and counters of both: each can be checked against the others."""
    return Batch(
        puts=[(b"data/%s/%d" % (name, index), name * 40) for index in range(PUTS_PER_BATCH)],
        stamped_puts=[(b"log/", b"", name)],
        adds=[Add(COUNTERS_KEY, (PUTS_PER_BATCH, 1))],
    )


async def write_for_ever(directory: Path, worker: str) -> None:
    """Tells each batch on standard output as soon as it is acknowledged."""
    engine = LmdbEngine.open(directory)

    async def write(task: int) -> None:
        sequence = 0
        while True:
            name = b"%s-%d-%d" % (worker.encode(), task, sequence)
            lsn = await engine.apply(PARTITION, EPOCH, batch_of(name))
            os.write(sys.stdout.fileno(), b"%d %s\n" % (lsn, name))
            sequence += 1

    async with asyncio.TaskGroup() as group:
        for task in range(TASKS):
            group.create_task(write(task))


async def run_out_of_file_size(directory: Path) -> dict[str, object]:
    """Writes until the file may grow no more, then again with the limit lifted; tells what happened."""
    engine = LmdbEngine.open(directory)
    await engine.create_partition(PARTITION, Fence(EPOCH))
    file_bytes_max = (directory / "data.mdb").stat().st_size + 600_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes_max, resource.RLIM_INFINITY))
    applied, refused = await _write_until_refused(engine)
    lsn_full, values = await engine.read(PARTITION, EPOCH, [b"%d" % number for number in range(applied)])
    also_refused = await asyncio.gather(*(_put(engine, b"x%d" % n) for n in range(4)), return_exceptions=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    lsn_after = await _put(engine, b"after")
    await engine.close()
    return {
        "applied": applied,
        "refused": refused,
        "also_refused": [type(outcome).__name__ for outcome in also_refused],
        "readable_when_full": sum(value is not None for value in values),
        "lsn_full": lsn_full,
        "lsn_after": lsn_after,
    }


async def _put(engine: LmdbEngine, key: bytes) -> Lsn:
    return await engine.apply(PARTITION, EPOCH, Batch(puts=[(key, bytes(50_000))]))


async def _write_until_refused(engine: LmdbEngine) -> tuple[int, str]:
    for number in range(100):
        try:
            await _put(engine, b"%d" % number)
        except OutOfSpace as refusal:
            return number, type(refusal).__name__
    return 100, "never"


def main() -> None:
    mode, directory = sys.argv[1], Path(sys.argv[2])
    if mode == "write":
        asyncio.run(write_for_ever(directory, sys.argv[3]))
    else:
        print(json.dumps(asyncio.run(run_out_of_file_size(directory))))


if __name__ == "__main__":
    main()
