"""Removal of pages that no record of a blob sees any more, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from itertools import groupby
from operator import attrgetter
from typing import Final

from asterism.errors import TooMuchContention
from asterism.models.blobs.page_maps import ChunkVersion, pack_map, plan_removal
from asterism.models.blobs.pages_layout import CHUNKS_END, data_bytes, map_key, pages_key
from asterism.models.blobs.pages_reading import versions_of_chunks
from asterism.models.blobs.space import BlobSpace
from asterism.storage.contract import Batch, Expectation

# Versions of chunks that a batch removes: data of 32 KiB each, which only deletes.
_VERSIONS_MAX: Final = 200


async def remove_unseen_pages(
    space: BlobSpace, point: bytes, content_id: bytes, epochs: Sequence[int], *, newest: int
) -> int:
    """Remove what records of the sorted `epochs` do not see of a content; return how many versions of chunks.

    These are the epochs of all records at one moment, and `newest` was the newest that the content had then. Versions
    that none of them saw are not seen by later records either: the blob goes on from its last epoch. So the batches
    need not expect the root, and writers wait for one of them at most.
    """
    removed, chunk = 0, 0
    while chunk < CHUNKS_END:
        async for attempt in space.attempts(point):
            with attempt:
                count, chunk = await _remove_some(space, point, content_id, epochs, newest, chunk)
                break
        else:
            raise TooMuchContention
        removed += count
    return removed


async def _remove_some(
    space: BlobSpace, point: bytes, content_id: bytes, epochs: Sequence[int], newest: int, chunk: int
) -> tuple[int, int]:
    """Remove one batch of versions from a chunk on; return how many, and the chunk to go on with."""
    changes: list[tuple[ChunkVersion, bytes | None]] = []
    slices = versions_of_chunks(space.services.router, space.keyspace, point, content_id, chunk, CHUNKS_END)
    async with aclosing(slices):
        versions = await anext(slices, None)
    if versions is None:
        return 0, CHUNKS_END
    for number, of_chunk in groupby(versions, key=attrgetter("chunk")):
        # Later ones belong to records that are not among the epochs.
        changes += _changes([version for version in of_chunk if version.epoch <= newest], epochs)
        chunk = number + 1
        if len(changes) >= _VERSIONS_MAX:
            break
    return await _apply(space, point, content_id, changes), chunk


def _changes(versions: Sequence[ChunkVersion], epochs: Sequence[int]) -> list[tuple[ChunkVersion, bytes | None]]:
    """Return the versions of a chunk that change, each with its new map; None if it goes."""
    removal = plan_removal(versions, epochs)
    changes: list[tuple[ChunkVersion, bytes | None]] = []
    for version in versions:
        if version.epoch in removal.maps:
            changes.append((version, pack_map(removal.maps[version.epoch])))
        elif version.epoch in removal.deleted:
            changes.append((version, None))
    return changes


async def _apply(
    space: BlobSpace, point: bytes, content_id: bytes, changes: Sequence[tuple[ChunkVersion, bytes | None]]
) -> int:
    if not changes:
        return 0
    batch = Batch(may_use_reserve=True)
    removed = removed_bytes = 0
    for (chunk, epoch, pages), after in changes:
        key = map_key(point, content_id, chunk, epoch)
        batch.expectations.append(Expectation(key, pack_map(pages)))
        if after is not None:
            batch.puts.append((key, after))
            continue
        batch.deletes += [key, pages_key(point, content_id, chunk, epoch)]
        removed += 1
        removed_bytes += data_bytes(pages)
    await space.store_part(point, batch, -removed_bytes)
    return removed
