"""The fate of the blob that a change replaces or deletes: a previous version, a soft-deleted record, or garbage.

All of it is planned on records in memory; the calls commit it.
"""

from __future__ import annotations

from dataclasses import replace

from asterism.models.blobs.calls import NewBlob
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.layout import copy_key
from asterism.models.blobs.leases import after_write
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.record import BlobKind, BlobRecord, Role
from asterism.models.blobs.rules import AccountRules


def new_record(name: str, properties: NewBlob, change: BlobChange, current: BlobRecord | None) -> BlobRecord:
    """Return the record of a blob that is made now, in place of the `current` one."""
    now = change.now
    record = BlobRecord(
        name,
        properties.kind,
        created_at=now if current is None else current.created_at,
        modified_at=now,
        etag=change.next_etag(),
        size=properties.size,
        content_type=properties.content_type,
        content_encoding=properties.content_encoding,
        content_language=properties.content_language,
        content_disposition=properties.content_disposition,
        cache_control=properties.cache_control,
        content_md5=properties.content_md5,
        metadata=dict(properties.metadata),
        tags=dict(properties.tags),
        tier=properties.tier,
        is_tier_inferred=properties.tier is None,
        tier_changed_at=None if properties.tier is None else now,
        sequence_number=properties.sequence_number,
        cpk_sha256=properties.key.sha256,
        encryption_scope=properties.key.scope,
        immutable_until=properties.immutable_until,
        immutability_mode=properties.immutability_mode,
        has_legal_hold=properties.has_legal_hold,
        expires_at=properties.expires_at,
        copy_state=properties.copy_state,
        is_sealed=properties.is_sealed,
        is_incremental_copy=properties.is_incremental_copy,
    )
    if current is not None:
        record.lease = after_write(current.lease, now)
    return record


def check_not_held(record: BlobRecord, now: int) -> None:
    """Refuse a change or a deletion that an immutability policy or a legal hold forbids."""
    if record.has_legal_hold:
        raise BlobRefused(BlobFailure.LEGAL_HOLD)
    if record.immutable_until is not None and record.immutable_until > now:
        raise BlobRefused(BlobFailure.IMMUTABLE)


def check_no_pending_copy(record: BlobRecord) -> None:
    if record.is_copy_pending:
        raise BlobRefused(BlobFailure.PENDING_COPY)


def check_replaceable(record: BlobRecord, rules: AccountRules, now: int) -> None:
    """Refuse to make a blob anew. Where versions are kept, what is protected stays as a previous version."""
    check_no_pending_copy(record)
    if not rules.versioning:
        check_not_held(record, now)


def put_in_place(change: BlobChange, record: BlobRecord, current: BlobRecord | None, rules: AccountRules) -> None:
    """Plan a new blob in place of the current one, and of what its name has besides."""
    root = change.root
    if root is not None:
        record.snapshots_kept, record.versions_kept = root.snapshots_kept, root.versions_kept
        record.deleted_kept = root.deleted_kept
    if current is not None:
        if rules.versioning:
            keep_as_version(change, current, record)
        elif rules.blob_retention_days is not None:
            _keep_as_deleted(change, current, record, rules, Role.SNAPSHOT)
        else:
            change.release(current)
    elif root is not None and root.exists:
        # Upkeep has not removed it yet.
        release_expired(change, root)
    record.version = change.next_moment() if rules.versioning else None
    change.put_root(record)


def release_expired(change: BlobChange, root: BlobRecord) -> None:
    """Give up the content of a blob that has expired, and end the copy that it may still wait for."""
    change.release(root)
    key = copy_key(change.point)
    # A copy that makes the blob in its place has an entry of its own, under the same key.
    if root.is_copy_pending and all(put_key != key for put_key, _ in change.batch.puts):
        change.batch.deletes.append(key)


def keep_as_version(change: BlobChange, current: BlobRecord, record: BlobRecord) -> None:
    """Plan the current blob as a previous version of `record`."""
    previous = kept_copy(current, Role.VERSION)
    # A blob that was made before versions were kept becomes one now. Its etag is no moment of its own: a snapshot that
    # was made in the same change may have it.
    previous.version = change.next_moment() if current.version is None else current.version
    change.add_version(previous, previous.version)
    record.versions_kept += 1


def _keep_as_deleted(
    change: BlobChange, current: BlobRecord, record: BlobRecord, rules: AccountRules, role: Role
) -> None:
    previous, moment = kept_copy(current, role), change.next_moment()
    if role is Role.SNAPSHOT:
        previous.snapshot = moment
    mark_deleted(previous, rules, change.now)
    change.add_version(previous, moment)
    record.deleted_kept += 1


def mark_deleted(record: BlobRecord, rules: AccountRules, now: int) -> None:
    record.is_deleted, record.deleted_at = True, now
    record.retained_until = rules.blob_retained_until(now)


def kept_copy(current: BlobRecord, role: Role) -> BlobRecord:
    """Return a copy of the blob for VERSIONS, without what belongs to a blob alone."""
    kept = current.copy()
    kept.role = role
    kept.lease = kept.expires_at = None
    kept.snapshots_kept = kept.versions_kept = kept.deleted_kept = 0
    return kept


def delete_current(change: BlobChange, current: BlobRecord, root: BlobRecord, rules: AccountRules) -> bool:
    """Plan the deletion of the current blob; `root` is what is left of its name, and is changed. Return True if the
    blob can be restored."""
    is_kept = True
    if rules.versioning:
        keep_as_version(change, current, root)
    elif rules.blob_retention_days is not None:
        _keep_as_deleted(change, current, root, rules, Role.CURRENT)
    else:
        change.release(current)
        is_kept = False
    leave_empty(root, change)
    return is_kept


def leave_empty(root: BlobRecord, change: BlobChange) -> None:
    """Turn a root into one of a name without a current blob."""
    kept = root.snapshots_kept, root.versions_kept, root.deleted_kept
    empty = empty_root(root.name, change)
    for name in BlobRecord.__slots__:
        setattr(root, name, getattr(empty, name))
    root.snapshots_kept, root.versions_kept, root.deleted_kept = kept


def empty_root(name: str, change: BlobChange) -> BlobRecord:
    """Return the root of a name without a current blob."""
    now = change.now
    return BlobRecord(name, BlobKind.BLOCK, created_at=now, modified_at=now, etag=change.next_etag(), exists=False)


def with_next_epoch(record: BlobRecord) -> None:
    """Let a page blob go on in a new epoch: its present pages belong to a snapshot or version now."""
    if record.is_page:
        content = record.content
        assert content.epoch is not None, "a page blob has an epoch"
        record.content = replace(content, epoch=content.epoch + 1)
