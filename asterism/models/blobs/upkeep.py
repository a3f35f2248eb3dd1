"""Work behind the requests: what is due, what was released, what was cut off, and blocks that were never committed.

One task, which only the leading process runs. A blob that others change all the time, or that is damaged, is left for
the next round. A round looks at the short families that list what there is to do, so it costs as much as has been left,
whatever the number of blobs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Final, NamedTuple

from asterism.errors import AsterismError, OwnerNotFound, StorageFull, StorageUnavailable, TooMuchContention
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.scan import Entry, scan_line
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.limits import KIB
from asterism.models.blobs.blocks import discard_blocks, latest_put
from asterism.models.blobs.collecting import collect_garbage, remove_upload
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
    version_key,
)
from asterism.models.blobs.record import unpack_blob
from asterism.models.blobs.replacing import leave_empty, release_expired
from asterism.models.blobs.space import BlobSpace
from asterism.models.blobs.store import BlobStore
from asterism.partitioning.key_range import FULL
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Batch, EngineFailed, ExpectationFailed, OutOfSpace, StorageRefusal
from asterism.values.ticks import TICKS_PER_SECOND

_log = logging.getLogger(__name__)

ROUND_SECONDS: Final = 60.0
_REST_SECONDS: Final = 0.002
_LISTED: Final = SliceSize(500, 256 * KIB)
_NO_ROOT: Final = 0
# Blobs whose garbage is collected, or whose due records are removed, at once: their batches share writes to the disk.
_AT_ONCE: Final = 16
# These are not about a single blob: they end the round of the container.
_OF_ALL_BLOBS: Final = (OwnerNotFound, StorageFull, StorageUnavailable, EngineFailed, OutOfSpace)
_FAULTS_MAX: Final = 10


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
            try:
                await self.sweep()
            except Exception:
                _log.exception("a round of the upkeep of blobs failed in part")

    async def sweep(self) -> None:
        """Do all that there is to do now. Errors of the program are raised at the end, as an ExceptionGroup."""
        faults = Faults()
        now = self._store.services.next_ticks()
        for container in self._store.containers():
            with faults.apart(container.name), suppress(OwnerNotFound):
                until = container.state.retained_until
                if until is None:
                    await _sweep_container(container.space, now, faults)
                    await self._store.copies.resume([container])
                elif until <= now:
                    await self._store.remove_due(container, now)
            await asyncio.sleep(0)
        faults.check()


class Faults:
    """The failures of a round: each is kept from the blobs and containers that come after it."""

    def __init__(self) -> None:
        self._unexpected: list[Exception] = []

    @contextmanager
    def apart(self, container: str, *, passes: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        """Log what goes wrong with a container or one of its blobs, and go on; but for the errors that it `passes`."""
        try:
            yield
        except passes:
            raise
        except TooMuchContention:
            # The next round finds a calmer moment.
            return
        except (AsterismError, StorageRefusal) as problem:
            _log.warning("upkeep of container %s goes on later: %s", container, problem)
        except Exception as fault:
            if len(self._unexpected) < _FAULTS_MAX:
                self._unexpected.append(fault)

    def check(self) -> None:
        if self._unexpected:
            raise ExceptionGroup("upkeep of blobs", self._unexpected)


async def _sweep_container(space: BlobSpace, now: int, faults: Faults) -> None:
    for work, until in (
        (_remove_due, now),
        (_remove_garbage, now - GARBAGE_SECONDS * TICKS_PER_SECOND),
        (_remove_uploads, now - UPLOAD_SECONDS_MAX * TICKS_PER_SECOND),
        (_remove_uncommitted, now - UNCOMMITTED_SECONDS_MAX * TICKS_PER_SECOND),
    ):
        with _one_blob(space, faults):
            await work(space, until, faults)


def _one_blob(space: BlobSpace, faults: Faults) -> AbstractContextManager[None]:
    return faults.apart(space.name, passes=_OF_ALL_BLOBS)


async def _at_once(space: BlobSpace, works: Sequence[Callable[[], Awaitable[None]]], faults: Faults) -> None:
    """Do work on some blobs at once."""

    async def do(work: Callable[[], Awaitable[None]]) -> None:
        with _one_blob(space, faults):
            await work()

    for start in range(0, len(works), _AT_ONCE):
        try:
            async with asyncio.TaskGroup() as group:
                for work in works[start : start + _AT_ONCE]:
                    group.create_task(do(work))
        except ExceptionGroup as failures:
            # The round handles a refusal of the store, not a group of them.
            raise failures.exceptions[0] from None
        await asyncio.sleep(_REST_SECONDS)


# --- lists of what there is to do -----------------------------------------------------------------------------------


async def _listed(space: BlobSpace, family: bytes) -> AsyncIterator[Entry]:
    async for found in scan_line(space.services.router, space.keyspace, family, FULL, _LISTED):
        for entry in found.entries:
            yield entry


async def _remove_garbage(space: BlobSpace, released_until: int, faults: Faults) -> None:
    works: list[Callable[[], Awaitable[None]]] = []
    latest: bytes | None = None
    async for key, _ in _listed(space, GARBAGE):
        point, moment = garbage_place(key)
        # One look at a blob is for all that it has released.
        if moment <= released_until and point != latest:
            latest = point
            works.append(partial(collect_garbage, space, point, released_until))
            if len(works) == _AT_ONCE:
                await _at_once(space, works, faults)
                works = []
    await _at_once(space, works, faults)


async def _remove_uploads(space: BlobSpace, written_until: int, faults: Faults) -> None:
    async for key, stored in _listed(space, UPLOADS):
        with _one_blob(space, faults):
            if unpack_moment(stored) > written_until:
                continue
            # It may have gone on meanwhile.
            with suppress(ExpectationFailed):
                await remove_upload(space, *upload_place(key), stored)
            await asyncio.sleep(_REST_SECONDS)


# --- blocks that were never committed -------------------------------------------------------------------------------


async def _remove_uncommitted(space: BlobSpace, put_until: int, faults: Faults) -> None:
    async for key, stored in _listed(space, UNCOMMITTED):
        with _one_blob(space, faults):
            if latest_put(stored) > put_until:
                continue
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


class _Due(NamedTuple):
    """An entry of RETENTION."""

    key: bytes
    due_at: int
    # The place of the record in VERSIONS.
    moment: int


async def _remove_due(space: BlobSpace, now: int, faults: Faults) -> None:
    for partition in space.keyspace.record.map.ranges:
        async for entries in _due_entries(space, partition, now):
            due: dict[bytes, list[_Due]] = {}
            for key, value in entries:
                with _one_blob(space, faults):
                    due_at, point, moment = retention_place(key, value)
                    due.setdefault(point, []).append(_Due(key, due_at, moment))
            await _at_once(space, [partial(_remove_due_of, space, *found) for found in due.items()], faults)


async def _due_entries(space: BlobSpace, partition: PartitionRange, now: int) -> AsyncIterator[list[Entry]]:
    span = due_until(now)
    while True:
        record = space.keyspace.record
        page = await space.services.router.scan(
            space.keyspace, record, partition, span, limit=_LISTED.entries, bytes_max=_LISTED.bytes
        )
        # Of another map: what is left is found in the next round.
        if page is not None:
            yield page.entries
        rest = None if page is None else page.rest(span)
        if rest is None:
            return
        span = rest


async def _remove_due_of(space: BlobSpace, point: bytes, due: list[_Due]) -> None:
    """Remove what is due of one blob: its records in one batch."""
    kept = [entry for entry in due if entry.moment != _NO_ROOT]
    if kept:
        await _remove_kept(space, point, kept)
    for key, due_at, moment in due:
        if moment == _NO_ROOT and not await _remove_expired(space, point, due_at):
            # It belongs to a record that is not due any more.
            await space.store_part(point, Batch(deletes=[key]), 0)


async def _remove_kept(space: BlobSpace, point: bytes, due: list[_Due]) -> None:
    keys = [version_key(point, entry.moment) for entry in due]
    async for attempt in space.attempts(point):
        with attempt:
            found, (uncommitted, *records) = await space.read_with_root(point, uncommitted_key(point), *keys)
            change = space.begin_change(found)
            change.batch.may_use_reserve = True
            root = None if found.root is None else found.root.copy()
            removed = 0
            for (key, due_at, moment), stored in zip(due, records, strict=True):
                record = None if stored is None else unpack_blob(stored)
                if root is None or stored is None or record is None or record.retained_until != due_at:
                    # It belongs to a record that is not due any more.
                    change.batch.deletes.append(key)
                    continue
                change.remove_version(stored, record, moment)
                removed += 1
            if root is not None and removed:
                root.deleted_kept -= removed
                change.put_root(root, has_blocks=uncommitted is not None)
            await space.commit(change)
            return
    raise TooMuchContention


async def _remove_expired(space: BlobSpace, point: bytes, due_at: int) -> bool:
    """Remove a blob that expires at a moment, unless it is held; False if no blob does."""
    async for attempt in space.attempts(point):
        with attempt:
            # Blocks may have been put for the blob that is to come.
            found, (uncommitted,) = await space.read_with_root(point, uncommitted_key(point))
            change = space.begin_change(found)
            if found.root is None or not found.root.exists or found.root.expires_at != due_at:
                return False
            if not found.root.is_expired(change.now):
                # Its entry stays until the hold or the policy has ended.
                return True
            change.batch.may_use_reserve = True
            root = found.root.copy()
            release_expired(change, found.root)
            leave_empty(root, change)
            change.put_root(root, has_blocks=uncommitted is not None)
            await space.commit(change)
            return True
    raise TooMuchContention
