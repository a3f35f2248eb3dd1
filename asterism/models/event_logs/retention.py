"""Removal of events by age and by size, behind the requests. Only the leading process does it.

One timer serves all hubs. A partition is looked at when its oldest event may be due, and is then emptied from the
front: the boundary is found by bisection, and what is before it goes in range deletes of bounded size.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from asterism.errors import AsterismError, ResourceNotFound
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.commit import Committer
from asterism.models.event_logs.description import HubDescription
from asterism.models.event_logs.hub import Hub
from asterism.models.event_logs.layout import ChunkHead, Front, Tail, chunks_span, front_key, pack_front
from asterism.models.event_logs.log import PartitionLog
from asterism.models.event_logs.services import of_hub
from asterism.models.event_logs.store import EventLogStore
from asterism.partitioning.partition_key import numbered_point
from asterism.storage.contract import Batch, Expectation, ExpectationFailed, StorageRefusal

_log = logging.getLogger(__name__)

# An event outlives its retention by at most about this long, where the store keeps up.
ROUND_SECONDS: Final = 5.0
# A partition in which events are due all the time is emptied at most this often.
_BETWEEN_REMOVALS_MS: Final = 10_000
# Of one range delete: some milliseconds of an engine's time.
REMOVED_EVENTS_MAX: Final = 10_000
# Between two batches, and two hubs, the event loop belongs to requests.
_REST_SECONDS: Final = 0.005


class _Schedule:
    """When the partitions of a hub are looked at next, and the rules that this follows from."""

    __slots__ = ("due_ms", "next_due_ms", "rules")

    def __init__(self, description: HubDescription) -> None:
        self.rules = rules_of(description)
        self.due_ms = [0] * description.partition_count
        self.next_due_ms = 0


def rules_of(description: HubDescription) -> tuple[int, int | None]:
    return description.retention_ms, description.retention_bytes


class EventLogUpkeep:
    def __init__(self, store: EventLogStore, *, round_seconds: float = ROUND_SECONDS) -> None:
        self._store = store
        self._services = store.services
        self._round_seconds = round_seconds
        self._schedules: dict[bytes, _Schedule] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._schedules.clear()
        self._task = asyncio.create_task(self._repeat())

    async def stop(self) -> None:
        await end_tasks([self._task])

    async def _repeat(self) -> None:
        while True:
            await asyncio.sleep(self._round_seconds)
            try:
                await self.remove_due()
            except Exception:
                # A defect must not end the upkeep for good.
                _log.exception("a round of the upkeep of hubs has failed")

    async def remove_due(self) -> int:
        """Remove the events that are due, in all hubs; return how many."""
        removed = 0
        hubs = self._store.all_hubs()
        known = {hub.keyspace.record.rid for hub in hubs}
        for rid in [rid for rid in self._schedules if rid not in known]:
            del self._schedules[rid]
        for hub in hubs:
            schedule = self._schedule_of(hub)
            if schedule.next_due_ms <= self._services.now_ms():
                removed += await self._remove_due_of(hub, schedule)
                await asyncio.sleep(_REST_SECONDS)
        return removed

    def _schedule_of(self, hub: Hub) -> _Schedule:
        rid = hub.keyspace.record.rid
        schedule = self._schedules.get(rid)
        if schedule is None or schedule.rules != rules_of(hub.description):
            schedule = self._schedules[rid] = _Schedule(hub.description)
        return schedule

    async def _remove_due_of(self, hub: Hub, schedule: _Schedule) -> int:
        removed = 0
        for partition, due_ms in enumerate(schedule.due_ms):
            now = self._services.now_ms()
            if due_ms > now:
                continue
            try:
                count, schedule.due_ms[partition] = await self.remove_from(hub, hub.log(partition))
                removed += count
            except ResourceNotFound:
                # The hub was deleted meanwhile.
                return removed
            except (AsterismError, StorageRefusal) as problem:
                # The other partitions go on where a node is away or what is stored cannot be read.
                schedule.due_ms[partition] = now + _BETWEEN_REMOVALS_MS
                _log.warning("removal of events goes on later: %s", problem)
        schedule.next_due_ms = min(schedule.due_ms)
        return removed

    # --- one partition ------------------------------------------------------------------------------------------------

    async def remove_from(self, hub: Hub, log: PartitionLog) -> tuple[int, int]:
        """Remove the events of a partition that are due; return how many, and when to look again."""
        retention_ms, retention_bytes = rules_of(hub.description)
        now = self._services.now_ms()
        front, tail = await log.ends()
        boundary = await self._boundary(log, front, tail, oldest_ms=now - retention_ms, bytes_max=retention_bytes)
        removed = 0
        while front.first_sequence < boundary:
            after = await self._next_front(log, front, tail, boundary)
            if not await self._remove(hub, log, front, after):
                # Another process leads by now.
                break
            removed += after.first_sequence - front.first_sequence
            front = after
            log.moved_front(after)
            await asyncio.sleep(_REST_SECONDS)
        return removed, await self._due(log, front, tail, now, retention_ms, retention_bytes)

    async def _boundary(
        self, log: PartitionLog, front: Front, tail: Tail, *, oldest_ms: int, bytes_max: int | None
    ) -> int:
        """Return the first sequence number that is kept: that of a chunk, or the end of the log."""

        def is_kept(head: ChunkHead) -> bool:
            is_small_enough = bytes_max is None or tail.bytes_written - head.bytes_before <= bytes_max
            return head.enqueued_ms >= oldest_ms and is_small_enough

        if front.first_sequence == tail.next_sequence or tail.enqueued_ms < oldest_ms:
            return tail.next_sequence
        # Mostly nothing is due: the first chunk says so.
        first = await log.chunk_at(front.first_sequence)
        if first is not None and is_kept(first):
            return front.first_sequence
        return await log.first_chunk(front.first_sequence, tail.next_sequence, is_kept)

    async def _next_front(self, log: PartitionLog, front: Front, tail: Tail, boundary: int) -> Front:
        """Return the front after one bounded removal, at a boundary between chunks."""
        wanted = front.first_sequence + REMOVED_EVENTS_MAX
        if boundary > wanted:
            head = await log.chunk_at(wanted)
            if head is not None:
                is_first = head.first_sequence <= front.first_sequence
                boundary = min(boundary, head.end_sequence if is_first else head.first_sequence)
        if boundary == tail.next_sequence:
            return Front(boundary, tail.bytes_written)
        head = await log.chunk_at(boundary)
        bytes_before = front.bytes_removed if head is None else head.bytes_before
        return Front(boundary, bytes_before)

    async def _remove(self, hub: Hub, log: PartitionLog, front: Front, after: Front) -> bool:
        """Move the front, in one batch that expects it; False if another process has moved it (E5)."""
        key = front_key(log.partition)
        expected = pack_front(front) if front.first_sequence else None
        batch = Batch(
            expectations=[Expectation(key, expected)],
            range_deletes=[chunks_span(log.partition, 0, after.first_sequence)],
            puts=[(key, pack_front(after))],
            may_use_reserve=True,
        )
        committer = Committer(
            hub.keyspace,
            self._services.router,
            self._services.reshaper,
            logical_bytes_max=None,
            physical_bytes_max=None,
        )
        try:
            with of_hub(hub.name, hub.keyspace), hub.keyspace.in_flight:
                await committer.commit(
                    numbered_point(log.partition),
                    batch,
                    bytes_delta=front.bytes_removed - after.bytes_removed,
                    items_delta=front.first_sequence - after.first_sequence,
                    cost=0.0,
                )
        except ExpectationFailed:
            return False
        return True

    async def _due(
        self,
        log: PartitionLog,
        front: Front,
        tail: Tail,
        now: int,
        retention_ms: int,
        retention_bytes: int | None,
    ) -> int:
        """Return when events can be due next."""
        if front.first_sequence == tail.next_sequence:
            oldest_ms = now
        else:
            head = await log.chunk_at(front.first_sequence)
            oldest_ms = now if head is None else head.enqueued_ms
        due_ms = max(oldest_ms + retention_ms + 1, now + _BETWEEN_REMOVALS_MS)
        # Size can grow at any moment.
        return due_ms if retention_bytes is None else min(due_ms, now + _BETWEEN_REMOVALS_MS)
