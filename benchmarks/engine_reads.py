"""Times of reads and scans of an engine alone, while nothing is written and beside writers at a fixed rate."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Generic, TypeVar

from asterism.storage.contract import Batch, Span
from asterism.storage.lmdb import LmdbEngine
from benchmarks.created_batches import EPOCH, PARTITION
from benchmarks.pacing import Pace

# An engine that writes behind requests never rests at this rate, and one that commits each batch alone keeps up.
PACED_PER_SECOND = 500
# So many that slow commits do not lower the rate: they are shared.
PACED_TASKS = 64
IDLE_SECONDS = 0.5

# A block is timed as a whole, because one read takes as long as some readings of the clock. It is so short that
# writers are seldom kept waiting by it, and that other load on the machine leaves most blocks alone.
READS_PER_BLOCK = 50
SCANS_PER_BLOCK = 4
# Between two blocks: the loop belongs to the writers then.
REST_SECONDS = 0.001
SCAN_ENTRIES = 100
# Places all over the store that are read in turns.
PLACES = 500

Argument = TypeVar("Argument")


@dataclass(frozen=True, slots=True)
class ReadTimes:
    """Microseconds of one call: the median of blocks, and the mean, which also has blocks that others interrupted."""

    read_microseconds: float
    read_microseconds_mean: float
    scan_microseconds: float
    scan_microseconds_mean: float


@dataclass(frozen=True, slots=True)
class ReadFigures:
    idle: ReadTimes
    during_writes: ReadTimes
    # As far as the engine kept up with the rate.
    paced_batches_per_second: float


async def measure_reads(
    applied: Sequence[Batch], paced: Sequence[Batch], *, directory: Path, durable: bool = True
) -> ReadFigures:
    """Open the store of the `applied` batches and time reads of it, then again while the `paced` ones are applied."""
    engine = LmdbEngine.open(directory, durable=durable)
    try:
        reader = BlockReader(engine, applied)
        deadline = time.perf_counter() + IDLE_SECONDS
        idle = await reader.time_until(lambda: time.perf_counter() >= deadline)
        started_at = time.perf_counter()
        pace, queue = Pace(per_second=PACED_PER_SECOND, started=started_at), iter(paced)
        writers = [asyncio.create_task(_apply_at_pace(engine, queue, pace)) for _ in range(PACED_TASKS)]
        during_writes = await reader.time_until(lambda: all(writer.done() for writer in writers))
        seconds = time.perf_counter() - started_at
        await asyncio.gather(*writers)
    finally:
        await engine.close()
    return ReadFigures(idle, during_writes, len(paced) / seconds)


async def _apply_at_pace(engine: LmdbEngine, batches: Iterator[Batch], pace: Pace) -> None:
    for batch in batches:
        delay_seconds = pace.next_due() - time.perf_counter()
        if delay_seconds > 0:
            await asyncio.sleep(delay_seconds)
        await engine.apply(PARTITION, EPOCH, batch)


class BlockReader:
    """Reads of items and scans of index entries, in blocks that take turns."""

    def __init__(self, engine: LmdbEngine, applied: Sequence[Batch]) -> None:
        chosen = applied[:: max(1, len(applied) // PLACES)]
        self._read = partial(engine.read, PARTITION, EPOCH)
        self._keys = itertools.cycle([[batch.versioned_puts[0][0]] for batch in chosen])
        self._scan = partial(engine.scan, PARTITION, EPOCH, limit=SCAN_ENTRIES)
        # A middle put of an item is an entry of some index, and many entries follow it.
        self._spans = itertools.cycle([Span(batch.puts[len(batch.puts) // 2][0]) for batch in chosen])

    async def time_until(self, is_over: Callable[[], bool]) -> ReadTimes:
        reads = _Blocks(self._read, READS_PER_BLOCK)
        scans = _Blocks(self._scan, SCANS_PER_BLOCK)
        while not is_over():
            await reads.run(self._keys)
            await asyncio.sleep(REST_SECONDS)
            await scans.run(self._spans)
            await asyncio.sleep(REST_SECONDS)
        return ReadTimes(
            read_microseconds=median(reads.microseconds),
            read_microseconds_mean=fmean(reads.microseconds),
            scan_microseconds=median(scans.microseconds),
            scan_microseconds_mean=fmean(scans.microseconds),
        )


@dataclass
class _Blocks(Generic[Argument]):
    """Blocks of calls, and the microseconds of a call in each of them."""

    call: Callable[[Argument], Awaitable[object]]
    calls_per_block: int
    microseconds: list[float] = field(default_factory=list)

    async def run(self, arguments: Iterator[Argument]) -> None:
        call = self.call
        started_at = time.perf_counter()
        for argument in itertools.islice(arguments, self.calls_per_block):
            await call(argument)
        self.microseconds.append((time.perf_counter() - started_at) / self.calls_per_block * 1e6)
