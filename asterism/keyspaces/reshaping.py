"""Split, merge and move, on line: decides when a keyspace needs other partitions, and sees to it that it gets them.

Any process may begin a job, by recording it; the one that leads carries it out (`conducting`). What a crash interrupts
is taken up again at the next start (`recover`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from asterism.clock import Clock
from asterism.errors import AsterismError, ReshapeRefused, StorageUnavailable
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.background_tasks import end_tasks
from asterism.keyspaces.catalog import Catalog, CatalogChanges
from asterism.keyspaces.conducting import Conductor, existing_range
from asterism.keyspaces.filling import Filling
from asterism.keyspaces.garbage import GarbageCollector
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.placing import Placing
from asterism.keyspaces.reshape_job import Progress, ReshapeJob, Step, Target
from asterism.keyspaces.statistics import bytes_by_range, logical_partitions, partition_size
from asterism.keyspaces.takeover import (
    abandon,
    let_requests_in_again,
    orphans,
    sweep_orphans,
    take_over,
)
from asterism.limits import Limits
from asterism.partitioning.effective_key import border_at
from asterism.partitioning.hash_space import midpoint
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionMap, PartitionRange
from asterism.partitioning.split_merge import (
    SIZE_SPLIT_FRACTION,
    MergePlan,
    Refusal,
    SplitPlan,
    SplitPointFinder,
    SplitReason,
    partition_count_for,
    plan_demand_or_size_split,
    plan_merges,
    plan_throughput_splits,
)
from asterism.storage.contract import Batch, Engine, FenceChanged, OutOfSpace, StorageRefusal
from asterism.throughput.budgets import effective_ru
from asterism.values.identifiers import Epoch, NodeNumber

_log = logging.getLogger(__name__)

# A store that refuses is given time to recover; another process that raises fences is done in milliseconds.
_RETRY_SECONDS = 2.0
_FENCE_SECONDS = 0.05
# Copies compete with requests for the store; the other jobs wait for their turn.
_JOBS_AT_ONCE = 2
# How often a process that does not lead looks whether a job is over.
_LOOK_SECONDS = 0.02


class Reshaping:
    """The one place that changes partition maps. One per process; requests never wait for it, except at a seal."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        owner: Owner,
        admission: Admission,
        limits: Limits,
        clock: Clock,
        *,
        placing: Placing | None = None,
        announce_seconds: float = 0.0,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        """A split for throughput is announced at least `announce_seconds` before it happens, as the service takes its
        time too: whoever polls the offer or the ranges can see it coming."""
        self._engine = engine
        self._catalog = catalog
        self._owner = owner
        self._limits = limits
        self._clock = clock
        self.placing = placing or Placing(catalog, owner, admission, limits, clock)
        self._conductor = Conductor(
            engine, catalog, admission, clock, announce_seconds=announce_seconds, on_step=on_step
        )
        self._garbage = GarbageCollector(engine, catalog)
        self._places = asyncio.Semaphore(_JOBS_AT_ONCE)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._growing: dict[bytes, asyncio.Task[None]] = {}
        self._under_way: dict[int, Progress] = {}
        self._is_at_work = False  # From `recover` to `stop`: before, jobs are remembered, to be taken over once.
        self._sweeping: asyncio.Task[None] | None = None
        self._filling = Filling(owner, limits, self._split_for_size)
        # Called after every write, with the bytes that it has added.
        self.notice_growth = self._filling.notice

    # --- starting and stopping --------------------------------------------------------------------------------------

    @property
    def progress(self) -> dict[int, Progress]:
        """The jobs under way, by their ids, whoever carries them out."""
        if self._catalog.leads:
            return self._under_way
        return {number: Progress.from_bytes(stored) for number, stored in self._catalog.work.jobs.items()}

    async def recover(self) -> None:
        """Takes up what a crash interrupted, or the process that led before: jobs under way, raised throughput,
        partitions to drop."""
        jobs = [ReshapeJob.from_bytes(stored) for stored in self._catalog.work.jobs.values()]
        self._under_way = {job.id: Progress(job) for job in jobs}
        self._is_at_work = True
        for job in jobs:
            keyspace = self._catalog.keyspaces.get(job.keyspace_rid)
            if keyspace is None or any(keyspace.record.map.get(one) is None for one in job.source_ids):
                await abandon(self._catalog, job)
                self._under_way.pop(job.id)
            elif self._catalog.is_shared:
                self._start(keyspace, await take_over(self._engine, self._catalog, keyspace, job))
            else:
                self._start(keyspace, job)
        if self._catalog.is_shared:
            self._sweeping = asyncio.create_task(sweep_orphans(self._catalog, self._garbage.wake))
        else:
            await self._drop_orphans()
        for keyspace in self._catalog.keyspaces.values():
            self.grow(keyspace)
        self._garbage.wake()

    async def _drop_orphans(self) -> None:
        try:
            for orphan in await orphans(self._catalog):
                await self._garbage.drop(orphan)
        except OutOfSpace as refusal:
            # No reason not to start: they are found again at the next start.
            _log.warning("partitions that nothing refers to are still to be dropped: %s", refusal)

    async def stop(self) -> None:
        self._is_at_work = False
        await end_tasks([*self._tasks.values(), *self._growing.values(), self._sweeping])
        self._under_way.clear()
        self._growing.clear()
        await self._garbage.stop()
        await self._filling.stop()

    def wake(self, changes: CatalogChanges) -> None:
        """Looks at what other processes have changed: jobs, throughput and garbage are the leader's to see to."""
        if not (self._catalog.leads and self._is_at_work):
            return
        touched = [keyspace for rid in changes.offers for keyspace in self._catalog.governed_by(rid)]
        for keyspace in (*touched, *changes.keyspaces):
            self.grow(keyspace)
        for number, stored in list(self._catalog.work.jobs.items()):
            job = ReshapeJob.from_bytes(stored)
            keyspace_of = self._catalog.keyspaces.get(job.keyspace_rid)
            if number not in self._under_way and keyspace_of is not None:
                self._start(keyspace_of, job)
        self._garbage.wake()

    def collect_garbage(self) -> None:
        self._garbage.wake()

    # --- throughput -------------------------------------------------------------------------------------------------

    def must_grow(self, keyspace: Keyspace) -> bool:
        offer = self._catalog.governing_offer(keyspace.record.rid)
        if offer is None or keyspace.deleted or keyspace.record.definition.system_key:
            return False
        wanted = partition_count_for(effective_ru(offer.throughput), self._limits)
        return len(keyspace.record.map.ranges) < wanted

    def grow(self, keyspace: Keyspace) -> None:
        """Splits, in the background, until the keyspace has as many partitions as its throughput needs."""
        rid = keyspace.record.rid
        running = self._growing.get(rid)
        if self._catalog.leads and self.must_grow(keyspace) and (running is None or running.done()):
            self._growing[rid] = asyncio.create_task(self._grow(keyspace))

    async def _grow(self, keyspace: Keyspace) -> None:
        while self.must_grow(keyspace):
            record = keyspace.record
            offer = self._catalog.governing_offer(record.rid)
            if offer is None:
                return
            if begun := [job for job in self._jobs_of(keyspace) if job.kind != "move"]:
                await asyncio.gather(*(self.finished(job) for job in begun))
                continue
            range_ids = plan_throughput_splits(
                record.map,
                definition=record.definition,
                ru_per_second=effective_ru(offer.throughput),
                limits=self._limits,
                bytes_by_range=await bytes_by_range(self._owner, keyspace),
            )
            try:
                jobs = [
                    self.job_on(keyspace, range_id) or await self._begin_halving(keyspace, range_id)
                    for range_id in range_ids
                ]
            except ReshapeRefused as refusal:
                _log.warning("%s cannot grow further: %s", record.name, refusal.reason)
                return
            await asyncio.gather(*(self.finished(job) for job in jobs))

    async def _begin_halving(self, keyspace: Keyspace, range_id: int) -> ReshapeJob:
        """Throughput belongs to hash space, not to data: the range is halved where its middle is."""
        partition = existing_range(keyspace, range_id)
        at = midpoint(keyspace.record.definition, partition.range)
        if at is None:
            raise ReshapeRefused(reason="The range is too narrow to be divided.")
        return await self.split_at(keyspace, SplitPlan(range_id, at, SplitReason.THROUGHPUT))

    # --- size -------------------------------------------------------------------------------------------------------

    async def _split_for_size(self, keyspace: Keyspace, partition: PartitionRange) -> None:
        if self.job_on(keyspace, partition.id) is not None:
            return
        try:
            await self.split(keyspace, partition.id, SplitReason.SIZE)
        except ReshapeRefused as refusal:
            _log.warning("%s: partition %d is filling up: %s", keyspace.record.name, partition.id, refusal.reason)

    async def make_room(self, keyspace: Keyspace, point: bytes) -> bool:
        """Waits for the split that gives a full partition room; False when no split can (spec C8)."""
        partition = keyspace.record.map.find(point)
        job = self.job_on(keyspace, partition.id)
        if job is None:
            try:
                job = await self.split(keyspace, partition.id, SplitReason.SIZE)
            except ReshapeRefused:
                # Somebody else may have begun one meanwhile, and may even have ended it.
                job = self.job_on(keyspace, partition.id)
        if job is not None:
            await self.finished(job)
        return job is not None or keyspace.record.map.get(partition.id) is None

    # --- on demand --------------------------------------------------------------------------------------------------

    async def split(self, keyspace: Keyspace, range_id: int, reason: SplitReason = SplitReason.DEMAND) -> ReshapeJob:
        """Begins a split where the partition's data is best halved; ReshapeRefused says why it cannot be."""
        partition = existing_range(keyspace, range_id)
        if keyspace.record.definition.system_key:
            raise ReshapeRefused(reason="A container without a partition key is one partition for ever.")
        size = await partition_size(self._owner, keyspace, partition)
        finder, count = SplitPointFinder(size.bytes), 0
        async for one in logical_partitions(self._owner, keyspace, partition):
            finder.feed(border_at(keyspace.record.definition, one.effective_key), one.size.bytes)
            count += 1
        plan = plan_demand_or_size_split(
            keyspace.record.definition, partition, logical_partitions=count, finder=finder, reason=reason
        )
        if isinstance(plan, Refusal):
            raise ReshapeRefused(reason=plan.reason)
        return await self.split_at(keyspace, plan)

    async def split_at(self, keyspace: Keyspace, plan: SplitPlan) -> ReshapeJob:
        """Begins a split that is planned already."""
        source = existing_range(keyspace, plan.range_id)
        low, high = await self._catalog.allocate_partitions(await self.placing.for_split(keyspace, source))
        targets = (
            Target(low, KeyRange(source.range.start, plan.at)),
            Target(high, KeyRange(plan.at, source.range.end)),
        )
        return await self._begin(keyspace, plan.reason.value, (source,), targets)

    async def merge(self, keyspace: Keyspace, left_id: int, right_id: int) -> ReshapeJob:
        left, right = existing_range(keyspace, left_id), existing_range(keyspace, right_id)
        if left.range.end != right.range.start:
            left, right = right, left
        if left.range.end != right.range.start:
            raise ReshapeRefused(reason="Only neighbours on the hash line can be merged.")
        offer = self._catalog.governing_offer(keyspace.record.rid)
        needed = 1 if offer is None else partition_count_for(effective_ru(offer.throughput), self._limits)
        if len(keyspace.record.map.ranges) - 1 < needed:
            raise ReshapeRefused(
                reason=f"The provisioned throughput needs {needed} partitions; lower it before merging."
            )
        sizes = await bytes_by_range(self._owner, keyspace)
        if sizes[left.id] + sizes[right.id] >= self._limits.physical_partition_bytes_max * SIZE_SPLIT_FRACTION:
            raise ReshapeRefused(reason="Together the two partitions would be too large, and split again at once.")
        node = await self.placing.for_merge(keyspace, left, right)
        (number,) = await self._catalog.allocate_partitions([node])
        targets = (Target(number, KeyRange(left.range.start, right.range.end)),)
        return await self._begin(keyspace, "demand", (left, right), targets)

    async def move(self, keyspace: Keyspace, range_id: int, node: NodeNumber, *, reason: str = "demand") -> ReshapeJob:
        """Begins to bring a partition to another node, whatever the rules say of that node."""
        source = existing_range(keyspace, range_id)
        if source.node == node:
            raise ReshapeRefused(reason=f"Partition {range_id} is on that node already.")
        (number,) = await self._catalog.allocate_partitions([node])
        return await self._begin(keyspace, reason, (source,), (Target(number, source.range),))

    async def merge_plan(self, keyspace: Keyspace) -> tuple[MergePlan, ...]:
        """What could be merged now that throughput or data has shrunk: a proposal the operator may accept."""
        offer = self._catalog.governing_offer(keyspace.record.rid)
        ru = self._limits.throughput_ru_per_second_min if offer is None else effective_ru(offer.throughput)
        sizes = await bytes_by_range(self._owner, keyspace)
        return plan_merges(keyspace.record.map, ru_per_second=ru, bytes_by_range=sizes, limits=self._limits)

    async def finished(self, job: ReshapeJob) -> None:
        """Returns when the job's map is published (or the job was given up because its keyspace is gone)."""
        task = self._tasks.get(job.id)
        if task is not None:
            # A job that is taken over by another process is cancelled here, and yet goes on.
            await asyncio.wait({task})
            if not self._catalog.is_shared:
                task.result()
        while self._catalog.is_shared and job.id in self._catalog.work.jobs:
            await asyncio.sleep(_LOOK_SECONDS)
            await self._catalog.follow()

    # --- beginning a job --------------------------------------------------------------------------------------------

    def _jobs_of(self, keyspace: Keyspace) -> list[ReshapeJob]:
        jobs = map(ReshapeJob.from_bytes, self._catalog.work.jobs.values())
        return [job for job in jobs if job.keyspace_rid == keyspace.record.rid]

    def job_on(self, keyspace: Keyspace, range_id: int) -> ReshapeJob | None:
        return next((job for job in self._jobs_of(keyspace) if range_id in job.source_ids), None)

    async def _begin(
        self, keyspace: Keyspace, reason: str, sources: tuple[PartitionRange, ...], targets: tuple[Target, ...]
    ) -> ReshapeJob:
        job = ReshapeJob(
            # A partition number is never used twice, so the first target's can name the job.
            id=targets[0].number,
            keyspace_rid=keyspace.record.rid,
            reason=reason,
            source_ids=tuple(source.id for source in sources),
            targets=targets,
            epoch=Epoch(max(source.epoch for source in sources) + 1),
            started_at=self._clock.stored_seconds(),
        )
        # A move takes data away from a store that may be full.
        batch = Batch(may_use_reserve=job.kind == "move")
        remember = self._catalog.work.plan_job(job.id, Progress(job).to_bytes(), batch)

        def announce(current: PartitionMap) -> PartitionMap:
            for one in job.source_ids:
                existing_range(keyspace, one)
                if self.job_on(keyspace, one) is not None:
                    raise ReshapeRefused(reason=f"Partition {one} is being split, merged or moved already.")
            return job.announce(current)

        # In one batch, so that of two processes only one begins: the other finds the job when it decides again.
        await self._catalog.publish_map(keyspace, announce, with_changes=batch)
        remember()
        if self._catalog.leads and self._is_at_work:
            self._start(keyspace, job)
        return job

    def _start(self, keyspace: Keyspace, job: ReshapeJob) -> None:
        self._under_way[job.id] = Progress(job)
        task = asyncio.create_task(self._run(keyspace, job))
        self._tasks[job.id] = task
        task.add_done_callback(lambda done: self._end(job, done))

    def _end(self, job: ReshapeJob, task: asyncio.Task[None]) -> None:
        self._tasks.pop(job.id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a %s died and is taken up at the next start", job.kind, exc_info=error)

    async def _run(self, keyspace: Keyspace, job: ReshapeJob) -> None:
        """Carries a job out, however often the store refuses; gives up only when the keyspace is gone."""
        progress = self._under_way[job.id]
        async with self._places:
            while True:
                try:
                    for source in await self._conductor.carry_out(keyspace, progress):
                        self._filling.forget(source.partition)
                    break
                except FenceChanged:
                    # The settings have got another epoch: once more, with that.
                    await asyncio.sleep(_FENCE_SECONDS)
                    if keyspace.deleted:
                        await abandon(self._catalog, progress.job)
                        break
                except (StorageRefusal, StorageUnavailable) as refusal:
                    if keyspace.deleted:
                        await abandon(self._catalog, progress.job)
                        break
                    progress.trouble = str(refusal)
                    _log.warning("%s of %s is held up: %s", job.kind, keyspace.record.name, refusal)
                    await let_requests_in_again(self._engine, keyspace, progress.job)
                    await asyncio.sleep(_RETRY_SECONDS)
                except AsterismError as refusal:
                    _log.warning("%s of %s was given up: %s", job.kind, keyspace.record.name, refusal)
                    await abandon(self._catalog, progress.job)
                    break
            self._under_way.pop(job.id, None)
        self._garbage.wake()
