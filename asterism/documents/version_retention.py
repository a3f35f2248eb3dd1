"""Removal of versions and deletes whose retention has passed: in the background, and only while there are any."""

from __future__ import annotations

import asyncio
import logging

from asterism.clock import Clock
from asterism.documents.item_versions import changed_at_seconds, retention_seconds
from asterism.errors import AsterismError
from asterism.keyspaces.background_tasks import end_tasks
from asterism.keyspaces.catalog import Catalog
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import VERSIONS, after_prefix
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.records import KeyspaceRecord
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Batch, Span, StorageRefusal

_log = logging.getLogger(__name__)

# Retention is told in minutes, so nobody can tell that an entry lives up to one longer.
ROUND_SECONDS = 60.0
_PAGE_ENTRIES = 200
_PAGE_BYTES = 512 * 1024
_REST_SECONDS = 0.005


class VersionRetention:
    """Goes through the containers once a minute. Ends when none keeps versions, and begins again when one does."""

    def __init__(self, catalog: Catalog, owner: Owner, clock: Clock) -> None:
        self._catalog = catalog
        self._owner = owner
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
        # A container that has lost its policy is looked after once more, which leaves nothing.
        is_needed = True
        while is_needed:
            is_needed = self._is_needed()
            await self.sweep()
            await asyncio.sleep(ROUND_SECONDS)

    def _is_needed(self) -> bool:
        records = [keyspace.record for keyspace in self._catalog.keyspaces.values()]
        return any(retention_seconds(record.settings) is not None for record in records)

    async def sweep(self) -> int:
        """One round; returns how many entries were removed."""
        removed = 0
        for keyspace in list(self._catalog.keyspaces.values()):
            try:
                removed += await self._sweep_keyspace(keyspace)
            except (AsterismError, StorageRefusal) as problem:
                if not keyspace.deleted:
                    _log.warning("versions of container %s stay for now: %s", keyspace.record.rid.hex(), problem)
        return removed

    async def _sweep_keyspace(self, keyspace: Keyspace) -> int:
        record = keyspace.record
        kept_seconds = retention_seconds(record.settings) or 0
        before = self._clock.wall_seconds() - kept_seconds
        return sum([await self._sweep_partition(keyspace, record, one, before) for one in record.map.ranges])

    async def _sweep_partition(
        self, keyspace: Keyspace, record: KeyspaceRecord, partition: PartitionRange, before_wall_seconds: float
    ) -> int:
        """Removes from the start of the log up to the first entry that is still kept; what a merge brought behind it
        in another order goes in a later round."""
        removed, more = 0, True
        span = Span(VERSIONS, after_prefix(VERSIONS))
        while more:
            page = await self._owner.scan(keyspace, record, partition, span, limit=_PAGE_ENTRIES, bytes_max=_PAGE_BYTES)
            if page is None:
                return removed
            expired = []
            for key, value in page.entries:
                if changed_at_seconds(value) >= before_wall_seconds:
                    break
                expired.append(key)
            if expired:
                # After a split the rest of the keys is not there, which does no harm, and the next round finds them.
                await self._owner.apply(keyspace, partition.range.start, Batch(deletes=expired))
                removed += len(expired)
            more = page.more and len(expired) == len(page.entries)
            await asyncio.sleep(_REST_SECONDS)
        return removed
