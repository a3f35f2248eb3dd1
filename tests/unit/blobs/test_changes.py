from __future__ import annotations

import pytest

from asterism.limits import GIB
from asterism.models.blobs.calls import Key, RecordChange
from asterism.models.blobs.changes import (
    LOCKED,
    UNLOCKED,
    ChangeOfLease,
    DeleteImmutability,
    ExpiryMode,
    Seal,
    SetExpiry,
    SetHttpHeaders,
    SetImmutability,
    SetLegalHold,
    SetMetadata,
    SetTags,
    SetTier,
)
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.leases import INFINITE, AcquireLease, Lease
from asterism.models.blobs.record import BlobKind, BlobRecord, Role
from asterism.models.blobs.replacing import check_not_held
from asterism.models.blobs.tiers import REHYDRATION_SECONDS, settle_tier
from asterism.values.ticks import TICKS_PER_SECOND

NOW = 17_000_000_000_000_000
HOUR = 3600 * TICKS_PER_SECOND


def blob(kind: BlobKind = BlobKind.BLOCK, **properties: object) -> BlobRecord:
    record = BlobRecord("name", kind, NOW - HOUR, NOW - HOUR, NOW - HOUR)
    for name, value in properties.items():
        setattr(record, name, value)
    return record


def refusal(change: RecordChange, record: BlobRecord, now: int = NOW) -> BlobFailure:
    with pytest.raises(BlobRefused) as caught:
        change.apply(record, now)
    return caught.value.failure


def test_a_change_leaves_the_record_that_was_read_as_it_was() -> None:
    before = blob(metadata={"a": "1"}, content_type="text/plain")
    after = SetMetadata({"b": "2"}).apply(before, NOW)
    assert (before.metadata, after.metadata, after.content_type) == ({"a": "1"}, {"b": "2"}, "text/plain")


def test_headers_that_are_not_given_are_removed() -> None:
    before = blob(content_type="text/plain", cache_control="no-store", content_md5=b"0" * 16)
    after = SetHttpHeaders(content_language="en").apply(before, NOW)
    assert (after.content_type, after.cache_control, after.content_md5) == (None, None, None)
    assert after.content_language == "en"


def test_only_what_clients_are_told_about_the_blob_changes_its_etag() -> None:
    assert SetHttpHeaders.touches
    assert SetMetadata.touches
    assert Seal.touches
    beside: list[type[RecordChange]] = [SetTags, SetTier, SetExpiry, SetImmutability, SetLegalHold, ChangeOfLease]
    assert not any(change.touches for change in beside)


def test_metadata_need_the_key_that_the_blob_was_written_with() -> None:
    record = blob(cpk_sha256="one")
    assert SetMetadata({}, Key("one")).apply(record, NOW).metadata == {}
    assert refusal(SetMetadata({}), record) is BlobFailure.KEY_MISSING
    assert refusal(SetMetadata({}, Key("two")), record) is BlobFailure.KEY_MISMATCH
    assert refusal(SetMetadata({}, Key("one")), blob()) is BlobFailure.KEY_NOT_USED
    assert refusal(SetMetadata({}, Key(scope="s")), blob(encryption_scope="t")) is BlobFailure.SCOPE_MISMATCH


def test_tags_of_a_snapshot_do_not_change_and_those_of_a_version_do() -> None:
    assert refusal(SetTags({"a": "1"}), blob(role=Role.SNAPSHOT)) is BlobFailure.NOT_ON_SNAPSHOT
    assert SetTags({"a": "1"}).apply(blob(role=Role.VERSION), NOW).tags == {"a": "1"}


def test_a_tier_that_is_set_is_no_longer_inferred() -> None:
    after = SetTier("Cool").apply(blob(tier="Hot", is_tier_inferred=True), NOW)
    assert (after.tier, after.is_tier_inferred, after.tier_changed_at) == ("Cool", False, NOW)
    again = SetTier("Cool").apply(after, NOW + 5)
    assert again.tier_changed_at == NOW


def test_a_blob_comes_back_from_the_archive_some_time_after_it_was_asked_for() -> None:
    archived = SetTier("Archive").apply(blob(tier="Hot"), NOW)
    pending = SetTier("Cool", "High").apply(archived, NOW)
    assert (pending.tier, pending.archive_status) == ("Archive", "rehydrate-pending-to-cool")
    assert pending.rehydrate_priority == "High"
    assert settle_tier(pending, NOW + 1) is pending
    settled = settle_tier(pending, NOW + REHYDRATION_SECONDS * TICKS_PER_SECOND)
    assert (settled.tier, settled.archive_status, settled.rehydrate_priority) == ("Cool", None, None)


def test_a_blob_on_its_way_from_the_archive_only_becomes_more_urgent() -> None:
    pending = SetTier("Hot").apply(blob(tier="Archive"), NOW)
    assert pending.rehydrate_priority == "Standard"
    assert SetTier("Hot", "High").apply(pending, NOW).rehydrate_priority == "High"
    assert refusal(SetTier("Cool"), pending) is BlobFailure.BEING_REHYDRATED
    assert refusal(SetTier("Archive"), pending) is BlobFailure.BEING_REHYDRATED


def test_tiers_fit_the_kind_and_the_size_of_the_blob() -> None:
    assert refusal(SetTier("P10"), blob()) is BlobFailure.TIER_NOT_SUPPORTED
    assert refusal(SetTier("Hot"), blob(BlobKind.APPEND)) is BlobFailure.WRONG_KIND
    assert refusal(SetTier("Hot"), blob(BlobKind.PAGE)) is BlobFailure.TIER_NOT_SUPPORTED
    assert refusal(SetTier("P4"), blob(BlobKind.PAGE, size=33 * GIB)) is BlobFailure.TIER_NOT_SUPPORTED
    p10 = SetTier("P10").apply(blob(BlobKind.PAGE), NOW)
    assert SetTier("P20").apply(p10, NOW).tier == "P20"
    assert refusal(SetTier("P6"), p10) is BlobFailure.TIER_CANNOT_CHANGE


def test_only_append_blobs_of_the_expected_size_are_sealed() -> None:
    assert Seal().apply(blob(BlobKind.APPEND), NOW).is_sealed
    assert Seal(7).apply(blob(BlobKind.APPEND, size=7), NOW).is_sealed
    assert refusal(Seal(7), blob(BlobKind.APPEND, size=8)) is BlobFailure.APPEND_POSITION_CONDITION_NOT_MET
    assert refusal(Seal(), blob()) is BlobFailure.WRONG_KIND


def test_an_expiry_is_absolute_or_counted_from_now_or_from_the_creation() -> None:
    record = blob(expires_at=1)
    assert SetExpiry(ExpiryMode.NEVER_EXPIRE).apply(record, NOW).expires_at is None
    assert SetExpiry(ExpiryMode.ABSOLUTE, NOW + 9).apply(record, NOW).expires_at == NOW + 9
    assert SetExpiry(ExpiryMode.RELATIVE_TO_NOW, 3_600_000).apply(record, NOW).expires_at == NOW + HOUR
    assert SetExpiry(ExpiryMode.RELATIVE_TO_CREATION, 3_600_000).apply(record, NOW).expires_at == NOW


def test_a_locked_policy_can_only_be_made_longer() -> None:
    unlocked = SetImmutability(NOW + 2 * HOUR).apply(blob(), NOW)
    assert unlocked.immutability_mode == UNLOCKED
    assert DeleteImmutability().apply(unlocked, NOW).immutable_until is None
    locked = SetImmutability(NOW + HOUR, LOCKED).apply(unlocked, NOW)
    assert refusal(SetImmutability(NOW + HOUR - 1, LOCKED), locked) is BlobFailure.POLICY_LOCKED
    assert refusal(SetImmutability(NOW + 2 * HOUR, UNLOCKED), locked) is BlobFailure.POLICY_LOCKED
    assert refusal(DeleteImmutability(), locked) is BlobFailure.POLICY_LOCKED
    assert SetImmutability(NOW + 2 * HOUR, LOCKED).apply(locked, NOW).immutable_until == NOW + 2 * HOUR
    assert DeleteImmutability().apply(locked, NOW + HOUR).immutable_until is None


def test_policies_and_holds_forbid_changes_until_they_end() -> None:
    check_not_held(blob(immutable_until=NOW), NOW)
    with pytest.raises(BlobRefused) as caught:
        check_not_held(blob(immutable_until=NOW + 1), NOW)
    assert caught.value.failure is BlobFailure.IMMUTABLE
    held = SetLegalHold(True).apply(blob(), NOW)
    with pytest.raises(BlobRefused) as caught:
        check_not_held(held, NOW)
    assert caught.value.failure is BlobFailure.LEGAL_HOLD
    check_not_held(SetLegalHold(False).apply(held, NOW), NOW)


def test_a_lease_action_changes_only_the_lease() -> None:
    after = ChangeOfLease(AcquireLease("id", INFINITE)).apply(blob(), NOW)
    assert after.lease == Lease("id", INFINITE, None)
    assert after.etag == blob().etag
