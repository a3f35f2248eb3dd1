"""How fast the LMDB engine applies batches with nothing above it: the ceiling for every door's writes.

`python -m benchmarks.bare_engine` prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import uvloop

from asterism.clock import SYSTEM_CLOCK
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.keyspace import Keyspace, Spent
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.limits import DEFAULT_LIMITS
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.cosmos.profile import CosmosProfile
from asterism.partitioning.partition_map import PartitionRange, initial_map
from asterism.storage.contract import Batch, Fence
from asterism.storage.lmdb import LmdbEngine
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber
from benchmarks.workload import make_item

PARTITION = PartitionNumber(1)
EPOCH = Epoch(1)
CONTAINER = {"id": "bare", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}


@dataclass(frozen=True, slots=True)
class BareEngineResult:
    batches: int
    tasks: int
    seconds: float
    batches_per_second: float
    # One key of about 1 KB, read alone, again and again.
    read_microseconds: float
    durable: bool


class RecordingOwner(PartitionRouter):
    """Stands where the owner stands, and keeps the batches that the documents floor hands down."""

    def __init__(self) -> None:
        self.calls = 0
        self.batches: list[Batch] = []

    async def apply(
        self,
        keyspace: Keyspace,
        point: bytes,
        batch: Batch,
        *,
        planned_under: Mapping[str, Any] | None = None,  # noqa: ARG002  (the router's own signature)
        cost: float = 0.0,  # noqa: ARG002
        spent: Spent | None = None,  # noqa: ARG002
    ) -> tuple[PartitionRange, Lsn]:
        self.batches.append(batch)
        return keyspace.record.map.find(point), Lsn(len(self.batches))


class IdleReshaper(Reshaper):
    def __init__(self) -> None:
        pass

    def notice_growth(self, keyspace: Keyspace, partition: PartitionRange, bytes_delta: int) -> None:
        pass


async def batches_of_creates(count: int) -> list[Batch]:
    """The very batches that creating the benchmark's items makes, default indexing included."""
    owner = RecordingOwner()
    name, definition, settings = CosmosProfile().new_container(CONTAINER)
    record = KeyspaceRecord(
        rid=os.urandom(4) + b"\x80" + os.urandom(3),
        name=name,
        settings=settings,
        definition=definition,
        map=initial_map(definition, [PARTITION], epoch=EPOCH),
        etag="",
        changed_at=0,
    )
    numbers = itertools.count(1)
    services = DocumentServices(
        owner, IdleReshaper(), DEFAULT_LIMITS, SYSTEM_CLOCK, os.urandom, lambda: next(numbers), CosmosProfile()
    )
    container = Container(Keyspace(record, b"", time.monotonic), services)
    for number in range(count):
        await container.create_item(make_item(f"b{number:08d}"), None)
    return owner.batches


async def measure_bare_engine(
    batches: Sequence[Batch], *, tasks: int, directory: Path, durable: bool = True, reads: int = 50_000
) -> BareEngineResult:
    """Apply the batches to a new partition from so many tasks at once, each waiting for its own to be durable."""
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
    parser.add_argument("--not-durable", action="store_true", help="leave it to the operating system when to write")
    parser.add_argument("--directory", type=Path, help="where the store is made, and removed again")
    options = parser.parse_args()
    batches = asyncio.run(batches_of_creates(options.batches))
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        result = uvloop.run(
            measure_bare_engine(
                batches, tasks=options.tasks, directory=Path(directory), durable=not options.not_durable
            )
        )
    print(json.dumps(asdict(result), indent=2))


if __name__ == "__main__":
    main()
