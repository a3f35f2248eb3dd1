"""The chunks of a page blob that a change writes or clears, added to its batch."""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

from asterism.models.blobs.content import Content
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.page_maps import (
    CHUNK_BYTES,
    CHUNK_PAGES,
    PAGE_BYTES,
    ChunkPart,
    ChunkVersion,
    PageMap,
    clear_pages,
    pack_map,
    parts_of,
    seen_versions,
    write_pages,
)
from asterism.models.blobs.pages_layout import map_key, pages_key, plan_chunk
from asterism.models.blobs.pages_reading import versions_of_chunks
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.record import BlobRecord
from asterism.models.blobs.space import BlobSpace
from asterism.storage.contract import Expectation

# Chunks that one batch clears: data of 16 MiB, which the store frees in some tens of milliseconds.
CLEARED_MAX: Final = 512


def next_chunk(size: int) -> int:
    """Return the start of the first chunk behind a size."""
    return -(-size // CHUNK_BYTES) * CHUNK_BYTES


async def plan_write(space: BlobSpace, change: BlobChange, record: BlobRecord, start: int, data: bytes) -> None:
    """Add pages to a change of their blob."""
    end = start + len(data)
    if end > record.size:
        raise BlobRefused(BlobFailure.INVALID_RANGE)
    content = record.content
    assert content.epoch is not None
    parts = list(parts_of(start, end))
    newest = await _newest(space, change.point, content, parts[0].chunk, parts[-1].chunk + 1)
    for part in parts:
        before = newest.get(part.chunk)
        at = part.start_bytes - start
        written = data[at : at + (part.end - part.first) * PAGE_BYTES]
        stored, pages = await _data_before(space, change.point, content, before, part)
        is_new = before is None or before.epoch != content.epoch
        after_data, after = write_pages(stored, pages, part.first, written, is_new_epoch=is_new)
        _put_chunk(change, content, part.chunk, before, after, after_data)


async def plan_clear(space: BlobSpace, change: BlobChange, record: BlobRecord, start: int, end: int) -> int:
    """Add the clearing of pages to a change of their blob, of as many chunks as a batch may have; return the place
    to go on with, which is not before `end` once all are cleared."""
    if start >= end:
        return end
    content = record.content
    assert content.epoch is not None
    first, last = start // CHUNK_BYTES, (end - 1) // CHUNK_BYTES
    cleared = 0
    # A span may be the whole of a sparse blob: only what has data is visited.
    slices = versions_of_chunks(
        space.services.router, space.keyspace, change.point, content.content_id, first, last + 1
    )
    async with aclosing(slices):
        async for versions in slices:
            for before in seen_versions(versions, content.epoch):
                chunk = before.chunk
                if not before.pages.with_data:
                    continue
                if cleared == CLEARED_MAX:
                    return chunk * CHUNK_BYTES
                first_page = start // PAGE_BYTES - chunk * CHUNK_PAGES if chunk == first else 0
                end_page = end // PAGE_BYTES - chunk * CHUNK_PAGES if chunk == last else CHUNK_PAGES
                part = ChunkPart(chunk, first_page, end_page)
                stored, pages = await _data_before(space, change.point, content, before, part)
                is_new = before.epoch != content.epoch
                after_data, after = clear_pages(stored, pages, first_page, end_page, is_new_epoch=is_new)
                if after.with_data != pages.with_data:
                    _put_chunk(change, content, chunk, before, after, after_data)
                    cleared += 1
    return end


async def _newest(
    space: BlobSpace, point: bytes, content: Content, chunk: int, chunk_end: int
) -> dict[int, ChunkVersion]:
    """Return the newest versions of chunks, for those that have any."""
    assert content.epoch is not None
    newest: dict[int, ChunkVersion] = {}
    slices = versions_of_chunks(space.services.router, space.keyspace, point, content.content_id, chunk, chunk_end)
    async with aclosing(slices):
        async for versions in slices:
            newest |= {version.chunk: version for version in seen_versions(versions, content.epoch)}
    return newest


async def _data_before(
    space: BlobSpace, point: bytes, content: Content, before: ChunkVersion | None, part: ChunkPart
) -> tuple[bytes, PageMap]:
    """Return the data and the map of a chunk before a change of a part of it; no data if the part is all of it."""
    if before is None:
        return b"", PageMap()
    if not before.pages.with_data or (part.first == 0 and part.end == CHUNK_PAGES):
        return b"", before.pages
    (data,) = await space.read(point, [pages_key(point, content.content_id, before.chunk, before.epoch)])
    return data or b"", before.pages


def _put_chunk(
    change: BlobChange, content: Content, chunk: int, before: ChunkVersion | None, after: PageMap, data: bytes
) -> None:
    epoch = content.epoch
    assert epoch is not None
    if before is not None and before.epoch == epoch:
        key = map_key(change.point, content.content_id, chunk, epoch)
        change.batch.expectations.append(Expectation(key, pack_map(before.pages)))
    version = ChunkVersion(chunk, epoch, after)
    change.count_data(plan_chunk(change.batch, change.point, content.content_id, before, version, data))
