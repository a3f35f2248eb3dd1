"""A PostgreSQL server and its standbys as the engine sees them: connection pools, and statements with retries."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import Sequence
from typing import Any

import asyncpg

from asterism.storage.contract import PartitionUnknown, StorageRefusal
from asterism.storage.postgres.connections import (
    Hosts,
    Link,
    Pool,
    Timeouts,
    seconds_until,
)
from asterism.storage.postgres.database_errors import ConnectionLost, TransientError, translate
from asterism.storage.postgres.layout import functions_ddl
from asterism.storage.postgres.statements import READ_FENCE
from asterism.values.identifiers import PartitionNumber

# A standby that takes longer than this saves no time: the primary is used instead.
STANDBY_SECONDS = 1.0
# Keeps two programs from creating the same tables or functions at the same time; the number is arbitrary.
ADVISORY_LOCK = 0x41535445


class PostgresNode:
    """State that the writers, readers and snapshots of one engine share."""

    def __init__(
        self, addresses: Sequence[str], timeouts: Timeouts, *, writers: int, readers: int, snapshots: int
    ) -> None:
        self.timeouts = timeouts
        hosts = Hosts(list(addresses))
        # Standbys are used for speed: if they are slow, the primary is used.
        standby_timeouts = Timeouts(
            connect_seconds=min(timeouts.connect_seconds, STANDBY_SECONDS),
            read_seconds=min(timeouts.read_seconds, STANDBY_SECONDS),
            commit_seconds=timeouts.commit_seconds,
            total_seconds=min(timeouts.total_seconds, STANDBY_SECONDS),
        )
        # Identifies this engine in the rows of the partitions it writes to.
        self.gateway = secrets.randbits(63)
        self.writers = Pool(hosts, timeouts, size=writers)
        self.readers = Pool(hosts, timeouts, size=readers)
        self.snapshots = Pool(hosts, timeouts, size=snapshots)
        self.listeners = Pool(hosts, timeouts, size=1)
        self.pools = [self.writers, self.readers, self.snapshots, self.listeners]
        self.standby_readers: Pool | None = None
        self.standby_snapshots: Pool | None = None
        if len(addresses) > 1:
            self.standby_readers = Pool(hosts, standby_timeouts, size=readers, primary=False)
            self.standby_snapshots = Pool(hosts, standby_timeouts, size=snapshots, primary=False)
            self.pools += [self.standby_readers, self.standby_snapshots]
        self._tokens = itertools.count(1)
        # Transactions of writers that were committed: a statement is one.
        self.commits = 0

    def next_token(self) -> int:
        """Return the token of the next order: a database refuses one that is not above the gateway's last."""
        return next(self._tokens)

    async def ask(self, pool: Pool, seconds: float, statement: str, *arguments: Any) -> Any:
        """Run an idempotent statement, over as many connections as it takes."""
        deadline = pool.deadline()
        while True:
            link = await pool.acquire(deadline)
            try:
                return await link.ask(seconds_until(deadline, seconds), statement, *arguments)
            except ConnectionLost as error:
                pool.suspect()
                pool.check_time(deadline, error)
            except TransientError as error:
                pool.check_time(deadline, error)
                await asyncio.sleep(0.01)
            except asyncpg.UndefinedTableError as error:
                raise PartitionUnknown(str(error)) from error
            except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                raise translate(error) from error
            finally:
                pool.release(link)

    async def make_functions(self, partition: PartitionNumber, link: Link) -> None:
        """Create the functions of a partition that another version of the program has created."""
        seconds = self.timeouts.commit_seconds
        with contextlib.suppress(ConnectionLost, TransientError):
            if await link.ask(seconds, READ_FENCE, partition) is None:
                raise PartitionUnknown(partition)
            await link.run(seconds, f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK});{functions_ddl(partition)}")

    async def close(self) -> None:
        for pool in self.pools:
            await pool.close()


def copy_of(refusal: StorageRefusal) -> StorageRefusal:
    """Copy a refusal: each caller raises an exception of its own; a shared one would collect all their tracebacks."""
    return type(refusal)(*refusal.args)
