"""Reading of contents: a range costs the range, and one chunk at a time is in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from asterism.errors import StoredDamage
from asterism.keyspaces.routing.scan import Entry
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.models.blobs.content import Content, Segment, unpack_segments
from asterism.models.blobs.layout import CHUNK_BYTES, DATA, data_key, manifest_key, offset_of, point_of
from asterism.models.blobs.pages_reading import PageReader
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.space import BlobSpace
from asterism.storage.contract import Span

# Appended data lie in entries of any size: few are read at a time while they are large, many while they are small.
_APPENDED_MIN: Final = 2
_APPENDED_MAX: Final = 512


async def read_content(
    space: BlobSpace, record: BlobRecord, start: int, end: int | None
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a record from `start` to before `end`; see `Container.read`."""
    end = record.size if end is None else min(end, record.size)
    if start >= end:
        return
    content = record.content
    if content.inline is not None:
        yield content.inline[start:end]
        return
    point = point_of(record.name)
    with space.services.open_reads.reading(space.keyspace.record.rid, point, now=space.now()):
        if record.is_page:
            async for piece in PageReader(space.services.router, space.keyspace, point, content).read(start, end):
                yield piece
            return
        async for offset, segment in segments_between(space, point, content, start, end):
            low, high = max(start - offset, 0), min(end - offset, segment.size)
            read = _read_appended if record.kind is BlobKind.APPEND else _read_chunks
            async for piece in read(space, point, segment.data_id, low, high):
                yield piece


async def segments_between(
    space: BlobSpace, point: bytes, content: Content, start: int, end: int
) -> AsyncIterator[tuple[int, Segment]]:
    """Yield the segments that have bytes from `start` to before `end`, with their offsets; manifests are read one by
    one."""
    if start < content.tail_at:
        for page in range(content.page_at(start), len(content.pages)):
            offset = content.pages[page]
            if offset >= end:
                return
            for segment in await read_manifest(space, point, content.content_id, page):
                # Behind it are segments that were appended to the blob after this record was made.
                if offset >= content.tail_at or offset >= end:
                    break
                if offset + segment.size > start and segment.size:
                    yield offset, segment
                offset += segment.size
    offset = content.tail_at
    for segment in content.tail:
        if offset >= end:
            return
        if offset + segment.size > start and segment.size:
            yield offset, segment
        offset += segment.size


async def all_segments(space: BlobSpace, point: bytes, content: Content) -> list[Segment]:
    """Return every segment of a content, without those that were appended after its record was made."""
    segments: list[Segment] = []
    for page, offset in enumerate(content.pages):
        for segment in await read_manifest(space, point, content.content_id, page):
            if offset >= content.tail_at and segment.size:
                break
            segments.append(segment)
            offset += segment.size
    return [*segments, *content.tail]


async def read_manifest(space: BlobSpace, point: bytes, content_id: bytes, page: int) -> list[Segment]:
    key = manifest_key(point, content_id, page)
    (stored,) = await space.read(point, (key,))
    if stored is None:
        raise StoredDamage(what="manifest of a blob", key=key.hex())
    return unpack_segments(stored)


async def _read_chunks(
    space: BlobSpace, point: bytes, data_id: bytes, start: int, end: int
) -> AsyncGenerator[bytes, None]:
    """Yield data that lie in chunks of CHUNK_BYTES."""
    at = start // CHUNK_BYTES * CHUNK_BYTES
    while at < end:
        key = data_key(point, data_id, at)
        (chunk,) = await space.read(point, (key,))
        if chunk is None or len(chunk) < min(CHUNK_BYTES, end - at):
            raise StoredDamage(what="data of a blob", key=key.hex())
        low, high = max(start - at, 0), min(end - at, len(chunk))
        yield chunk if low == 0 and high == len(chunk) else chunk[low:high]
        at += CHUNK_BYTES


async def _read_appended(
    space: BlobSpace, point: bytes, data_id: bytes, start: int, end: int
) -> AsyncGenerator[bytes, None]:
    """Yield data that lie in entries of any size, one behind the other."""
    at = start
    entry = await _entry_before(space, point, data_id, start)
    if entry is not None and offset_of(entry[0]) + len(entry[1]) > start:
        first = offset_of(entry[0])
        yield entry[1][start - first : end - first]
        at = first + len(entry[1])
    limit = _APPENDED_MIN
    while at < end:
        span = Span(data_key(point, data_id, at), data_key(point, data_id, end))
        page_bytes = 0
        async for entries in space.slices(point, span, SliceSize(limit, CHUNK_BYTES)):
            for key, value in entries:
                if offset_of(key) != at:
                    break
                piece = value[: end - at]
                at += len(piece)
                page_bytes += len(piece)
                yield piece
            break
        if not page_bytes:
            raise StoredDamage(what="data of a blob", key=data_key(point, data_id, at).hex())
        limit = min(2 * limit, _APPENDED_MAX) if page_bytes < CHUNK_BYTES // 2 else _APPENDED_MIN


async def _entry_before(space: BlobSpace, point: bytes, data_id: bytes, offset: int) -> Entry | None:
    """Return the entry that has an offset, or the last before it."""
    span = Span(DATA + point + data_id, data_key(point, data_id, offset) + b"\x00")
    router, keyspace = space.services.router, space.keyspace
    while True:
        record = keyspace.record
        page = await router.scan(keyspace, record, record.map.find(point), span, limit=1, bytes_max=None, reverse=True)
        if page is not None:
            return page.entries[0] if page.entries else None
