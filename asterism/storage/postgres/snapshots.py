"""Snapshots: each is a repeatable-read transaction on a connection of its own, until it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg

from asterism.storage.contract import EngineFailed, PartitionUnknown, ScanPage, Span
from asterism.storage.postgres.connections import Link, Pool, Timeouts
from asterism.storage.postgres.database_errors import ConnectionLost, TransientError
from asterism.storage.postgres.node import PostgresNode
from asterism.storage.postgres.reading import check_fence, page_of, scan_arguments
from asterism.storage.postgres.statements import statements
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber


class PostgresSnapshot:
    def __init__(self, link: Link, timeouts: Timeouts, partition: PartitionNumber, lsn: Lsn) -> None:
        self._link = link
        self._patience = timeouts
        self._partition = partition
        self._lsn = lsn

    @property
    def lsn(self) -> Lsn:
        return self._lsn

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        values: list[bytes | None] = (await self._ask(statements(self._partition).read_many, list(keys)))[3]
        return values

    async def scan(
        self, span: Span, *, reverse: bool = False, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage:
        arguments = scan_arguments(self._partition, span, reverse=reverse, limit=limit, bytes_max=bytes_max)
        return page_of(await self._ask(*arguments))

    async def _ask(self, statement: str, *arguments: Any) -> Any:
        try:
            return await self._link.ask(self._patience.read_seconds, statement, *arguments)
        except (ConnectionLost, TransientError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise EngineFailed(f"the snapshot cannot be read: {error}") from error

    async def close(self) -> None:
        try:
            await self._link.run(self._patience.read_seconds, "ROLLBACK")
        except (ConnectionLost, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._link.connection.terminate()
        finally:
            self._link.pool.release(self._link)


async def open_snapshot(node: PostgresNode, pool: Pool, partition: PartitionNumber, epoch: Epoch) -> PostgresSnapshot:
    deadline = asyncio.get_running_loop().time() + pool.timeouts.total_seconds
    seconds = pool.timeouts.read_seconds
    while True:
        link = await pool.acquire(deadline)
        is_kept = False
        try:
            await link.run(seconds, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            # Reading the table locks it against being dropped while the snapshot is open.
            row = await link.ask(seconds, statements(partition).read_many, [])
            check_fence(partition, epoch, row)
            is_kept = True
            return PostgresSnapshot(link, node.timeouts, partition, Lsn(row[2]))
        except (ConnectionLost, TransientError) as error:
            pool.suspect()
            pool.check_time(deadline, error)
        except asyncpg.UndefinedTableError as error:
            raise PartitionUnknown(partition) from error
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise EngineFailed(str(error)) from error
        finally:
            if not is_kept:
                await _return_link(node, link)


async def _return_link(node: PostgresNode, link: Link) -> None:
    snapshot = PostgresSnapshot(link, node.timeouts, PartitionNumber(0), Lsn(0))
    await snapshot.close()
