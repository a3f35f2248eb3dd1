"""Copies that are complete when they appear: the data first, then the change that refers to them."""

from __future__ import annotations

from contextlib import aclosing, suppress
from typing import Final

from asterism.errors import AsterismError, StorageFull
from asterism.models.blobs.calls import NewBlob
from asterism.models.blobs.conditions import Conditions, check_write
from asterism.models.blobs.content import Segment
from asterism.models.blobs.copied_data import (
    copied_segments,
    data_parts,
    plan_marks,
)
from asterism.models.blobs.copy_changes import ended_state, is_inline, make_target, take_content
from asterism.models.blobs.copy_job import CopySource
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.finding import find_which
from asterism.models.blobs.layout import (
    DATA,
    point_of,
    span_of,
    upload_key,
)
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.record import SUCCESS, BlobKind, BlobRecord, Role
from asterism.models.blobs.replacing import check_replaceable, with_next_epoch
from asterism.models.blobs.rules import AccountRules
from asterism.models.blobs.space import BlobSpace
from asterism.storage.contract import Batch, Expectation, ExpectationFailed

# Segments whose data a request removes itself when its copy is refused; upkeep finds the others.
_REMOVED_MAX: Final = 100


async def copy_now(
    space: BlobSpace,
    name: str,
    source: CopySource,
    properties: NewBlob,
    conditions: Conditions,
    rules: AccountRules,
    copy_id: bytes,
) -> BlobRecord:
    record, point = source.record, point_of(name)
    segments: list[Segment] = []
    if not is_inline(record):
        # A refusal that can be seen now spares the copy of the data.
        await _check_target(space, point, conditions, rules)
        segments = await copied_segments(source.container.space, record, copy_id)
    stored_bytes, is_storing = 0, False
    try:
        parts = data_parts(source.container.space, record, point, segments, start=0, marked_at=space.now())
        async with aclosing(parts):
            async for part in parts:
                is_storing = True
                await space.store_part(point, part.batch, part.bytes_added)
                stored_bytes, is_storing = part.progress, False

        async def plan(change: BlobChange, copied: BlobRecord) -> None:
            plan_marks(change.batch, point, segments)
            take_content(space, change, copied, record, segments)
            copied.copy_state = ended_state(copied, SUCCESS, change.now, copied.size)

        return await make_target(space, name, properties, conditions, rules, plan)
    except BaseException as error:
        # A part that was being stored may be there or not, unless there was no room: upkeep measures what it removes.
        if not is_storing or isinstance(error, StorageFull):
            with suppress(ExpectationFailed, AsterismError):
                await _remove_data(space, point, segments[:_REMOVED_MAX], stored_bytes)
        raise


def can_share_data(source: BlobRecord) -> bool:
    """Return whether a copy of a record to its own name may have the same data: an append blob or page blob goes on
    from its last state only."""
    return source.kind is BlobKind.BLOCK or source.role is Role.CURRENT


async def copy_in_place(
    space: BlobSpace, source: CopySource, properties: NewBlob, conditions: Conditions, rules: AccountRules
) -> BlobRecord:
    """Copy a blob, or one of its snapshots or versions, to its own name."""

    async def plan(change: BlobChange, copied: BlobRecord) -> None:
        found, kept = await find_which(space, change.point, source.which)
        record = found.current if kept is None else kept.record
        if record is None or record.is_deleted:
            raise BlobRefused(BlobFailure.NOT_FOUND)
        # The version that was current when it was found may be a previous one by now.
        if record.etag != source.record.etag or not can_share_data(record):
            raise BlobRefused(BlobFailure.SOURCE_CONDITION_NOT_MET)
        copied.size, copied.committed_blocks = record.size, record.committed_blocks
        copied.stored_content = record.stored_content
        with_next_epoch(copied)
        copied.copy_state = ended_state(copied, SUCCESS, change.now, copied.size)

    return await make_target(space, source.record.name, properties, conditions, rules, plan)


async def _check_target(space: BlobSpace, point: bytes, conditions: Conditions, rules: AccountRules) -> None:
    current = (await space.read_root(point)).current
    now = space.now()
    check_write(conditions, current, now, None if current is None else current.tags)
    if current is not None:
        check_replaceable(current, rules, now)


async def _remove_data(space: BlobSpace, point: bytes, segments: list[Segment], stored_bytes: int) -> None:
    """Remove the data of a copy that was refused."""
    for segment in segments:
        removed = min(segment.size, stored_bytes)
        if not removed:
            continue
        stored_bytes -= removed
        mark = upload_key(point, segment.data_id)
        batch = Batch(expectations=[Expectation(mark, b"")], deletes=[mark])
        batch.range_deletes.append(span_of(DATA, point, segment.data_id))
        await space.store_part(point, batch, -removed)
