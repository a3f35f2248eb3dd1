"""Removal of pages that no record of a blob sees any more, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from itertools import groupby
from operator import attrgetter
from typing import Final

from asterism.models.blobs.layout import root_key
from asterism.models.blobs.page_maps import ChunkVersion, pack_map, plan_removal
from asterism.models.blobs.pages_layout import CHUNKS_END, data_bytes, map_key, pages_key
from asterism.models.blobs.pages_reading import versions_of_chunks
from asterism.models.blobs.space import BlobSpace
from asterism.storage.contract import Batch, Expectation

# Versions of chunks that a batch removes: data of 32 KiB each, which only deletes.
_VERSIONS_MAX: Final = 200


async def remove_unseen_pages(
    space: BlobSpace, point: bytes, content_id: bytes, epochs: Sequence[int], root_version: bytes | None
) -> int:
    """Remove what records of the sorted `epochs` do not see of a content; return how many versions of chunks.

    `root_version` is what the root begins with, or None without a root. ExpectationFailed if the blob has changed
    since: the epochs may be others then.
    """
    removed = 0
    slices = versions_of_chunks(space.services.router, space.keyspace, point, content_id, 0, CHUNKS_END)
    pending: list[tuple[ChunkVersion, bytes | None]] = []
    async with aclosing(slices):
        async for versions in slices:
            for _, of_chunk in groupby(versions, key=attrgetter("chunk")):
                pending += _changes(list(of_chunk), epochs)
                if len(pending) >= _VERSIONS_MAX:
                    removed += await _apply(space, point, content_id, pending, root_version)
                    pending = []
    return removed + await _apply(space, point, content_id, pending, root_version)


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
    space: BlobSpace,
    point: bytes,
    content_id: bytes,
    changes: Sequence[tuple[ChunkVersion, bytes | None]],
    root_version: bytes | None,
) -> int:
    if not changes:
        return 0
    batch = Batch(expectations=[Expectation(root_key(point), root_version)], may_use_reserve=True)
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
