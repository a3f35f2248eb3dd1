"""The process that the storage fault tests kill, or fill up. Run as `python -m tests.faults.storage_worker`."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from pathlib import Path

from asterism.storage.contract import Add, Batch, Fence, StorageRefusal, decode_counters
from asterism.storage.lmdb import FoldPace, LmdbEngine
from asterism.storage.lmdb.log_record import find_records
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


def whole_batches(lsn: int, entries: dict[bytes, bytes]) -> dict[int, bytes]:
    """Return the names of the stored batches by their LSNs; check that each is there whole, once, and without a gap."""
    log = {
        int.from_bytes(key.removeprefix(b"log/"), "big"): name
        for key, name in entries.items()
        if key.startswith(b"log/")
    }
    assert list(log) == list(range(1, lsn + 1))
    data = {b"data/%s/%d" % (name, index): name * 40 for name in log.values() for index in range(PUTS_PER_BATCH)}
    assert {key: value for key, value in entries.items() if key.startswith(b"data/")} == data
    assert len(data) == PUTS_PER_BATCH * lsn
    assert decode_counters(entries.get(COUNTERS_KEY)) == ((PUTS_PER_BATCH * lsn, lsn) if lsn else ())
    return log


def open_engine(directory: Path, kind: str) -> LmdbEngine:
    """Open a store: "shared", or with a log that is folded after this number of changes."""
    if kind == "shared":
        return LmdbEngine.open(directory, shared=True)
    return LmdbEngine.open(directory, fold_pace=FoldPace(changes=int(kind), seconds=0.01))


async def write_forever(directory: Path, kind: str, worker: str) -> None:
    """Print each batch to standard output as soon as it is acknowledged."""
    engine = open_engine(directory, kind)

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


async def run_out_of_file_size(directory: Path, kind: str, room_bytes: int) -> dict[str, object]:
    """Write until no file can grow, then again with the limit lifted; return the outcomes."""
    engine = open_engine(directory, kind)
    await engine.create_partition(PARTITION, Fence(EPOCH))
    file_bytes_max = (directory / "data.mdb").stat().st_size + room_bytes
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes_max, resource.RLIM_INFINITY))
    applied, refused = await _write_until_refused(engine)
    lsn_full, values = await engine.read(PARTITION, EPOCH, [b"%d" % number for number in range(applied)])
    also_refused = await asyncio.gather(*(_put(engine, b"x%d" % n) for n in range(4)), return_exceptions=True)
    has_log = any(record_count(file) for file in directory.glob("log.[01]"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    lsn_after = await _put(engine, b"after")
    await engine.close()
    return {
        "applied": applied,
        "has_log": has_log,
        "refused": refused,
        "also_refused": [type(outcome).__name__ for outcome in also_refused],
        "readable_when_full": sum(value is not None for value in values),
        "lsn_full": lsn_full,
        "lsn_after": lsn_after,
    }


def record_count(log: Path) -> int:
    return len(list(find_records(log.read_bytes())))


async def _put(engine: LmdbEngine, key: bytes) -> Lsn:
    return await engine.apply(PARTITION, EPOCH, Batch(puts=[(key, bytes(50_000))]))


async def _write_until_refused(engine: LmdbEngine) -> tuple[int, str]:
    for number in range(100):
        try:
            await _put(engine, b"%d" % number)
        except StorageRefusal as refusal:
            return number, type(refusal).__name__
    return 100, "never"


def main() -> None:
    mode, directory, kind, argument = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    if mode == "write":
        asyncio.run(write_forever(directory, kind, argument))
    else:
        print(json.dumps(asyncio.run(run_out_of_file_size(directory, kind, int(argument)))))


if __name__ == "__main__":
    main()
