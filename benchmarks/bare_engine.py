"""How fast the LMDB engine applies batches with nothing above it: the ceiling for every door's writes.

`python -m benchmarks.bare_engine` prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop

from asterism.storage.contract import Batch, Fence
from asterism.storage.lmdb import LmdbEngine
from asterism.values.identifiers import Epoch, PartitionNumber

PARTITION = PartitionNumber(1)
EPOCH = Epoch(1)


@dataclass(frozen=True, slots=True)
class BareEngineResult:
    batches: int
    tasks: int
    seconds: float
    batches_per_second: float
    # One key of about 1 KB, read alone, again and again.
    read_microseconds: float
    durable: bool


def item_like_batches(count: int, *, item_bytes: int = 1024, small_puts: int = 15) -> list[Batch]:
    """Batches as an item with a few index entries makes them: one large put and many small ones, scattered."""
    body = os.urandom(item_bytes)
    return [
        Batch(
            versioned_puts=[(b"i" + os.urandom(16), body)],
            puts=[(b"x%02d" % index + os.urandom(24), b"") for index in range(small_puts)],
        )
        for _ in range(count)
    ]


async def measure_bare_engine(
    batches: Sequence[Batch], *, tasks: int, directory: Path, durable: bool = True, reads: int = 50_000
) -> BareEngineResult:
    """Applies the batches to a new partition from so many tasks at once, each waiting for its own to be durable."""
    engine = LmdbEngine.open(directory, durable=durable)
    try:
        await engine.create_partition(PARTITION, Fence(EPOCH))
        queue = iter(batches)
        started_at = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(tasks):
                group.create_task(_apply_all(engine, queue))
        seconds = time.perf_counter() - started_at
        read_seconds = await _time_reads(engine, batches[0], reads)
    finally:
        await engine.close()
    return BareEngineResult(
        batches=len(batches),
        tasks=tasks,
        seconds=seconds,
        batches_per_second=len(batches) / seconds,
        read_microseconds=read_seconds / reads * 1e6,
        durable=durable,
    )


async def _apply_all(engine: LmdbEngine, batches: Iterator[Batch]) -> None:
    for batch in batches:
        await engine.apply(PARTITION, EPOCH, batch)


async def _time_reads(engine: LmdbEngine, batch: Batch, reads: int) -> float:
    keys = [(batch.versioned_puts or batch.puts)[0][0]]
    started_at = time.perf_counter()
    for _ in range(reads):
        await engine.read(PARTITION, EPOCH, keys)
    return time.perf_counter() - started_at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=20_000)
    parser.add_argument("--tasks", type=int, default=32)
    parser.add_argument("--item-bytes", type=int, default=1024)
    parser.add_argument("--small-puts", type=int, default=15)
    parser.add_argument("--not-durable", action="store_true", help="leave it to the operating system when to write")
    parser.add_argument("--directory", type=Path, help="where the store is made, and removed again")
    options = parser.parse_args()
    batches = item_like_batches(options.batches, item_bytes=options.item_bytes, small_puts=options.small_puts)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        result = uvloop.run(
            measure_bare_engine(
                batches, tasks=options.tasks, directory=Path(directory), durable=not options.not_durable
            )
        )
    print(json.dumps(asdict(result), indent=2))


if __name__ == "__main__":
    main()
