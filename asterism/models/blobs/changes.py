"""Changes of a blob that leave its content as it is (`calls.RecordChange`): each is data, applied to a record to make
the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final

from asterism.models.blobs.calls import NO_KEY, Key
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.leases import LeaseAction, apply_lease_action
from asterism.models.blobs.record import BlobKind, BlobRecord, Role
from asterism.models.blobs.replacing import check_no_pending_copy
from asterism.models.blobs.tiers import set_tier, settle_tier
from asterism.values.ticks import TICKS_PER_SECOND

_TICKS_PER_MILLISECOND: Final = TICKS_PER_SECOND // 1000
LOCKED: Final = "Locked"
UNLOCKED: Final = "Unlocked"


class _OfBlob:
    """A change of what clients are told about the blob itself."""

    __slots__ = ()
    touches: ClassVar[bool] = True
    makes_version: ClassVar[bool] = False
    checks_lease: ClassVar[bool] = True
    is_forbidden_by_hold: ClassVar[bool] = True
    fits_snapshots: ClassVar[bool] = False


class _Beside:
    """A change of something beside the blob, which keeps its etag; snapshots and versions have it as well."""

    __slots__ = ()
    touches: ClassVar[bool] = False
    makes_version: ClassVar[bool] = False
    checks_lease: ClassVar[bool] = False
    is_forbidden_by_hold: ClassVar[bool] = False
    fits_snapshots: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class SetHttpHeaders(_OfBlob):
    """Replace all of the headers: one that is None is removed."""

    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    content_md5: bytes | None = None

    def apply(self, record: BlobRecord, _now: int, /) -> BlobRecord:
        changed = record.copy()
        changed.content_type = self.content_type
        changed.content_encoding = self.content_encoding
        changed.content_language = self.content_language
        changed.content_disposition = self.content_disposition
        changed.cache_control = self.cache_control
        changed.content_md5 = self.content_md5
        return changed


@dataclass(frozen=True, slots=True)
class SetMetadata(_OfBlob):
    """Replace all of the metadata. A sealed append blob keeps its data; its metadata may change."""

    makes_version: ClassVar[bool] = True
    metadata: Mapping[str, str]
    key: Key = NO_KEY

    def apply(self, record: BlobRecord, _now: int, /) -> BlobRecord:
        check_key(record, self.key)
        changed = record.copy()
        changed.metadata = dict(self.metadata)
        return changed


@dataclass(frozen=True, slots=True)
class SetTags(_Beside):
    """Replace all of the tags. The tags of a snapshot do not change."""

    checks_lease: ClassVar[bool] = True
    tags: Mapping[str, str]

    def apply(self, record: BlobRecord, _now: int, /) -> BlobRecord:
        if record.role is Role.SNAPSHOT:
            raise BlobRefused(BlobFailure.NOT_ON_SNAPSHOT)
        changed = record.copy()
        changed.tags = dict(self.tags)
        return changed


@dataclass(frozen=True, slots=True)
class SetTier(_Beside):
    """Move a blob to another tier. One that leaves the archive is there for some time still."""

    tier: str
    rehydrate_priority: str | None = None

    def apply(self, record: BlobRecord, now: int, /) -> BlobRecord:
        changed = settle_tier(record, now).copy()
        set_tier(changed, self.tier, self.rehydrate_priority, now)
        return changed


@dataclass(frozen=True, slots=True)
class Seal(_OfBlob):
    """Permit no more appends. `position` is the size that the blob must have."""

    position: int | None = None

    def apply(self, record: BlobRecord, _now: int, /) -> BlobRecord:
        if record.kind is not BlobKind.APPEND:
            raise BlobRefused(BlobFailure.WRONG_KIND)
        if self.position is not None and self.position != record.size:
            raise BlobRefused(BlobFailure.APPEND_POSITION_CONDITION_NOT_MET)
        changed = record.copy()
        changed.is_sealed = True
        return changed


class ExpiryMode(Enum):
    NEVER_EXPIRE = "NeverExpire"
    RELATIVE_TO_CREATION = "RelativeToCreation"
    RELATIVE_TO_NOW = "RelativeToNow"
    ABSOLUTE = "Absolute"


@dataclass(frozen=True, slots=True)
class SetExpiry(_Beside):
    """Set the moment from which the blob does not exist: `time` is in milliseconds if it is relative, else in ticks."""

    checks_lease: ClassVar[bool] = True
    is_forbidden_by_hold: ClassVar[bool] = True
    fits_snapshots: ClassVar[bool] = False
    mode: ExpiryMode
    time: int = 0

    def apply(self, record: BlobRecord, now: int, /) -> BlobRecord:
        check_no_pending_copy(record)
        changed = record.copy()
        match self.mode:
            case ExpiryMode.NEVER_EXPIRE:
                changed.expires_at = None
            case ExpiryMode.RELATIVE_TO_CREATION:
                changed.expires_at = record.created_at + self.time * _TICKS_PER_MILLISECOND
            case ExpiryMode.RELATIVE_TO_NOW:
                changed.expires_at = now + self.time * _TICKS_PER_MILLISECOND
            case ExpiryMode.ABSOLUTE:
                changed.expires_at = self.time
        return changed


@dataclass(frozen=True, slots=True)
class SetImmutability(_Beside):
    """Forbid changes and deletion until a moment. A locked policy can only be made longer."""

    until: int
    mode: str = UNLOCKED

    def apply(self, record: BlobRecord, now: int, /) -> BlobRecord:
        if is_policy_locked(record, now):
            assert record.immutable_until is not None
            if self.mode != LOCKED or self.until < record.immutable_until:
                raise BlobRefused(BlobFailure.POLICY_LOCKED)
        changed = record.copy()
        changed.immutable_until, changed.immutability_mode = self.until, self.mode
        return changed


@dataclass(frozen=True, slots=True)
class DeleteImmutability(_Beside):
    def apply(self, record: BlobRecord, now: int, /) -> BlobRecord:
        if is_policy_locked(record, now):
            raise BlobRefused(BlobFailure.POLICY_LOCKED)
        changed = record.copy()
        changed.immutable_until = changed.immutability_mode = None
        return changed


@dataclass(frozen=True, slots=True)
class SetLegalHold(_Beside):
    """Forbid changes and deletion until the hold is taken away."""

    has_legal_hold: bool

    def apply(self, record: BlobRecord, _now: int, /) -> BlobRecord:
        changed = record.copy()
        changed.has_legal_hold = self.has_legal_hold
        return changed


@dataclass(frozen=True, slots=True)
class ChangeOfLease(_Beside):
    """Acquire, renew, change, release or break the lease of the blob itself."""

    fits_snapshots: ClassVar[bool] = False
    action: LeaseAction

    def apply(self, record: BlobRecord, now: int, /) -> BlobRecord:
        changed = record.copy()
        changed.lease = apply_lease_action(record.lease, self.action, now)
        return changed


# --- what a record forbids ------------------------------------------------------------------------------------------


def is_policy_locked(record: BlobRecord, now: int) -> bool:
    until = record.immutable_until
    return until is not None and until > now and record.immutability_mode == LOCKED


def check_read_key(record: BlobRecord, key: Key) -> None:
    """Refuse a call with another key of the caller than the blob was written with."""
    if record.cpk_sha256 != key.sha256:
        if record.cpk_sha256 is None:
            raise BlobRefused(BlobFailure.KEY_NOT_USED)
        raise BlobRefused(BlobFailure.KEY_MISSING if key.sha256 is None else BlobFailure.KEY_MISMATCH)


def check_key(record: BlobRecord, key: Key) -> None:
    """Refuse a change with another key or encryption scope than those of the blob; a read needs no scope."""
    check_read_key(record, key)
    if record.encryption_scope != key.scope:
        raise BlobRefused(BlobFailure.SCOPE_MISMATCH)
