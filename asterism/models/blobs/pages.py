"""Changes of page blobs: pages that are written or cleared, the size, and the sequence number.

A change rewrites the maps and the data of the chunks that it touches, and the root, in one batch. The batch expects the
maps that it overwrites as they were read, because upkeep changes maps without touching the root.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asterism.errors import TooMuchContention
from asterism.models.blobs.calls import CURRENT, NO_KEY, Key, Snapshot, Which
from asterism.models.blobs.changes import check_key
from asterism.models.blobs.conditions import NO_CONDITIONS, Conditions, check_write
from asterism.models.blobs.content import Content
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.finding import find_record
from asterism.models.blobs.layout import point_of
from asterism.models.blobs.leases import after_write
from asterism.models.blobs.page_maps import (
    CHUNK_BYTES,
    CHUNK_PAGES,
    PAGE_BLOB_BYTES_MAX,
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
from asterism.models.blobs.pages_reading import PageReader, SpansPage, versions_of_chunks
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.replacing import check_no_pending_copy, check_not_held
from asterism.models.blobs.space import BlobSpace
from asterism.storage.contract import Expectation

SEQUENCE_NUMBER_MAX: Final = 2**63 - 1

_Plan = Callable[[BlobChange, BlobRecord], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SequenceCondition:
    """Conditions on the sequence number before a write."""

    at_most: int | None = None
    less_than: int | None = None
    equal: int | None = None

    def check(self, number: int) -> None:
        if (
            (self.at_most is not None and number > self.at_most)
            or (self.less_than is not None and number >= self.less_than)
            or (self.equal is not None and number != self.equal)
        ):
            raise BlobRefused(BlobFailure.SEQUENCE_NUMBER_CONDITION_NOT_MET)


NO_SEQUENCE_CONDITION: Final = SequenceCondition()


class SequenceAction(StrEnum):
    MAX = "max"
    UPDATE = "update"
    INCREMENT = "increment"


def _reader(space: BlobSpace, record: BlobRecord) -> PageReader:
    return PageReader(space.services.router, space.keyspace, point_of(record.name), record.content)


class PageBlobs:
    """The page blobs of a container."""

    __slots__ = ("_space",)

    def __init__(self, space: BlobSpace) -> None:
        self._space = space

    # --- reading ----------------------------------------------------------------------------------------------------

    async def ranges(
        self,
        name: str,
        which: Which = CURRENT,
        conditions: Conditions = NO_CONDITIONS,
        *,
        start: int = 0,
        end: int | None = None,
        limit: int = 10_000,
        previous: Snapshot | None = None,
        key: Key | None = None,
    ) -> tuple[BlobRecord, SpansPage]:
        """Return the record, and the spans of it from `start` to before `end` that have data; with `previous`, those
        that were written or cleared since that snapshot."""
        record = await find_record(self._space, name, which, conditions, key)
        _check_kind(record)
        end = record.size if end is None else min(end, record.size)
        reader = _reader(self._space, record)
        if previous is None:
            return record, await reader.ranges(start, end, limit)
        earlier = await self._earlier(record, previous)
        return record, await reader.difference(earlier, start, end, limit)

    async def _earlier(self, record: BlobRecord, previous: Snapshot) -> Content:
        try:
            earlier = (await find_record(self._space, record.name, previous, NO_CONDITIONS)).content
        except BlobRefused as refused:
            if refused.failure is not BlobFailure.NOT_FOUND:
                raise
            raise BlobRefused(BlobFailure.PREVIOUS_SNAPSHOT_NOT_FOUND) from None
        content = record.content
        if earlier.content_id != content.content_id or earlier.epoch is None or content.epoch is None:
            raise BlobRefused(BlobFailure.BLOB_OVERWRITTEN)
        if earlier.epoch > content.epoch:
            raise BlobRefused(BlobFailure.PREVIOUS_SNAPSHOT_IS_NEWER)
        return earlier

    # --- changes ----------------------------------------------------------------------------------------------------

    async def put_pages(
        self,
        name: str,
        start: int,
        data: bytes,
        conditions: Conditions = NO_CONDITIONS,
        *,
        sequence: SequenceCondition = NO_SEQUENCE_CONDITION,
        key: Key = NO_KEY,
    ) -> BlobRecord:
        """Write whole pages."""
        _check_span(start, start + len(data))

        async def plan(change: BlobChange, record: BlobRecord) -> None:
            check_key(record, key)
            sequence.check(record.sequence_number)
            await self.plan_write(change, record, start, data)

        return await self._change(name, conditions, plan)

    async def clear_pages(
        self,
        name: str,
        start: int,
        end: int,
        conditions: Conditions = NO_CONDITIONS,
        *,
        sequence: SequenceCondition = NO_SEQUENCE_CONDITION,
        key: Key = NO_KEY,
    ) -> BlobRecord:
        _check_span(start, end)

        async def plan(change: BlobChange, record: BlobRecord) -> None:
            check_key(record, key)
            sequence.check(record.sequence_number)
            if end > record.size:
                raise BlobRefused(BlobFailure.INVALID_RANGE)
            await self._plan_clear(change, record, start, end)

        return await self._change(name, conditions, plan)

    async def resize(
        self, name: str, size: int, conditions: Conditions = NO_CONDITIONS, *, key: Key = NO_KEY
    ) -> BlobRecord:
        """Change the size; pages behind a smaller one are gone."""
        if size % PAGE_BYTES or not 0 <= size <= PAGE_BLOB_BYTES_MAX:
            raise BlobRefused(BlobFailure.TOO_LARGE if size > PAGE_BLOB_BYTES_MAX else BlobFailure.INVALID_RANGE)

        async def plan(change: BlobChange, record: BlobRecord) -> None:
            check_key(record, key)
            if size < record.size:
                await self._plan_clear(change, record, size, record.size)
            record.size = size

        return await self._change(name, conditions, plan)

    async def set_sequence_number(
        self, name: str, action: SequenceAction, number: int = 0, conditions: Conditions = NO_CONDITIONS
    ) -> BlobRecord:
        async def plan(_: BlobChange, record: BlobRecord) -> None:
            match action:
                case SequenceAction.MAX:
                    record.sequence_number = max(record.sequence_number, number)
                case SequenceAction.UPDATE:
                    record.sequence_number = number
                case SequenceAction.INCREMENT:
                    if record.sequence_number == SEQUENCE_NUMBER_MAX:
                        raise BlobRefused(BlobFailure.SEQUENCE_NUMBER_INCREMENT_TOO_LARGE)
                    record.sequence_number += 1

        return await self._change(name, conditions, plan)

    async def _change(self, name: str, conditions: Conditions, plan: _Plan) -> BlobRecord:
        space, point = self._space, point_of(name)
        async for attempt in space.attempts(point):
            with attempt:
                found = await space.read_root(point)
                change = space.begin_change(found)
                record = self._writable(found.current, conditions, change.now).copy()
                await plan(change, record)
                record.etag, record.modified_at = change.next_etag(), change.now
                record.lease = after_write(record.lease, change.now)
                change.put_root(record)
                await space.commit(change)
                return record
        raise TooMuchContention

    def _writable(self, found: BlobRecord | None, conditions: Conditions, now: int) -> BlobRecord:
        """Return the page blob that a write may change, or raise the reason for which it may not."""
        if found is None:
            raise BlobRefused(BlobFailure.NOT_FOUND)
        _check_kind(found)
        check_write(conditions, found, now, found.tags)
        check_no_pending_copy(found)
        check_not_held(found, now)
        if found.is_incremental_copy:
            raise BlobRefused(BlobFailure.INCREMENTAL_COPY_NOT_ALLOWED)
        return found

    # --- chunks -----------------------------------------------------------------------------------------------------

    async def plan_write(self, change: BlobChange, record: BlobRecord, start: int, data: bytes) -> None:
        """Add pages to a change of their blob."""
        end = start + len(data)
        if end > record.size:
            raise BlobRefused(BlobFailure.INVALID_RANGE)
        content = record.content
        assert content.epoch is not None
        parts = list(parts_of(start, end))
        newest = await self._newest(change.point, content, parts[0].chunk, parts[-1].chunk + 1)
        for part in parts:
            before = newest.get(part.chunk)
            at = part.start_bytes - start
            written = data[at : at + (part.end - part.first) * PAGE_BYTES]
            stored, pages = await self._data_before(change.point, content, before, part)
            is_new = before is None or before.epoch != content.epoch
            after_data, after = write_pages(stored, pages, part.first, written, is_new_epoch=is_new)
            _put_chunk(change, content, part.chunk, before, after, after_data)

    async def _plan_clear(self, change: BlobChange, record: BlobRecord, start: int, end: int) -> None:
        if start >= end:
            return
        content = record.content
        first, last = start // CHUNK_BYTES, (end - 1) // CHUNK_BYTES
        # A span may be the whole of a sparse blob: only what has data is visited.
        for chunk, before in (await self._newest(change.point, content, first, last + 1)).items():
            if not before.pages.with_data:
                continue
            first_page = start // PAGE_BYTES - chunk * CHUNK_PAGES if chunk == first else 0
            end_page = end // PAGE_BYTES - chunk * CHUNK_PAGES if chunk == last else CHUNK_PAGES
            part = ChunkPart(chunk, first_page, end_page)
            stored, pages = await self._data_before(change.point, content, before, part)
            is_new = before.epoch != content.epoch
            after_data, after = clear_pages(stored, pages, first_page, end_page, is_new_epoch=is_new)
            if after.with_data != pages.with_data:
                _put_chunk(change, content, chunk, before, after, after_data)

    async def _newest(self, point: bytes, content: Content, chunk: int, chunk_end: int) -> dict[int, ChunkVersion]:
        """Return the newest versions of chunks, for those that have any."""
        space = self._space
        assert content.epoch is not None
        newest: dict[int, ChunkVersion] = {}
        slices = versions_of_chunks(space.services.router, space.keyspace, point, content.content_id, chunk, chunk_end)
        async with aclosing(slices):
            async for versions in slices:
                newest |= {version.chunk: version for version in seen_versions(versions, content.epoch)}
        return newest

    async def _data_before(
        self, point: bytes, content: Content, before: ChunkVersion | None, part: ChunkPart
    ) -> tuple[bytes, PageMap]:
        """Return the data and the map of a chunk before a change of a part of it; no data if the part is all of it."""
        if before is None:
            return b"", PageMap()
        if not before.pages.with_data or (part.first == 0 and part.end == CHUNK_PAGES):
            return b"", before.pages
        (data,) = await self._space.read(point, [pages_key(point, content.content_id, before.chunk, before.epoch)])
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


def _check_kind(record: BlobRecord) -> None:
    if record.kind is not BlobKind.PAGE:
        raise BlobRefused(BlobFailure.WRONG_KIND)


def _check_span(start: int, end: int) -> None:
    if start < 0 or start % PAGE_BYTES or end % PAGE_BYTES or start >= end:
        raise BlobRefused(BlobFailure.INVALID_RANGE)
