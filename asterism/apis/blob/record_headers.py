"""The headers by which answers describe a blob."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from asterism.apis.blob.encryption import encryption_headers
from asterism.apis.blob.etags import etag_text, http_date, moment_text
from asterism.apis.storage.metadata import metadata_headers
from asterism.apis.transports.http import HeaderList
from asterism.models.blobs.leases import INFINITE, Lease, LeaseState, is_locked, state_of
from asterism.models.blobs.record import BlobKind, BlobRecord, CopyState, Role

DEFAULT_CONTENT_TYPE: Final = "application/octet-stream"
# The tier of accounts here: what a block blob has if no request named another.
DEFAULT_TIER: Final = "Hot"
# Moves a blob between tiers by how it is used; here it is always in the first.
SMART_TIER: Final = "Smart"
# The same of a page blob: the smallest tier that new ones have in premium accounts.
INFERRED_TIERS: Final[Mapping[BlobKind, str]] = {BlobKind.BLOCK: DEFAULT_TIER, BlobKind.PAGE: "P10"}
KIND_NAMES: Final[Mapping[BlobKind, str]] = {
    BlobKind.BLOCK: "BlockBlob",
    BlobKind.PAGE: "PageBlob",
    BlobKind.APPEND: "AppendBlob",
}
_ENCRYPTED: Final = ("x-ms-server-encrypted", "true")


def base64_text(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def version_of(record: BlobRecord) -> str | None:
    return None if record.version is None else moment_text(record.version)


def is_current_version(record: BlobRecord) -> bool:
    return record.version is not None and record.role is Role.CURRENT and not record.is_deleted


def change_headers(etag: int, modified_at: int) -> HeaderList:
    """Return the state after a write, of a blob or a container."""
    return [("etag", etag_text(etag)), ("last-modified", http_date(modified_at))]


def written_headers(record: BlobRecord) -> HeaderList:
    """Return what the answer to a write of content or metadata says about the blob."""
    answer = change_headers(record.etag, record.modified_at)
    answer += encryption_headers(record.cpk_sha256, record.encryption_scope, is_write=True)
    version = version_of(record)
    if version is not None:
        answer.append(("x-ms-version-id", version))
    return answer


def http_property_headers(record: BlobRecord, overrides: Mapping[str, str]) -> HeaderList:
    """Return the headers that the blob keeps for its readers; a shared access signature may override them."""
    answer: HeaderList = [
        ("content-type", overrides.get("content-type") or record.content_type or DEFAULT_CONTENT_TYPE)
    ]
    for name, value in (
        ("content-encoding", record.content_encoding),
        ("content-language", record.content_language),
        ("content-disposition", record.content_disposition),
        ("cache-control", record.cache_control),
    ):
        chosen = overrides.get(name) or value
        if chosen is not None:
            answer.append((name, chosen))
    return answer


def lease_headers(lease: Lease | None, now: int) -> HeaderList:
    state = state_of(lease, now)
    answer = [
        ("x-ms-lease-state", state.value),
        ("x-ms-lease-status", "locked" if is_locked(lease, now) else "unlocked"),
    ]
    if lease is not None and state is LeaseState.LEASED:
        answer.append(("x-ms-lease-duration", duration_text(lease)))
    return answer


def duration_text(lease: Lease) -> str:
    return "infinite" if lease.duration_seconds == INFINITE else "fixed"


def copy_headers(state: CopyState) -> HeaderList:
    answer = [("x-ms-copy-id", state.copy_id), ("x-ms-copy-status", state.status), ("x-ms-copy-source", state.source)]
    answer.append(("x-ms-copy-progress", f"{state.bytes_copied}/{state.bytes_total}"))
    if state.completed_at is not None:
        answer.append(("x-ms-copy-completion-time", http_date(state.completed_at)))
    if state.description is not None:
        answer.append(("x-ms-copy-status-description", state.description))
    if state.destination_snapshot is not None:
        answer.append(("x-ms-copy-destination-snapshot", moment_text(state.destination_snapshot)))
    return answer


def blob_headers(record: BlobRecord, now: int, overrides: Mapping[str, str]) -> HeaderList:
    """Return all that Get Blob and Get Blob Properties tell about a blob beside the length of the body."""
    answer = http_property_headers(record, overrides)
    answer += change_headers(record.etag, record.modified_at)
    answer += [
        ("x-ms-creation-time", http_date(record.created_at)),
        ("x-ms-blob-type", KIND_NAMES[record.kind]),
        ("accept-ranges", "bytes"),
    ]
    if record.role is Role.CURRENT:
        answer += lease_headers(record.lease, now)
    if record.cpk_sha256 is None and record.encryption_scope is None:
        answer.append(_ENCRYPTED)
    else:
        answer += encryption_headers(record.cpk_sha256, record.encryption_scope, is_write=False)
    answer += metadata_headers(record.metadata)
    _add_kind(answer, record)
    _add_tier(answer, record)
    _add_history(answer, record)
    return answer


def _add_kind(answer: HeaderList, record: BlobRecord) -> None:
    if record.kind is BlobKind.PAGE:
        answer.append(("x-ms-blob-sequence-number", str(record.sequence_number)))
        if record.is_incremental_copy:
            answer.append(("x-ms-incremental-copy", "true"))
    elif record.kind is BlobKind.APPEND:
        answer.append(("x-ms-blob-committed-block-count", str(record.committed_blocks)))
        if record.is_sealed:
            answer.append(("x-ms-blob-sealed", "true"))


def _add_tier(answer: HeaderList, record: BlobRecord) -> None:
    tier = record.tier
    inferred = INFERRED_TIERS.get(record.kind) if tier is None else None
    if inferred is not None:
        answer += [("x-ms-access-tier", inferred), ("x-ms-access-tier-inferred", "true")]
    elif tier is not None:
        answer.append(("x-ms-access-tier", tier))
        if tier == SMART_TIER:
            answer.append(("x-ms-smart-access-tier", DEFAULT_TIER))
        if record.is_tier_inferred:
            answer.append(("x-ms-access-tier-inferred", "true"))
    if record.tier_changed_at is not None:
        answer.append(("x-ms-access-tier-change-time", http_date(record.tier_changed_at)))
    if record.archive_status is not None:
        answer.append(("x-ms-archive-status", record.archive_status))
    if record.rehydrate_priority is not None:
        answer.append(("x-ms-rehydrate-priority", record.rehydrate_priority))


def _add_history(answer: HeaderList, record: BlobRecord) -> None:
    if record.copy_state is not None:
        answer += copy_headers(record.copy_state)
    version = version_of(record)
    if version is not None:
        answer.append(("x-ms-version-id", version))
        if is_current_version(record):
            answer.append(("x-ms-is-current-version", "true"))
    if record.tags:
        answer.append(("x-ms-tag-count", str(len(record.tags))))
    if record.expires_at is not None:
        answer.append(("x-ms-expiry-time", http_date(record.expires_at)))
    if record.immutable_until is not None:
        answer.append(("x-ms-immutability-policy-until-date", http_date(record.immutable_until)))
        answer.append(("x-ms-immutability-policy-mode", record.immutability_mode or "Unlocked"))
    if record.has_legal_hold:
        answer.append(("x-ms-legal-hold", "true"))
