"""Removal of expired items: one timer for the next that is due, and small shares when it fires.

Expired items are hidden from every reader the moment they expire; this only gives their room back. The expiry entries
are hints. An entry that is due although its item is not (the container's default has changed since, say) is corrected;
an entry without an item is removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from asterism.errors import AsterismError, OwnerNotFound
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.families import EXPIRY, ITEMS, after_prefix, expiry_key, expiry_of
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.item_record import unpack_item
from asterism.models.documents.upkeep.pace import Pace
from asterism.models.documents.upkeep.removal import SHARE_BYTES, Removal, Share, share_of
from asterism.models.documents.upkeep.time_to_live import TimeToLive
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import ScanPage, Span, StorageRefusal

_log = logging.getLogger(__name__)

# Items of one second are removed together, and the loop is not woken for each of them.
_DELAY_SECONDS_MIN = 0.2
# The wall clock may be set: a timer that was right when it was made is checked again after this long.
_DELAY_SECONDS_MAX = 3600.0
_RETRY_SECONDS = 5
# Items may have megabytes each, so few are read at once.
_LOAD_ITEMS = 8


class ExpirySweeper:
    """Removes expired items. Sleeps until the next item is due, and for ever while none is."""

    def __init__(self, services: DocumentServices, container_of: Callable[[bytes], Container | None]) -> None:
        self._services = services
        self._schedule = services.expiry
        self._container_of = container_of
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    def start(self, containers: Sequence[Container]) -> None:
        """Sweep what fell due while no process ran, and find out when the next item is due."""
        self._stopped = False
        self._schedule.on_earlier = self._arm
        for container in containers:
            self.look_at(container)

    def look_at(self, container: Container) -> None:
        """Find out, some time soon, when the next item of a container is due."""
        if container.planner.time_to_live is not None:
            self._schedule.notice(container.record.rid, 0)

    async def stop(self) -> None:
        self._stopped = True
        self._schedule.on_earlier = None
        if self._timer is not None:
            self._timer.cancel()
        await end_tasks([self._task])
        self._timer = self._task = None

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_at = self._schedule.next_at()
        if due_at is None or self._stopped:
            return
        delay = due_at - self._services.clock.wall_seconds()
        bounded = min(max(delay, _DELAY_SECONDS_MIN), _DELAY_SECONDS_MAX)
        self._timer = asyncio.get_running_loop().call_later(bounded, self._on_due)

    def _on_due(self) -> None:
        # A sweep under way sets the timer again when it is done.
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._sweep_due())

    async def _sweep_due(self) -> None:
        now = self._services.clock.wall_seconds()
        for rid in self._schedule.take_due(now=now):
            container = self._container_of(rid)
            if container is None:
                continue
            try:
                await self.sweep(container)
            except OwnerNotFound:
                continue
            except (AsterismError, StorageRefusal) as problem:
                _log.warning("expired items of %s are still to be removed: %s", container.record.name, problem)
                self._schedule.notice(rid, int(now) + _RETRY_SECONDS)
        self._arm()

    # --- one container ----------------------------------------------------------------------------------------------

    async def sweep(self, container: Container) -> int:
        """Remove all that is due now; return how many items that were."""
        rule = container.planner.time_to_live
        if rule is None:
            return 0
        removed, again = 0, True
        while again:
            again = False
            record = container.keyspace.record
            for partition in record.map.ranges:
                taken = await self._sweep_partition(container, rule, partition)
                # Another map: what is left is in partitions that are not on this one.
                again = again or taken is None
                removed += taken or 0
        return removed

    async def _sweep_partition(self, container: Container, rule: TimeToLive, partition: PartitionRange) -> int | None:
        removed = 0
        pace = Pace(self._services)
        while True:
            if container.keyspace.record.settings is not container.record.settings:
                # The rule may be another by now; the next sweep goes by that.
                self._schedule.notice(container.record.rid, 0)
                return removed
            now = int(self._services.clock.wall_seconds())
            due = Span(EXPIRY, expiry_key(now + 1, item_number=0))
            share = share_of(pace)
            page = await self._scan(container, partition, due, limit=share.items)
            if page is None:
                return None
            if not page.entries:
                return removed if await self._notice_next(container, partition) else None
            removed += await self._take_share(container, rule, partition, share, page.entries, now=now)
            await pace.rest()

    async def _scan(
        self, container: Container, partition: PartitionRange, span: Span, *, limit: int
    ) -> ScanPage | None:
        record = container.keyspace.record
        if record.map.get(partition.id) is None:
            return None
        return await self._services.router.scan(
            container.keyspace, record, partition, span, limit=limit, bytes_max=SHARE_BYTES
        )

    async def _notice_next(self, container: Container, partition: PartitionRange) -> bool:
        page = await self._scan(container, partition, Span(EXPIRY, after_prefix(EXPIRY)), limit=1)
        for key, _ in () if page is None else page.entries:
            self._schedule.notice(container.record.rid, expiry_of(key)[0])
        return page is not None

    async def _take_share(
        self,
        container: Container,
        rule: TimeToLive,
        partition: PartitionRange,
        share: Share,
        hints: Sequence[tuple[bytes, bytes]],
        *,
        now: int,
    ) -> int:
        at = partition.range.start
        values = await self._load(container, at, hints)
        removal = Removal(container, self._services, share, at=at)
        corrected: set[bytes] = set()
        planned: set[bytes] = set()
        for (hint, reference), stored in zip(hints, values, strict=False):
            number = expiry_of(hint)[1]
            found = None if stored is None else unpack_item(stored, ITEMS + reference)
            expires_at = None if found is None or found.number != number else rule.expires_at(found.body)
            right = None if expires_at is None else expiry_key(expires_at, item_number=number)
            if hint != right:
                removal.drop_entry(hint)
            if right is None or found is None or expires_at is None or reference in planned:
                continue
            planned.add(reference)
            if expires_at <= now:
                await removal.add(reference, found)
            elif hint != right and right not in corrected:
                corrected.add(right)
                removal.put_entry(right, reference)
        # Items that were changed or moved meanwhile stay due, and the next sweep sees them as they are.
        removed, _ = await removal.carry_out()
        return removed

    async def _load(self, container: Container, at: bytes, hints: Sequence[tuple[bytes, bytes]]) -> list[bytes | None]:
        """Return the items of the hints, or of the first of them if they are large; the others come later."""
        values: list[bytes | None] = []
        for first in range(0, len(hints), _LOAD_ITEMS):
            keys = [ITEMS + reference for _, reference in hints[first : first + _LOAD_ITEMS]]
            values += (await self._services.router.read(container.keyspace, at, keys))[2]
            if sum(len(value or b"") for value in values) > SHARE_BYTES:
                break
        return values
