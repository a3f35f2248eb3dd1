"""Removal of databases for trials whose lease has ended: at the start, and in the background.

The end of the lease is part of the database's record, written in the batch that creates it. So nothing has to happen
for the database to go: its creator and the server may both be killed at any moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from asterism.clock import Clock
from asterism.errors import AsterismError, ResourceNotFound
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.storage.contract import StorageRefusal

_log = logging.getLogger(__name__)

# The wall clock may be set, so the sweeper does not sleep until the end of a lease. A refused removal is tried again
# after the same time.
_LOOK_SECONDS = 2.0


class ScratchSweeper:
    """Drops databases whose lease has ended. Its task runs only while there is a database with a lease."""

    def __init__(
        self, catalog: Catalog, clock: Clock, delete_database: Callable[[DatabaseRecord], Awaitable[None]]
    ) -> None:
        self._catalog = catalog
        self._clock = clock
        self._delete_database = delete_database
        self._task: asyncio.Task[None] | None = None
        self._stopped = True

    async def start(self) -> None:
        self._stopped = False
        self.wake()

    async def stop(self) -> None:
        self._stopped = True
        await end_tasks([self._task])
        self._task = None

    def wake(self) -> None:
        """Watch the leases, if there are any and this process does the background work."""
        is_idle = self._task is None or self._task.done()
        if is_idle and not self._stopped and self._catalog.leads and self._leased():
            self._task = asyncio.create_task(self._run())

    def _leased(self) -> list[tuple[DatabaseRecord, int]]:
        databases = self._catalog.databases.values()
        return [(record, record.scratch.expires_at) for record in databases if record.scratch is not None]

    async def _run(self) -> None:
        while leased := self._leased():
            for record, expires_at in leased:
                if expires_at <= self._clock.wall_seconds():
                    await self._drop(record)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _drop(self, record: DatabaseRecord) -> None:
        try:
            await self._delete_database(record)
        except ResourceNotFound:
            # Its creator was faster.
            return
        except (AsterismError, StorageRefusal) as problem:
            _log.warning("the scratch database %s cannot be dropped now and is retried: %s", record.name, problem)
            return
        _log.info("the lease of the scratch database %s has ended: dropped", record.name)
