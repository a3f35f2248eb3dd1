"""Partitions that are no longer needed: removed in the background, a bounded share at a time."""

from __future__ import annotations

import asyncio
import logging

from asterism.errors import StorageUnavailable
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.storage.contract import Engine, StorageRefusal
from asterism.values.identifiers import PartitionNumber

_log = logging.getLogger(__name__)

# Between two shares the event loop belongs to requests; at this pace a million entries are gone in seconds.
_REST_SECONDS = 0.01
_RETRY_SECONDS = 5.0


class GarbageCollector:
    """The task that drops the partitions listed as garbage in the catalog. Runs only while there are some."""

    def __init__(self, engine: Engine, catalog: Catalog) -> None:
        self._engine = engine
        self._catalog = catalog
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        if self._catalog.leads and self._catalog.garbage and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._collect())

    async def stop(self) -> None:
        await end_tasks([self._task])

    async def drop(self, number: PartitionNumber) -> None:
        while not await self._engine.drop_partition(number):
            await asyncio.sleep(_REST_SECONDS)

    async def _collect(self) -> None:
        while self._catalog.garbage:
            # A node that is away holds up its own garbage only.
            outcomes = [await self._collect_partition(number) for number in sorted(self._catalog.garbage)]
            if not any(outcomes):
                await asyncio.sleep(_RETRY_SECONDS)

    async def _collect_partition(self, number: PartitionNumber) -> bool:
        try:
            await self.drop(number)
            await self._catalog.work.forget_garbage(number)
        except (StorageRefusal, StorageUnavailable) as refusal:
            _log.warning("partition %d cannot be dropped now and is retried: %s", number, refusal)
            return False
        return True
