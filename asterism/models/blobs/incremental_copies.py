"""Incremental copies: snapshots of a page blob, each copied over the one before, so that only what differs is written.

The target can only be read through the snapshots that the copies take of it. Its pages are compared with those of the
source, so a copy that was cut off is done by the next.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Final
from uuid import UUID

from asterism.errors import TooMuchContention
from asterism.limits import MIB
from asterism.models.blobs.calls import NewBlob
from asterism.models.blobs.conditions import NO_CONDITIONS, Conditions, check_write
from asterism.models.blobs.container import Container
from asterism.models.blobs.content import Content
from asterism.models.blobs.copy_changes import PENDING, SUCCESS, ended_state
from asterism.models.blobs.copy_job import CopySource
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.layout import point_of, root_key
from asterism.models.blobs.page_maps import CHUNK_BYTES, CHUNK_PAGES, PAGE_BYTES, ChunkVersion, PageMap
from asterism.models.blobs.pages_layout import CHUNKS_END, map_key, plan_chunk
from asterism.models.blobs.pages_reading import PageReader
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.record import BlobKind, BlobRecord, CopyState, Role
from asterism.models.blobs.replacing import with_next_epoch
from asterism.models.blobs.rules import NO_RULES
from asterism.models.blobs.space import BlobSpace
from asterism.models.blobs.writing import put_blob
from asterism.storage.contract import LSN_BYTES, Batch, Expectation

_BATCH_BYTES: Final = MIB
_NO_PAGES: Final = PageMap()
_SNAPSHOT = re.compile(r"[?&]snapshot=([^&]*)", re.IGNORECASE)


async def copy_incrementally(
    target: Container, name: str, source: CopySource, conditions: Conditions = NO_CONDITIONS
) -> BlobRecord:
    """Copy a snapshot of a page blob over the copy of an earlier one, and take a snapshot of the target."""
    space, point, record = target.space, point_of(name), source.record
    if record.kind is not BlobKind.PAGE or record.role is not Role.SNAPSHOT:
        raise BlobRefused(BlobFailure.INCREMENTAL_COPY_SOURCE_MUST_BE_SNAPSHOT)
    copy_id = str(UUID(bytes=space.services.random_bytes(16)))
    state = CopyState(copy_id, source.url, PENDING, 0, record.size)
    await _prepare(space, name, state, conditions)
    async for attempt in space.attempts(point):
        with attempt:
            found = await space.read_root(point)
            if found.current is None or found.stored is None:
                raise BlobRefused(BlobFailure.NOT_FOUND)
            _check_target(found.current, state)
            await _copy_differences(space, point, found.stored[:LSN_BYTES], found.current, source)
            change = space.begin_change(found)
            after = _plan_snapshot(change, found.current, state, record)
            await space.commit(change)
            return after
    raise TooMuchContention


async def _prepare(space: BlobSpace, name: str, state: CopyState, conditions: Conditions) -> None:
    """Make the target of the first copy."""
    found = await space.read_root(point_of(name))
    current = found.current
    check_write(conditions, current, space.now(), None if current is None else current.tags)
    if current is not None:
        _check_target(current, state)
        return
    new = NewBlob(BlobKind.PAGE, is_incremental_copy=True)
    await put_blob(space, name, None, new, Conditions(if_none_match=("*",)), NO_RULES)


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
    after.etag, after.modified_at = change.next_etag(), change.now
    after.copy_state = replace(state, destination_snapshot=change.now)
    after.copy_state = ended_state(after, SUCCESS, change.now, source.size)
    taken = after.copy()
    taken.role, taken.snapshot, taken.lease, taken.expires_at = Role.SNAPSHOT, change.now, None, None
    taken.snapshots_kept = taken.versions_kept = taken.deleted_kept = 0
    after.snapshots_kept += 1
    with_next_epoch(after)
    change.add_version(taken, change.now)
    change.put_root(after)
    return after


# --- pages ------------------------------------------------------------------------------------------------------------

_Chunk = tuple[ChunkVersion | None, bytes]


async def _copy_differences(
    space: BlobSpace, point: bytes, root_version: bytes, target: BlobRecord, source: CopySource
) -> None:
    """Write the pages that differ into the epoch of the target, which no snapshot has seen."""
    content = target.content
    assert content.epoch is not None
    batch, batch_bytes = Batch(), 0
    async with aclosing(_chunks(space, point, content, source)) as chunks:
        async for chunk, (before, old), (wanted, new) in chunks:
            old_map = _NO_PAGES if before is None else before.pages
            new_map = _NO_PAGES if wanted is None else wanted.pages
            changed = _differences(old, old_map.with_data, new, new_map.with_data)
            if not changed:
                continue
            if before is not None and before.epoch == content.epoch:
                changed |= old_map.changed
                key = map_key(point, content.content_id, chunk, content.epoch)
                batch.expectations.append(Expectation(key, b""))
            after = ChunkVersion(chunk, content.epoch, PageMap(new_map.with_data, changed))
            batch_bytes += plan_chunk(batch, point, content.content_id, before, after, new)
            if len(batch.puts) * CHUNK_BYTES >= 2 * _BATCH_BYTES:
                await _store(space, point, root_version, batch, batch_bytes)
                batch, batch_bytes = Batch(), 0
    if batch.puts or batch.deletes:
        await _store(space, point, root_version, batch, batch_bytes)


async def _store(space: BlobSpace, point: bytes, root_version: bytes, batch: Batch, bytes_added: int) -> None:
    batch.expectations.append(Expectation(root_key(point), root_version))
    await space.store_part(point, batch, bytes_added)


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
        aclosing(reader.chunks(0, CHUNKS_END)) as theirs,
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
