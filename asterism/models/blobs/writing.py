"""Making, changing and deleting of blobs: each call is one change, planned on the root that it found."""

from __future__ import annotations

from asterism.errors import TooMuchContention
from asterism.models.blobs.blocks import discard_blocks, has_uncommitted
from asterism.models.blobs.calls import (
    Current,
    Key,
    NewBlob,
    RecordChange,
    SnapshotDeletion,
    Snapshotted,
    Which,
)
from asterism.models.blobs.changes import check_key
from asterism.models.blobs.conditions import Conditions, check_write
from asterism.models.blobs.content import Content, Segment, pack_content
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.finding import KeptRecord, find_which, kept_records
from asterism.models.blobs.layout import CONTENT_ID_BYTES, INLINE_BYTES_MAX, point_of, uncommitted_key
from asterism.models.blobs.leases import after_write
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.record import BlobKind, BlobRecord, Role
from asterism.models.blobs.replacing import (
    check_no_pending_copy,
    check_not_held,
    check_replaceable,
    delete_current,
    keep_as_version,
    kept_copy,
    mark_deleted,
    new_record,
    put_in_place,
    release_expired,
    with_next_epoch,
)
from asterism.models.blobs.rules import AccountRules
from asterism.models.blobs.space import BlobSpace, Found
from asterism.models.blobs.uploads import Upload

# --- making ---------------------------------------------------------------------------------------------------------


async def put_blob(
    space: BlobSpace,
    name: str,
    upload: Upload | None,
    properties: NewBlob,
    conditions: Conditions,
    rules: AccountRules,
) -> BlobRecord:
    point = point_of(name) if upload is None else upload.point
    uncommitted_at = uncommitted_key(point)
    async for attempt in space.attempts(point):
        with attempt:
            found, (uncommitted,) = await space.read_with_root(point, uncommitted_at)
            change, current = space.begin_change(found), found.current
            check_write(conditions, current, change.now, None if current is None else current.tags)
            if current is not None:
                check_replaceable(current, rules, change.now)
            record = new_record(name, properties, change, current)
            _plan_data(space, change, record, upload)
            await discard_blocks(space, change, uncommitted)
            put_in_place(change, record, current, rules)
            await space.commit(change, upload)
            return record
    raise TooMuchContention


def _plan_data(space: BlobSpace, change: BlobChange, record: BlobRecord, upload: Upload | None) -> None:
    if record.kind is BlobKind.PAGE:
        record.content = Content(space.services.random_bytes(CONTENT_ID_BYTES), epoch=0)
    elif upload is not None and upload.size:
        record.size = upload.size
        if upload.size <= INLINE_BYTES_MAX and record.kind is BlobKind.BLOCK:
            record.content = Content(inline=upload.buffered())
            return
        content_id = space.services.random_bytes(CONTENT_ID_BYTES)
        record.stored_content = pack_content(Content(content_id, tail=(Segment(upload.data_id, upload.size),)))
        change.count_data(upload.plan(change.batch))


# --- changing -------------------------------------------------------------------------------------------------------


async def change_record(
    space: BlobSpace,
    name: str,
    wanted: RecordChange,
    which: Which,
    conditions: Conditions,
    rules: AccountRules,
    key: Key | None,
) -> BlobRecord:
    point = point_of(name)
    async for attempt in space.attempts(point):
        with attempt:
            found, kept = await find_which(space, point, which)
            change = space.begin_change(found)
            record = found.current if kept is None else kept.record
            if record is None or record.is_deleted:
                raise BlobRefused(BlobFailure.NOT_FOUND)
            if kept is not None and not wanted.fits_snapshots:
                raise BlobRefused(BlobFailure.NOT_ON_SNAPSHOT)
            after = _changed(record, wanted, conditions, key, change)
            if kept is not None:
                change.replace_version(kept.stored, record, after, kept.moment)
            else:
                if rules.versioning and wanted.makes_version:
                    keep_as_version(change, record, after)
                    after.version = change.next_moment()
                    with_next_epoch(after)
                change.put_root(after)
            await space.commit(change)
            return after
    raise TooMuchContention


def _changed(
    record: BlobRecord,
    wanted: RecordChange,
    conditions: Conditions,
    key: Key | None,
    change: BlobChange,
) -> BlobRecord:
    now = change.now
    check_write(conditions, record, now, record.tags, needs_lease=wanted.checks_lease)
    if key is not None:
        check_key(record, key)
    if wanted.touches:
        check_no_pending_copy(record)
    if wanted.is_forbidden_by_hold:
        check_not_held(record, now)
    after = wanted.apply(record, now)
    if after is record:
        after = record.copy()
    if wanted.touches:
        after.etag, after.modified_at = change.next_etag(), now
        after.lease = after_write(after.lease, now)
    return after


# --- snapshots ------------------------------------------------------------------------------------------------------


async def take_snapshot(
    space: BlobSpace,
    name: str,
    metadata: dict[str, str] | None,
    conditions: Conditions,
    rules: AccountRules,
    key: Key | None,
) -> Snapshotted:
    point = point_of(name)
    async for attempt in space.attempts(point):
        with attempt:
            found = await space.read_root(point)
            change, current = space.begin_change(found), found.current
            if current is None:
                raise BlobRefused(BlobFailure.NOT_FOUND)
            # A snapshot changes nothing, so a lease does not keep it from being taken; an id that is shown must fit.
            needs_lease = conditions.lease_id is not None
            check_write(conditions, current, change.now, current.tags, needs_lease=needs_lease)
            if key is not None:
                check_key(current, key)
            check_no_pending_copy(current)
            taken = kept_copy(current, Role.SNAPSHOT)
            taken.snapshot, taken.version = change.next_moment(), None
            if metadata is not None:
                taken.metadata, taken.etag, taken.modified_at = dict(metadata), change.next_etag(), change.now
            after = current.copy()
            after.snapshots_kept += 1
            with_next_epoch(after)
            if rules.versioning:
                # The service makes a version with each snapshot, too.
                keep_as_version(change, current, after)
                after.version = change.next_moment()
            change.add_version(taken, taken.snapshot)
            change.put_root(after)
            await space.commit(change)
            return Snapshotted(after, taken.snapshot)
    raise TooMuchContention


# --- deleting -------------------------------------------------------------------------------------------------------


async def delete_blob(
    space: BlobSpace,
    name: str,
    which: Which,
    conditions: Conditions,
    rules: AccountRules,
    *,
    snapshots: SnapshotDeletion | None,
    permanent: bool,
) -> bool:
    point = point_of(name)
    uncommitted_at = uncommitted_key(point)
    async for attempt in space.attempts(point):
        with attempt:
            if not isinstance(which, Current):
                found, kept = await find_which(space, point, which)
                if kept is None:
                    raise BlobRefused(BlobFailure.VERSION_IS_CURRENT)
                return await _delete_kept(space, found, kept, conditions, rules, permanent=permanent)
            found, (uncommitted,) = await space.read_with_root(point, uncommitted_at)
            change, current = space.begin_change(found), found.current
            if current is None:
                raise BlobRefused(BlobFailure.NOT_FOUND)
            check_write(conditions, current, change.now, current.tags)
            check_no_pending_copy(current)
            change.batch.may_use_reserve = True
            root = current.copy()
            is_kept = False
            if current.snapshots_kept:
                if snapshots is None:
                    raise BlobRefused(BlobFailure.SNAPSHOTS_PRESENT)
                is_kept = await _delete_snapshots(space, change, root, rules)
            if snapshots is not SnapshotDeletion.ONLY:
                if not rules.versioning:
                    check_not_held(current, change.now)
                await discard_blocks(space, change, uncommitted)
                is_kept = delete_current(change, current, root, rules)
            change.put_root(root)
            await space.commit(change)
            return is_kept
    raise TooMuchContention


async def _delete_snapshots(space: BlobSpace, change: BlobChange, root: BlobRecord, rules: AccountRules) -> bool:
    """Plan the deletion of all snapshots; return True if they can be restored."""
    for kept in await kept_records(space, change.point):
        if kept.record.role is Role.SNAPSHOT and not kept.record.is_deleted:
            check_not_held(kept.record, change.now)
            _remove_kept(change, root, kept, rules)
    return rules.blob_retention_days is not None


async def _delete_kept(
    space: BlobSpace, found: Found, kept: KeptRecord, conditions: Conditions, rules: AccountRules, *, permanent: bool
) -> bool:
    """Delete a snapshot or a previous version."""
    change, record = space.begin_change(found), kept.record
    if record.is_deleted and not permanent:
        raise BlobRefused(BlobFailure.NOT_FOUND)
    # The lease is that of the blob; a snapshot needs its id no more than a version does.
    check_write(conditions, record, change.now, record.tags, needs_lease=False)
    check_not_held(record, change.now)
    change.batch.may_use_reserve = True
    assert found.root is not None, "a root lasts as long as the records of its name"
    root = found.root.copy()
    if record.is_deleted:
        root.deleted_kept -= 1
        change.remove_version(kept.stored, record, kept.moment)
        is_kept = False
    else:
        is_kept = _remove_kept(change, root, kept, rules)
    change.put_root(root, has_blocks=await has_uncommitted(space, change.point))
    await space.commit(change)
    return is_kept


def _remove_kept(change: BlobChange, root: BlobRecord, kept: KeptRecord, rules: AccountRules) -> bool:
    """Plan the deletion of a snapshot or a version; return True if it can be restored."""
    _count_kept(root, kept.record.role, -1)
    if rules.blob_retention_days is None:
        change.remove_version(kept.stored, kept.record, kept.moment)
        return False
    after = kept.record.copy()
    mark_deleted(after, rules, change.now)
    change.replace_version(kept.stored, kept.record, after, kept.moment)
    root.deleted_kept += 1
    return True


def _count_kept(root: BlobRecord, role: Role, delta: int) -> None:
    if role is Role.VERSION:
        root.versions_kept += delta
    else:
        root.snapshots_kept += delta


# --- restoring ------------------------------------------------------------------------------------------------------


async def undelete_blob(space: BlobSpace, name: str) -> None:
    point = point_of(name)
    async for attempt in space.attempts(point):
        with attempt:
            found = await space.read_root(point)
            root = found.root
            if root is None or (found.current is None and not (root.deleted_kept or root.versions_kept)):
                raise BlobRefused(BlobFailure.NOT_FOUND)
            if not root.deleted_kept:
                return
            change = space.begin_change(found)
            await _restore(space, change, found)
            await space.commit(change)
            return
    raise TooMuchContention


async def _restore(space: BlobSpace, change: BlobChange, found: Found) -> None:
    assert found.root is not None
    deleted = [kept for kept in await kept_records(space, found.point) if kept.record.is_deleted]
    root = found.root.copy()
    # Of the blobs that had the name, the latest is the blob again, if there is no other; earlier ones are snapshots.
    blobs = [kept for kept in deleted if kept.record.role is Role.CURRENT]
    revived = blobs[-1] if blobs and found.current is None else None
    if revived is not None:
        if found.root.exists:
            release_expired(change, found.root)
        blob = _restored(revived.record)
        blob.etag = change.next_etag()
        blob.snapshots_kept, blob.versions_kept = root.snapshots_kept, root.versions_kept
        change.remove_version(revived.stored, revived.record, revived.moment, keeps_content=True)
        root = blob
    for kept in deleted:
        if kept is not revived:
            after = _restored(kept.record)
            if after.role is Role.CURRENT:
                after.role, after.snapshot = Role.SNAPSHOT, kept.moment
            change.replace_version(kept.stored, kept.record, after, kept.moment)
            _count_kept(root, after.role, 1)
    root.deleted_kept = 0
    change.put_root(root)


def _restored(record: BlobRecord) -> BlobRecord:
    restored = record.copy()
    restored.is_deleted = False
    restored.deleted_at = restored.retained_until = None
    return restored
