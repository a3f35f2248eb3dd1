"""Split and merge, on line: decides when a keyspace needs other partitions, and carries that out under load.

The life of a job: targets are created, sealed; the sources begin to journal; a copy; a catch-up from the journals;
the sources are sealed and the last changes replayed, for milliseconds; the targets are opened; the new map is
published; the sources are dropped. What a crash interrupts is taken up again at the next start (`recover`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from asterism.clock import Clock
from asterism.errors import AsterismError, ReshapeRefused, StorageUnavailable
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog import Catalog
from asterism.keyspaces.copying import Copier
from asterism.keyspaces.garbage import GarbageCollector
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.reshape_job import Progress, ReshapeJob, Step, Target
from asterism.keyspaces.statistics import logical_partitions, partition_size
from asterism.limits import Limits
from asterism.partitioning.effective_key import border_at
from asterism.partitioning.hash_space import midpoint
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionRange, RangeStatus
from asterism.partitioning.split_merge import (
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
from asterism.storage.contract import Batch, Engine, Fence, StorageRefusal
from asterism.throughput.budgets import effective_ru
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber
from asterism.values.json_text import dumps

_log = logging.getLogger(__name__)

# A split for size begins here, so that it is over before the partition is full.
SIZE_SPLIT_FRACTION = 0.8
# A partition that could not be split is looked at again when it has grown by this share of the limit.
_REPLAN_FRACTION = 0.05
# With this few batches left in the journals the seal is short.
_CATCH_UP_BATCHES = 64
_CATCH_UP_ROUNDS_MAX = 100
_CURSOR_SECONDS = 2.0
_RETRY_SECONDS = 2.0
_JOBS_AT_ONCE = 2


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
        announce_seconds: float = 0.0,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        """A split for throughput is announced at least `announce_seconds` before it happens, as the service takes its
        time too: whoever polls the offer or the ranges can see it coming."""
        self._engine = engine
        self._catalog = catalog
        self._owner = owner
        self._admission = admission
        self._limits = limits
        self._clock = clock
        self._announce_seconds = announce_seconds
        self._on_step = on_step
        self._garbage = GarbageCollector(engine, catalog)
        self._places = asyncio.Semaphore(_JOBS_AT_ONCE)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._growing: dict[bytes, asyncio.Task[None]] = {}
        self._watching: set[asyncio.Task[None]] = set()
        # Bytes of each partition this process has written to; None while they are being looked up.
        self._sizes: dict[PartitionNumber, int | None] = {}
        self._look_again_at: dict[PartitionNumber, float] = {}
        self.progress: dict[int, Progress] = {}

    # --- starting and stopping --------------------------------------------------------------------------------------

    async def recover(self) -> None:
        """Takes up what a crash interrupted: jobs under way, raised throughput, partitions to drop."""
        in_jobs: set[PartitionNumber] = set()
        for stored in await self._catalog.jobs():
            job = ReshapeJob.from_bytes(stored)
            in_jobs.update(target.number for target in job.targets)
            keyspace = self._catalog.keyspaces.get(job.keyspace_rid)
            if keyspace is None or any(keyspace.record.map.get(one) is None for one in job.source_ids):
                await self._abandon(job)
            else:
                self._start(keyspace, job)
        for orphan in await self._catalog.orphans(in_jobs=in_jobs):
            await self._garbage.drop(orphan)
        for keyspace in self._catalog.keyspaces.values():
            self.grow(keyspace)
        self._garbage.wake()

    async def stop(self) -> None:
        tasks = [*self._tasks.values(), *self._growing.values(), *self._watching]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._garbage.stop()

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
        if self.must_grow(keyspace) and (running is None or running.done()):
            self._growing[rid] = asyncio.create_task(self._grow(keyspace))

    async def _grow(self, keyspace: Keyspace) -> None:
        while self.must_grow(keyspace):
            record = keyspace.record
            offer = self._catalog.governing_offer(record.rid)
            if offer is None:
                return
            range_ids = plan_throughput_splits(
                record.map,
                definition=record.definition,
                ru_per_second=effective_ru(offer.throughput),
                limits=self._limits,
                bytes_by_range=await self._bytes_by_range(keyspace),
            )
            try:
                jobs = [
                    self._job_on(keyspace, range_id) or await self._begin_halving(keyspace, range_id)
                    for range_id in range_ids
                ]
            except ReshapeRefused as refusal:
                _log.warning("%s cannot grow further: %s", record.name, refusal.reason)
                return
            await asyncio.gather(*(self.finished(job) for job in jobs))

    async def _begin_halving(self, keyspace: Keyspace, range_id: int) -> ReshapeJob:
        """Throughput belongs to hash space, not to data: the range is halved where its middle is."""
        partition = self._range(keyspace, range_id)
        at = midpoint(keyspace.record.definition, partition.range)
        if at is None:
            raise ReshapeRefused(reason="The range is too narrow to be divided.")
        return await self._begin_split(keyspace, SplitPlan(range_id, at, SplitReason.THROUGHPUT))

    # --- size -------------------------------------------------------------------------------------------------------

    def notice_growth(self, keyspace: Keyspace, partition: PartitionRange, bytes_delta: int) -> None:
        """Called after every write: cheap, and the moment at which a partition that fills up is seen."""
        number = partition.partition
        known = self._sizes.get(number)
        if known is None:
            if number not in self._sizes:
                self._sizes[number] = None
                self._watch(self._learn_size, keyspace, partition)
            return
        self._sizes[number] = size = known + bytes_delta
        if size >= self._look_again_at.get(number, self._limits.physical_partition_bytes_max * SIZE_SPLIT_FRACTION):
            self._consider_size(keyspace, partition, size)

    async def _learn_size(self, keyspace: Keyspace, partition: PartitionRange) -> None:
        size = await partition_size(self._owner, keyspace, partition)
        self._sizes[partition.partition] = 0
        self.notice_growth(keyspace, partition, size.bytes)

    def _consider_size(self, keyspace: Keyspace, partition: PartitionRange, size: int) -> None:
        # Whatever comes of it, the next look is due only after some more growth.
        step = self._limits.physical_partition_bytes_max * _REPLAN_FRACTION
        self._look_again_at[partition.partition] = size + step
        self._watch(self._split_for_size, keyspace, partition)

    async def _split_for_size(self, keyspace: Keyspace, partition: PartitionRange) -> None:
        if self._job_on(keyspace, partition.id) is not None:
            return
        try:
            await self.split(keyspace, partition.id, SplitReason.SIZE)
        except ReshapeRefused as refusal:
            _log.warning("%s: partition %d is filling up: %s", keyspace.record.name, partition.id, refusal.reason)

    async def make_room(self, keyspace: Keyspace, point: bytes) -> bool:
        """Waits for the split that gives a full partition room; False when no split can (spec C8)."""
        partition = keyspace.record.map.find(point)
        job = self._job_on(keyspace, partition.id)
        if job is None:
            try:
                job = await self.split(keyspace, partition.id, SplitReason.SIZE)
            except ReshapeRefused:
                return False
        await self.finished(job)
        return True

    # --- on demand --------------------------------------------------------------------------------------------------

    async def split(self, keyspace: Keyspace, range_id: int, reason: SplitReason = SplitReason.DEMAND) -> ReshapeJob:
        """Begins a split where the partition's data is best halved; ReshapeRefused says why it cannot be."""
        partition = self._range(keyspace, range_id)
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
        return await self._begin_split(keyspace, plan)

    async def split_at(self, keyspace: Keyspace, plan: SplitPlan) -> ReshapeJob:
        """Begins a split that somebody else has planned."""
        return await self._begin_split(keyspace, plan)

    async def merge(self, keyspace: Keyspace, left_id: int, right_id: int) -> ReshapeJob:
        left, right = self._range(keyspace, left_id), self._range(keyspace, right_id)
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
        sizes = await self._bytes_by_range(keyspace)
        if sizes[left.id] + sizes[right.id] >= self._limits.physical_partition_bytes_max * SIZE_SPLIT_FRACTION:
            raise ReshapeRefused(reason="Together the two partitions would be too large, and split again at once.")
        numbers = await self._catalog.allocate_partitions(1)
        targets = (Target(numbers[0], KeyRange(left.range.start, right.range.end)),)
        return await self._begin(keyspace, "demand", (left, right), targets)

    async def merge_plan(self, keyspace: Keyspace) -> tuple[MergePlan, ...]:
        """What could be merged now that throughput or data has shrunk: a proposal the operator may accept."""
        offer = self._catalog.governing_offer(keyspace.record.rid)
        ru = self._limits.throughput_ru_per_second_min if offer is None else effective_ru(offer.throughput)
        sizes = await self._bytes_by_range(keyspace)
        return plan_merges(keyspace.record.map, ru_per_second=ru, bytes_by_range=sizes, limits=self._limits)

    async def finished(self, job: ReshapeJob) -> None:
        """Returns when the job's map is published (or the job was given up because its keyspace is gone)."""
        task = self._tasks.get(job.id)
        if task is not None:
            await asyncio.shield(task)

    # --- beginning a job --------------------------------------------------------------------------------------------

    def _range(self, keyspace: Keyspace, range_id: int) -> PartitionRange:
        partition = keyspace.record.map.get(range_id)
        if partition is None:
            raise ReshapeRefused(reason=f"There is no partition {range_id} (any more).")
        return partition

    def _job_on(self, keyspace: Keyspace, range_id: int) -> ReshapeJob | None:
        for progress in self.progress.values():
            job = progress.job
            if job.keyspace_rid == keyspace.record.rid and range_id in job.source_ids:
                return job
        return None

    async def _begin_split(self, keyspace: Keyspace, plan: SplitPlan) -> ReshapeJob:
        source = self._range(keyspace, plan.range_id)
        low, high = await self._catalog.allocate_partitions(2)
        targets = (
            Target(low, KeyRange(source.range.start, plan.at)),
            Target(high, KeyRange(plan.at, source.range.end)),
        )
        return await self._begin(keyspace, plan.reason.value, (source,), targets)

    async def _begin(
        self, keyspace: Keyspace, reason: str, sources: tuple[PartitionRange, ...], targets: tuple[Target, ...]
    ) -> ReshapeJob:
        for source in sources:
            if self._job_on(keyspace, source.id) is not None:
                raise ReshapeRefused(reason=f"Partition {source.id} is being split or merged already.")
        job = ReshapeJob(
            # A partition number is never used twice, so the first target's can name the job.
            id=targets[0].number,
            keyspace_rid=keyspace.record.rid,
            reason=reason,
            source_ids=tuple(source.id for source in sources),
            targets=targets,
            epoch=Epoch(max(source.epoch for source in sources) + 1),
            started_at=int(self._clock.wall_seconds()),
        )
        self.progress[job.id] = Progress(job)
        try:
            await self._catalog.put_job(job.id, job.to_bytes())
        except BaseException:
            del self.progress[job.id]
            raise
        self._start(keyspace, job)
        return job

    def _start(self, keyspace: Keyspace, job: ReshapeJob) -> None:
        self.progress[job.id] = Progress(job)
        task = asyncio.create_task(self._run(keyspace, job))
        self._tasks[job.id] = task
        task.add_done_callback(lambda done: self._end(job, done))

    def _end(self, job: ReshapeJob, task: asyncio.Task[None]) -> None:
        self._tasks.pop(job.id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a %s died and is taken up at the next start", job.kind, exc_info=error)

    async def _run(self, keyspace: Keyspace, job: ReshapeJob) -> None:
        """Carries a job out, however often the store refuses; gives up only when the keyspace is gone."""
        progress = self.progress[job.id]
        async with self._places:
            while True:
                try:
                    await self._carry_out(keyspace, progress)
                    break
                except (StorageRefusal, StorageUnavailable) as refusal:
                    if keyspace.deleted:
                        await self._abandon(progress.job)
                        break
                    progress.trouble = str(refusal)
                    _log.warning("%s of %s is held up: %s", job.kind, keyspace.record.name, refusal)
                    await self._let_requests_in_again(keyspace, progress.job)
                    await asyncio.sleep(_RETRY_SECONDS)
                except AsterismError as refusal:
                    _log.warning("%s of %s was given up: %s", job.kind, keyspace.record.name, refusal)
                    await self._abandon(progress.job)
                    await self._recall(keyspace, progress.job)
                    break
            self.progress.pop(job.id, None)
        self._garbage.wake()

    # --- carrying it out --------------------------------------------------------------------------------------------

    async def _carry_out(self, keyspace: Keyspace, progress: Progress) -> None:
        job = progress.job
        sources = [self._range(keyspace, source_id) for source_id in job.source_ids]
        self._reach(progress, Step.PLANNED)
        announced_at = self._clock.monotonic_seconds()
        await self._announce(keyspace, job)
        self._reach(progress, Step.ANNOUNCED)
        await self._prepare(job, sources, progress)
        copier = Copier(self._engine, sources, job.targets, self._clock.monotonic_seconds)
        await self._copy(copier, progress)
        if job.reason == SplitReason.THROUGHPUT.value:
            await asyncio.sleep(announced_at + self._announce_seconds - self._clock.monotonic_seconds())
        await copier.count_totals()
        for _ in range(_CATCH_UP_ROUNDS_MAX):
            if await copier.replay() <= _CATCH_UP_BATCHES:
                break
        self._reach(progress, Step.CAUGHT_UP)
        began = self._clock.monotonic_seconds()
        lsns = await asyncio.gather(*(self._fence(one, sealed=True) for one in sources))
        self._reach(progress, Step.SEALED)
        await copier.replay()
        await copier.write_totals()
        self._reach(progress, Step.REPLAYED)
        opened = Fence(job.epoch)
        await asyncio.gather(*(self._engine.set_fence(one.number, opened, lsn=max(lsns)) for one in job.targets))
        self._reach(progress, Step.TARGETS_OPENED)
        await self._publish(keyspace, progress, sources, began)

    async def _announce(self, keyspace: Keyspace, job: ReshapeJob) -> None:
        if any(self._range(keyspace, one).status is RangeStatus.ONLINE for one in job.source_ids):
            await self._catalog.publish_map(keyspace, job.announce, with_changes=Batch())

    async def _prepare(self, job: ReshapeJob, sources: list[PartitionRange], progress: Progress) -> None:
        """Targets exist and are sealed, sources journal. On a resumed job some of this is so already."""
        there = await self._engine.partitions()
        sealed = Fence(job.epoch, sealed=True)
        for target in job.targets:
            if target.number in there:
                await self._engine.set_fence(target.number, sealed)
            else:
                await self._engine.create_partition(target.number, sealed)
        self._reach(progress, Step.TARGETS_CREATED)
        for source in sources:
            fence, _ = there[source.partition]
            if not fence.journaling:
                await self._fence(source, sealed=False)
        self._reach(progress, Step.JOURNALING)

    async def _fence(self, source: PartitionRange, *, sealed: bool) -> Lsn:
        return await self._engine.set_fence(source.partition, Fence(source.epoch, sealed=sealed, journaling=True))

    async def _copy(self, copier: Copier, progress: Progress) -> None:
        saved_at = self._clock.monotonic_seconds()
        async for cursor, count in copier.copy(progress.job.cursor):
            progress.entries_copied += count
            progress.job = replace(progress.job, cursor=cursor)
            self._reach(progress, Step.COPYING)
            if self._clock.monotonic_seconds() - saved_at >= _CURSOR_SECONDS:
                await self._catalog.put_job(progress.job.id, progress.job.to_bytes())
                saved_at = self._clock.monotonic_seconds()
        self._reach(progress, Step.COPIED)

    async def _publish(
        self, keyspace: Keyspace, progress: Progress, sources: list[PartitionRange], sealed_at: float
    ) -> None:
        job = progress.job
        batch = Batch()
        for source in sources:
            self._catalog.plan_garbage(source.partition, batch)
        progress.sealed_seconds = self._clock.monotonic_seconds() - sealed_at
        self._catalog.plan_job_end(job.id, job.keyspace_rid, self._history(keyspace, progress), batch)
        await self._catalog.publish_map(keyspace, job.change_map, with_changes=batch)
        self._admission.refresh(keyspace)
        self._reach(progress, Step.PUBLISHED)
        for source in sources:
            self._sizes.pop(source.partition, None)
            self._look_again_at.pop(source.partition, None)
            self._catalog.garbage.add(source.partition)
        self._garbage.wake()

    def _history(self, keyspace: Keyspace, progress: Progress) -> bytes:
        job = progress.job
        after = job.change_map(keyspace.record.map)
        made = [one.id for one in after.ranges if one.since_version == after.version]
        return dumps(
            {
                "id": job.id,
                "kind": job.kind,
                "reason": job.reason,
                "sources": [str(one) for one in job.source_ids],
                "targets": [str(one) for one in made],
                "started_at": job.started_at,
                "finished_at": int(self._clock.wall_seconds()),
                "entries_copied": progress.entries_copied,
                "sealed_ms": round(progress.sealed_seconds * 1000, 1),
            }
        )

    def _reach(self, progress: Progress, step: Step) -> None:
        progress.step = step
        if self._on_step is not None:
            self._on_step(step)

    # --- when it cannot be done ---------------------------------------------------------------------------------------

    async def _let_requests_in_again(self, keyspace: Keyspace, job: ReshapeJob) -> None:
        """Before a pause no source may stay sealed: requests would wait for nothing."""
        for source_id in job.source_ids:
            source = keyspace.record.map.get(source_id)
            if source is not None:
                try:
                    await self._fence(source, sealed=False)
                except StorageRefusal as refusal:
                    _log.warning("partition %d stays sealed for now: %s", source.id, refusal)

    async def _abandon(self, job: ReshapeJob) -> None:
        await self._catalog.give_up_job(job.id, [target.number for target in job.targets])

    async def _recall(self, keyspace: Keyspace, job: ReshapeJob) -> None:
        if not keyspace.deleted:
            await self._catalog.publish_map(keyspace, job.recall, with_changes=Batch())

    # --- small things -------------------------------------------------------------------------------------------------

    async def _bytes_by_range(self, keyspace: Keyspace) -> dict[int, int]:
        ranges = keyspace.record.map.ranges
        return {one.id: (await partition_size(self._owner, keyspace, one)).bytes for one in ranges}

    def _watch(
        self, work: Callable[[Keyspace, PartitionRange], Awaitable[None]], keyspace: Keyspace, partition: PartitionRange
    ) -> None:
        """Runs a small piece of background work, and keeps hold of it until it is done."""

        async def guarded() -> None:
            try:
                await work(keyspace, partition)
            except AsterismError as refusal:
                _log.warning("background work was refused: %s", refusal)

        task = asyncio.create_task(guarded())
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)
