"""Changes of page blobs: pages that are written or cleared, the size, and the sequence number.

A change rewrites the maps and the data of the chunks that it touches, and the root, in one batch. The batch expects the
maps that it overwrites as they were read, because upkeep changes maps without touching the root.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asterism.errors import AsterismError, TooMuchContention
from asterism.models.blobs.calls import CURRENT, NO_KEY, Key, Snapshot, Which
from asterism.models.blobs.changes import check_key
from asterism.models.blobs.conditions import NO_CONDITIONS, Conditions, check_write
from asterism.models.blobs.content import Content
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.finding import find_record
from asterism.models.blobs.layout import point_of
from asterism.models.blobs.leases import after_write
from asterism.models.blobs.page_maps import PAGE_BLOB_BYTES_MAX, PAGE_BYTES
from asterism.models.blobs.pages_planning import next_chunk, plan_clear, plan_write
from asterism.models.blobs.pages_reading import PageReader, SpansPage
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.replacing import check_no_pending_copy, check_not_held
from asterism.models.blobs.space import BlobSpace
from asterism.storage.contract import StorageRefusal

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
            await plan_write(self._space, change, record, start, data)

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
        """Clear whole pages. More than one batch clears are several changes, which other writers may come between."""
        _check_span(start, end)
        reached = start

        async def plan(change: BlobChange, record: BlobRecord) -> None:
            nonlocal reached
            check_key(record, key)
            sequence.check(record.sequence_number)
            if end > record.size:
                raise BlobRefused(BlobFailure.INVALID_RANGE)
            reached = await plan_clear(self._space, change, record, start, end)

        record = await self._change(name, conditions, plan)
        content_id = record.content.content_id

        async def plan_rest(change: BlobChange, record: BlobRecord) -> None:
            nonlocal reached
            if record.content.content_id != content_id:
                raise BlobRefused(BlobFailure.BLOB_OVERWRITTEN)
            reached = await plan_clear(self._space, change, record, at, end)

        while reached < end:
            at = reached
            # The other conditions were met before the call itself changed the etag.
            record = await self._change(name, Conditions(lease_id=conditions.lease_id), plan_rest)
        return record

    async def resize(
        self, name: str, size: int, conditions: Conditions = NO_CONDITIONS, *, key: Key = NO_KEY
    ) -> BlobRecord:
        """Change the size; pages behind a smaller one are gone.

        They may be many: those of other chunks than the last are only hidden at first, and removed afterwards. A blob
        that grows clears what was left there by a call that was cut off.
        """
        if size % PAGE_BYTES or not 0 <= size <= PAGE_BLOB_BYTES_MAX:
            raise BlobRefused(BlobFailure.TOO_LARGE if size > PAGE_BLOB_BYTES_MAX else BlobFailure.INVALID_RANGE)

        is_smaller = is_done = False

        async def plan(change: BlobChange, record: BlobRecord) -> None:
            nonlocal is_smaller, is_done
            check_key(record, key)
            is_smaller = size < record.size
            is_done = await plan_clear(self._space, change, record, min(size, record.size), next_chunk(size)) >= size
            if is_done:
                record.size = size

        record = await self._change(name, conditions, plan)
        while not is_done:
            own = Conditions(if_match=(record.etag,), lease_id=conditions.lease_id)
            record = await self._change(name, own, plan)
        if is_smaller:
            # The size has changed already, whatever happens to what it hides.
            with suppress(AsterismError, StorageRefusal):
                await self._remove_hidden(name, record.content.content_id)
        return record

    async def _remove_hidden(self, name: str, content_id: bytes) -> None:
        """Remove the pages behind the end of a blob, in bounded batches, while it has this content."""
        space, point = self._space, point_of(name)
        reached = 0
        while reached < PAGE_BLOB_BYTES_MAX:
            async for attempt in space.attempts(point):
                with attempt:
                    found = await space.read_root(point)
                    record = found.current
                    if record is None or not record.is_page or record.content.content_id != content_id:
                        return
                    # It expects the root, but does not rewrite it: nothing that can be seen changes.
                    change = space.begin_change(found)
                    at = max(reached, next_chunk(record.size))
                    place = await plan_clear(self._space, change, record, at, PAGE_BLOB_BYTES_MAX)
                    if change.batch.puts or change.batch.deletes:
                        await space.commit(change)
                    reached = place
                    break
            else:
                raise TooMuchContention

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


def _check_kind(record: BlobRecord) -> None:
    if record.kind is not BlobKind.PAGE:
        raise BlobRefused(BlobFailure.WRONG_KIND)


def _check_span(start: int, end: int) -> None:
    if start < 0 or start % PAGE_BYTES or end % PAGE_BYTES or start >= end:
        raise BlobRefused(BlobFailure.INVALID_RANGE)
