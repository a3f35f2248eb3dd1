"""What goes on behind requests: expiry, deletion by partition key, and bringing entries into line with new settings.

Tasks are recorded in the catalog before their first step, walk through items in small shares, and are taken up again
after a crash where they were recorded last; doing a share again does no harm. Without work nothing runs. Any process
records a task; the one that leads does it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from asterism.documents.background_task import BackgroundTask, TaskKind
from asterism.documents.container import Container, Tools
from asterism.documents.expiry import ExpirySweeper
from asterism.documents.item_record import StoredItem, unpack_item
from asterism.documents.pace import Pace
from asterism.documents.pages import range_scope
from asterism.documents.removal import SHARE_BYTES, Removal, Share, share_of
from asterism.errors import AsterismError, Forbidden, OwnerNotFound
from asterism.keyspaces.background_tasks import end_tasks
from asterism.keyspaces.catalog import Catalog, CatalogChanges
from asterism.keyspaces.layout import ITEMS, expiry_key
from asterism.partitioning.key_range import FULL
from asterism.partitioning.partition_key import PartitionKey
from asterism.storage.contract import Batch, Expectation, ExpectationFailed, Span, StorageRefusal

_log = logging.getLogger(__name__)

# A store that refused is left alone for so long; and so often the place of a task is recorded, to go on from there.
_RETRY_SECONDS = 2.0
_RECORD_SECONDS = 2.0
# Writes that were decided under the old settings are stored by then, and found by the walk through the items.
_SETTLE_SECONDS = 1.0
# A small logical partition is gone when its deletion is answered, as users of the service are used to.
_WAIT_SECONDS_MAX = 1.0
# How often a process that does not lead looks whether its task is done.
_LOOK_SECONDS = 0.02

Found = list[tuple[bytes, StoredItem]]


class Housekeeping:
    """The background work of the documents floor. One per process."""

    def __init__(self, catalog: Catalog, tools: Tools, container_of: Callable[[bytes], Container | None]) -> None:
        self._catalog = catalog
        self._tools = tools
        self._container_of = container_of
        self._running: dict[int, asyncio.Task[None]] = {}
        self._tasks: dict[int, BackgroundTask] = {}
        self.expiry = ExpirySweeper(tools, container_of)

    # --- starting and stopping --------------------------------------------------------------------------------------

    @property
    def tasks(self) -> dict[int, BackgroundTask]:
        """What is under way, for whoever wants to show it."""
        if self._catalog.leads:
            return self._tasks
        return {number: BackgroundTask.from_bytes(stored) for number, stored in self._catalog.work.tasks.items()}

    async def recover(self) -> None:
        """Takes up what an earlier process left, and finds out when the next items are due."""
        self._start_recorded()
        containers = [self._container_of(rid) for rid in self._catalog.keyspaces]
        self.expiry.start([container for container in containers if container is not None])

    async def stop(self) -> None:
        await self.expiry.stop()
        await end_tasks(self._running.values())
        self._running.clear()
        self._tasks.clear()

    def wake(self, changes: CatalogChanges) -> None:
        """Looks at what other processes have asked for."""
        if not self._catalog.leads:
            return
        self._start_recorded()
        for keyspace in changes.keyspaces:
            container = self._container_of(keyspace.record.rid)
            if container is not None:
                self.expiry.look_at(container)

    def _start_recorded(self) -> None:
        for number, stored in list(self._catalog.work.tasks.items()):
            if number not in self._running:
                self._start(BackgroundTask.from_bytes(stored))

    # --- what is asked for ------------------------------------------------------------------------------------------

    async def delete_partition_key(self, container: Container, key: PartitionKey) -> BackgroundTask:
        """Removes the items that a logical partition has now. Returns when they are gone, or after a moment."""
        keyspace = container.keyspace
        point = container.planner.point(key)
        scope = container.logical_scope(key)
        task = None
        while task is None:
            version = keyspace.version
            if keyspace.record.writes_refused:
                raise Forbidden(reason=keyspace.record.writes_refused)
            _, lsn, _ = await self._tools.owner.read(keyspace, point, ())
            number = await self._catalog.work.new_task_number()
            asked = BackgroundTask(
                number, TaskKind.DELETE_PARTITION_KEY, container.record.rid, scope.start, scope.end, up_to_lsn=lsn
            )
            try:
                # As long as nobody has changed the container: writes may be refused by then.
                rid = keyspace.record.rid
                await self._catalog.work.ask_for_task(number, asked.to_bytes(), keyspace_rid=rid, version=version)
                task = asked
            except ExpectationFailed:
                await self._catalog.follow()
        self.begin(task)
        running = self._running.get(task.number)
        if running is not None:
            await asyncio.wait({running}, timeout=_WAIT_SECONDS_MAX)
        else:
            await self._done_elsewhere(task.number)
        return task

    async def _done_elsewhere(self, number: int) -> None:
        """Returns when the process that leads has done a task, or after a moment."""
        clock = self._tools.clock
        until = clock.monotonic_seconds() + _WAIT_SECONDS_MAX
        while number in self._catalog.work.tasks and clock.monotonic_seconds() < until:
            await asyncio.sleep(_LOOK_SECONDS)
            await self._catalog.follow()

    async def plan_expiry_index(self, container: Container, batch: Batch) -> BackgroundTask:
        """The task that a change of the default time to live calls for, recorded in the batch of that change."""
        number = await self._catalog.work.new_task_number()
        everything = range_scope(FULL)
        task = BackgroundTask(number, TaskKind.INDEX_EXPIRY, container.record.rid, everything.start, everything.end)
        self._catalog.work.plan_task(number, task.to_bytes(), batch)
        return task

    async def deletions_done(self, keyspace_rid: bytes) -> None:
        """Returns when no deletion by partition key is under way any more of those that were."""
        await self._catalog.follow()
        self._start_recorded()
        own = (task for task in self._tasks.values() if task.keyspace_rid == keyspace_rid)
        running = [self._running[task.number] for task in own if task.kind is TaskKind.DELETE_PARTITION_KEY]
        if running:
            await asyncio.wait(running)

    def begin(self, task: BackgroundTask) -> None:
        """Starts a task that is recorded already, if that is this process's part."""
        self._catalog.work.tasks[task.number] = task.to_bytes()
        if self._catalog.leads and task.number not in self._running:
            self._start(task)

    # --- how a task is done -----------------------------------------------------------------------------------------

    def _start(self, task: BackgroundTask) -> None:
        self._tasks[task.number] = task
        self._running[task.number] = asyncio.create_task(self._run(task.number))

    async def _run(self, number: int) -> None:
        finished = False
        while not finished:
            try:
                await self._walk(number)
                await self._catalog.work.forget_task(number)
                finished = True
            except (AsterismError, StorageRefusal) as problem:
                _log.warning("background task %d waits: %s", number, problem)
                await asyncio.sleep(_RETRY_SECONDS)
        del self._tasks[number]
        del self._running[number]

    async def _walk(self, number: int) -> None:
        """Goes through the task's interval, share by share, as long as the container is there."""
        if self._tasks[number].kind is TaskKind.INDEX_EXPIRY:
            await asyncio.sleep(_SETTLE_SECONDS)
        clock = self._tools.clock
        recorded_at = clock.monotonic_seconds()
        pace = Pace(self._tools)
        while (task := self._tasks[number]).start < task.end:
            container = self._container_of(task.keyspace_rid)
            if container is None:
                return
            try:
                # Somebody may be faster with one of the items: the share is then looked at again.
                with suppress(ExpectationFailed):
                    self._tasks[number] = await self._step(container, task, share_of(pace))
            except OwnerNotFound:
                return
            now = clock.monotonic_seconds()
            if now - recorded_at > _RECORD_SECONDS:
                recorded_at = now
                await self._catalog.work.put_task(number, self._tasks[number].to_bytes())
            await pace.rest()
        container = self._container_of(task.keyspace_rid)
        if task.kind is TaskKind.INDEX_EXPIRY and container is not None:
            self.expiry.look_at(container)

    async def _step(self, container: Container, task: BackgroundTask, share: Share) -> BackgroundTask:
        """One step; the task as it is after it."""
        keyspace = container.keyspace
        record = keyspace.record
        partition = record.map.find(task.start)
        end = min(task.end, partition.range.end)
        span = Span(ITEMS + task.start, ITEMS + end)
        page = await self._tools.owner.scan(keyspace, record, partition, span, limit=share.items, bytes_max=SHARE_BYTES)
        if page is None:
            return task
        found = [(key[1:], unpack_item(stored, key)) for key, stored in page.entries]
        done = await self._STEPS[task.kind](self, container, task, share, found)
        behind = page.entries[-1][0][1:] + b"\x00" if page.more else end
        return replace(task, start=behind, done=task.done + done)

    async def _remove(self, container: Container, task: BackgroundTask, share: Share, found: Found) -> int:
        removal = Removal(container, self._tools, share, at=task.start)
        for reference, item in found:
            if item.lsn <= task.up_to_lsn:
                await removal.add(reference, item)
        removed, is_whole = await removal.carry_out()
        if not is_whole:
            self._tasks[task.number] = replace(task, done=task.done + removed)
            raise ExpectationFailed(ITEMS + task.start)
        return removed

    async def _index_expiry(self, container: Container, task: BackgroundTask, share: Share, found: Found) -> int:  # noqa: ARG002
        settings, rule = container.planner.settings, container.planner.time_to_live
        batch = Batch()
        for reference, item in found:
            expires_at = None if rule is None else rule.expires_at(item.body)
            if expires_at is not None:
                # Without it an entry could come to lie in the wrong half of a partition that was just split.
                batch.expectations.append(Expectation(ITEMS + reference, item.version))
                batch.puts.append((expiry_key(expires_at, item_number=item.number), reference))
        if batch.puts:
            await self._tools.owner.apply(container.keyspace, task.start, batch, planned_under=settings)
        return len(found)

    _STEPS: ClassVar = {TaskKind.DELETE_PARTITION_KEY: _remove, TaskKind.INDEX_EXPIRY: _index_expiry}
