"""Work behind the requests: messages that have expired, and those of queues that were cleared or deleted.

Only the leading process does it. Requests do not wait for it: they see neither kind of message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import groupby
from typing import Final

from asterism.errors import AsterismError
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.commit import Committer
from asterism.keyspaces.routing.families import after_prefix
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.slice_sizes import REMOVED_ENTRIES
from asterism.models.queues.layout import (
    EXPIRY,
    REMOVALS,
    DueMessage,
    due_until,
    removal_of,
    unpack_due,
    unpack_message,
    visibility_key,
    visibility_prefix,
)
from asterism.models.queues.planner import Planner, QueueChange
from asterism.models.queues.store import QueueStore
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import ExpectationFailed, ScanPage, Span, StorageRefusal

_log = logging.getLogger(__name__)

# An expired message is counted for at most about this long.
ROUND_SECONDS: Final = 1.0
# Between two batches the event loop belongs to requests.
_REST_SECONDS: Final = 0.005


class QueueUpkeep:
    def __init__(self, store: QueueStore, *, round_seconds: float = ROUND_SECONDS) -> None:
        self._store = store
        self._services = store.services
        self._round_seconds = round_seconds
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        # Beside each other: a queue of a million messages that was cleared must not hold up what expires.
        self._tasks = [asyncio.create_task(self._repeat(work)) for work in (self.remove_expired, self.remove_left)]

    async def stop(self) -> None:
        await end_tasks(self._tasks)

    async def _repeat(self, work: Callable[[], Awaitable[int]]) -> None:
        while True:
            await asyncio.sleep(self._round_seconds)
            try:
                await work()
            except Exception:
                # A defect must not end the upkeep for good.
                _log.exception("a round of the upkeep of queues has failed")

    async def _tried(self, work: Awaitable[int]) -> int:
        """Do a part of a round. The other parts go on where a node is away or what is stored cannot be read."""
        try:
            return await work
        except (AsterismError, StorageRefusal) as problem:
            _log.warning("upkeep of queues goes on later: %s", problem)
            return 0

    # --- expired messages -------------------------------------------------------------------------------------------

    async def remove_expired(self) -> int:
        """Remove the messages that have expired; return how many entries were due."""
        removed = 0
        now = self._services.next_ticks()
        for _, keyspace in self._store.keyspaces():
            for partition in keyspace.record.map.ranges:
                removed += await self._tried(self._remove_due(keyspace, partition, Span(EXPIRY, due_until(now))))
        return removed

    async def _remove_due(self, keyspace: Keyspace, partition: PartitionRange, span: Span) -> int:
        removed = 0
        rest: Span | None = span
        while rest is not None:
            page = await self._page(keyspace, partition, rest)
            if page is None:
                # The next round goes by the map that is in force then.
                break
            found = [unpack_due(key, value) for key, value in page.entries]
            found.sort(key=_place_of)
            for (point, generation), messages in groupby(found, key=_place_of):
                removed += await self._tried(self._remove_due_of(keyspace, Planner(point, generation), list(messages)))
            rest = page.rest(rest)
            if rest is not None:
                await asyncio.sleep(_REST_SECONDS)
        return removed

    async def _remove_due_of(self, keyspace: Keyspace, planner: Planner, due: list[DueMessage]) -> int:
        keys = [
            visibility_key(
                message.point, message.generation, visible_at=message.visible_at, message_id=message.message_id
            )
            for message in due
        ]
        _, _, states = await self._services.router.read(keyspace, planner.point, keys)
        return len(due) if await self._commit(keyspace, planner, planner.remove_due(due, states)) else 0

    # --- generations that are over ----------------------------------------------------------------------------------

    async def remove_left(self) -> int:
        """Remove the messages of queues that were cleared or deleted; return how many."""
        removed = 0
        for _, keyspace in self._store.keyspaces():
            for partition in keyspace.record.map.ranges:
                removed += await self._tried(self._remove_left_of(keyspace, partition))
        return removed

    async def _remove_left_of(self, keyspace: Keyspace, partition: PartitionRange) -> int:
        page = await self._page(keyspace, partition, Span(REMOVALS, after_prefix(REMOVALS)))
        removed = 0
        for key, _ in page.entries if page is not None else ():
            removed += await self._tried(self._remove_generation(keyspace, Planner(*removal_of(key))))
        return removed

    async def _remove_generation(self, keyspace: Keyspace, planner: Planner) -> int:
        prefix = visibility_prefix(planner.point, planner.generation)
        removed = 0
        while True:
            partition = keyspace.record.map.find(planner.point)
            page = await self._page(keyspace, partition, Span(prefix, after_prefix(prefix)))
            if page is None:
                return removed
            messages = [unpack_message(key, value) for key, value in page.entries]
            if not await self._commit(keyspace, planner, planner.remove_left(messages, is_last=not page.more)):
                return removed
            removed += len(messages)
            if not page.more:
                return removed
            await asyncio.sleep(_REST_SECONDS)

    # --- both -------------------------------------------------------------------------------------------------------

    async def _page(self, keyspace: Keyspace, partition: PartitionRange, span: Span) -> ScanPage | None:
        return await self._services.router.scan(
            keyspace,
            keyspace.record,
            partition,
            span,
            limit=REMOVED_ENTRIES.entries,
            bytes_max=REMOVED_ENTRIES.bytes,
        )

    async def _commit(self, keyspace: Keyspace, planner: Planner, change: QueueChange) -> bool:
        """Return False if a request was faster: the next round finds what is left."""
        services = self._services
        committer = Committer(
            keyspace, services.router, services.reshaper, logical_bytes_max=None, physical_bytes_max=None
        )
        try:
            with keyspace.in_flight:
                await committer.commit(
                    planner.point,
                    change.batch,
                    bytes_delta=change.bytes_delta,
                    items_delta=change.items_delta,
                    cost=change.cost,
                )
        except ExpectationFailed:
            return False
        return True


def _place_of(message: DueMessage) -> tuple[bytes, bytes]:
    return message.point, message.generation
