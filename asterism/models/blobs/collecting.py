"""Removal of data that no record of a blob refers to any more.

Released contents are listed in GARBAGE, often several times over: a snapshot and the blob release the same data. An
entry for a content with many data is first turned into entries for those of them that nothing refers to, and each of
these is removed together with its place in the entry, so that a removal that is cut off is neither forgotten nor
counted twice.

The batch that turns entries into others expects the root as it was when the references were read: whatever makes a new
one rewrites it. Data without a reference then never get one again, so their removal, which may take long, expects only
its own entries, and leaves the queue of the writers between its batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from asterism.errors import TooMuchContention
from asterism.limits import MIB
from asterism.models.blobs.blocks import uncommitted_blocks
from asterism.models.blobs.content import Content, Segment
from asterism.models.blobs.finding import kept_records
from asterism.models.blobs.garbage import ReleasedContent, ReleasedData, pack_released_data, unpack_released
from asterism.models.blobs.layout import (
    CHUNK_BYTES,
    DATA,
    GARBAGE,
    GARBAGE_SECONDS,
    MANIFESTS,
    data_key,
    garbage_key,
    garbage_place,
    offset_of,
    root_key,
    span_of,
    upload_key,
)
from asterism.models.blobs.pages_removal import remove_unseen_pages
from asterism.models.blobs.reading import all_segments
from asterism.models.blobs.record import BlobKind, unpack_blob
from asterism.models.blobs.space import BlobSpace
from asterism.storage.contract import LSN_BYTES, Batch, Expectation, ExpectationFailed, Span
from asterism.values.ticks import TICKS_PER_SECOND

# Ids of data in one entry.
_LISTED_MAX: Final = 1_000
# Data that one batch removes; the store frees them in some tens of milliseconds.
_REMOVED_BYTES_MAX: Final = 16 * MIB
# Entries that were made from others do not meet those that changes have made at the same moment.
_FIRST_DERIVED: Final = 1 << 31


async def collect_garbage(space: BlobSpace, point: bytes, released_until: int) -> None:
    """Remove what a blob released until a moment; what is being read in this process stays for the next time."""
    oldest = space.services.open_reads.oldest(space.keyspace.record.rid, point)
    if oldest is not None:
        # A read may have found its record some time before it began.
        released_until = min(released_until, oldest - GARBAGE_SECONDS * TICKS_PER_SECOND)
    async for attempt in space.attempts(point):
        with attempt:
            collection = _Collection(space, point, released_until)
            await collection.find_unreferenced()
            break
    else:
        raise TooMuchContention
    # Otherwise another process has begun to collect, too.
    with suppress(ExpectationFailed):
        await collection.remove()


class _Collection:
    """The removal of what one blob released: found in an attempt, as the blob may change meanwhile; then removed."""

    def __init__(self, space: BlobSpace, point: bytes, released_until: int) -> None:
        self._space = space
        self._point = point
        self._released_until = released_until
        self._root_version: bytes | None = None
        # Of records, and of entries that are not due.
        self._contents: list[tuple[BlobKind, Content]] = []
        self._due: list[tuple[bytes, bytes, ReleasedContent]] = []
        self._due_data: list[tuple[bytes, bytes, ReleasedData]] = []
        # By the id of their content: the entries that release pages, and their epochs.
        self._due_pages: dict[bytes, list[tuple[bytes, bytes, int]]] = {}

    async def find_unreferenced(self) -> None:
        await self._find_records()
        await self._find_garbage()
        if self._due:
            await self._list_unreferenced()
        if self._due_pages and await self._read_root_version() != self._root_version:
            # The records were not all of one moment.
            raise ExpectationFailed(root_key(self._point))

    async def remove(self) -> None:
        for content_id, entries in self._due_pages.items():
            await self._remove_pages(content_id, entries)
        for key, stored, data in self._due_data:
            await self._remove_data(key, stored, data)

    async def _read_root_version(self) -> bytes | None:
        (stored,) = await self._space.read(self._point, (root_key(self._point),))
        return None if stored is None else stored[:LSN_BYTES]

    async def _find_records(self) -> None:
        space, point = self._space, self._point
        (stored,) = await space.read(point, (root_key(point),))
        if stored is not None:
            self._root_version = stored[:LSN_BYTES]
            root = unpack_blob(stored)
            if root.exists:
                self._contents.append((root.kind, root.content))
        self._contents += [(kept.record.kind, kept.record.content) for kept in await kept_records(space, point)]

    async def _find_garbage(self) -> None:
        async for entries in self._space.slices(self._point, span_of(GARBAGE, self._point)):
            for key, stored in entries:
                is_due = garbage_place(key)[1] <= self._released_until
                match unpack_released(stored):
                    case ReleasedContent() as released:
                        content = released.content
                        if is_due and content.epoch is not None:
                            self._due_pages.setdefault(content.content_id, []).append((key, stored, content.epoch))
                        elif is_due:
                            self._due.append((key, stored, released))
                        else:
                            # Readers of it may not have finished, and it is released later.
                            self._contents.append((released.kind, content))
                    case ReleasedData() as data:
                        if is_due:
                            self._due_data.append((key, stored, data))

    # --- contents ---------------------------------------------------------------------------------------------------

    async def _list_unreferenced(self) -> None:
        """Turn the entries of contents into entries of data, in one batch, or remove few data with them."""
        space, point = self._space, self._point
        referenced = await self._referenced()
        live = {content.content_id for _, content in self._contents}
        sizes: dict[bytes, int] = {}
        batch = Batch(expectations=[Expectation(root_key(point), self._root_version)], may_use_reserve=True)
        for key, stored, released in self._due:
            content = released.content
            listed = await all_segments(space, point, content)
            for segment in self._unreferenced(listed, referenced):
                if segment.data_id not in sizes:
                    sizes[segment.data_id] = await self._stored_bytes(released.kind, segment)
            if content.content_id not in live and content.pages:
                batch.range_deletes.append(span_of(MANIFESTS, point, content.content_id))
            batch.expectations.append(Expectation(key, stored))
            batch.deletes.append(key)
        batch.range_deletes = list(dict.fromkeys(batch.range_deletes))
        removed = 0
        if len(sizes) <= _LISTED_MAX and sum(sizes.values()) <= _REMOVED_BYTES_MAX:
            # So little that it need not be listed first.
            removed = plan_removal(batch, point, sizes)
        for key, data in self._derived(sizes):
            stored = pack_released_data(data.sizes.items())
            batch.puts.append((key, stored))
            self._due_data.append((key, stored, data))
        await space.store_part(point, batch, -removed)

    def _derived(self, sizes: dict[bytes, int]) -> Iterable[tuple[bytes, ReleasedData]]:
        _, moment = garbage_place(self._due[0][0])
        rest = list(sizes.items())
        for number, start in enumerate(range(0, len(rest), _LISTED_MAX)):
            key = garbage_key(self._point, moment, _FIRST_DERIVED + number)
            yield key, ReleasedData(dict(rest[start : start + _LISTED_MAX]))

    async def _referenced(self) -> set[bytes]:
        referenced: set[bytes] = set()
        seen: set[Content] = set()
        for kind, content in self._contents:
            if kind is not BlobKind.PAGE and content.inline is None and content not in seen:
                seen.add(content)
                listed = await all_segments(self._space, self._point, content)
                referenced.update([segment.data_id for segment in listed])
        referenced.update([block.data_id for block in (await uncommitted_blocks(self._space, self._point)).values()])
        return referenced

    @staticmethod
    def _unreferenced(listed: Iterable[Segment], referenced: set[bytes]) -> list[Segment]:
        return [segment for segment in listed if segment.data_id not in referenced]

    async def _stored_bytes(self, kind: BlobKind, segment: Segment) -> int:
        # Data that were appended after a snapshot was taken lie behind what the snapshot knows of.
        if kind is not BlobKind.APPEND:
            return segment.size
        return await stored_bytes(self._space, self._point, segment.data_id)

    # --- pages and data ---------------------------------------------------------------------------------------------

    async def _remove_pages(self, content_id: bytes, entries: list[tuple[bytes, bytes, int]]) -> None:
        same = [content for _, content in self._contents if content.content_id == content_id]
        epochs = sorted({content.epoch for content in same if content.epoch is not None})
        newest = max([*epochs, *(epoch for _, _, epoch in entries)])
        await remove_unseen_pages(self._space, self._point, content_id, epochs, newest=newest)
        batch = Batch([Expectation(key, stored) for key, stored, _ in entries], may_use_reserve=True)
        batch.deletes += [key for key, _, _ in entries]
        await self._space.store_part(self._point, batch, 0)

    async def _remove_data(self, key: bytes, stored: bytes, data: ReleasedData) -> None:
        """Remove the data of an entry, in batches that each leave the entry with the rest."""
        left = dict(data.sizes)
        while left:
            batch = Batch(expectations=[Expectation(key, stored)], may_use_reserve=True)
            removed = plan_removal(batch, self._point, left)
            if left:
                stored = pack_released_data(left.items())
                batch.puts.append((key, stored))
            else:
                batch.deletes.append(key)
            await self._space.store_part(self._point, batch, -removed)


def plan_removal(batch: Batch, point: bytes, left: dict[bytes, int]) -> int:
    """Add the removal of data to a batch, as much as it may remove, and take it from `left` (sizes by id); return the
    bytes. Large data lose their end first."""
    removed = 0
    while left and removed < _REMOVED_BYTES_MAX:
        data_id, size = left.popitem()
        kept = max(0, size - (_REMOVED_BYTES_MAX - removed)) // CHUNK_BYTES * CHUNK_BYTES
        end = span_of(DATA, point, data_id).end
        batch.range_deletes.append(Span(data_key(point, data_id, kept), end))
        removed += size - kept
        if kept:
            left[data_id] = kept
    return removed


async def stored_bytes(space: BlobSpace, point: bytes, data_id: bytes) -> int:
    """Return the bytes that lie under an id, by its last entry."""
    router, keyspace, span = space.services.router, space.keyspace, span_of(DATA, point, data_id)
    while True:
        record = keyspace.record
        page = await router.scan(keyspace, record, record.map.find(point), span, limit=1, bytes_max=1, reverse=True)
        if page is not None:
            return offset_of(page.entries[0][0]) + len(page.entries[0][1]) if page.entries else 0


async def remove_upload(space: BlobSpace, point: bytes, data_id: bytes, mark: bytes) -> None:
    """Remove the data of an upload that was cut off, unless it has gone on since it had this mark."""
    key = upload_key(point, data_id)
    left = {data_id: await stored_bytes(space, point, data_id)}
    while left:
        batch = Batch(expectations=[Expectation(key, mark)], may_use_reserve=True)
        removed = plan_removal(batch, point, left)
        if not left:
            batch.deletes.append(key)
        await space.store_part(point, batch, -removed)
