"""What makes it safe that another process goes on where one has stopped, dead or alive.

A process that led may be stopped for a while, and go on without knowing that another one leads. Whatever it does then
must find another fence, another record or another partition than it expects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from asterism.errors import StorageUnavailable
from asterism.keyspaces.catalog import Catalog
from asterism.keyspaces.fences import raise_fences
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.reshape_job import Cursor, Progress, ReshapeJob, Target
from asterism.partitioning.partition_map import PartitionMap, PartitionRange
from asterism.storage.contract import Batch, Engine, Fence, FenceChanged, StorageRefusal
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber, node_of

_log = logging.getLogger(__name__)

# A container that another process is just creating has partitions before the catalog says so.
_ORPHAN_SECONDS = 10.0


async def take_over(engine: Engine, catalog: Catalog, keyspace: Keyspace, job: ReshapeJob) -> ReshapeJob:
    """The job, begun anew with other targets and another epoch of its sources: so the process that carried it out finds
    nothing that it could still harm, should it be alive."""
    numbers = await catalog.allocate_partitions([node_of(one.number) for one in job.targets])
    targets = tuple(Target(number, old.interval) for number, old in zip(numbers, job.targets, strict=True))
    sources = [one for one in keyspace.record.map.ranges if one.id in job.source_ids]
    epoch = Epoch(max(one.epoch for one in sources) + 2)
    fresh = replace(job, targets=targets, cursor=Cursor(), epoch=epoch)
    batch = Batch()
    for old in job.targets:
        catalog.work.plan_garbage(old.number, batch)
    remember = catalog.work.plan_job(job.id, Progress(fresh).to_bytes(), batch)
    await catalog.publish_map(keyspace, lambda current: current.with_next_epochs(), with_changes=batch, as_leader=True)
    remember()
    catalog.garbage.update(old.number for old in job.targets)
    try:
        await raise_fences(engine, keyspace.record)
    except StorageRefusal as refusal:
        raise StorageUnavailable(reason=str(refusal)) from refusal
    await let_requests_in_again(engine, keyspace, fresh)
    return fresh


async def abandon(catalog: Catalog, job: ReshapeJob) -> None:
    """The job is over without a result; its announcement is taken back."""
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
        if any(one.partition in targets for one in current.ranges):
            raise _Finished
        return job.recall(current)

    try:
        await catalog.publish_map(keyspace, recall, with_changes=batch, as_leader=True)
    except _Finished:
        # By somebody else, and its targets are in use.
        await catalog.work.give_up_job(job.id, ())
        return
    forget()
    catalog.garbage.update(targets)


class _Finished(Exception):
    """The job that is to be abandoned has its result in the map."""


def check_unfinished(job: ReshapeJob, current: PartitionMap) -> None:
    if any(current.get(one) is None for one in job.source_ids):
        raise StorageUnavailable(reason="another process has finished the job")


async def set_source_fence(engine: Engine, source: PartitionRange, *, sealed: bool) -> Lsn:
    """Of the epoch that this process knows, and of no other: that would be another process's doing (FenceChanged)."""
    fence, _ = await engine.read_fence(source.partition)
    if fence.epoch != source.epoch:
        raise FenceChanged(source.partition)
    wanted = Fence(source.epoch, sealed=sealed, journaling=True)
    return await engine.set_fence(source.partition, wanted, expected=fence)


async def let_requests_in_again(engine: Engine, keyspace: Keyspace, job: ReshapeJob) -> None:
    """Before a pause no source may stay sealed: requests would wait for nothing."""
    for source_id in job.source_ids:
        source = keyspace.record.map.get(source_id)
        if source is not None:
            try:
                await set_source_fence(engine, source, sealed=False)
            except StorageRefusal as refusal:
                _log.warning("partition %d stays sealed for now: %s", source.id, refusal)


async def orphans(catalog: Catalog) -> set[PartitionNumber]:
    """Partitions that neither a map nor a job knows of."""
    in_jobs = [ReshapeJob.from_bytes(stored).targets for stored in catalog.work.jobs.values()]
    return await catalog.orphans(in_jobs={one.number for targets in in_jobs for one in targets})


async def sweep_orphans(catalog: Catalog, on_found: Callable[[], None]) -> None:
    """Lists as garbage what nobody knows of, twice in a row; who creates a container expects that nobody did."""
    before = await orphans(catalog)
    await asyncio.sleep(_ORPHAN_SECONDS)
    await catalog.follow()
    await catalog.work.put_garbage(before & await orphans(catalog))
    on_found()
