"""Incremental copies: snapshots of a page blob, each copied over the one before, so that only what differs is written.

The target can only be read through the snapshots that the copies take of it. Its pages are compared with those of the
source, so a copy that was cut off is done by the next. An entry in COPIES admits one copy at a time.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Final
from uuid import UUID

from asterism.errors import AsterismError, TooMuchContention
from asterism.limits import MIB
from asterism.models.blobs.calls import NewBlob
from asterism.models.blobs.conditions import NO_CONDITIONS, Conditions, check_write
from asterism.models.blobs.container import Container
from asterism.models.blobs.content import Content
from asterism.models.blobs.copied_data import CopiedPart
from asterism.models.blobs.copies import is_orphaned
from asterism.models.blobs.copy_changes import ended_state, remove_entry, store_copied
from asterism.models.blobs.copy_job import CopyJob, CopySource, SourcePlace
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.layout import copy_key, point_of, root_key
from asterism.models.blobs.page_maps import CHUNK_BYTES, CHUNK_PAGES, PAGE_BYTES, ChunkVersion, PageMap, pack_map
from asterism.models.blobs.pages_layout import CHUNKS_END, map_key, plan_chunk
from asterism.models.blobs.pages_reading import PageReader
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.record import PENDING, SUCCESS, BlobKind, BlobRecord, CopyState, Role
from asterism.models.blobs.replacing import check_not_held, kept_copy, with_next_epoch
from asterism.models.blobs.rules import NO_RULES
from asterism.models.blobs.space import BlobSpace, Found
from asterism.models.blobs.writing import put_blob
from asterism.storage.contract import LSN_BYTES, Batch, Expectation, ExpectationFailed, StorageRefusal
from asterism.values.ticks import TICKS_PER_SECOND

_BATCH_BYTES: Final = MIB
# Well before another copy takes the entry of this one for orphaned.
_RENEWAL_TICKS: Final = 5 * TICKS_PER_SECOND
# A target is read through its snapshots, and is seldom changed beside the copy.
_ROUNDS_MAX: Final = 100
_NO_PAGES: Final = PageMap()
_SNAPSHOT = re.compile(r"[?&]snapshot=([^&]*)", re.IGNORECASE)


async def copy_incrementally(
    target: Container, name: str, source: CopySource, conditions: Conditions = NO_CONDITIONS
) -> BlobRecord:
    """Copy a snapshot of a page blob over the copy of an earlier one, and take a snapshot of the target."""
    record = source.record
    if record.kind is not BlobKind.PAGE or record.role is not Role.SNAPSHOT:
        raise BlobRefused(BlobFailure.INCREMENTAL_COPY_SOURCE_MUST_BE_SNAPSHOT)
    return await _IncrementalCopy(target.space, name, source, conditions).run()


class _IncrementalCopy:
    """One copy. It holds the entry of its target in COPIES, which each batch of it expects and renews."""

    def __init__(self, space: BlobSpace, name: str, source: CopySource, conditions: Conditions) -> None:
        self._space = space
        self._name = name
        self._point = point_of(name)
        self._source = source
        self._conditions = conditions
        copy_id = space.services.random_bytes(16)
        self._state = CopyState(str(UUID(bytes=copy_id)), source.url, PENDING, 0, source.record.size)
        found = source.container
        place = SourcePlace.of(found.account, found.name, source.record.name, source.record.etag, source.which)
        self._job = CopyJob(copy_id, name, place, is_incremental=True)

    async def run(self) -> BlobRecord:
        await self._make_target()
        await self._begin()
        try:
            for _ in range(_ROUNDS_MAX):
                # Pages that were copied before the target changed do not differ any more.
                with suppress(ExpectationFailed):
                    found = await self._find()
                    await self._copy_differences(found)
                    return await self._finish(found)
            raise TooMuchContention
        except BaseException:
            # The entry gives way to other copies after a while in any case.
            with suppress(ExpectationFailed, AsterismError, StorageRefusal):
                await remove_entry(self._space, self._point, self._job.to_bytes())
            raise

    async def _make_target(self) -> None:
        """Make the target of the first copy."""
        space, conditions = self._space, self._conditions
        if (await space.read_root(self._point)).current is not None:
            return
        check_write(conditions, None, space.now(), None)
        new = NewBlob(BlobKind.PAGE, is_incremental_copy=True)
        await put_blob(space, self._name, None, new, Conditions(if_none_match=("*",)), NO_RULES)
        # The other conditions were those of a target that did not exist.
        self._conditions = Conditions(lease_id=conditions.lease_id)

    async def _begin(self) -> None:
        space, key = self._space, copy_key(self._point)
        async for attempt in space.attempts(self._point):
            with attempt:
                found, (stored,) = await space.read_with_root(self._point, key)
                change = space.begin_change(found)
                self._check(found.current, change.now)
                if stored is not None and not is_orphaned(CopyJob.from_bytes(stored), change.now):
                    raise BlobRefused(BlobFailure.PENDING_COPY)
                job = replace(self._job, written_at=change.now)
                change.batch.expectations.append(Expectation(key, stored))
                change.batch.puts.append((key, job.to_bytes()))
                await space.commit(change)
                self._job = job
                return
        raise TooMuchContention

    async def _find(self) -> Found:
        """Return the target; PENDING_COPY if another copy took over while this one was too slow."""
        found, (stored,) = await self._space.read_with_root(self._point, copy_key(self._point))
        if stored != self._job.to_bytes():
            raise BlobRefused(BlobFailure.PENDING_COPY)
        self._check(found.current, self._space.now())
        return found

    def _check(self, current: BlobRecord | None, now: int) -> None:
        if current is None:
            raise BlobRefused(BlobFailure.NOT_FOUND)
        check_write(self._conditions, current, now, current.tags)
        _check_target(current, self._state)
        check_not_held(current, now)

    async def _finish(self, found: Found) -> BlobRecord:
        """Show what was copied; ExpectationFailed if the target has changed since it was found."""
        space, source = self._space, self._source
        # If the snapshot is there now, it was there all the time, and so were its pages.
        await source.container.find(source.record.name, source.which)
        with space.keyspace.in_flight:
            change = space.begin_change(found)
            assert found.current is not None, "checked"
            self._check(found.current, change.now)
            after = _plan_snapshot(change, found.current, self._state, source.record)
            key = copy_key(self._point)
            change.batch.expectations.append(Expectation(key, self._job.to_bytes()))
            change.batch.deletes.append(key)
            await space.commit(change)
            return after

    # --- pages --------------------------------------------------------------------------------------------------------

    async def _copy_differences(self, found: Found) -> None:
        """Write the pages that differ into the epoch of the target, which no snapshot has seen."""
        assert found.current is not None, "checked"
        space, point, content = self._space, self._point, found.current.content
        assert content.epoch is not None, "a page blob has an epoch"
        batch, batch_bytes = Batch(), 0
        async with aclosing(_chunks(space, point, content, self._source)) as chunks:
            async for chunk, (before, old), (wanted, new) in chunks:
                old_map = _NO_PAGES if before is None else before.pages
                new_map = _NO_PAGES if wanted is None else wanted.pages
                changed = _differences(old, old_map.with_data, new, new_map.with_data)
                if changed:
                    is_in_place = before is not None and before.epoch == content.epoch
                    key = map_key(point, content.content_id, chunk, content.epoch)
                    batch.expectations.append(Expectation(key, pack_map(old_map) if is_in_place else None))
                    changed |= old_map.changed if is_in_place else 0
                    after = ChunkVersion(chunk, content.epoch, PageMap(new_map.with_data, changed))
                    batch_bytes += plan_chunk(batch, point, content.content_id, before, after, new)
                if len(batch.puts) * CHUNK_BYTES >= 2 * _BATCH_BYTES or self._is_renewal_due():
                    await self._store(found, batch, batch_bytes)
                    batch, batch_bytes = Batch(), 0
        if batch.puts or batch.deletes:
            await self._store(found, batch, batch_bytes)

    def _is_renewal_due(self) -> bool:
        return self._space.now() - self._job.written_at > _RENEWAL_TICKS

    async def _store(self, found: Found, batch: Batch, bytes_added: int) -> None:
        assert found.stored is not None, "the target exists"
        batch.expectations.append(Expectation(root_key(self._point), found.stored[:LSN_BYTES]))
        self._job = await store_copied(self._space, self._point, self._job, CopiedPart(batch, bytes_added, 0))


def _check_target(target: BlobRecord, state: CopyState) -> None:
    if not target.is_incremental_copy:
        raise BlobRefused(BlobFailure.INCREMENTAL_COPY_NOT_ALLOWED)
    before = target.copy_state
    if before is None:
        return
    if _SNAPSHOT.sub("", before.source) != _SNAPSHOT.sub("", state.source):
        raise BlobRefused(BlobFailure.INCREMENTAL_COPY_BLOB_MISMATCH)
    earlier, now = _SNAPSHOT.search(before.source), _SNAPSHOT.search(state.source)
    # Moments are written with one length: they compare as they follow each other.
    if earlier is not None and now is not None and now[1] <= earlier[1]:
        raise BlobRefused(BlobFailure.INCREMENTAL_COPY_OF_EARLIER_SNAPSHOT)


def _plan_snapshot(change: BlobChange, target: BlobRecord, state: CopyState, source: BlobRecord) -> BlobRecord:
    """Plan the end of the copy, and the snapshot of the target that shows its pages."""
    after = target.copy()
    after.size, after.sequence_number = source.size, source.sequence_number
    after.content_type, after.content_encoding = source.content_type, source.content_encoding
    after.content_language, after.content_disposition = source.content_language, source.content_disposition
    after.cache_control, after.metadata = source.cache_control, dict(source.metadata)
    # Not the snapshot's own moment: a version that is kept later has its etag for its moment.
    after.etag, after.modified_at = max(change.next_etag(), change.now + 1), change.now
    after.copy_state = replace(state, destination_snapshot=change.now)
    after.copy_state = ended_state(after, SUCCESS, change.now, source.size)
    taken = kept_copy(after, Role.SNAPSHOT)
    taken.snapshot = change.now
    after.snapshots_kept += 1
    with_next_epoch(after)
    change.add_version(taken, change.now)
    change.put_root(after)
    return after


# --- pages ------------------------------------------------------------------------------------------------------------

_Chunk = tuple[ChunkVersion | None, bytes]


def _differences(old: bytes, old_pages: int, new: bytes, new_pages: int) -> int:
    """Return the set of pages of a chunk that differ: in their data, or in whether they have any."""
    changed = old_pages ^ new_pages
    if old != new:
        for page in range(CHUNK_PAGES):
            span = slice(page * PAGE_BYTES, (page + 1) * PAGE_BYTES)
            if old_pages & new_pages & 1 << page and old[span] != new[span]:
                changed |= 1 << page
    return changed


async def _chunks(
    space: BlobSpace, point: bytes, content: Content, source: CopySource
) -> AsyncGenerator[tuple[int, _Chunk, _Chunk], None]:
    """Yield the chunks that the target or the source has, in order, with what each sees of them."""
    origin = source.container.space
    reader = PageReader(origin.services.router, origin.keyspace, point_of(source.record.name), source.record.content)
    own = PageReader(space.services.router, space.keyspace, point, content)
    async with (
        aclosing(own.chunks(0, CHUNKS_END, with_cleared=True)) as mine,
        aclosing(reader.chunks(0, -(-source.record.size // CHUNK_BYTES))) as theirs,
    ):
        left, right = await anext(mine, None), await anext(theirs, None)
        while left is not None or right is not None:
            chunk = min(found[0].chunk for found in (left, right) if found is not None)
            before: _Chunk = (None, b"")
            wanted: _Chunk = (None, b"")
            if left is not None and left[0].chunk == chunk:
                before, left = left, await anext(mine, None)
            if right is not None and right[0].chunk == chunk:
                wanted, right = right, await anext(theirs, None)
            yield chunk, before, wanted
