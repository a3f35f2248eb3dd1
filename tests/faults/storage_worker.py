"""The process that the storage fault tests kill, or fill up. Run as `python -m tests.faults.storage_worker`."""

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
    """Return a batch of five entries, a log record that names them, and counters of both, to be checked against each
    other."""
    return Batch(
        puts=[(b"data/%s/%d" % (name, index), name * 40) for index in range(PUTS_PER_BATCH)],
        stamped_puts=[(b"log/", b"", name)],
        adds=[Add(COUNTERS_KEY, (PUTS_PER_BATCH, 1))],
    )


async def write_forever(directory: Path, worker: str) -> None:
    """Print each batch to standard output as soon as it is acknowledged."""
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
    """Write until the file cannot grow, then again with the limit lifted; return the outcomes."""
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
        asyncio.run(write_forever(directory, sys.argv[3]))
    else:
        print(json.dumps(asyncio.run(run_out_of_file_size(directory))))


if __name__ == "__main__":
    main()
