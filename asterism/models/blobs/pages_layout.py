"""The keys of the pages of a page blob, and the batch entries of a chunk that changes."""

from __future__ import annotations

import struct
from typing import Final

from asterism.models.blobs.layout import PAGE_MAPS, PAGES
from asterism.models.blobs.page_maps import PAGE_BYTES, ChunkVersion, PageMap, pack_map, unpack_map
from asterism.storage.contract import Batch, Span

_PLACE = struct.Struct(">LL")
_CHUNK = struct.Struct(">L")
# Behind every chunk of a page blob: the largest has 2^28 of them.
CHUNKS_END: Final = 2**32 - 1


def map_key(point: bytes, content_id: bytes, chunk: int, epoch: int) -> bytes:
    return PAGE_MAPS + point + content_id + _PLACE.pack(chunk, epoch)


def pages_key(point: bytes, content_id: bytes, chunk: int, epoch: int) -> bytes:
    return PAGES + point + content_id + _PLACE.pack(chunk, epoch)


def chunk_version(key: bytes, value: bytes) -> ChunkVersion:
    """Return the version of a chunk that an entry of PAGE_MAPS describes."""
    chunk, epoch = _PLACE.unpack_from(key, len(key) - _PLACE.size)
    return ChunkVersion(chunk, epoch, unpack_map(value))


def maps_span(point: bytes, content_id: bytes, chunk: int, chunk_end: int) -> Span:
    """Return the span of all versions of the maps of some chunks."""
    prefix = PAGE_MAPS + point + content_id
    return Span(prefix + _CHUNK.pack(chunk), prefix + _CHUNK.pack(chunk_end))


def data_bytes(pages: PageMap) -> int:
    """Return the length of the data of a chunk: they end with the last page that has any."""
    return pages.with_data.bit_length() * PAGE_BYTES


def plan_chunk(
    batch: Batch,
    point: bytes,
    content_id: bytes,
    before: ChunkVersion | None,
    after: ChunkVersion,
    data: bytes,
) -> int:
    """Add a changed chunk to a batch; return the bytes that it adds."""
    chunk, epoch, pages = after
    is_in_place = before is not None and before.epoch == epoch
    if pages.with_data:
        batch.puts.append((pages_key(point, content_id, chunk, epoch), data))
    elif is_in_place:
        batch.deletes.append(pages_key(point, content_id, chunk, epoch))
    key = map_key(point, content_id, chunk, epoch)
    if pages.with_data or epoch:
        batch.puts.append((key, pack_map(pages)))
    elif is_in_place:
        # Before the first snapshot nothing asks for what was cleared.
        batch.deletes.append(key)
    return data_bytes(pages) - (data_bytes(before.pages) if before is not None and is_in_place else 0)
