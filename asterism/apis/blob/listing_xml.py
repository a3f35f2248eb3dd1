"""The XML of a listing of blobs. A page has up to 5,000 of them, so an entry is made of few operations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote
from xml.sax.saxutils import escape

from asterism.apis.blob.etags import etag_in_list, http_date, moment_text
from asterism.apis.blob.record_headers import (
    DEFAULT_CONTENT_TYPE,
    DEFAULT_TIER,
    INFERRED_TIERS,
    KIND_NAMES,
    SMART_TIER,
    base64_text,
    duration_text,
    is_current_version,
)
from asterism.apis.storage.metadata import metadata_xml
from asterism.apis.storage.xml_text import has_impossible_characters, leaf, text_leaf, xml_safe
from asterism.models.blobs.leases import LeaseState, is_locked, state_of
from asterism.models.blobs.record import BlobKind, BlobRecord, CopyState, Role
from asterism.values.ticks import TICKS_PER_SECOND

# Names of other characters are looked at more closely.
_PLAIN: Final = re.compile(r"[A-Za-z0-9 !\"#$%'()*+,\-./:;=?@\[\\\]^_`{|}~]*", re.ASCII)
_DAY_TICKS: Final = 24 * 3600 * TICKS_PER_SECOND
_NO_LEASE: Final = "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>"
_INFERRED_TIERS: Final = {
    kind: f"<AccessTier>{tier}</AccessTier><AccessTierInferred>true</AccessTierInferred>"
    for kind, tier in INFERRED_TIERS.items()
}


@dataclass(frozen=True, slots=True)
class Shown:
    """The parts of each blob that a listing shows beyond its properties."""

    metadata: bool = False
    tags: bool = False
    copy: bool = False
    versions: bool = False
    immutability: bool = False
    legal_hold: bool = False


def name_xml(name: str) -> str:
    """Return the name of a blob or a prefix; percent-encoded if XML cannot hold its characters."""
    if _PLAIN.fullmatch(name):
        return f"<Name>{name}</Name>"
    if has_impossible_characters(name):
        return f'<Name Encoded="true">{quote(name, safe="", errors="surrogatepass")}</Name>'
    return text_leaf("Name", name)


def prefix_xml(prefix: str) -> str:
    return f"<BlobPrefix>{name_xml(prefix)}</BlobPrefix>"


def blob_xml(record: BlobRecord, shown: Shown, now: int, *, has_versions_only: bool = False) -> str:
    head = name_xml(record.name)
    if record.is_deleted:
        head += "<Deleted>true</Deleted>"
    if record.snapshot is not None:
        head += f"<Snapshot>{moment_text(record.snapshot)}</Snapshot>"
    if record.version is not None and shown.versions:
        head += f"<VersionId>{moment_text(record.version)}</VersionId>"
        if is_current_version(record):
            head += "<IsCurrentVersion>true</IsCurrentVersion>"
    if has_versions_only:
        head += "<HasVersionsOnly>true</HasVersionsOnly>"
    content_type = record.content_type
    properties = (
        f"<Creation-Time>{http_date(record.created_at)}</Creation-Time>"
        f"<Last-Modified>{http_date(record.modified_at)}</Last-Modified>"
        f"<Etag>{etag_in_list(record.etag)}</Etag>"
        f"<Content-Length>{record.size}</Content-Length>"
        f"<Content-Type>{DEFAULT_CONTENT_TYPE if content_type is None else escape(xml_safe(content_type))}"
        f"</Content-Type>{_http_properties(record)}"
        f"<BlobType>{KIND_NAMES[record.kind]}</BlobType>{_kind(record)}{_tier(record)}"
    )
    if record.role is Role.CURRENT and not record.is_deleted:
        properties += _NO_LEASE if record.lease is None else _lease(record, now)
    if shown.copy and record.copy_state is not None:
        properties += _copy(record.copy_state)
    properties += _rare(record, shown, now)
    tail = metadata_xml(record.metadata) if shown.metadata and record.metadata else ""
    if shown.tags and record.tags:
        tail += tags_xml(record)
    return f"<Blob>{head}<Properties>{properties}<ServerEncrypted>true</ServerEncrypted></Properties>{tail}</Blob>"


def tags_xml(record: BlobRecord) -> str:
    tags = "".join(
        f"<Tag>{text_leaf('Key', name)}<Value>{escape(value)}</Value></Tag>" for name, value in record.tags.items()
    )
    return f"<Tags><TagSet>{tags}</TagSet></Tags>"


def _http_properties(record: BlobRecord) -> str:
    text = ""
    if record.content_encoding is not None:
        text += leaf("Content-Encoding", xml_safe(record.content_encoding))
    if record.content_language is not None:
        text += leaf("Content-Language", xml_safe(record.content_language))
    if record.content_md5 is not None:
        text += f"<Content-MD5>{base64_text(record.content_md5)}</Content-MD5>"
    if record.cache_control is not None:
        text += leaf("Cache-Control", xml_safe(record.cache_control))
    if record.content_disposition is not None:
        text += leaf("Content-Disposition", xml_safe(record.content_disposition))
    return text


def _kind(record: BlobRecord) -> str:
    if record.kind is BlobKind.PAGE:
        text = leaf("x-ms-blob-sequence-number", record.sequence_number)
        return text + ("<IncrementalCopy>true</IncrementalCopy>" if record.is_incremental_copy else "")
    return "<Sealed>true</Sealed>" if record.is_sealed else ""


def _tier(record: BlobRecord) -> str:
    tier = record.tier
    if tier is None:
        return _INFERRED_TIERS.get(record.kind, "")
    text = f"<AccessTier>{tier}</AccessTier>"
    if tier == SMART_TIER:
        text += leaf("SmartAccessTier", DEFAULT_TIER)
    if record.is_tier_inferred:
        text += "<AccessTierInferred>true</AccessTierInferred>"
    if record.tier_changed_at is not None:
        text += f"<AccessTierChangeTime>{http_date(record.tier_changed_at)}</AccessTierChangeTime>"
    if record.archive_status is not None:
        text += leaf("ArchiveStatus", record.archive_status)
    if record.rehydrate_priority is not None:
        text += leaf("RehydratePriority", record.rehydrate_priority)
    return text


def _lease(record: BlobRecord, now: int) -> str:
    lease = record.lease
    state = state_of(lease, now)
    status = "locked" if is_locked(lease, now) else "unlocked"
    text = f"<LeaseStatus>{status}</LeaseStatus><LeaseState>{state.value}</LeaseState>"
    if lease is not None and state is LeaseState.LEASED:
        text += leaf("LeaseDuration", duration_text(lease))
    return text


def _copy(state: CopyState) -> str:
    text = leaf("CopyId", state.copy_id) + leaf("CopyStatus", state.status) + leaf("CopySource", xml_safe(state.source))
    text += leaf("CopyProgress", f"{state.bytes_copied}/{state.bytes_total}")
    if state.completed_at is not None:
        text += leaf("CopyCompletionTime", http_date(state.completed_at))
    if state.description is not None:
        text += leaf("CopyStatusDescription", xml_safe(state.description))
    if state.destination_snapshot is not None:
        text += leaf("CopyDestinationSnapshot", moment_text(state.destination_snapshot))
    return text


def _rare(record: BlobRecord, shown: Shown, now: int) -> str:
    text = ""
    if record.tags:
        text += leaf("TagCount", len(record.tags))
    if record.cpk_sha256 is not None:
        text += leaf("CustomerProvidedKeySha256", record.cpk_sha256)
    if record.encryption_scope is not None:
        text += leaf("EncryptionScope", record.encryption_scope)
    if record.deleted_at is not None:
        text += leaf("DeletedTime", http_date(record.deleted_at))
        if record.retained_until is not None:
            # Whole days, counted down.
            text += leaf("RemainingRetentionDays", max(0, (record.retained_until - now) // _DAY_TICKS))
    if record.expires_at is not None:
        text += leaf("Expiry-Time", http_date(record.expires_at))
    if shown.immutability and record.immutable_until is not None:
        text += leaf("ImmutabilityPolicyUntilDate", http_date(record.immutable_until))
        text += leaf("ImmutabilityPolicyMode", record.immutability_mode or "Unlocked")
    if shown.legal_hold and record.has_legal_hold:
        text += leaf("LegalHold", True)
    return text
