"""The changes that begin, note and end a copy, each of the target alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final
from uuid import UUID

from asterism.errors import StoredDamage, TooMuchContention
from asterism.models.blobs.blocks import discard_blocks, plan_content
from asterism.models.blobs.calls import NewBlob
from asterism.models.blobs.conditions import Conditions, check_write
from asterism.models.blobs.content import Content, Segment
from asterism.models.blobs.copied_data import (
    CopiedPart,
    data_id_of,
    page_content,
    plan_marks,
)
from asterism.models.blobs.copy_job import CopyJob, CopySource, SourcePlace
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.layout import (
    COMMITTED_BLOCKS_MAX,
    CONTENT_ID_BYTES,
    UPLOAD_SECONDS_MAX,
    copy_key,
    pack_moment,
    point_of,
    uncommitted_key,
    upload_key,
)
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.record import ABORTED, FAILED, SUCCESS, BlobKind, BlobRecord, CopyState
from asterism.models.blobs.replacing import check_replaceable, new_record, put_in_place
from asterism.models.blobs.rules import AccountRules
from asterism.models.blobs.space import BlobSpace, Found
from asterism.storage.contract import Batch, Expectation
from asterism.values.ticks import TICKS_PER_SECOND

# The marks of data that are read at once.
_MARKS_AT_ONCE: Final = 500


async def make_target(
    space: BlobSpace,
    name: str,
    properties: NewBlob,
    conditions: Conditions,
    rules: AccountRules,
    plan: Callable[[BlobChange, BlobRecord], Awaitable[None]],
) -> BlobRecord:
    """Make the target of a copy; `plan` gives it its content."""
    point = point_of(name)
    async for attempt in space.attempts(point):
        with attempt:
            found, (uncommitted,) = await space.read_with_root(point, uncommitted_key(point))
            change, current = space.begin_change(found), found.current
            check_write(conditions, current, change.now, None if current is None else current.tags)
            if current is not None:
                check_replaceable(current, rules, change.now)
            record = new_record(name, properties, change, current)
            await plan(change, record)
            await discard_blocks(space, change, uncommitted)
            put_in_place(change, record, current, rules)
            await space.commit(change)
            return record
    raise TooMuchContention


async def begin_copy(
    space: BlobSpace,
    name: str,
    source: CopySource,
    properties: NewBlob,
    conditions: Conditions,
    rules: AccountRules,
    copy_id: bytes,
) -> None:
    found = source.container
    place = SourcePlace.of(found.account, found.name, source.record.name, source.record.etag, source.which)

    async def plan(change: BlobChange, record: BlobRecord) -> None:
        record.size = 0
        if record.kind is BlobKind.PAGE:
            record.content = page_content(copy_id)
        job = CopyJob(copy_id, name, place, written_at=change.now)
        change.batch.puts.append((copy_key(change.point), job.to_bytes()))

    await make_target(space, name, properties, conditions, rules, plan)


async def store_copied(space: BlobSpace, point: bytes, job: CopyJob, part: CopiedPart) -> CopyJob:
    """Store a part of the data, with how far the copy has come."""
    after = replace(job, progress=part.progress, written_at=space.now())
    part.batch.expectations.append(Expectation(copy_key(point), job.to_bytes()))
    part.batch.puts.append((copy_key(point), after.to_bytes()))
    await space.store_part(point, part.batch, part.bytes_added)
    return after


async def note_progress(space: BlobSpace, point: bytes, job: CopyJob) -> None:
    """Show how far a copy has come; the next note follows if others change the target all the time."""
    async for attempt in space.attempts(point):
        with attempt:
            found, (stored,) = await space.read_with_root(point, copy_key(point))
            target = _target(found, job)
            if stored != job.to_bytes() or target is None or target.copy_state is None:
                return
            change, after = space.begin_change(found), target.copy()
            after.copy_state = replace(target.copy_state, bytes_copied=job.progress)
            change.put_root(after)
            await space.commit(change)
            return


async def finish_copy(
    space: BlobSpace, point: bytes, job: CopyJob, source: BlobRecord, segments: list[Segment]
) -> None:
    async for attempt in space.attempts(point):
        with attempt:
            found, (stored,) = await space.read_with_root(point, copy_key(point))
            if stored != job.to_bytes():
                return
            target = _target(found, job)
            if target is None:
                await remove_entry(space, point, stored)
                await forget_marks(space, point, job.copy_id)
                return
            change, after = space.begin_change(found), target.copy()
            plan_marks(change.batch, point, segments)
            take_content(space, change, after, source, segments)
            after.copy_state = ended_state(after, SUCCESS, change.now, source.size)
            after.etag, after.modified_at = change.next_etag(), change.now
            change.batch.expectations.append(Expectation(copy_key(point), stored))
            change.batch.deletes.append(copy_key(point))
            change.put_root(after)
            await space.commit(change)
            return
    raise TooMuchContention


async def fail_copy(space: BlobSpace, point: bytes, job: CopyJob, problem: BlobRefused | StoredDamage) -> None:
    description = f"500 InternalError {problem.text}"
    if isinstance(problem, BlobRefused):
        is_changed = problem.failure is BlobFailure.SOURCE_CONDITION_NOT_MET
        description = "412 ConditionNotMet The source has changed." if is_changed else "404 The source does not exist."
    async for attempt in space.attempts(point):
        with attempt:
            found, (stored,) = await space.read_with_root(point, copy_key(point))
            if stored is None or CopyJob.from_bytes(stored).copy_id != job.copy_id:
                return
            target = _target(found, job)
            if target is None:
                await remove_entry(space, point, stored)
                await forget_marks(space, point, job.copy_id)
                return
            change = space.begin_change(found)
            plan_end(space, change, target, stored, FAILED, description)
            await space.commit(change)
            await forget_marks(space, point, job.copy_id)
            return
    raise TooMuchContention


def _target(found: Found, job: CopyJob) -> BlobRecord | None:
    """Return the root if it is the target that a copy has made, and waits for it still: the target may have expired,
    and its name may have another blob."""
    root = found.root
    if root is None or not root.exists or not root.is_copy_pending or root.copy_state is None:
        return None
    return root if root.copy_state.copy_id == str(UUID(bytes=job.copy_id)) else None


async def remove_entry(space: BlobSpace, point: bytes, stored: bytes) -> None:
    """Remove the entry of a copy. ExpectationFailed if it is another by now."""
    key = copy_key(point)
    await space.store_part(point, Batch(expectations=[Expectation(key, stored)], deletes=[key]), 0)


def plan_end(
    space: BlobSpace,
    change: BlobChange,
    record: BlobRecord,
    stored: bytes | None,
    status: str,
    description: str | None,
) -> None:
    """Plan the end of a copy without success."""
    after = record.copy()
    if record.kind is BlobKind.PAGE:
        change.release(record)
        after.content = Content(space.services.random_bytes(CONTENT_ID_BYTES), epoch=0)
    copied = 0 if stored is None else CopyJob.from_bytes(stored).progress
    after.copy_state = ended_state(record, status, change.now, copied, description)
    after.etag, after.modified_at = change.next_etag(), change.now
    change.batch.expectations.append(Expectation(copy_key(change.point), stored))
    if stored is not None:
        change.batch.deletes.append(copy_key(change.point))
    change.put_root(after)


async def forget_marks(space: BlobSpace, point: bytes, copy_id: bytes) -> None:
    """Let upkeep remove the data of a copy that has ended without success."""
    long_ago = pack_moment(space.now() - 2 * UPLOAD_SECONDS_MAX * TICKS_PER_SECOND)
    for first in range(0, COMMITTED_BLOCKS_MAX, _MARKS_AT_ONCE):
        ids = [data_id_of(copy_id, number) for number in range(first, first + _MARKS_AT_ONCE)]
        marks = [upload_key(point, data_id) for data_id in ids]
        found = await space.read(point, marks)
        present = [mark for mark, stored in zip(marks, found, strict=True) if stored is not None]
        # Data are copied in their order: none follow where there are none.
        if not present:
            return
        await space.store_part(point, Batch(puts=[(mark, long_ago) for mark in present]), 0)


async def abort_pending(space: BlobSpace, point: bytes, copy_id: str, lease_id: str | None) -> bytes:
    """End the copy of a blob that is pending; return its id as bytes."""
    async for attempt in space.attempts(point):
        with attempt:
            found, (stored,) = await space.read_with_root(point, copy_key(point))
            change, current = space.begin_change(found), found.current
            if current is None:
                raise BlobRefused(BlobFailure.NOT_FOUND)
            check_write(Conditions(lease_id=lease_id), current, change.now)
            state = current.copy_state
            if state is None or not current.is_copy_pending:
                raise BlobRefused(BlobFailure.NO_PENDING_COPY)
            if state.copy_id.lower() != copy_id.lower():
                raise BlobRefused(BlobFailure.COPY_ID_MISMATCH)
            plan_end(space, change, current, stored, ABORTED, None)
            await space.commit(change)
            return UUID(state.copy_id).bytes
    raise TooMuchContention


# --- contents ---------------------------------------------------------------------------------------------------------


def is_inline(record: BlobRecord) -> bool:
    return record.kind is not BlobKind.PAGE and record.content.inline is not None


def take_content(
    space: BlobSpace, change: BlobChange, copied: BlobRecord, source: BlobRecord, segments: list[Segment]
) -> None:
    """Give the target the size of its source, and the content that was copied."""
    copied.size = source.size
    copied.committed_blocks = source.committed_blocks
    if source.kind is BlobKind.PAGE:
        # It has the pages already, under the content that it was made with.
        return
    copied.stored_content = plan_content(space, change, segments) if segments else source.stored_content


def ended_state(
    record: BlobRecord, status: str, now: int, bytes_copied: int, description: str | None = None
) -> CopyState | None:
    state = record.copy_state
    if state is None:
        return None
    return replace(state, status=status, bytes_copied=bytes_copied, completed_at=now, description=description)
