"""Reads of page blobs: their bytes, and the ranges that have data or have changed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.scan import scan_line
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.limits import KIB
from asterism.models.blobs.content import Content
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.page_maps import (
    CHUNK_BYTES,
    ChunkVersion,
    PageSpan,
    SpanJoiner,
    changed_since,
    data_spans,
    difference_spans,
    seen_versions,
)
from asterism.models.blobs.pages_layout import chunk_version, maps_span, pages_key
from asterism.partitioning.key_range import KeyRange

# A piece of an answer, read at once.
PIECE_BYTES: Final = 8 * CHUNK_BYTES
# Maps are decoded in less than a microsecond each.
MAPS: Final = SliceSize(1000, 128 * KIB)
_ZEROS: Final = bytes(PIECE_BYTES)


class SpansPage(NamedTuple):
    """Spans in their order, and the place in the blob to resume at; None at the end."""

    spans: list[PageSpan]
    next: int | None


async def versions_of_chunks(
    router: PartitionRouter, keyspace: Keyspace, point: bytes, content_id: bytes, chunk: int, chunk_end: int
) -> AsyncGenerator[list[ChunkVersion], None]:
    """Yield all versions of the chunks from `chunk` and before `chunk_end`, in slices; all of a chunk are in one."""
    span = maps_span(point, content_id, chunk, chunk_end)
    assert span.end is not None
    held: list[ChunkVersion] = []
    async with aclosing(
        scan_line(router, keyspace, span.start[:1], KeyRange(span.start[1:], span.end[1:]), MAPS)
    ) as slices:
        async for found in slices:
            held += [chunk_version(key, value) for key, value in found.entries]
            # Other versions of the last chunk may be in the next slice.
            whole = _without_last_chunk(held)
            if whole:
                yield whole
                held = held[len(whole) :]
    if held:
        yield held


def _without_last_chunk(versions: Sequence[ChunkVersion]) -> list[ChunkVersion]:
    end = len(versions)
    while end and versions[end - 1].chunk == versions[-1].chunk:
        end -= 1
    return list(versions[:end])


class PageReader:
    """Reads the pages of one record: of a blob, a snapshot or a version."""

    def __init__(self, router: PartitionRouter, keyspace: Keyspace, point: bytes, content: Content) -> None:
        assert content.epoch is not None, "not the content of a page blob"
        self._router = router
        self._keyspace = keyspace
        self._point = point
        self._content_id = content.content_id
        self._epoch = content.epoch

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from `start` to before `end`, zeros where nothing was written, in pieces of at most
        PIECE_BYTES."""
        at = start
        chunks = start // CHUNK_BYTES, -(-end // CHUNK_BYTES)
        async with aclosing(self._versions(*chunks)) as slices:
            async for versions in slices:
                for group in _by_piece(seen_versions(versions, self._epoch)):
                    piece_start = max(start, group[0].chunk * CHUNK_BYTES)
                    for zeros in _zeros(at, piece_start):
                        yield zeros
                    at = min(end, (group[-1].chunk + 1) * CHUNK_BYTES)
                    yield await self._piece(group, piece_start, at)
        for zeros in _zeros(at, end):
            yield zeros

    async def _piece(self, versions: Sequence[ChunkVersion], start: int, end: int) -> bytes:
        keys = [pages_key(self._point, self._content_id, version.chunk, version.epoch) for version in versions]
        _, _, found = await self._router.read(self._keyspace, self._point, keys)
        first = versions[0].chunk
        if len(versions) == 1:
            piece = (found[0] or b"").ljust(CHUNK_BYTES, b"\x00")
            return piece[start - first * CHUNK_BYTES : end - first * CHUNK_BYTES]
        joined = bytearray((versions[-1].chunk + 1 - first) * CHUNK_BYTES)
        for version, data in zip(versions, found, strict=True):
            # Pages may have been cleared since their map was read.
            if data is not None:
                at = (version.chunk - first) * CHUNK_BYTES
                joined[at : at + len(data)] = data
        return bytes(memoryview(joined)[start - first * CHUNK_BYTES : end - first * CHUNK_BYTES])

    async def chunks(
        self, chunk: int, chunk_end: int, *, with_cleared: bool = False
    ) -> AsyncGenerator[tuple[ChunkVersion, bytes], None]:
        """Yield what the record sees of each chunk that has data, with the data; on request also of those that were
        cleared. For copies: SOURCE_CONDITION_NOT_MET if the pages change meanwhile."""
        async with aclosing(self._versions(chunk, chunk_end)) as slices:
            async for versions in slices:
                for group in _by_piece(seen_versions(versions, self._epoch)):
                    keys = [pages_key(self._point, self._content_id, found.chunk, found.epoch) for found in group]
                    _, _, stored = await self._router.read(self._keyspace, self._point, keys)
                    for version, data in zip(group, stored, strict=True):
                        if version.pages.with_data and data is None:
                            # They were cleared since their map was read, or went with their record.
                            raise BlobRefused(BlobFailure.SOURCE_CONDITION_NOT_MET)
                        if version.pages.with_data or with_cleared:
                            yield version, data or b""

    async def ranges(self, start: int, end: int, limit: int) -> SpansPage:
        """Return the spans between two places that have data."""
        return await self._spans(start, end, limit, None)

    async def difference(self, earlier: Content, start: int, end: int, limit: int) -> SpansPage:
        """Return the spans between two places that were written or cleared since an earlier snapshot of the blob."""
        assert earlier.epoch is not None
        return await self._spans(start, end, limit, earlier.epoch)

    async def _spans(self, start: int, end: int, limit: int, earlier: int | None) -> SpansPage:
        joiner = SpanJoiner(start, end)
        spans: list[PageSpan] = []
        if start < end:
            async with aclosing(self._versions(start // CHUNK_BYTES, -(-end // CHUNK_BYTES))) as slices:
                async for versions in slices:
                    spans += joiner.add(self._spans_in(versions, earlier))
                    if len(spans) > limit:
                        break
        spans += joiner.finish()
        if len(spans) > limit:
            return SpansPage(spans[:limit], spans[limit].start)
        return SpansPage(spans, None)

    def _spans_in(self, versions: Iterable[ChunkVersion], earlier: int | None) -> Iterator[PageSpan]:
        if earlier is None:
            return data_spans(seen_versions(versions, self._epoch))
        return difference_spans(changed_since(versions, earlier, self._epoch))

    def _versions(self, chunk: int, chunk_end: int) -> AsyncGenerator[list[ChunkVersion], None]:
        return versions_of_chunks(self._router, self._keyspace, self._point, self._content_id, chunk, chunk_end)


def _by_piece(versions: Iterable[ChunkVersion]) -> Iterator[list[ChunkVersion]]:
    """Group chunks that are close enough to be read as one piece."""
    group: list[ChunkVersion] = []
    for version in versions:
        if group and (version.chunk + 1 - group[0].chunk) * CHUNK_BYTES > PIECE_BYTES:
            yield group
            group = []
        group.append(version)
    if group:
        yield group


def _zeros(start: int, end: int) -> Iterator[bytes]:
    while start < end:
        count = min(PIECE_BYTES, end - start)
        yield _ZEROS if count == PIECE_BYTES else _ZEROS[:count]
        start += count
