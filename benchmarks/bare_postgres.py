"""Bare asyncpg beside the PostgreSQL engine: the same rows read and written with nothing above the driver.

Each of the connections has a loop of its own and prepares its statement once, which is as fast as the driver goes.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import asyncpg

from asterism.storage.contract import LSN_BYTES, Batch, Fence, encode_counters
from asterism.storage.postgres import PostgresEngine
from asterism.values.identifiers import Epoch, PartitionNumber

PARTITION = PartitionNumber(1)
EPOCH = Epoch(1)

Rows = tuple[list[bytes], list[bytes]]


def rows_of(batch: Batch, lsn: int) -> Rows:
    """Return the rows of a batch, but for the counter that every batch shares: bare transactions that wrote it would
    wait for one another's commits, and look worse than they need to."""
    stamp = lsn.to_bytes(LSN_BYTES, "big")
    entries = [
        *batch.puts,
        *((key, stamp + value) for key, value in batch.versioned_puts),
        *((head + stamp + tail, value) for head, tail, value in batch.stamped_puts),
        *((add.key, encode_counters(add.deltas)) for add in batch.adds if len(add.key) > 1),
    ]
    return [key for key, _ in entries], [value for _, value in entries]


def joined(rows: Sequence[Rows]) -> Rows:
    return [key for keys, _ in rows for key in keys], [value for _, values in rows for value in values]


class BarePostgres:
    def __init__(self, connections: Sequence[Any]) -> None:
        self._connections = connections

    @classmethod
    async def open(cls, connection_string: str, *, connections: int) -> BarePostgres:
        opened = [await asyncpg.connect(connection_string) for _ in range(connections)]
        await opened[0].execute("CREATE TABLE IF NOT EXISTS bare (k bytea PRIMARY KEY, v bytea NOT NULL)")
        return cls(opened)

    async def write(self, batches: Sequence[Batch], *, first_lsn: int, together: int = 1) -> float:
        """Batches per second, so many of them in each transaction."""
        of_batches = [rows_of(batch, lsn) for lsn, batch in enumerate(batches, first_lsn)]
        rows = iter([joined(of_batches[at : at + together]) for at in range(0, len(of_batches), together)])

        async def loop(connection: Any) -> None:
            statement = await connection.prepare(
                "INSERT INTO bare SELECT * FROM unnest($1::bytea[], $2::bytea[]) "
                "ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v"
            )
            for keys, values in rows:
                await statement.fetch(keys, values)

        return len(batches) / await _seconds(loop, self._connections)

    async def read(self, keys: Sequence[bytes], *, count: int) -> float:
        """Rows per second, each read alone."""
        wanted = itertools.islice(itertools.cycle(keys), count)

        async def loop(connection: Any) -> None:
            statement = await connection.prepare("SELECT v FROM bare WHERE k = $1")
            for key in wanted:
                await statement.fetchval(key)

        return count / await _seconds(loop, self._connections)

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()


class EngineAlone:
    """The engine with nothing above it, used by so many tasks."""

    def __init__(self, engine: PostgresEngine, *, tasks: int) -> None:
        self._engine = engine
        self._tasks = range(tasks)

    @classmethod
    async def open(cls, connection_string: str, *, tasks: int) -> EngineAlone:
        engine = await PostgresEngine.open(connection_string)
        await engine.create_partition(PARTITION, Fence(EPOCH))
        return cls(engine, tasks=tasks)

    async def write(self, batches: Sequence[Batch]) -> float:
        waiting = iter(batches)

        async def loop(_: int) -> None:
            for batch in waiting:
                await self._engine.apply(PARTITION, EPOCH, batch)

        return len(batches) / await _seconds(loop, self._tasks)

    async def read(self, keys: Sequence[bytes], *, count: int) -> float:
        wanted: Iterator[bytes] = itertools.islice(itertools.cycle(keys), count)

        async def loop(_: int) -> None:
            for key in wanted:
                await self._engine.read(PARTITION, EPOCH, [key])

        return count / await _seconds(loop, self._tasks)

    @property
    def statements_sent(self) -> int:
        return self._engine.statements_sent

    async def close(self) -> None:
        await self._engine.close()


async def _seconds(loop: Callable[[Any], Awaitable[None]], workers: Sequence[Any] | range) -> float:
    started_at = time.perf_counter()
    await asyncio.gather(*(loop(worker) for worker in workers))
    return time.perf_counter() - started_at
