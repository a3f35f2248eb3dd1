"""The reasons for which a call on a blob or a container is refused. Doors have a row for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from asterism.errors import AsterismError, Category


class BlobFailure(StrEnum):
    # Names.
    NOT_FOUND = "not found"
    EXISTS = "exists"
    CONTAINER_NOT_FOUND = "container not found"
    CONTAINER_EXISTS = "container exists"

    # Conditions.
    CONDITION_NOT_MET = "condition not met"
    NOT_MODIFIED = "not modified"
    SEQUENCE_NUMBER_CONDITION_NOT_MET = "sequence number condition not met"
    SEQUENCE_NUMBER_INCREMENT_TOO_LARGE = "sequence number increment too large"
    APPEND_POSITION_CONDITION_NOT_MET = "append position condition not met"
    MAX_SIZE_CONDITION_NOT_MET = "max size condition not met"

    # Leases, of reads and writes.
    LEASE_ID_MISSING = "lease id missing"
    LEASE_ID_MISMATCH = "lease id mismatch"
    LEASE_NOT_PRESENT = "lease not present"
    LEASE_LOST = "lease lost"
    # Leases, of actions on the lease itself.
    LEASE_ALREADY_PRESENT = "lease already present"
    LEASE_ID_MISMATCH_WITH_LEASE = "lease id mismatch with lease operation"
    LEASE_NOT_PRESENT_WITH_LEASE = "lease not present with lease operation"
    LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED = "lease is breaking and cannot be acquired"
    LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED = "lease is breaking and cannot be changed"
    LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED = "lease is broken and cannot be renewed"

    # The kind and the state of a blob.
    WRONG_KIND = "wrong kind"
    SNAPSHOTS_PRESENT = "snapshots present"
    # The call needs the blob itself, and names a snapshot or a version.
    NOT_ON_SNAPSHOT = "not on snapshot"
    VERSION_IS_CURRENT = "version is current"
    SEALED = "sealed"
    ARCHIVED = "archived"
    BEING_REHYDRATED = "being rehydrated"
    TIER_CANNOT_CHANGE = "tier cannot change"
    TIER_NOT_SUPPORTED = "tier not supported"
    IMMUTABLE = "immutable"
    # Blobs of the container can have policies and holds.
    IMMUTABLE_CONTAINER_NOT_EMPTY = "immutable container not empty"
    LEGAL_HOLD = "legal hold"
    POLICY_LOCKED = "policy locked"
    KEY_MISMATCH = "key mismatch"
    KEY_MISSING = "key missing"
    KEY_NOT_USED = "key not used"
    SCOPE_MISMATCH = "scope mismatch"

    # Contents.
    INVALID_BLOCK_LIST = "invalid block list"
    INVALID_BLOB_OR_BLOCK = "invalid blob or block"
    TOO_MANY_BLOCKS = "too many blocks"
    TOO_MANY_UNCOMMITTED_BLOCKS = "too many uncommitted blocks"
    TOO_LARGE = "too large"
    INVALID_RANGE = "invalid range"
    # The data of an upload that stood still for an hour were removed.
    UPLOAD_EXPIRED = "upload expired"
    # Snapshots that are compared belong to different histories of the blob.
    PREVIOUS_SNAPSHOT_NOT_FOUND = "previous snapshot not found"
    PREVIOUS_SNAPSHOT_IS_NEWER = "previous snapshot is newer"
    BLOB_OVERWRITTEN = "blob overwritten"

    # Copies.
    PENDING_COPY = "pending copy"
    NO_PENDING_COPY = "no pending copy"
    COPY_ID_MISMATCH = "copy id mismatch"
    SOURCE_CONDITION_NOT_MET = "source condition not met"
    # The target of incremental copies does not permit the call, or is a blob of another kind.
    INCREMENTAL_COPY_NOT_ALLOWED = "incremental copy not allowed"
    INCREMENTAL_COPY_SOURCE_MUST_BE_SNAPSHOT = "incremental copy source must be snapshot"
    INCREMENTAL_COPY_BLOB_MISMATCH = "incremental copy blob mismatch"
    INCREMENTAL_COPY_OF_EARLIER_SNAPSHOT = "incremental copy of earlier snapshot"


@dataclass(eq=False)
class BlobRefused(AsterismError):
    """The state of a blob or a container does not permit the call; nothing was changed."""

    category: ClassVar[Category] = Category.REFUSED
    text: ClassVar[str] = "The blob or its container does not permit the operation."
    failure: BlobFailure
