"""One PostgreSQL server and its standbys as the engine sees them: pools, and asking until there is an answer."""

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
    ConnectionLost,
    Hosts,
    Link,
    Patience,
    Pool,
    TryAgain,
    seconds_until,
    translate,
)
from asterism.storage.postgres.layout import functions_ddl
from asterism.storage.postgres.statements import READ_FENCE
from asterism.values.identifiers import PartitionNumber

STANDBY_SECONDS = 1.0
# Keeps two programs from making the same tables or functions at the same time; any number will do.
ADVISORY_LOCK = 0x41535445


class Node:
    """What the writers, readers and snapshots of one engine share."""

    def __init__(
        self, addresses: Sequence[str], patience: Patience, *, writers: int, readers: int, snapshots: int
    ) -> None:
        self.patience = patience
        hosts = Hosts(list(addresses))
        # Standbys are asked for speed: if they are slow, there is the primary.
        hasty = Patience(
            connect_seconds=min(patience.connect_seconds, STANDBY_SECONDS),
            read_seconds=min(patience.read_seconds, STANDBY_SECONDS),
            commit_seconds=patience.commit_seconds,
            total_seconds=min(patience.total_seconds, STANDBY_SECONDS),
        )
        # Names this engine in the rows of the partitions it writes to.
        self.gateway = secrets.randbits(63)
        self.writers = Pool(hosts, patience, size=writers)
        self.readers = Pool(hosts, patience, size=readers)
        self.snapshots = Pool(hosts, patience, size=snapshots)
        self.listeners = Pool(hosts, patience, size=1)
        self.pools = [self.writers, self.readers, self.snapshots, self.listeners]
        self.standby_readers: Pool | None = None
        self.standby_snapshots: Pool | None = None
        if len(addresses) > 1:
            self.standby_readers = Pool(hosts, hasty, size=readers, primary=False)
            self.standby_snapshots = Pool(hosts, hasty, size=snapshots, primary=False)
            self.pools += [self.standby_readers, self.standby_snapshots]
        self._tokens = itertools.count(1)

    def next_token(self) -> int:
        """Rises with every order; a database refuses one that is not above the gateway's last."""
        return next(self._tokens)

    async def ask(self, pool: Pool, seconds: float, statement: str, *arguments: Any) -> Any:
        """Asks something that may be asked twice, over as many connections as it takes."""
        deadline = pool.deadline()
        while True:
            link = await pool.acquire(deadline)
            try:
                return await link.ask(seconds_until(deadline, seconds), statement, *arguments)
            except ConnectionLost as error:
                pool.suspect()
                pool.check_time(deadline, error)
            except TryAgain as error:
                pool.check_time(deadline, error)
                await asyncio.sleep(0.01)
            except asyncpg.UndefinedTableError as error:
                raise PartitionUnknown(str(error)) from error
            except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                raise translate(error) from error
            finally:
                pool.release(link)

    async def make_functions(self, partition: PartitionNumber, link: Link) -> None:
        """Makes the functions of a partition that another version of the program has created."""
        seconds = self.patience.commit_seconds
        with contextlib.suppress(ConnectionLost, TryAgain):
            if await link.ask(seconds, READ_FENCE, partition) is None:
                raise PartitionUnknown(partition)
            await link.run(seconds, f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK});{functions_ddl(partition)}")

    async def close(self) -> None:
        for pool in self.pools:
            await pool.close()


def copy_of(refusal: StorageRefusal) -> StorageRefusal:
    """Each caller raises an exception of its own, or their tracebacks would grow into each other."""
    return type(refusal)(*refusal.args)
