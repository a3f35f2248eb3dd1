"""Split, merge and move, online: the decision when a keyspace needs other partitions, and the jobs that make them.

Any process may begin a job, by recording it; the leader carries it out (`conductor`). A job that a crash interrupts is
resumed at the next start (`recover`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from asterism.clock import Clock
from asterism.errors import AsterismError, ReshapeRefused, StorageUnavailable
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.catalog import Catalog, CatalogChanges
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.reshaping.conductor import Conductor, existing_range
from asterism.keyspaces.reshaping.garbage import GarbageCollector
from asterism.keyspaces.reshaping.growth_watch import GrowthWatch
from asterism.keyspaces.reshaping.job import Progress, ReshapeJob, Step, Target
from asterism.keyspaces.reshaping.placer import Placer
from asterism.keyspaces.reshaping.takeover import (
    JobFinished,
    abandon,
    orphans,
    reopen_sources,
    sweep_orphans,
    take_over,
)
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.statistics import bytes_by_range, logical_partitions, partition_size
from asterism.limits import Limits
from asterism.partitioning.effective_key import border_at
from asterism.partitioning.hash_space import midpoint
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionMap, PartitionRange
from asterism.partitioning.split_merge import (
    SIZE_SPLIT_FRACTION,
    CannotSplit,
    MergePlan,
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
# Copies compete with requests for the store; the other jobs are queued.
_JOBS_AT_ONCE = 2
# The interval at which a process that does not lead checks for the end of a job.
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class SplitOutline:
    """A split that is planned, and the bytes that its two children would have."""

    plan: SplitPlan
    low_bytes: int
    high_bytes: int


@dataclass(frozen=True, slots=True)
class MergeOutline:
    """Two neighbors that can be merged, in their order on the line."""

    left: PartitionRange
    right: PartitionRange
    merged_bytes: int


class Reshaper:
    """The one place that changes partition maps. One per process; requests never wait for it, except at a seal."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        router: PartitionRouter,
        admission: Admission,
        limits: Limits,
        clock: Clock,
        *,
        placer: Placer | None = None,
        announce_seconds: float = 0.0,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        """A split for throughput is announced at least `announce_seconds` before it happens, as the service takes its
        time too: clients that poll the offer or the ranges can see it coming."""
        self._engine = engine
        self._catalog = catalog
        self._router = router
        self._limits = limits
        self._clock = clock
        self.placer = placer or Placer(catalog, router, admission, limits, clock)
        self._conductor = Conductor(
            engine, catalog, admission, clock, announce_seconds=announce_seconds, on_step=on_step
        )
        self._garbage = GarbageCollector(engine, catalog)
        self._places = asyncio.Semaphore(_JOBS_AT_ONCE)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._growth_tasks: dict[bytes, asyncio.Task[None]] = {}
        self._progress: dict[int, Progress] = {}
        self._is_at_work = False  # From `recover` to `stop`: before, jobs are only recorded, to be taken over once.
        self._sweeper: asyncio.Task[None] | None = None
        self._growth_watch = GrowthWatch(router, limits, self._split_for_size)
        # Called after every write, with the bytes that it has added.
        self.notice_growth = self._growth_watch.notice

    # --- starting and stopping --------------------------------------------------------------------------------------

    @property
    def finished_jobs(self) -> Mapping[str, int]:
        """Return how many jobs of each kind this process has finished: those whose map it has published."""
        return self._conductor.finished

    @property
    def progress(self) -> dict[int, Progress]:
        """Return the jobs under way, of all processes, by their ids."""
        if self._catalog.leads:
            return self._progress
        return {number: Progress.from_bytes(stored) for number, stored in self._catalog.work.jobs.items()}

    async def recover(self) -> None:
        """Resume the work of the leader before, or from before a crash: jobs under way, raised throughput, partitions
        to drop."""
        jobs = [ReshapeJob.from_bytes(stored) for stored in self._catalog.work.jobs.values()]
        self._progress = {job.id: Progress(job) for job in jobs}
        self._is_at_work = True
        for job in jobs:
            keyspace = self._catalog.keyspaces.get(job.keyspace_rid)
            if keyspace is None or any(keyspace.record.map.get(range_id) is None for range_id in job.source_ids):
                await abandon(self._catalog, job)
                self._progress.pop(job.id)
            elif self._catalog.is_shared:
                await self._take_over(keyspace, job)
            else:
                self._start(keyspace, job)
        if self._catalog.is_shared:
            self._sweeper = asyncio.create_task(sweep_orphans(self._catalog, self._garbage.wake))
        else:
            await self._drop_orphans()
        for keyspace in self._catalog.keyspaces.values():
            self.grow(keyspace)
        self._garbage.wake()

    async def _take_over(self, keyspace: Keyspace, job: ReshapeJob) -> None:
        try:
            self._start(keyspace, await take_over(self._engine, self._catalog, keyspace, job))
        except JobFinished:
            # By the leader before, in its last moment.
            self._progress.pop(job.id, None)

    async def _drop_orphans(self) -> None:
        try:
            for orphan in await orphans(self._catalog):
                await self._garbage.drop(orphan)
        except OutOfSpace as refusal:
            # The server starts all the same: they are found again at the next start.
            _log.warning("partitions that nothing refers to are still to be dropped: %s", refusal)

    async def stop(self) -> None:
        self._is_at_work = False
        await end_tasks([*self._tasks.values(), *self._growth_tasks.values(), self._sweeper])
        self._progress.clear()
        self._growth_tasks.clear()
        await self._garbage.stop()
        await self._growth_watch.stop()

    def wake(self, changes: CatalogChanges) -> None:
        """React to changes of other processes: the leader handles jobs, throughput and garbage."""
        if not (self._catalog.leads and self._is_at_work):
            return
        touched = [keyspace for rid in changes.offers for keyspace in self._catalog.governed_by(rid)]
        for keyspace in (*touched, *changes.keyspaces):
            self.grow(keyspace)
        for number, stored in list(self._catalog.work.jobs.items()):
            job = ReshapeJob.from_bytes(stored)
            keyspace_of = self._catalog.keyspaces.get(job.keyspace_rid)
            if number not in self._progress and keyspace_of is not None:
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
        """Split, in the background, until the keyspace has as many partitions as its throughput needs."""
        rid = keyspace.record.rid
        running = self._growth_tasks.get(rid)
        if self._catalog.leads and self.must_grow(keyspace) and (running is None or running.done()):
            self._growth_tasks[rid] = asyncio.create_task(self._grow(keyspace))

    async def _grow(self, keyspace: Keyspace) -> None:
        while self.must_grow(keyspace):
            try:
                jobs = [job for job in self._jobs_of(keyspace) if job.kind != "move"]
                for job in jobs or await self._begin_growth(keyspace):
                    await self.finished(job)
            except ReshapeRefused as refusal:
                _log.warning("%s cannot grow further: %s", keyspace.record.name, refusal.reason)
                return
            except (StorageRefusal, AsterismError) as refusal:
                _log.warning("%s cannot grow now and is retried: %s", keyspace.record.name, refusal)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _begin_growth(self, keyspace: Keyspace) -> list[ReshapeJob]:
        """Begin the splits that the throughput needs next, at least one; return them, or the jobs in their way."""
        record = keyspace.record
        offer = self._catalog.governing_offer(record.rid)
        if offer is None:
            raise ReshapeRefused(reason="The throughput was taken away.")
        range_ids = plan_throughput_splits(
            record.map,
            definition=record.definition,
            ru_per_second=effective_ru(offer.throughput),
            limits=self._limits,
            bytes_by_range=await bytes_by_range(self._router, keyspace),
        )
        try:
            return [
                self.job_on(keyspace, range_id) or await self._begin_halving(keyspace, range_id)
                for range_id in range_ids
            ]
        except ReshapeRefused:
            # A range that another job has taken meanwhile can be split after it.
            if jobs := self._jobs_of(keyspace):
                return jobs
            raise

    async def _begin_halving(self, keyspace: Keyspace, range_id: int) -> ReshapeJob:
        """Begin to split a range in its middle, because throughput belongs to hash space, not to data."""
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
        """Wait for the split that gives a full partition room; False when no split can (spec C8)."""
        partition = keyspace.record.map.find(point)
        job = self.job_on(keyspace, partition.id)
        if job is None:
            try:
                job = await self.split(keyspace, partition.id, SplitReason.SIZE)
            except ReshapeRefused:
                # Another request may have begun one meanwhile, and may even have ended it.
                job = self.job_on(keyspace, partition.id)
        if job is not None:
            await self.finished(job)
        return job is not None or keyspace.record.map.get(partition.id) is None

    # --- on demand --------------------------------------------------------------------------------------------------

    async def split(self, keyspace: Keyspace, range_id: int, reason: SplitReason = SplitReason.DEMAND) -> ReshapeJob:
        """Begin a split where the partition's data is best halved; ReshapeRefused gives the reason why it cannot be."""
        return await self.split_at(keyspace, (await self.plan_split(keyspace, range_id, reason)).plan)

    async def plan_split(
        self, keyspace: Keyspace, range_id: int, reason: SplitReason = SplitReason.DEMAND
    ) -> SplitOutline:
        """Find the place where a partition's data is best halved; ReshapeRefused as for `split`."""
        partition = existing_range(keyspace, range_id)
        if keyspace.record.definition.system_key:
            raise ReshapeRefused(reason="A container without a partition key is one partition for ever.")
        size = await partition_size(self._router, keyspace, partition)
        finder, count = SplitPointFinder(size.bytes), 0
        async for logical in logical_partitions(self._router, keyspace, partition):
            finder.feed(border_at(keyspace.record.definition, logical.effective_key), logical.size.bytes)
            count += 1
        plan = plan_demand_or_size_split(
            keyspace.record.definition, partition, logical_partitions=count, finder=finder, reason=reason
        )
        if isinstance(plan, CannotSplit):
            raise ReshapeRefused(reason=plan.reason)
        return SplitOutline(plan, low_bytes=finder.bytes_below, high_bytes=max(size.bytes - finder.bytes_below, 0))

    async def split_at(self, keyspace: Keyspace, plan: SplitPlan) -> ReshapeJob:
        """Begin a split that is planned already."""
        source = existing_range(keyspace, plan.range_id)
        low, high = await self._catalog.allocate_partitions(await self.placer.for_split(keyspace, source))
        targets = (
            Target(low, KeyRange(source.range.start, plan.at)),
            Target(high, KeyRange(plan.at, source.range.end)),
        )
        return await self._begin(keyspace, plan.reason.value, (source,), targets)

    async def merge(self, keyspace: Keyspace, left_id: int, right_id: int) -> ReshapeJob:
        outline = await self.plan_merge(keyspace, left_id, right_id)
        left, right = outline.left, outline.right
        node = await self.placer.for_merge(keyspace, left, right)
        (number,) = await self._catalog.allocate_partitions([node])
        targets = (Target(number, KeyRange(left.range.start, right.range.end)),)
        return await self._begin(keyspace, "demand", (left, right), targets)

    async def plan_merge(self, keyspace: Keyspace, left_id: int, right_id: int) -> MergeOutline:
        """Check that two partitions can be merged; ReshapeRefused gives the reason why they cannot be."""
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
        sizes = await bytes_by_range(self._router, keyspace)
        if sizes[left.id] + sizes[right.id] >= self._limits.physical_partition_bytes_max * SIZE_SPLIT_FRACTION:
            raise ReshapeRefused(reason="Together the two partitions would be too large, and split again at once.")
        return MergeOutline(left, right, merged_bytes=sizes[left.id] + sizes[right.id])

    async def move(self, keyspace: Keyspace, range_id: int, node: NodeNumber, *, reason: str = "demand") -> ReshapeJob:
        """Begin to move a partition to another node, regardless of the rules for that node."""
        source = self.plan_move(keyspace, range_id, node)
        (number,) = await self._catalog.allocate_partitions([node])
        return await self._begin(keyspace, reason, (source,), (Target(number, source.range),))

    def plan_move(self, keyspace: Keyspace, range_id: int, node: NodeNumber) -> PartitionRange:
        source = existing_range(keyspace, range_id)
        if source.node == node:
            raise ReshapeRefused(reason=f"Partition {range_id} is on that node already.")
        return source

    async def merge_plan(self, keyspace: Keyspace) -> tuple[MergePlan, ...]:
        """Propose merges, now that throughput or data has shrunk; the operator may accept them."""
        offer = self._catalog.governing_offer(keyspace.record.rid)
        ru = self._limits.throughput_ru_per_second_min if offer is None else effective_ru(offer.throughput)
        sizes = await bytes_by_range(self._router, keyspace)
        return plan_merges(keyspace.record.map, ru_per_second=ru, bytes_by_range=sizes, limits=self._limits)

    async def finished(self, job: ReshapeJob) -> None:
        """Wait until the job's map is published (or the job was given up because its keyspace is gone)."""
        task = self._tasks.get(job.id)
        if task is not None:
            # A job that is taken over by another process is cancelled here, and yet goes on.
            await asyncio.wait({task})
            if not self._catalog.is_shared:
                task.result()
        while self._catalog.is_shared and job.id in self._catalog.work.jobs:
            await asyncio.sleep(_POLL_SECONDS)
            await self._catalog.follow()

    # --- beginning a job --------------------------------------------------------------------------------------------

    def _jobs_of(self, keyspace: Keyspace) -> list[ReshapeJob]:
        jobs = map(ReshapeJob.from_bytes, self._catalog.work.jobs.values())
        return [job for job in jobs if job.keyspace_rid == keyspace.record.rid]

    def job_on(self, keyspace: Keyspace, range_id: int) -> ReshapeJob | None:
        return next((job for job in self._jobs_of(keyspace) if range_id in job.source_ids), None)

    def check_free(self, keyspace: Keyspace, range_id: int) -> None:
        """Refuse a partition that a job is at work on."""
        if self.job_on(keyspace, range_id) is not None:
            raise ReshapeRefused(reason=f"Partition {range_id} is being split, merged or moved already.")

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
            for range_id in job.source_ids:
                existing_range(keyspace, range_id)
                self.check_free(keyspace, range_id)
            return job.announce(current)

        # In one batch, so that of two processes only one begins: the other finds the job when it decides again.
        await self._catalog.publish_map(keyspace, announce, with_changes=batch)
        remember()
        if self._catalog.leads and self._is_at_work:
            self._start(keyspace, job)
        return job

    def _start(self, keyspace: Keyspace, job: ReshapeJob) -> None:
        self._progress[job.id] = Progress(job)
        task = asyncio.create_task(self._run(keyspace, job))
        self._tasks[job.id] = task
        task.add_done_callback(lambda done: self._end(job, done))

    def _end(self, job: ReshapeJob, task: asyncio.Task[None]) -> None:
        self._tasks.pop(job.id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a %s failed and is resumed at the next start", job.kind, exc_info=error)

    async def _carry_out(self, keyspace: Keyspace, progress: Progress) -> None:
        if progress.step is Step.TARGETS_OPENED:
            # The last attempt ended with a publication that was not answered. It may be in force, or come into force
            # when a late message arrives: the sources stay sealed until it cannot.
            progress.job = await take_over(self._engine, self._catalog, keyspace, progress.job)
        for source in await self._conductor.carry_out(keyspace, progress):
            self._growth_watch.forget(source.partition)
        # A target can be nearly full at once, of writes during the copy, and may never be written to again.
        targets = {target.number for target in progress.job.targets}
        for partition in keyspace.record.map.ranges:
            if partition.partition in targets:
                self._growth_watch.notice(keyspace, partition, 0)

    async def _run(self, keyspace: Keyspace, job: ReshapeJob) -> None:
        """Carry a job out, with a retry after every refusal of the store; give up only when the keyspace is gone."""
        progress = self._progress[job.id]
        is_given_up = False
        async with self._places:
            # A process that was deposed leaves the sources to the leader.
            while self._catalog.leads and self._is_at_work:
                try:
                    if is_given_up or keyspace.deleted:
                        await abandon(self._catalog, progress.job)
                    else:
                        await self._carry_out(keyspace, progress)
                    break
                except JobFinished:
                    is_given_up = True
                except FenceChanged:
                    # The settings have got another epoch: retry with that.
                    await asyncio.sleep(_FENCE_SECONDS)
                except (StorageRefusal, StorageUnavailable) as refusal:
                    progress.trouble = str(refusal)
                    _log.warning("%s of %s is held up and retried: %s", job.kind, keyspace.record.name, refusal)
                    if progress.step is not Step.TARGETS_OPENED and self._catalog.leads:
                        await reopen_sources(self._engine, keyspace, progress.job)
                    await asyncio.sleep(_RETRY_SECONDS)
                except AsterismError as refusal:
                    _log.warning("%s of %s was given up: %s", job.kind, keyspace.record.name, refusal)
                    is_given_up = True
                    await asyncio.sleep(_FENCE_SECONDS)
            self._progress.pop(job.id, None)
        self._garbage.wake()
        # A merge may have been begun before the throughput was raised.
        self.grow(keyspace)
