"""Removal of versions and deletes whose retention has passed, in the background and only while there are any."""

from __future__ import annotations

import asyncio
import logging

from asterism.clock import Clock
from asterism.errors import AsterismError
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing import slice_sizes
from asterism.keyspaces.routing.families import VERSIONS, after_prefix
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.documents.changes.item_version import changed_at_seconds
from asterism.models.documents.container import Container
from asterism.models.documents.store import DocumentStore
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Batch, Span, StorageRefusal

_log = logging.getLogger(__name__)

# Retention is set in minutes, so an entry may live up to one longer.
ROUND_SECONDS = 60.0
_REST_SECONDS = 0.005


class VersionRetention:
    """Sweeps the containers once a minute. Ends when none keeps versions, and restarts when one does."""

    def __init__(self, store: DocumentStore, clock: Clock) -> None:
        self._store = store
        self._catalog = store.catalog
        self._router = store.services.router
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        if self._catalog.leads and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    async def start(self) -> None:
        self.wake()

    async def stop(self) -> None:
        await end_tasks([self._task])

    async def _run(self) -> None:
        # A container that has lost its policy is swept once more, which leaves nothing.
        is_needed = True
        while is_needed:
            is_needed = self._is_needed()
            await self.sweep()
            await asyncio.sleep(ROUND_SECONDS)

    def _is_needed(self) -> bool:
        containers = (self._store.find_container(rid) for rid in self._catalog.keyspaces)
        return any(container is not None and container.keeps_versions for container in containers)

    async def sweep(self) -> int:
        """Do one round; return how many entries were removed."""
        removed = 0
        for rid in list(self._catalog.keyspaces):
            container = self._store.find_container(rid)
            if container is None:
                continue
            try:
                removed += await self._sweep_container(container)
            except (AsterismError, StorageRefusal) as problem:
                if not container.keyspace.deleted:
                    _log.warning("versions of container %s stay for now: %s", rid.hex(), problem)
        return removed

    async def _sweep_container(self, container: Container) -> int:
        keyspace = container.keyspace
        record = keyspace.record
        before = self._clock.wall_seconds() - (container.planner.settings.versions_kept_seconds or 0)
        return sum(
            [await self._sweep_partition(keyspace, record, partition, before) for partition in record.map.ranges]
        )

    async def _sweep_partition(
        self, keyspace: Keyspace, record: KeyspaceRecord, partition: PartitionRange, before_wall_seconds: float
    ) -> int:
        """Remove entries from the start of the log up to the first that is still kept; those that a merge brought
        behind it in another order are removed in a later round."""
        removed, more = 0, True
        span = Span(VERSIONS, after_prefix(VERSIONS))
        entries_max, bytes_max = slice_sizes.VERSIONS
        while more:
            page = await self._router.scan(keyspace, record, partition, span, limit=entries_max, bytes_max=bytes_max)
            if page is None:
                return removed
            expired = []
            for key, value in page.entries:
                if changed_at_seconds(value) >= before_wall_seconds:
                    break
                expired.append(key)
            if expired:
                # After a split some of the keys are elsewhere, which does no harm, and the next round finds them.
                await self._router.apply(keyspace, partition.range.start, Batch(deletes=expired))
                removed += len(expired)
            more = page.more and len(expired) == len(page.entries)
            await asyncio.sleep(_REST_SECONDS)
        return removed
