"""Access tiers: which a blob may have, and how it comes from one to another."""

from __future__ import annotations

from typing import Final

from asterism.limits import GIB
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.values.ticks import TICKS_PER_SECOND

ARCHIVE: Final = "Archive"
BLOCK_TIERS: Final = frozenset({"Hot", "Cool", "Cold", ARCHIVE, "Smart"})
# The tiers of page blobs from the lowest, with the size that each has room for.
PAGE_TIERS: Final = {
    "P4": 32 * GIB,
    "P6": 64 * GIB,
    "P10": 128 * GIB,
    "P15": 256 * GIB,
    "P20": 512 * GIB,
    "P30": 1024 * GIB,
    "P40": 2048 * GIB,
    "P50": 4096 * GIB,
    "P60": 8192 * GIB,
    "P70": 16384 * GIB,
    "P80": 32768 * GIB,
}
_PAGE_ORDER: Final = tuple(PAGE_TIERS)

STANDARD_PRIORITY: Final = "Standard"
HIGH_PRIORITY: Final = "High"
# The service takes up to fifteen hours; there is nothing to wait for here, but programs must see the state.
REHYDRATION_SECONDS: Final = 60

_PENDING: Final = "rehydrate-pending-to-"


def settle_tier(record: BlobRecord, now: int) -> BlobRecord:
    """Return the record as it is seen at a moment: a blob comes back from the archive some time after it was asked
    for."""
    changed_at = record.tier_changed_at
    if record.archive_status is None or changed_at is None or now - changed_at < REHYDRATION_SECONDS * TICKS_PER_SECOND:
        return record
    settled = record.copy()
    settled.tier = record.archive_status.removeprefix(_PENDING).capitalize()
    settled.archive_status = settled.rehydrate_priority = None
    settled.tier_changed_at = changed_at + REHYDRATION_SECONDS * TICKS_PER_SECOND
    return settled


def set_tier(record: BlobRecord, tier: str, priority: str | None, now: int) -> None:
    """Change the tier of a record, or raise BlobRefused."""
    match record.kind:
        case BlobKind.BLOCK:
            _set_block_tier(record, tier, priority, now)
        case BlobKind.PAGE:
            _set_page_tier(record, tier, now)
        case BlobKind.APPEND:
            raise BlobRefused(BlobFailure.WRONG_KIND)


def _set_block_tier(record: BlobRecord, tier: str, priority: str | None, now: int) -> None:
    if tier not in BLOCK_TIERS:
        raise BlobRefused(BlobFailure.TIER_NOT_SUPPORTED)
    if record.tier != ARCHIVE or tier == ARCHIVE:
        if record.archive_status is not None:
            raise BlobRefused(BlobFailure.BEING_REHYDRATED)
        _place(record, tier, now)
        return
    status = _PENDING + tier.lower()
    if record.archive_status is None:
        record.archive_status, record.tier_changed_at = status, now
        record.rehydrate_priority = priority or STANDARD_PRIORITY
    elif record.archive_status == status and priority == HIGH_PRIORITY:
        record.rehydrate_priority = priority
    elif record.archive_status != status or priority not in (None, record.rehydrate_priority):
        raise BlobRefused(BlobFailure.BEING_REHYDRATED)


def _set_page_tier(record: BlobRecord, tier: str, now: int) -> None:
    if tier not in PAGE_TIERS or record.size > PAGE_TIERS[tier]:
        raise BlobRefused(BlobFailure.TIER_NOT_SUPPORTED)
    before = record.tier
    if before in PAGE_TIERS and _PAGE_ORDER.index(tier) < _PAGE_ORDER.index(before):
        raise BlobRefused(BlobFailure.TIER_CANNOT_CHANGE)
    _place(record, tier, now)


def _place(record: BlobRecord, tier: str, now: int) -> None:
    if record.tier != tier or record.is_tier_inferred:
        record.tier_changed_at = now
    record.tier, record.is_tier_inferred = tier, False
    record.archive_status = record.rehydrate_priority = None
