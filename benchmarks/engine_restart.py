"""How long an engine takes to open its store after the process that wrote to it was killed.

`python -m benchmarks.engine_restart` prints one JSON object. The files are still in the system's memory: after a power
failure the time to read them from disk is added.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop

from asterism.storage.contract import Batch, Fence
from asterism.storage.lmdb import LmdbEngine
from benchmarks.created_batches import EPOCH, PARTITION, batches_of_creates
from benchmarks.processes import python_module

TASKS = 32
# Applied after the writer has reported, so that it is killed in the middle of its work.
FURTHER_BATCHES = 2000
# The files of LMDB itself. All others are kept beside it, such as a log.
LMDB_FILES = ("data.mdb", "lock.mdb")


@dataclass(frozen=True, slots=True)
class RestartFigures:
    """Times from the call of `open` to the answer of the first read."""

    acknowledged_batches: int
    open_ms: float
    # The same store again, after it was closed.
    open_closed_ms: float
    # Files beside those of LMDB, as they were after the crash.
    other_bytes: int


# --- the process that is killed ---------------------------------------------------------------------------------------


class Writer:
    """Applies batches and prints one line when the first `report_after` of them are acknowledged."""

    def __init__(self, engine: LmdbEngine, *, report_after: int) -> None:
        self._engine = engine
        self._report_after = report_after
        self._acknowledged = 0

    async def apply_all(self, batches: Iterator[Batch]) -> None:
        for batch in batches:
            await self._engine.apply(PARTITION, EPOCH, batch)
            self._acknowledged += 1
            if self._acknowledged == self._report_after:
                print(batch.versioned_puts[0][0].hex(), flush=True)


async def write_until_killed(directory: Path, count: int) -> None:
    batches = await batches_of_creates(count + FURTHER_BATCHES)
    engine = LmdbEngine.open(directory)
    await engine.create_partition(PARTITION, Fence(EPOCH))
    writer, queue = Writer(engine, report_after=count), iter(batches)
    async with asyncio.TaskGroup() as group:
        for _ in range(TASKS):
            group.create_task(writer.apply_all(queue))
    # Without closing the engine, which would leave nothing to recover.
    await asyncio.Event().wait()


# --- the process that opens the store ---------------------------------------------------------------------------------


def measure_restart(directory: Path, count: int) -> RestartFigures:
    command = python_module("benchmarks.engine_restart", "--write", "--directory", str(directory))
    with subprocess.Popen([*command, "--batches", str(count)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        key = bytes.fromhex(writer.stdout.readline().decode().strip())
        writer.kill()
    if not key:
        raise SystemExit("the writer ended before it was killed")
    others = [file.stat().st_size for file in directory.rglob("*") if file.is_file() and file.name not in LMDB_FILES]
    open_ms = uvloop.run(time_open(directory, key, lsn_min=count))
    open_closed_ms = uvloop.run(time_open(directory, key, lsn_min=count))
    return RestartFigures(count, open_ms, open_closed_ms, sum(others))


async def time_open(directory: Path, key: bytes, *, lsn_min: int) -> float:
    started_at = time.perf_counter()
    engine = LmdbEngine.open(directory)
    try:
        lsn, (value,) = await engine.read(PARTITION, EPOCH, [key])
        milliseconds = (time.perf_counter() - started_at) * 1000
    finally:
        await engine.close()
    # Speed counts only for an engine that keeps what it has acknowledged.
    if value is None or lsn < lsn_min:
        raise SystemExit(f"batches were lost: the LSN is {lsn} after {lsn_min} acknowledged batches")
    return milliseconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=5000)
    parser.add_argument("--directory", type=Path, help="where the store is made, and removed again")
    parser.add_argument("--write", action="store_true", help="be the process that is killed, in this very directory")
    options = parser.parse_args()
    if options.write:
        uvloop.run(write_until_killed(options.directory, options.batches))
        return
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        figures = measure_restart(Path(directory), options.batches)
    print(json.dumps(asdict(figures), indent=2))


if __name__ == "__main__":
    main()
