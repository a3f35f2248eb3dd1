"""The safe takeover of a job from another process, dead or alive.

A process that led may be stopped for a while, and resume without knowing that another leads. All that it does then must
find another fence, another record or another partition than it expects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from asterism.errors import StorageUnavailable
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.reshaping.job import Cursor, Progress, ReshapeJob, Target
from asterism.keyspaces.routing.fences import raise_fence, raise_fences
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.partitioning.partition_map import PartitionMap, PartitionRange
from asterism.storage.contract import Batch, Engine, Fence, FenceChanged, PartitionUnknown, StorageRefusal
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber, node_of

_log = logging.getLogger(__name__)

# A container that another process is just creating has partitions before the catalog says so.
_ORPHAN_SECONDS = 10.0


async def take_over(engine: Engine, catalog: Catalog, keyspace: Keyspace, job: ReshapeJob) -> ReshapeJob:
    """Restart the job with other targets and another epoch of its sources; JobFinished if the map has its result.

    So the process that carried it out, should it be alive, finds nothing that it could still harm.
    """
    check_unfinished(job, keyspace.record.map)
    sources = [partition for partition in keyspace.record.map.ranges if partition.id in job.source_ids]
    epoch = Epoch(max(source.epoch for source in sources) + 2)
    numbers = await catalog.allocate_partitions([node_of(target.number) for target in job.targets])
    targets = tuple(Target(number, old.interval) for number, old in zip(numbers, job.targets, strict=True))
    fresh = replace(job, targets=targets, cursor=Cursor(), epoch=epoch)
    batch = Batch()
    for old in job.targets:
        catalog.work.plan_garbage(old.number, batch)
    remember = catalog.work.plan_job(job.id, Progress(fresh).to_bytes(), batch)

    def fence_off(current: PartitionMap) -> PartitionMap:
        check_unfinished(job, current)
        return current.with_next_epochs()

    await catalog.publish_map(keyspace, fence_off, with_changes=batch, as_leader=True)
    remember()
    catalog.garbage.update(old.number for old in job.targets)
    try:
        await raise_fences(engine, keyspace.record)
    except StorageRefusal as refusal:
        raise StorageUnavailable(reason=str(refusal)) from refusal
    await reopen_sources(engine, keyspace, fresh)
    return fresh


async def abandon(catalog: Catalog, job: ReshapeJob) -> None:
    """End a job without a result, and withdraw its announcement."""
    targets = [target.number for target in job.targets]
    keyspace = catalog.keyspaces.get(job.keyspace_rid)
    if keyspace is None or keyspace.deleted:
        await catalog.work.give_up_job(job.id, targets)
        return
    batch = Batch()
    for number in targets:
        catalog.work.plan_garbage(number, batch)
    forget = catalog.work.plan_job_removal(job.id, batch)

    def recall(current: PartitionMap) -> PartitionMap:
        if any(partition.partition in targets for partition in current.ranges):
            raise JobFinished
        return job.recall(current)

    try:
        await catalog.publish_map(keyspace, recall, with_changes=batch, as_leader=True)
    except JobFinished:
        # By another process, and its targets are in use.
        await catalog.work.give_up_job(job.id, ())
        return
    forget()
    catalog.garbage.update(targets)


class JobFinished(Exception):
    """The map has the result of the job already, by this process or another."""


def check_unfinished(job: ReshapeJob, current: PartitionMap) -> None:
    targets = [target.number for target in job.targets]
    # The range of a move stays on the map, so that only its partition tells.
    is_there = any(partition_range.partition in targets for partition_range in current.ranges)
    if is_there or any(current.get(source_id) is None for source_id in job.source_ids):
        raise JobFinished


async def set_source_fence(engine: Engine, source: PartitionRange, *, sealed: bool) -> Lsn:
    """Seal or open a source at the epoch that this process knows; FenceChanged if another process has changed it.

    A fence that was left behind the map is raised first: requests would do that, but there may be none.
    """
    fence = await raise_fence(engine, source)
    if fence is None:
        raise PartitionUnknown(source.partition)
    if fence.epoch != source.epoch:
        raise FenceChanged(source.partition)
    wanted = Fence(source.epoch, sealed=sealed, journaling=True)
    return await engine.set_fence(source.partition, wanted, expected=fence)


async def reopen_sources(engine: Engine, keyspace: Keyspace, job: ReshapeJob) -> None:
    """Open the sources before a pause: requests would wait for nothing."""
    for source_id in job.source_ids:
        source = keyspace.record.map.get(source_id)
        if source is not None:
            try:
                await set_source_fence(engine, source, sealed=False)
            except StorageRefusal as refusal:
                _log.warning("partition %d stays sealed until the next attempt: %s", source.id, refusal)


async def orphans(catalog: Catalog) -> set[PartitionNumber]:
    """Return the partitions that are in neither a map nor a job."""
    in_jobs = [ReshapeJob.from_bytes(stored).targets for stored in catalog.work.jobs.values()]
    return await catalog.orphans(in_jobs={target.number for targets in in_jobs for target in targets})


async def sweep_orphans(catalog: Catalog, on_found: Callable[[], None]) -> None:
    """List partitions as garbage that are orphans twice in a row; creating a container expects that they are not."""
    before = await orphans(catalog)
    await asyncio.sleep(_ORPHAN_SECONDS)
    await catalog.follow()
    await catalog.work.put_garbage(before & await orphans(catalog))
    on_found()
