"""Background work on items: expiry, deletion by partition key, and expiry entries after a change of settings.

Tasks are recorded in the catalog before their first step, walk through items in small shares, and are resumed after a
crash where they were recorded last; doing a share again does no harm. Without work nothing runs. Any process records a
task; the leader does it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from asterism.errors import AsterismError, Forbidden, OwnerNotFound
from asterism.keyspaces.catalog.catalog import Catalog, CatalogChanges
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.families import ITEMS, expiry_key
from asterism.keyspaces.routing.scan import read_slice
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.forwarding import check_write
from asterism.models.documents.item_record import StoredItem, unpack_item
from asterism.models.documents.pages import range_scope
from asterism.models.documents.upkeep.background_task import BackgroundTask, TaskKind
from asterism.models.documents.upkeep.expiry import ExpirySweeper
from asterism.models.documents.upkeep.pace import Pace
from asterism.models.documents.upkeep.removal import SHARE_BYTES, Removal, Share, share_of
from asterism.partitioning.key_range import FULL, KeyRange
from asterism.partitioning.partition_key import PartitionKey
from asterism.storage.contract import Batch, Expectation, ExpectationFailed, StorageRefusal

_log = logging.getLogger(__name__)

# A store that refused is left alone for so long; and so often the progress of a task is recorded.
_RETRY_SECONDS = 2.0
_RECORD_SECONDS = 2.0
# Writes that were decided under the old settings are stored by then, and found by the walk through the items.
_SETTLE_SECONDS = 1.0
# A small logical partition is removed when its deletion is answered, as users of the service are used to.
_WAIT_SECONDS_MAX = 1.0
# How often a process that does not lead checks whether its task is done.
_LOOK_SECONDS = 0.02

Found = list[tuple[bytes, StoredItem]]


class Housekeeper:
    """The background work of the documents floor. One per process."""

    def __init__(
        self, catalog: Catalog, services: DocumentServices, container_of: Callable[[bytes], Container | None]
    ) -> None:
        self._catalog = catalog
        self._services = services
        self._container_of = container_of
        self._running: dict[int, asyncio.Task[None]] = {}
        self._tasks: dict[int, BackgroundTask] = {}
        self.expiry = ExpirySweeper(services, container_of)

    # --- starting and stopping --------------------------------------------------------------------------------------

    @property
    def tasks(self) -> dict[int, BackgroundTask]:
        """The tasks under way, by number."""
        if self._catalog.leads:
            return self._tasks
        return {number: BackgroundTask.from_bytes(stored) for number, stored in self._catalog.work.tasks.items()}

    async def recover(self) -> None:
        """Resume the tasks of an earlier process, and find out when the next items are due."""
        self._start_recorded()
        containers = [self._container_of(rid) for rid in self._catalog.keyspaces]
        self.expiry.start([container for container in containers if container is not None])

    async def stop(self) -> None:
        await self.expiry.stop()
        await end_tasks(self._running.values())
        self._running.clear()
        self._tasks.clear()

    def wake(self, changes: CatalogChanges) -> None:
        """Start the tasks that other processes have recorded."""
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

    # --- requests ---------------------------------------------------------------------------------------------------

    async def delete_partition_key(self, container: Container, key: PartitionKey) -> BackgroundTask:
        """Remove the items that a logical partition has now. Return when they are removed, or after a moment."""
        keyspace = container.keyspace
        point = container.planner.point(key)
        scope = container.logical_scope(key)
        task = None
        while task is None:
            version = keyspace.version
            if keyspace.record.writes_refused:
                raise Forbidden(reason=keyspace.record.writes_refused)
            check_write(keyspace.record, point)
            _, lsn, _ = await self._services.router.read(keyspace, point, ())
            number = await self._catalog.work.new_task_number()
            recorded = BackgroundTask(
                number, TaskKind.DELETE_PARTITION_KEY, container.record.rid, scope.start, scope.end, up_to_lsn=lsn
            )
            try:
                # Only while the container is unchanged: writes may be refused by now.
                rid = keyspace.record.rid
                await self._catalog.work.ask_for_task(number, recorded.to_bytes(), keyspace_rid=rid, version=version)
                task = recorded
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
        """Return when the leader has done a task, or after a moment."""
        clock = self._services.clock
        until = clock.monotonic_seconds() + _WAIT_SECONDS_MAX
        while number in self._catalog.work.tasks and clock.monotonic_seconds() < until:
            await asyncio.sleep(_LOOK_SECONDS)
            await self._catalog.follow()

    async def plan_expiry_index(self, container: Container, batch: Batch) -> BackgroundTask:
        """Record, in the batch of a change of the default time to live, the task that follows from it."""
        number = await self._catalog.work.new_task_number()
        everything = range_scope(FULL)
        task = BackgroundTask(number, TaskKind.INDEX_EXPIRY, container.record.rid, everything.start, everything.end)
        self._catalog.work.plan_task(number, task.to_bytes(), batch)
        return task

    async def deletions_done(self, keyspace_rid: bytes) -> None:
        """Return when the deletions by partition key that are under way now have ended."""
        await self._catalog.follow()
        self._start_recorded()
        own = (task for task in self._tasks.values() if task.keyspace_rid == keyspace_rid)
        running = [self._running[task.number] for task in own if task.kind is TaskKind.DELETE_PARTITION_KEY]
        if running:
            await asyncio.wait(running)

    def begin(self, task: BackgroundTask) -> None:
        """Start a task that is recorded already, if this process leads."""
        self._catalog.work.tasks[task.number] = task.to_bytes()
        if self._catalog.leads and task.number not in self._running:
            self._start(task)

    # --- running ----------------------------------------------------------------------------------------------------

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
        """Walk the task's interval, share by share, as long as the container exists."""
        if self._tasks[number].kind is TaskKind.INDEX_EXPIRY:
            await asyncio.sleep(_SETTLE_SECONDS)
        clock = self._services.clock
        recorded_at = clock.monotonic_seconds()
        pace = Pace(self._services)
        while (task := self._tasks[number]).start < task.end:
            container = self._container_of(task.keyspace_rid)
            if container is None:
                return
            try:
                # A client may be faster with one of the items: the share is then read again.
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
        """Do one step; return the task as it is after it."""
        interval, size = KeyRange(task.start, task.end), SliceSize(share.items, SHARE_BYTES)
        _, entries, rest = await read_slice(self._services.router, container.keyspace, ITEMS, interval, size)
        found = [(key[1:], unpack_item(stored, key)) for key, stored in entries]
        done = await self._STEPS[task.kind](self, container, task, share, found)
        return replace(task, start=rest.start, done=task.done + done)

    async def _remove(self, container: Container, task: BackgroundTask, share: Share, found: Found) -> int:
        removal = Removal(container, self._services, share, at=task.start)
        for reference, item in found:
            if item.lsn <= task.up_to_lsn:
                await removal.add(reference, item)
        removed, is_whole = await removal.carry_out()
        if not is_whole:
            self._tasks[task.number] = replace(task, done=task.done + removed)
            raise ExpectationFailed(ITEMS + task.start)
        return removed

    async def _index_expiry(self, container: Container, task: BackgroundTask, share: Share, found: Found) -> int:  # noqa: ARG002
        planner, batch = container.planner, Batch()
        rule = planner.time_to_live
        for reference, item in found:
            expires_at = None if rule is None else rule.expires_at(item.body)
            if expires_at is not None:
                # Without it an entry could come to lie in the wrong half of a partition that was just split.
                batch.expectations.append(Expectation(ITEMS + reference, item.version))
                batch.puts.append((expiry_key(expires_at, item_number=item.number), reference))
        if batch.puts:
            await self._services.router.apply(
                container.keyspace, task.start, batch, planned_under=planner.planned_under
            )
        return len(found)

    _STEPS: ClassVar = {TaskKind.DELETE_PARTITION_KEY: _remove, TaskKind.INDEX_EXPIRY: _index_expiry}
