"""Work behind the requests: what is due, what was released, what was cut off, and blocks that were never committed.

One task, which only the leading process runs. A blob that others change all the time is left for the next round. A
round looks at the short families that list what there is to do, so it costs as much as has been left, whatever the
number of blobs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Final

from asterism.errors import AsterismError, OwnerNotFound, TooMuchContention
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.scan import Entry, scan_line
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.limits import KIB
from asterism.models.blobs.blocks import discard_blocks, latest_put
from asterism.models.blobs.collecting import collect_garbage, remove_upload
from asterism.models.blobs.finding import KeptRecord, find_version
from asterism.models.blobs.layout import (
    GARBAGE,
    GARBAGE_SECONDS,
    UNCOMMITTED,
    UNCOMMITTED_SECONDS_MAX,
    UPLOAD_SECONDS_MAX,
    UPLOADS,
    due_until,
    garbage_place,
    retention_place,
    uncommitted_key,
    unpack_moment,
    upload_place,
)
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.replacing import leave_empty, release_expired
from asterism.models.blobs.space import BlobSpace, Found
from asterism.models.blobs.store import BlobStore
from asterism.partitioning.key_range import FULL
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Batch, ExpectationFailed, StorageRefusal
from asterism.values.ticks import TICKS_PER_SECOND

_log = logging.getLogger(__name__)

ROUND_SECONDS: Final = 60.0
_REST_SECONDS: Final = 0.002
_LISTED: Final = SliceSize(500, 256 * KIB)
_NO_ROOT: Final = 0
# Blobs whose garbage is collected at once.
_AT_ONCE: Final = 16


class BlobUpkeep:
    """The background work on blobs. `round_seconds` is the time between two rounds."""

    def __init__(self, store: BlobStore, *, round_seconds: float = ROUND_SECONDS) -> None:
        self._store = store
        self._round_seconds = round_seconds
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        await end_tasks([self._task])

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._round_seconds)
            await self.sweep()

    async def sweep(self) -> None:
        """Do all that there is to do now."""
        now = self._store.services.next_ticks()
        for container in self._store.containers():
            until = container.state.retained_until
            try:
                if until is None:
                    await sweep_container(container.space, now)
                    await self._store.copies.resume([container])
                elif until <= now:
                    await self._store.remove_due(container, now)
            except OwnerNotFound:
                continue
            except (AsterismError, StorageRefusal) as problem:
                _log.warning("upkeep of container %s goes on later: %s", container.name, problem)
            await asyncio.sleep(0)


async def sweep_container(space: BlobSpace, now: int) -> None:
    await _remove_due(space, now)
    await _remove_garbage(space, now - GARBAGE_SECONDS * TICKS_PER_SECOND)
    await _remove_uploads(space, now - UPLOAD_SECONDS_MAX * TICKS_PER_SECOND)
    await _remove_uncommitted(space, now - UNCOMMITTED_SECONDS_MAX * TICKS_PER_SECOND)


# --- lists of what there is to do -----------------------------------------------------------------------------------


async def _listed(space: BlobSpace, family: bytes) -> AsyncIterator[Entry]:
    async for found in scan_line(space.services.router, space.keyspace, family, FULL, _LISTED):
        for entry in found.entries:
            yield entry


async def _remove_garbage(space: BlobSpace, released_until: int) -> None:
    points: list[bytes] = []
    latest: bytes | None = None
    async for key, _ in _listed(space, GARBAGE):
        point, moment = garbage_place(key)
        # One look at a blob is for all that it has released.
        if moment <= released_until and point != latest:
            latest = point
            points.append(point)
            if len(points) == _AT_ONCE:
                await _collect(space, points, released_until)
                points = []
    await _collect(space, points, released_until)


async def _collect(space: BlobSpace, points: list[bytes], released_until: int) -> None:
    """Collect the garbage of some blobs at once: their batches share writes to the disk."""

    async def collect(point: bytes) -> None:
        with suppress(TooMuchContention):
            await collect_garbage(space, point, released_until)

    try:
        async with asyncio.TaskGroup() as group:
            for point in points:
                group.create_task(collect(point))
    except ExceptionGroup as failures:
        # The round handles a refusal of the store, not a group of them.
        raise failures.exceptions[0] from None
    await asyncio.sleep(_REST_SECONDS)


async def _remove_uploads(space: BlobSpace, written_until: int) -> None:
    async for key, stored in _listed(space, UPLOADS):
        if unpack_moment(stored) <= written_until:
            # It may have gone on meanwhile.
            with suppress(ExpectationFailed):
                await remove_upload(space, *upload_place(key), stored)
            await asyncio.sleep(_REST_SECONDS)


# --- blocks that were never committed -------------------------------------------------------------------------------


async def _remove_uncommitted(space: BlobSpace, put_until: int) -> None:
    async for key, stored in _listed(space, UNCOMMITTED):
        if latest_put(stored) <= put_until:
            with suppress(TooMuchContention):
                await _discard_old_blocks(space, key[1:], put_until)
            await asyncio.sleep(_REST_SECONDS)


async def _discard_old_blocks(space: BlobSpace, point: bytes, put_until: int) -> None:
    async for attempt in space.attempts(point):
        with attempt:
            found, (uncommitted,) = await space.read_with_root(point, uncommitted_key(point))
            if uncommitted is None or latest_put(uncommitted) > put_until:
                return
            change = space.begin_change(found)
            change.batch.may_use_reserve = True
            await discard_blocks(space, change, uncommitted)
            if found.root is not None:
                change.put_root(found.root.copy())
            await space.commit(change)
            return
    raise TooMuchContention


# --- records that are due -------------------------------------------------------------------------------------------


async def _remove_due(space: BlobSpace, now: int) -> None:
    for partition in space.keyspace.record.map.ranges:
        async for key, value in _due(space, partition, now):
            due_at, point, moment = retention_place(key, value)
            remove = _remove_expired if moment == _NO_ROOT else _removal_of(moment)
            with suppress(TooMuchContention):
                if not await _remove_if(space, point, due_at, remove):
                    # It belongs to a record that is not due any more.
                    await space.store_part(point, Batch(deletes=[key]), 0)
            await asyncio.sleep(_REST_SECONDS)


async def _due(space: BlobSpace, partition: PartitionRange, now: int) -> AsyncIterator[Entry]:
    span = due_until(now)
    while True:
        record = space.keyspace.record
        page = await space.services.router.scan(
            space.keyspace, record, partition, span, limit=_LISTED.entries, bytes_max=_LISTED.bytes
        )
        # Of another map: what is left is found in the next round.
        for entry in () if page is None else page.entries:
            yield entry
        rest = None if page is None else page.rest(span)
        if rest is None:
            return
        span = rest


_Remove = Callable[[BlobSpace, BlobChange, Found, int], Awaitable[bool]]


async def _remove_if(space: BlobSpace, point: bytes, due_at: int, remove: _Remove) -> bool:
    async for attempt in space.attempts(point):
        with attempt:
            found = await space.read_root(point)
            change = space.begin_change(found)
            change.batch.may_use_reserve = True
            if not await remove(space, change, found, due_at):
                return False
            # Nothing is planned for a blob that is held.
            if change.batch.deletes:
                await space.commit(change)
            return True
    raise TooMuchContention


async def _remove_expired(space: BlobSpace, change: BlobChange, found: Found, due_at: int) -> bool:
    if found.root is None or not found.root.exists or found.root.expires_at != due_at:
        return False
    if not found.root.is_expired(change.now):
        # Its entry stays until the hold or the policy has ended.
        return True
    root = found.root.copy()
    # Blocks may have been put for the blob that is to come.
    (uncommitted,) = await space.read(found.point, (uncommitted_key(found.point),))
    release_expired(change, found.root)
    leave_empty(root, change)
    change.put_root(root, has_blocks=uncommitted is not None)
    return True


def _removal_of(moment: int) -> _Remove:
    async def remove(space: BlobSpace, change: BlobChange, found: Found, due_at: int) -> bool:
        kept: KeptRecord | None = await find_version(space, found.point, moment)
        if found.root is None or kept is None or kept.record.retained_until != due_at:
            return False
        (uncommitted,) = await space.read(found.point, (uncommitted_key(found.point),))
        root = found.root.copy()
        root.deleted_kept -= 1
        change.remove_version(kept.stored, kept.record, moment)
        change.put_root(root, has_blocks=uncommitted is not None)
        return True

    return remove
