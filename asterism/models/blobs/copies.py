"""Copies of blobs on this server: small ones at once, large ones in the background.

A copy that takes long first makes the target, without data and with a copy that is pending, and an entry that says how
far it has come (`copy_job.py`). Every batch of data expects that entry and replaces it, so that a copy goes on where it
stopped, in whichever process, and no batch follows its end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from dataclasses import replace
from typing import Final
from uuid import UUID

from asterism.errors import AsterismError, OwnerNotFound, StoredDamage
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.scan import scan_line
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.limits import KIB, MIB
from asterism.models.blobs.calls import NewBlob
from asterism.models.blobs.conditions import Conditions
from asterism.models.blobs.container import Container
from asterism.models.blobs.content import Segment
from asterism.models.blobs.copied_data import (
    copied_segments,
    data_parts,
    page_content,
    page_parts,
)
from asterism.models.blobs.copy_at_once import can_share_data, copy_in_place, copy_now
from asterism.models.blobs.copy_changes import (
    abort_pending,
    begin_copy,
    fail_copy,
    finish_copy,
    forget_marks,
    is_inline,
    note_progress,
    remove_entry,
    store_copied,
)
from asterism.models.blobs.copy_job import CopyJob, CopySource, SourcePlace
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.layout import (
    COPIES,
    copy_key,
    point_of,
)
from asterism.models.blobs.record import PENDING, BlobKind, BlobRecord, CopyState
from asterism.models.blobs.rules import AccountRules
from asterism.models.blobs.space import BlobSpace
from asterism.partitioning.key_range import FULL
from asterism.storage.contract import ExpectationFailed, StorageRefusal
from asterism.values.ticks import TICKS_PER_SECOND

_log = logging.getLogger(__name__)

# A copy up to this size is done when its request is answered: a second or less.
COPY_INLINE_BYTES: Final = 32 * MIB
# Between two notes of the progress where clients see it.
_PROGRESS_BYTES: Final = 64 * MIB
_COPIES_AT_ONCE: Final = 4
# The data of a copy that is under way are not those of an upload that was cut off.
_MARKED_SECONDS: Final = 7 * 24 * 3600
# A process that copies writes several times a second, and one that looks for differences every few seconds.
ORPHANED_SECONDS: Final = 30
_ENTRIES: Final = SliceSize(100, 64 * KIB)


def is_orphaned(job: CopyJob, now: int) -> bool:
    """Return whether the process that carried out a copy has ended."""
    return job.written_at < now - ORPHANED_SECONDS * TICKS_PER_SECOND


class Copies:
    """The copies that this process carries out."""

    def __init__(self, find_container: Callable[[str, str], Container | None]) -> None:
        self._find_container = find_container
        self._places = asyncio.Semaphore(_COPIES_AT_ONCE)
        # By the id of the copy.
        self._running: dict[bytes, asyncio.Task[None]] = {}

    async def stop(self) -> None:
        await end_tasks(list(self._running.values()))

    # --- beginning and ending ---------------------------------------------------------------------------------------

    async def copy(
        self,
        target: Container,
        name: str,
        source: CopySource,
        properties: NewBlob,
        conditions: Conditions,
        rules: AccountRules,
        *,
        at_once: bool = False,
    ) -> BlobRecord:
        """Copy a blob, in place of what has the name; return the target, whose `copy_state` says whether the copy is
        pending. The kind and the data are those of the source, everything else is given. `at_once`: the caller wants
        the copy to be complete, whatever its size."""
        space, record = target.space, source.record
        copy_id = space.services.random_bytes(16)
        properties = replace(
            properties,
            kind=record.kind,
            sequence_number=record.sequence_number,
            copy_state=CopyState(str(UUID(bytes=copy_id)), source.url, PENDING, 0, record.size),
        )
        if record.name == name and source.container.keyspace is space.keyspace and can_share_data(record):
            return await copy_in_place(space, source, properties, conditions, rules)
        is_small = at_once or record.size <= COPY_INLINE_BYTES
        if is_small and record.kind is not BlobKind.PAGE:
            return await copy_now(space, name, source, properties, conditions, rules, copy_id)
        await begin_copy(space, name, source, properties, conditions, rules, copy_id)
        running = self.run(space, point_of(name), copy_id, is_small=is_small)
        if is_small:
            # It may be aborted meanwhile, which ends its task.
            await asyncio.wait([running])
        return await target.find(name)

    async def abort(self, target: Container, name: str, copy_id: str, lease_id: str | None = None) -> None:
        """End a copy that is pending: the target stays, without data."""
        space, point = target.space, point_of(name)
        aborted = await abort_pending(space, point, copy_id, lease_id)
        running = self._running.get(aborted)
        if running is not None:
            await end_tasks([running])
        await forget_marks(space, point, aborted)

    # --- in the background ------------------------------------------------------------------------------------------

    def run(self, space: BlobSpace, point: bytes, copy_id: bytes, *, is_small: bool = False) -> asyncio.Task[None]:
        """Carry out the copy whose entry is at a point, beside others; return its task. A request waits for a small
        one, which therefore does not wait for a place among the others."""
        running = self._running.get(copy_id)
        if running is None:
            place = nullcontext() if is_small else self._places
            running = self._running[copy_id] = asyncio.create_task(self._carry_out(space, point, copy_id, place))
            running.add_done_callback(lambda _: self._running.pop(copy_id, None))
        return running

    async def resume(self, containers: Iterable[Container]) -> int:
        """Go on with copies that no process has written to for a while; return how many."""
        resumed = 0
        for container in containers:
            space = container.space
            found = scan_line(space.services.router, space.keyspace, COPIES, FULL, _ENTRIES)
            async with aclosing(found) as slices:
                async for entries in slices:
                    for key, stored in entries.entries:
                        job = CopyJob.from_bytes(stored)
                        if not is_orphaned(job, space.now()) or job.copy_id in self._running:
                            continue
                        if job.is_incremental:
                            # The next copy of a snapshot to this target does what it left.
                            with suppress(ExpectationFailed):
                                await remove_entry(space, key[1:], stored)
                            continue
                        self.run(space, key[1:], job.copy_id)
                        resumed += 1
        return resumed

    async def _carry_out(
        self, space: BlobSpace, point: bytes, copy_id: bytes, place: AbstractAsyncContextManager[None]
    ) -> None:
        async with place:
            try:
                await self._copy_data(space, point, copy_id)
            except ExpectationFailed:
                # It was aborted, or another process goes on with it.
                return
            except OwnerNotFound:
                _log.info("the container of a copy was deleted")
            except (AsterismError, StorageRefusal) as problem:
                _log.warning("a copy goes on later: %s", problem)

    async def _copy_data(self, space: BlobSpace, point: bytes, copy_id: bytes) -> None:
        (stored,) = await space.read(point, (copy_key(point),))
        if stored is None:
            return
        job = CopyJob.from_bytes(stored)
        if job.copy_id != copy_id:
            return
        try:
            source, record = await self._find_source(job.source)
            if record.kind is BlobKind.PAGE:
                parts = page_parts(source, record, point, page_content(copy_id).content_id, start=job.progress)
                segments: list[Segment] = []
            else:
                marked_at = space.now() + _MARKED_SECONDS * TICKS_PER_SECOND
                segments = [] if is_inline(record) else await copied_segments(source, record, copy_id)
                parts = data_parts(source, record, point, segments, start=job.progress, marked_at=marked_at)
            noted = job.progress
            async with aclosing(parts):
                async for part in parts:
                    job = await store_copied(space, point, job, part)
                    if job.progress - noted >= _PROGRESS_BYTES:
                        noted = job.progress
                        await note_progress(space, point, job)
            if record.kind is BlobKind.PAGE:
                # Pages are written in place: some may be of a later state.
                await self._find_source(job.source)
        except (BlobRefused, StoredDamage) as problem:
            await fail_copy(space, point, job, problem)
            return
        await finish_copy(space, point, job, record, segments)

    async def _find_source(self, place: SourcePlace) -> tuple[BlobSpace, BlobRecord]:
        container = self._find_container(place.account, place.container)
        if container is None:
            raise BlobRefused(BlobFailure.CONTAINER_NOT_FOUND)
        record = await container.find(place.name, place.which)
        if record.etag != place.etag:
            raise BlobRefused(BlobFailure.SOURCE_CONDITION_NOT_MET)
        return container.space, record
