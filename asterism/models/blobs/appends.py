"""Append blobs: a small block is written behind the last data, a large one has data of its own."""

from __future__ import annotations

from dataclasses import replace

from asterism.errors import TooMuchContention
from asterism.models.blobs.calls import Appended, Key
from asterism.models.blobs.changes import check_key
from asterism.models.blobs.conditions import Conditions, check_write
from asterism.models.blobs.content import Content, Segment, pack_segments, total_bytes
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.layout import (
    APPENDED_BLOCKS_MAX,
    CHUNK_BYTES,
    CONTENT_ID_BYTES,
    MANIFEST_SEGMENTS_MAX,
    TAIL_SEGMENTS_MAX,
    data_key,
    manifest_key,
)
from asterism.models.blobs.leases import after_write
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.reading import read_manifest
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.replacing import check_no_pending_copy, check_not_held
from asterism.models.blobs.space import BlobSpace
from asterism.models.blobs.uploads import Upload


async def append_block(
    space: BlobSpace,
    upload: Upload,
    conditions: Conditions,
    *,
    position: int | None,
    max_size: int | None,
    key: Key,
) -> Appended:
    point = upload.point
    async for attempt in space.attempts(point):
        with attempt:
            found = await space.read_root(point)
            change, current = space.begin_change(found), found.current
            if current is None:
                raise BlobRefused(BlobFailure.NOT_FOUND)
            _check_append(current, upload.size, conditions, position, max_size, key, change.now)
            after = current.copy()
            after.content = await _plan_append(space, change, current, upload)
            after.size += upload.size
            after.committed_blocks += 1
            after.etag, after.modified_at = change.next_etag(), change.now
            after.content_md5 = None
            after.lease = after_write(current.lease, change.now)
            change.put_root(after)
            await space.commit(change, upload)
            return Appended(after, current.size)
    raise TooMuchContention


def _check_append(
    current: BlobRecord,
    size: int,
    conditions: Conditions,
    position: int | None,
    max_size: int | None,
    key: Key,
    now: int,
) -> None:
    check_write(conditions, current, now, current.tags)
    if current.kind is not BlobKind.APPEND:
        raise BlobRefused(BlobFailure.WRONG_KIND)
    check_key(current, key)
    check_no_pending_copy(current)
    check_not_held(current, now)
    if current.is_sealed:
        raise BlobRefused(BlobFailure.SEALED)
    if position is not None and position != current.size:
        raise BlobRefused(BlobFailure.APPEND_POSITION_CONDITION_NOT_MET)
    if max_size is not None and current.size + size > max_size:
        raise BlobRefused(BlobFailure.MAX_SIZE_CONDITION_NOT_MET)
    if current.committed_blocks >= APPENDED_BLOCKS_MAX:
        raise BlobRefused(BlobFailure.TOO_MANY_BLOCKS)


async def _plan_append(space: BlobSpace, change: BlobChange, current: BlobRecord, upload: Upload) -> Content:
    content = current.content
    if content.inline is not None:
        content = Content(space.services.random_bytes(CONTENT_ID_BYTES))
    last = content.tail[-1] if content.tail else None
    if last is None or upload.has_parts:
        change.count_data(upload.plan(change.batch))
        content = replace(content, tail=(*content.tail, Segment(upload.data_id, upload.size)))
        return await _with_short_tail(space, change, content)
    data = upload.buffered()
    for start in range(0, len(data), CHUNK_BYTES):
        piece_key = data_key(change.point, last.data_id, last.size + start)
        change.batch.puts.append((piece_key, data[start : start + CHUNK_BYTES]))
    change.count_data(len(data))
    return replace(content, tail=(*content.tail[:-1], last._replace(size=last.size + len(data))))


async def _with_short_tail(space: BlobSpace, change: BlobChange, content: Content) -> Content:
    """Move a long tail to a manifest, all but its last segment, which may grow. Snapshots share the manifests, which
    only grow: what is added lies behind the end of their lists."""
    if len(content.tail) <= TAIL_SEGMENTS_MAX:
        return content
    moved, pages = content.tail[:-1], content.pages
    page, listed = len(pages), list(moved)
    if pages:
        earlier = await _listed_until(space, change.point, content)
        if len(earlier) + len(moved) <= MANIFEST_SEGMENTS_MAX:
            page, listed = len(pages) - 1, [*earlier, *moved]
    if page == len(pages):
        pages = (*pages, content.tail_at)
    change.batch.puts.append((manifest_key(change.point, content.content_id, page), pack_segments(listed)))
    return Content(
        content.content_id, pages=pages, tail_at=content.tail_at + total_bytes(moved), tail=content.tail[-1:]
    )


async def _listed_until(space: BlobSpace, point: bytes, content: Content) -> list[Segment]:
    page = len(content.pages) - 1
    listed: list[Segment] = []
    offset = content.pages[page]
    for segment in await read_manifest(space, point, content.content_id, page):
        if offset >= content.tail_at:
            break
        listed.append(segment)
        offset += segment.size
    return listed
