"""How fast the LMDB engine applies batches with nothing above it: the ceiling for every door's writes.

`python -m benchmarks.bare_engine` prints one JSON object. With --paced-seconds it also has the times of reads on the
store that the batches have made, without writers and beside writers at a fixed rate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop

from asterism.storage.contract import Batch, Fence
from asterism.storage.lmdb import LmdbEngine
from benchmarks.created_batches import EPOCH, PARTITION, batches_of_creates
from benchmarks.disk_writes import read_written
from benchmarks.engine_reads import PACED_PER_SECOND, measure_reads
from benchmarks.load import percentile


@dataclass(frozen=True, slots=True)
class WriteFigures:
    """Figures of batches applied by so many tasks at once, each waiting for its own to be durable."""

    batches: int
    tasks: int
    durable: bool
    seconds: float
    batches_per_second: float
    # The same, with the time to close the engine: work that was put off is done by then.
    batches_per_second_closed: float
    apply_p50_ms: float
    apply_p99_ms: float
    # From before the first batch until the engine is closed; see `WrittenBytes`.
    call_bytes_per_batch: float
    page_bytes_per_batch: float
    device_bytes_per_batch: float


async def measure_writes(
    batches: Sequence[Batch], *, tasks: int, directory: Path, durable: bool = True
) -> WriteFigures:
    """Apply the batches to a new partition, and close the engine."""
    engine = LmdbEngine.open(directory, durable=durable)
    latencies: array[float] = array("d")
    try:
        await engine.create_partition(PARTITION, Fence(EPOCH))
        queue = iter(batches)
        written_before = read_written(os.getpid(), directory)
        started_at = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(tasks):
                group.create_task(_apply_all(engine, queue, latencies))
        applied_at = time.perf_counter()
    finally:
        await engine.close()
    closed_at = time.perf_counter()
    written = read_written(os.getpid(), directory).since(written_before)
    return WriteFigures(
        batches=len(batches),
        tasks=tasks,
        durable=durable,
        seconds=applied_at - started_at,
        batches_per_second=len(batches) / (applied_at - started_at),
        batches_per_second_closed=len(batches) / (closed_at - started_at),
        apply_p50_ms=percentile(latencies, 50) * 1000,
        apply_p99_ms=percentile(latencies, 99) * 1000,
        call_bytes_per_batch=written.calls / len(batches),
        page_bytes_per_batch=written.pages / len(batches),
        device_bytes_per_batch=written.device / len(batches),
    )


async def _apply_all(engine: LmdbEngine, batches: Iterator[Batch], latencies: array[float]) -> None:
    for batch in batches:
        started_at = time.perf_counter()
        await engine.apply(PARTITION, EPOCH, batch)
        latencies.append(time.perf_counter() - started_at)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=20_000)
    parser.add_argument("--tasks", type=int, default=32)
    parser.add_argument("--random-values", action="store_true", help="items of strings without order or repetition")
    parser.add_argument("--paced-seconds", type=float, default=0.0, help="time reads beside writers for this long")
    parser.add_argument("--not-durable", action="store_true", help="leave it to the operating system when to write")
    parser.add_argument("--directory", type=Path, help="where the store is made, and removed again")
    options = parser.parse_args()
    paced_count = round(options.paced_seconds * PACED_PER_SECOND)
    made = batches_of_creates(options.batches + paced_count, random_values=options.random_values)
    batches = asyncio.run(made)
    durable = not options.not_durable
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        store = Path(directory)
        applied, paced = batches[: options.batches], batches[options.batches :]
        figures = asdict(uvloop.run(measure_writes(applied, tasks=options.tasks, directory=store, durable=durable)))
        if paced:
            figures |= asdict(uvloop.run(measure_reads(applied, paced, directory=store, durable=durable)))
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
