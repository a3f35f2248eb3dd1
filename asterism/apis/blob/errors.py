"""The refusals of the blob protocol: status, code and message of every reason for which a call can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from asterism import errors
from asterism.apis.blob.refused_input import RefusedInput
from asterism.apis.blob.tag_filter import MalformedTagFilter
from asterism.apis.storage.refusals import (
    Refusal,
    busy,
    condition_not_met,
    invalid_range,
    not_modified,
)
from asterism.apis.storage.structured_body import MalformedStructuredBody, StructuredBodyMismatch
from asterism.apis.storage.xml_errors import xml_translation
from asterism.errors import AsterismError
from asterism.models.blobs.failures import BlobFailure, BlobRefused

Row = tuple[int, str, str]

_F: Final = BlobFailure

_ROWS: Final[dict[BlobFailure, Row]] = {
    _F.NOT_FOUND: (404, "BlobNotFound", "The specified blob does not exist."),
    _F.EXISTS: (409, "BlobAlreadyExists", "The specified blob already exists."),
    _F.CONTAINER_NOT_FOUND: (404, "ContainerNotFound", "The specified container does not exist."),
    _F.CONTAINER_EXISTS: (409, "ContainerAlreadyExists", "The specified container already exists."),
    _F.SEQUENCE_NUMBER_CONDITION_NOT_MET: (
        412,
        "SequenceNumberConditionNotMet",
        "The sequence number condition specified was not met.",
    ),
    _F.SEQUENCE_NUMBER_INCREMENT_TOO_LARGE: (
        409,
        "SequenceNumberIncrementTooLarge",
        "The sequence number increment cannot be performed because it would result in overflow of the sequence number.",
    ),
    _F.APPEND_POSITION_CONDITION_NOT_MET: (
        412,
        "AppendPositionConditionNotMet",
        "The append position condition specified was not met.",
    ),
    _F.MAX_SIZE_CONDITION_NOT_MET: (
        412,
        "MaxBlobSizeConditionNotMet",
        "The max blob size condition specified was not met.",
    ),
    _F.LEASE_ID_MISSING: (
        412,
        "LeaseIdMissing",
        "There is currently a lease on the resource and no lease ID was specified in the request.",
    ),
    _F.LEASE_ID_MISMATCH: (
        412,
        "LeaseIdMismatchWithBlobOperation",
        "The lease ID specified did not match the lease ID for the blob.",
    ),
    _F.LEASE_NOT_PRESENT: (412, "LeaseNotPresentWithBlobOperation", "There is currently no lease on the blob."),
    _F.LEASE_LOST: (
        412,
        "LeaseLost",
        "A lease ID was specified, but the lease for the resource has expired.",
    ),
    _F.LEASE_ALREADY_PRESENT: (409, "LeaseAlreadyPresent", "There is already a lease present."),
    _F.LEASE_ID_MISMATCH_WITH_LEASE: (
        409,
        "LeaseIdMismatchWithLeaseOperation",
        "The lease ID specified did not match the lease ID for the resource with the specified lease operation.",
    ),
    _F.LEASE_NOT_PRESENT_WITH_LEASE: (
        409,
        "LeaseNotPresentWithLeaseOperation",
        "There is currently no lease on the resource.",
    ),
    _F.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED: (
        409,
        "LeaseIsBreakingAndCannotBeAcquired",
        "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.",
    ),
    _F.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED: (
        409,
        "LeaseIsBreakingAndCannotBeChanged",
        "The lease ID matched, but the lease is currently in breaking state and cannot be changed.",
    ),
    _F.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED: (
        409,
        "LeaseIsBrokenAndCannotBeRenewed",
        "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.",
    ),
    _F.WRONG_KIND: (409, "InvalidBlobType", "The blob type is invalid for this operation."),
    _F.SNAPSHOTS_PRESENT: (
        409,
        "SnapshotsPresent",
        "This operation is not permitted while the blob has snapshots. Send x-ms-delete-snapshots.",
    ),
    _F.NOT_ON_SNAPSHOT: (
        400,
        "InvalidQueryParameterValue",
        "The operation is for a blob itself, and the request names a snapshot or a version of it.",
    ),
    _F.VERSION_IS_CURRENT: (
        403,
        "OperationNotAllowedOnRootBlob",
        "The operation is not allowed on the current version of a blob.",
    ),
    _F.SEALED: (409, "BlobIsSealed", "The specified blob is sealed and its contents can't be modified."),
    _F.ARCHIVED: (409, "BlobArchived", "This operation is not permitted on an archived blob."),
    _F.BEING_REHYDRATED: (
        409,
        "BlobBeingRehydrated",
        "This operation is not permitted because the blob is being rehydrated.",
    ),
    _F.TIER_CANNOT_CHANGE: (
        409,
        "CannotChangeToLowerTier",
        "A higher blob tier has already been explicitly set.",
    ),
    _F.TIER_NOT_SUPPORTED: (400, "InvalidBlobTier", "The blob tier is not one that a blob of its type can have."),
    _F.IMMUTABLE: (
        409,
        "BlobImmutableDueToPolicy",
        "This operation is not permitted as the blob is immutable due to a policy.",
    ),
    _F.IMMUTABLE_CONTAINER_NOT_EMPTY: (
        409,
        "ContainerImmutableStorageWithVersioningEnabled",
        "The container has immutable storage with versioning enabled, and is not empty. Delete its blobs, snapshots "
        "and versions first.",
    ),
    _F.LEGAL_HOLD: (
        409,
        "BlobImmutableDueToLegalHold",
        "This operation is not permitted as the blob is immutable due to a legal hold.",
    ),
    _F.POLICY_LOCKED: (
        409,
        "BlobImmutableDueToPolicy",
        "The immutability policy is locked: it cannot be deleted, and its time can only be extended.",
    ),
    _F.KEY_MISMATCH: (
        409,
        "BlobCustomerSpecifiedEncryptionMismatch",
        "The given customer specified encryption does not match the encryption used to encrypt the blob.",
    ),
    _F.KEY_MISSING: (
        409,
        "BlobUsesCustomerSpecifiedEncryption",
        "The blob is encrypted with customer specified encryption, but it was not provided in the request.",
    ),
    _F.KEY_NOT_USED: (
        409,
        "BlobDoesNotUseCustomerSpecifiedEncryption",
        "The blob is not encrypted with customer specified encryption, but it was provided in the request.",
    ),
    _F.SCOPE_MISMATCH: (
        409,
        "BlobCustomerSpecifiedEncryptionMismatch",
        "The blob is encrypted with another encryption scope than the request names.",
    ),
    _F.INVALID_BLOCK_LIST: (400, "InvalidBlockList", "The specified block list is invalid."),
    _F.INVALID_BLOB_OR_BLOCK: (400, "InvalidBlobOrBlock", "The specified blob or block content is invalid."),
    _F.TOO_MANY_BLOCKS: (
        409,
        "BlockCountExceedsLimit",
        "The committed block count cannot exceed the maximum limit of 50,000 blocks.",
    ),
    _F.TOO_MANY_UNCOMMITTED_BLOCKS: (
        409,
        "BlockCountExceedsLimit",
        "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.",
    ),
    _F.TOO_LARGE: (
        413,
        "RequestBodyTooLarge",
        "The request body is too large and exceeds the maximum permissible limit.",
    ),
    _F.PREVIOUS_SNAPSHOT_NOT_FOUND: (409, "PreviousSnapshotNotFound", "The previous snapshot is not found."),
    _F.PREVIOUS_SNAPSHOT_IS_NEWER: (
        400,
        "PreviousSnapshotCannotBeNewer",
        "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value.",
    ),
    _F.BLOB_OVERWRITTEN: (
        409,
        "BlobOverwritten",
        "The blob has been recreated since the previous snapshot was taken.",
    ),
    _F.PENDING_COPY: (409, "PendingCopyOperation", "There is currently a pending copy operation."),
    _F.NO_PENDING_COPY: (409, "NoPendingCopyOperation", "There is currently no pending copy operation."),
    _F.COPY_ID_MISMATCH: (
        409,
        "CopyIdMismatch",
        "The specified copy ID did not match the copy ID for the pending copy operation.",
    ),
    _F.SOURCE_CONDITION_NOT_MET: (
        412,
        "SourceConditionNotMet",
        "The source condition specified using HTTP conditional header(s) is not met.",
    ),
    _F.INCREMENTAL_COPY_NOT_ALLOWED: (
        409,
        "OperationNotAllowedOnIncrementalCopyBlob",
        "The specified operation is not allowed on an incremental copy blob.",
    ),
    _F.INCREMENTAL_COPY_SOURCE_MUST_BE_SNAPSHOT: (
        409,
        "IncrementalCopySourceMustBeSnapshot",
        "The source of an incremental copy must be a snapshot of a page blob.",
    ),
    _F.INCREMENTAL_COPY_BLOB_MISMATCH: (
        409,
        "IncrementalCopyBlobMismatch",
        "The source is not a snapshot of the blob that earlier incremental copies were made of.",
    ),
    _F.INCREMENTAL_COPY_OF_EARLIER_SNAPSHOT: (
        409,
        "IncrementalCopyOfEarlierVersionSnapshotNotAllowed",
        "The snapshot is not later than the one that was copied before.",
    ),
}

# Reasons for which all storage services have the same refusal.
_SHARED: Final[dict[BlobFailure, Callable[[], Refusal]]] = {
    _F.CONDITION_NOT_MET: condition_not_met,
    _F.NOT_MODIFIED: not_modified,
    _F.INVALID_RANGE: invalid_range,
    # The upload stood still for an hour; its client can begin again.
    _F.UPLOAD_EXPIRED: busy,
}

_OF_CONTAINERS: Final[dict[BlobFailure, Row]] = {
    _F.NOT_FOUND: _ROWS[_F.CONTAINER_NOT_FOUND],
    _F.LEASE_ID_MISMATCH: (
        412,
        "LeaseIdMismatchWithContainerOperation",
        "The lease ID specified did not match the lease ID for the container.",
    ),
    _F.LEASE_NOT_PRESENT: (
        412,
        "LeaseNotPresentWithContainerOperation",
        "There is currently no lease on the container.",
    ),
}


def refusal_of(failure: BlobFailure) -> Refusal:
    shared = _SHARED.get(failure)
    return shared() if shared is not None else Refusal(*_ROWS[failure])


def container_refusal_of(failure: BlobFailure) -> Refusal:
    """Return the refusal of an operation on a container itself, whose leases have codes of their own."""
    row = _OF_CONTAINERS.get(failure)
    return refusal_of(failure) if row is None else Refusal(*row)


def container_not_found() -> Refusal:
    return refusal_of(BlobFailure.CONTAINER_NOT_FOUND)


def checksum_mismatch() -> Refusal:
    return Refusal(
        400,
        "Crc64Mismatch",
        "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.",
    )


_OWN: Final[Mapping[type[AsterismError], Callable[[Any], Refusal]]] = {
    BlobRefused: lambda error: refusal_of(error.failure),
    RefusedInput: lambda error: Refusal(error.status, error.code, error.reason),
    MalformedTagFilter: lambda error: Refusal(
        400, "InvalidQueryParameterValue", f"At character {error.position + 1} of the expression: {error.reason}"
    ),
    MalformedStructuredBody: lambda error: Refusal(400, "InvalidStructuredMessage", error.sentence),
    StructuredBodyMismatch: lambda _: checksum_mismatch(),
    errors.OwnerNotFound: lambda _: container_not_found(),
    errors.ResourceNotFound: lambda _: container_not_found(),
    errors.ResourceExists: lambda _: refusal_of(BlobFailure.CONTAINER_EXISTS),
}

TRANSLATION: Final = xml_translation(_OWN)
