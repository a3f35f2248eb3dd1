"""Data of a blob, copied under ids that follow from the id of the copy: a copy that is repeated writes the same again.

Nothing refers to the data until the copy ends. Marks as those of uploads (`uploads.py`) keep them from being forgotten.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from asterism.limits import MIB
from asterism.models.blobs.content import Content, Segment
from asterism.models.blobs.layout import (
    CHUNK_BYTES,
    CONTENT_ID_BYTES,
    DATA_ID_BYTES,
    data_key,
    pack_moment,
    point_of,
    upload_key,
)
from asterism.models.blobs.page_maps import CHUNK_BYTES as PAGES_BYTES
from asterism.models.blobs.page_maps import ChunkVersion, PageMap
from asterism.models.blobs.pages_layout import plan_chunk
from asterism.models.blobs.pages_reading import PageReader
from asterism.models.blobs.reading import all_segments, read_content
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.space import BlobSpace
from asterism.storage.contract import Batch, Expectation

# Data that are read before they are written, as one batch.
BATCH_BYTES: Final = MIB
_PRESENT: Final = b""


class CopiedPart(NamedTuple):
    """A batch of copied data, without what it expects, and the place in the source behind them."""

    batch: Batch
    bytes_added: int
    progress: int


def data_id_of(copy_id: bytes, number: int) -> bytes:
    return hashlib.blake2b(copy_id + number.to_bytes(4, "big"), digest_size=DATA_ID_BYTES).digest()


def content_id_of(copy_id: bytes) -> bytes:
    return hashlib.blake2b(copy_id, digest_size=CONTENT_ID_BYTES, person=b"content").digest()


async def copied_segments(source: BlobSpace, record: BlobRecord, copy_id: bytes) -> list[Segment]:
    """Return the segments of a copy of a block or append blob: the blocks of a block blob stay what they are."""
    content = record.content
    assert content.inline is None, "an inline content is copied with its record"
    if record.kind is BlobKind.APPEND:
        return [Segment(data_id_of(copy_id, 0), record.size)]
    segments = await all_segments(source, point_of(record.name), content)
    return [segment._replace(data_id=data_id_of(copy_id, number)) for number, segment in enumerate(segments)]


async def data_parts(
    source: BlobSpace, record: BlobRecord, point: bytes, segments: Sequence[Segment], *, start: int, marked_at: int
) -> AsyncGenerator[CopiedPart, None]:
    """Yield the data of a blob for a copy at `point`, from the place `start` on, where an earlier part ended."""
    progress = start
    batch, batch_bytes = Batch(), 0
    async with aclosing(_chunks(source, record, segments, start)) as chunks:
        async for data_id, offset, chunk in chunks:
            if offset == 0:
                batch.puts.append((upload_key(point, data_id), pack_moment(marked_at)))
            batch.puts.append((data_key(point, data_id, offset), chunk))
            batch_bytes += len(chunk)
            progress += len(chunk)
            if batch_bytes >= BATCH_BYTES:
                yield CopiedPart(batch, batch_bytes, progress)
                batch, batch_bytes = Batch(), 0
    if batch_bytes:
        yield CopiedPart(batch, batch_bytes, progress)


async def _chunks(
    source: BlobSpace, record: BlobRecord, segments: Sequence[Segment], start: int
) -> AsyncGenerator[tuple[bytes, int, bytes], None]:
    """Yield the chunks of the segments from the place `start` on, which is the start of one: the id of the data, the
    offset in them, and the bytes."""
    rest = iter([segment for segment in segments if segment.size])
    if start >= record.size or not segments:
        return
    segment, offset = next(rest), start
    while offset >= segment.size:
        offset -= segment.size
        segment = next(rest)
    buffer = bytearray()
    async with aclosing(read_content(source, record, start, record.size)) as pieces:
        async for piece in pieces:
            at = 0
            while at < len(piece):
                wanted = min(CHUNK_BYTES, segment.size - offset)
                taken = piece[at : at + wanted - len(buffer)]
                at += len(taken)
                buffer += taken
                if len(buffer) < wanted:
                    continue
                yield segment.data_id, offset, bytes(buffer)
                buffer.clear()
                offset += wanted
                if offset == segment.size:
                    offset = 0
                    segment = next(rest, segment)


def plan_marks(batch: Batch, point: bytes, segments: Sequence[Segment]) -> None:
    """Add to the batch that refers to copied data that they are no longer marked, but must have been."""
    for segment in segments:
        if segment.size:
            mark = upload_key(point, segment.data_id)
            batch.expectations.append(Expectation(mark, _PRESENT))
            batch.deletes.append(mark)


async def page_parts(
    source: BlobSpace, record: BlobRecord, point: bytes, content_id: bytes, *, start: int
) -> AsyncGenerator[CopiedPart, None]:
    """Yield the pages of a blob for a copy at `point`, from the place `start` on, where an earlier part ended."""
    reader = PageReader(source.services.router, source.keyspace, point_of(record.name), record.content)
    batch, batch_bytes, progress = Batch(), 0, start
    async with aclosing(reader.chunks(start // PAGES_BYTES, -(-record.size // PAGES_BYTES))) as chunks:
        async for version, data in chunks:
            pages = PageMap(version.pages.with_data, version.pages.with_data)
            copied = ChunkVersion(version.chunk, 0, pages)
            batch_bytes += plan_chunk(batch, point, content_id, None, copied, data)
            progress = (version.chunk + 1) * PAGES_BYTES
            if batch_bytes >= BATCH_BYTES:
                yield CopiedPart(batch, batch_bytes, progress)
                batch, batch_bytes = Batch(), 0
    if batch_bytes:
        yield CopiedPart(batch, batch_bytes, progress)


def page_content(copy_id: bytes) -> Content:
    return Content(content_id_of(copy_id), epoch=0)
