"""Work behind the requests: expired documents, old entries of the log, outcomes of old sessions.

One task, which only the leading process runs; it sleeps while there is nothing of the model in the catalog.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from asterism.errors import AsterismError
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.families import after_prefix
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.collections.expiry import Expiry
from asterism.models.collections.layout import (
    CHANGE_LOG,
    RETRIES,
    SESSION_PLACES,
    VERSIONS,
    image_time,
    place_time,
)
from asterism.models.collections.log_entries import LOG_KEPT_SECONDS
from asterism.models.collections.records import MARK
from asterism.models.collections.results import NoSuchCollection
from asterism.models.collections.retries import written_at
from asterism.models.collections.store import CollectionStore
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Batch, Expectation, ExpectationFailed, Span, StorageRefusal
from asterism.values.bson.codec import decode_record

_log = logging.getLogger(__name__)

# Old entries are looked for every so many rounds.
_ROUNDS_PER_SWEEP = 150
_SESSION_KEPT_SECONDS = 30 * 60
_REST_SECONDS = 0.005
_PAGE_ENTRIES = 500


class CollectionUpkeep:
    def __init__(self, store: CollectionStore) -> None:
        self._store = store
        self._services = store.services
        self._expiry = Expiry(store)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        await end_tasks([self._task])

    async def _run(self) -> None:
        rounds = 0
        while True:
            await asyncio.sleep(self._store.expiry_round_seconds)
            for action in (self.remove_expired, *((self.sweep_logs,) if rounds % _ROUNDS_PER_SWEEP == 0 else ())):
                try:
                    await action()
                except (AsterismError, StorageRefusal, NoSuchCollection) as problem:
                    _log.warning("upkeep of collections goes on later: %s", problem)
            rounds += 1

    # --- time to live -----------------------------------------------------------------------------------------------

    async def remove_expired(self) -> int:
        """Delete the documents that are due; return how many."""
        return await self._expiry.remove_due() if self._store.expires_documents else 0

    # --- old entries ------------------------------------------------------------------------------------------------

    async def sweep_logs(self) -> int:
        """Remove entries that no reader may ask for any more; return how many."""
        removed = 0
        now = self._services.wall_milliseconds()
        for keyspace in list(self._store.catalog.keyspaces.values()):
            if MARK not in keyspace.record.settings:
                continue
            point_bytes = 16 * len(keyspace.record.definition.paths)
            kept_since = now - LOG_KEPT_SECONDS * 1000
            removed += await self._sweep(keyspace, CHANGE_LOG, _logged_before(kept_since, point_bytes))
            removed += await self._sweep(keyspace, VERSIONS, _displaced_before(kept_since, point_bytes))
            sessions_since = now - _SESSION_KEPT_SECONDS * 1000
            removed += await self._sweep(keyspace, RETRIES, _session_before(sessions_since))
            removed += await self._sweep(keyspace, SESSION_PLACES, _placed_before(sessions_since))
        return removed

    async def _sweep(self, keyspace: Keyspace, family: bytes, is_over: Callable[[bytes], bool]) -> int:
        removed = 0
        for partition in keyspace.record.map.ranges:
            rest: Span | None = Span(family, after_prefix(family))
            while rest is not None:
                record = keyspace.record
                page = await self._services.router.scan(
                    keyspace, record, partition, rest, limit=_PAGE_ENTRIES, bytes_max=1024 * 1024
                )
                if page is None:
                    break
                over = {key: value for key, value in page.entries if is_over(value)}
                if over:
                    removed += await self._remove(keyspace, partition, over)
                elif family == CHANGE_LOG:
                    # In the order of time: what follows is younger.
                    break
                rest = page.rest(rest)
                await asyncio.sleep(_REST_SECONDS)
        return removed

    async def _remove(self, keyspace: Keyspace, partition: PartitionRange, entries: dict[bytes, bytes]) -> int:
        """Remove entries that are still as they were read: a session may have come back meanwhile."""
        expected = [Expectation(key, value) for key, value in entries.items()]
        batch = Batch(expectations=expected, deletes=list(entries))
        try:
            await self._services.router.apply(keyspace, partition.range.start, batch)
        except ExpectationFailed:
            # The next round finds the others again.
            return 0
        return len(entries)


def _logged_before(milliseconds: int, point_bytes: int) -> Callable[[bytes], bool]:
    return lambda value: int(decode_record(value[point_bytes:])["w"]) < milliseconds


def _displaced_before(milliseconds: int, point_bytes: int) -> Callable[[bytes], bool]:
    return lambda value: image_time(value, point_bytes) < milliseconds


def _placed_before(milliseconds: int) -> Callable[[bytes], bool]:
    return lambda value: place_time(value) < milliseconds


def _session_before(milliseconds: int) -> Callable[[bytes], bool]:
    return lambda value: written_at(value) < milliseconds
