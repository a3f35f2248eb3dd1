"""The steps of a split, merge or move under load.

The life of a job: targets are created, sealed; the sources begin to journal; a copy; a catch-up from the journals;
the sources are sealed and the last changes replayed, for milliseconds; the targets are opened; the new map is
published. Every step is idempotent: after a crash, or a refusal of the store, the job restarts from the beginning, and
only the copy is resumed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from asterism.clock import Clock
from asterism.errors import ReshapeRefused
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.reshaping.copier import Copier
from asterism.keyspaces.reshaping.job import Progress, ReshapeJob, Step
from asterism.keyspaces.reshaping.takeover import check_unfinished, set_source_fence
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.partitioning.partition_map import PartitionMap, PartitionRange, RangeStatus
from asterism.partitioning.split_merge import SplitReason
from asterism.storage.contract import Batch, Engine, Fence, PartitionUnknown

# With this few batches left in the journals the seal is short.
_CATCH_UP_BATCHES = 64
_CATCH_UP_ROUNDS_MAX = 100
# The interval at which the copy's place is recorded: a crash costs at most this much of it.
_CURSOR_SECONDS = 1.0


def existing_range(keyspace: Keyspace, range_id: int) -> PartitionRange:
    partition = keyspace.record.map.get(range_id)
    if partition is None:
        raise ReshapeRefused(reason=f"There is no partition {range_id} (any more).")
    return partition


class Conductor:
    """The steps of a job in their order; `reshaper` begins jobs and handles refusals."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        admission: Admission,
        clock: Clock,
        *,
        announce_seconds: float,
        on_step: Callable[[Step], None] | None,
    ) -> None:
        self._engine = engine
        self._catalog = catalog
        self._admission = admission
        self._clock = clock
        self._announce_seconds = announce_seconds
        self._on_step = on_step
        # The jobs that this process has finished, by kind.
        self.finished: Counter[str] = Counter()

    async def carry_out(self, keyspace: Keyspace, progress: Progress) -> list[PartitionRange]:
        """Carry out a job until its map is published; return the ranges that are no longer needed.

        Raises JobFinished if that was done before. A refusal at `Step.TARGETS_OPENED` leaves it open whether the map is
        in force, or will be.
        """
        job = progress.job
        check_unfinished(job, keyspace.record.map)
        sources = [existing_range(keyspace, source_id) for source_id in job.source_ids]
        self._reach(progress, Step.PLANNED)
        announced_at = self._clock.monotonic_seconds()
        await self._announce(keyspace, job)
        self._reach(progress, Step.ANNOUNCED)
        await self._prepare(job, sources, progress)
        copier = Copier(self._engine, sources, job.targets, job.epoch, self._clock.monotonic_seconds)
        await self._copy(copier, progress)
        if job.reason == SplitReason.THROUGHPUT.value:
            await asyncio.sleep(announced_at + self._announce_seconds - self._clock.monotonic_seconds())
        await copier.count_totals()
        for _ in range(_CATCH_UP_ROUNDS_MAX):
            if await copier.replay() <= _CATCH_UP_BATCHES:
                break
        self._reach(progress, Step.CAUGHT_UP)
        began = self._clock.monotonic_seconds()
        lsns = await asyncio.gather(*(set_source_fence(self._engine, source, sealed=True) for source in sources))
        self._reach(progress, Step.SEALED)
        await copier.replay()
        await copier.write_totals()
        self._reach(progress, Step.REPLAYED)
        opened = Fence(job.epoch)
        await asyncio.gather(*(self._engine.set_fence(target.number, opened, lsn=max(lsns)) for target in job.targets))
        self._reach(progress, Step.TARGETS_OPENED)
        await self._publish(keyspace, progress, sources, began)
        return sources

    async def _announce(self, keyspace: Keyspace, job: ReshapeJob) -> None:
        statuses = [existing_range(keyspace, range_id).status for range_id in job.source_ids]
        if job.kind != "move" and RangeStatus.ONLINE in statuses:
            await self._catalog.publish_map(keyspace, job.announce, with_changes=Batch(), as_leader=True)

    async def _prepare(self, job: ReshapeJob, sources: list[PartitionRange], progress: Progress) -> None:
        """Create and seal the targets, and let the sources journal. A resumed job may have done some of this before."""
        sealed = Fence(job.epoch, sealed=True)
        for target in job.targets:
            try:
                await self._engine.set_fence(target.number, sealed)
            except PartitionUnknown:
                await self._engine.create_partition(target.number, sealed)
        self._reach(progress, Step.TARGETS_CREATED)
        for source in sources:
            fence, _ = await self._engine.read_fence(source.partition)
            if not fence.journaling:
                await set_source_fence(self._engine, source, sealed=False)
        self._reach(progress, Step.JOURNALING)

    async def _copy(self, copier: Copier, progress: Progress) -> None:
        saved_at = self._clock.monotonic_seconds()
        async for cursor, count in copier.copy(progress.job.cursor):
            progress.entries_copied += count
            progress.job = replace(progress.job, cursor=cursor)
            self._reach(progress, Step.COPYING)
            if self._clock.monotonic_seconds() - saved_at >= _CURSOR_SECONDS:
                await self._catalog.work.put_job(progress.job.id, progress.to_bytes())
                saved_at = self._clock.monotonic_seconds()
        self._reach(progress, Step.COPIED)

    async def _publish(
        self, keyspace: Keyspace, progress: Progress, sources: list[PartitionRange], sealed_at: float
    ) -> None:
        job = progress.job
        batch = Batch()
        for source in sources:
            self._catalog.work.plan_garbage(source.partition, batch)
        progress.sealed_seconds = self._clock.monotonic_seconds() - sealed_at
        check_unfinished(job, keyspace.record.map)
        history = progress.history(keyspace.record.map, finished_at=self._clock.stored_seconds())
        forget = self._catalog.work.plan_job_end(job.id, batch, keyspace_rid=job.keyspace_rid, history=history)

        def change(current: PartitionMap) -> PartitionMap:
            check_unfinished(job, current)
            return job.change_map(current)

        await self._catalog.publish_map(keyspace, change, with_changes=batch, as_leader=True)
        forget()
        self.finished[job.kind] += 1
        self._admission.refresh(keyspace)
        self._reach(progress, Step.PUBLISHED)
        self._catalog.garbage.update(source.partition for source in sources)

    def _reach(self, progress: Progress, step: Step) -> None:
        progress.step = step
        if self._on_step is not None:
            self._on_step(step)
