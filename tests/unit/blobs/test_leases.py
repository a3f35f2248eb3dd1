from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.leases import (
    INFINITE,
    AcquireLease,
    BreakLease,
    ChangeLease,
    Lease,
    LeaseAction,
    LeaseState,
    ReleaseLease,
    RenewLease,
    after_write,
    apply_lease_action,
    break_seconds_left,
    check_lease_for_read,
    check_lease_for_write,
    is_locked,
    state_of,
)
from asterism.values.ticks import TICKS_PER_SECOND

A, B, C = "aaaaaaaa-0000-0000-0000-000000000001", "bbbbbbbb-0000-0000-0000-000000000002", "c"
NOW = 17_000_000_000_000_000


def later(seconds: float) -> int:
    return NOW + int(seconds * TICKS_PER_SECOND)


def refusal(lease: Lease | None, action: LeaseAction, now: int) -> BlobFailure:
    with pytest.raises(BlobRefused) as caught:
        apply_lease_action(lease, action, now)
    return caught.value.failure


def acquired(seconds: int = 15, lease_id: str = A) -> Lease:
    lease = apply_lease_action(None, AcquireLease(lease_id, seconds), NOW)
    assert lease is not None
    return lease


def broken(lease: Lease, period_seconds: int | None, now: int = NOW) -> Lease:
    after = apply_lease_action(lease, BreakLease(period_seconds), now)
    assert after is not None
    return after


def write_refusal(lease: Lease | None, lease_id: str | None, now: int) -> BlobFailure:
    with pytest.raises(BlobRefused) as caught:
        check_lease_for_write(lease, lease_id, now)
    return caught.value.failure


def test_a_lease_expires_after_its_seconds_and_an_infinite_lease_never() -> None:
    assert state_of(None, NOW) is LeaseState.AVAILABLE
    assert state_of(acquired(), later(14.9)) is LeaseState.LEASED
    assert state_of(acquired(), later(15)) is LeaseState.EXPIRED
    assert state_of(acquired(INFINITE), later(10**8)) is LeaseState.LEASED


def test_a_lease_is_acquired_again_only_with_its_own_id() -> None:
    assert refusal(acquired(), AcquireLease(B, 15), NOW) is BlobFailure.LEASE_ALREADY_PRESENT
    again = apply_lease_action(acquired(), AcquireLease(A, 60), later(5))
    assert again == Lease(A, 60, later(65))
    assert apply_lease_action(acquired(), AcquireLease(B, 15), later(15)) == Lease(B, 15, later(30))


def test_ids_that_differ_by_case_are_the_same() -> None:
    assert apply_lease_action(acquired(lease_id=A.upper()), RenewLease(A), NOW) is not None


def test_an_expired_lease_is_renewed_until_the_resource_changes() -> None:
    lease = acquired()
    assert apply_lease_action(lease, RenewLease(A), later(100)) == Lease(A, 15, later(115))
    changed = after_write(lease, later(100))
    assert changed is None
    assert refusal(changed, RenewLease(A), later(101)) is BlobFailure.LEASE_ID_MISMATCH_WITH_LEASE


def test_a_lease_that_is_breaking_can_only_be_broken_or_released() -> None:
    lease = broken(acquired(60), 20)
    assert state_of(lease, later(19)) is LeaseState.BREAKING
    assert refusal(lease, AcquireLease(A, 15), NOW) is BlobFailure.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED
    assert refusal(lease, AcquireLease(B, 15), NOW) is BlobFailure.LEASE_ALREADY_PRESENT
    assert refusal(lease, ChangeLease(A, B), NOW) is BlobFailure.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED
    assert refusal(lease, RenewLease(A), NOW) is BlobFailure.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED
    assert refusal(lease, ReleaseLease(B), NOW) is BlobFailure.LEASE_ID_MISMATCH_WITH_LEASE
    assert apply_lease_action(lease, ReleaseLease(A), NOW) is None


def test_a_broken_lease_cannot_be_renewed_or_changed_but_acquired() -> None:
    lease = broken(acquired(60), 0)
    assert state_of(lease, NOW) is LeaseState.BROKEN
    assert refusal(lease, RenewLease(A), NOW) is BlobFailure.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED
    assert refusal(lease, ChangeLease(A, B), NOW) is BlobFailure.LEASE_NOT_PRESENT_WITH_LEASE
    assert apply_lease_action(lease, AcquireLease(B, 15), NOW) == acquired(lease_id=B)


def test_a_break_lasts_no_longer_than_the_lease() -> None:
    assert break_seconds_left(broken(acquired(20), 60), NOW) == 20
    assert break_seconds_left(broken(acquired(20), None), later(7.5)) == 13
    assert break_seconds_left(broken(acquired(INFINITE), 60), NOW) == 60
    assert break_seconds_left(broken(acquired(INFINITE), None), NOW) == 0


def test_another_break_only_shortens_the_first() -> None:
    lease = broken(acquired(INFINITE), 30)
    assert break_seconds_left(broken(lease, 60), NOW) == 30
    assert break_seconds_left(broken(lease, 10), NOW) == 10
    assert break_seconds_left(broken(lease, None), NOW) == 30


def test_a_change_can_be_repeated() -> None:
    changed = apply_lease_action(acquired(), ChangeLease(A, B), NOW)
    assert changed is not None
    assert changed.has_id(B)
    assert apply_lease_action(changed, ChangeLease(A, B), NOW) == changed
    assert refusal(changed, ChangeLease(A, C), NOW) is BlobFailure.LEASE_ID_MISMATCH_WITH_LEASE


def test_a_resource_without_a_lease_refuses_what_needs_one() -> None:
    assert refusal(None, RenewLease(A), NOW) is BlobFailure.LEASE_ID_MISMATCH_WITH_LEASE
    assert refusal(None, ReleaseLease(A), NOW) is BlobFailure.LEASE_ID_MISMATCH_WITH_LEASE
    assert refusal(None, ChangeLease(A, B), NOW) is BlobFailure.LEASE_NOT_PRESENT_WITH_LEASE
    assert refusal(None, BreakLease(), NOW) is BlobFailure.LEASE_NOT_PRESENT_WITH_LEASE


def test_writes_need_the_id_of_the_lease_in_force() -> None:
    lease = acquired()
    check_lease_for_write(lease, A, NOW)
    check_lease_for_write(None, None, NOW)
    check_lease_for_write(lease, None, later(15))
    assert write_refusal(lease, None, NOW) is BlobFailure.LEASE_ID_MISSING
    assert write_refusal(lease, B, NOW) is BlobFailure.LEASE_ID_MISMATCH
    assert write_refusal(None, A, NOW) is BlobFailure.LEASE_NOT_PRESENT
    assert write_refusal(lease, A, later(15)) is BlobFailure.LEASE_LOST
    assert write_refusal(broken(lease, 10), None, NOW) is BlobFailure.LEASE_ID_MISSING


def test_reads_need_no_id_but_refuse_a_wrong_one() -> None:
    check_lease_for_read(acquired(), None, NOW)
    check_lease_for_read(acquired(), A, NOW)
    with pytest.raises(BlobRefused) as caught:
        check_lease_for_read(acquired(), B, NOW)
    assert caught.value.failure is BlobFailure.LEASE_ID_MISMATCH


class LeaseMachine(RuleBasedStateMachine):
    """Two owners of ids: never do both hold the lease at once."""

    @initialize()
    def start(self) -> None:
        self.now = NOW
        self.lease: Lease | None = None
        # The owner whose acquisition, renewal or change the service confirmed, and until when (None: infinite).
        self.holder: str | None = None
        self.held_until: int | None = NOW

    def is_held(self) -> bool:
        return self.holder is not None and (self.held_until is None or self.now < self.held_until)

    def attempt(self, action: LeaseAction) -> bool:
        try:
            self.lease = apply_lease_action(self.lease, action, self.now)
        except BlobRefused:
            return False
        return True

    @rule(seconds=st.sampled_from([0.5, 1, 7, 15, 61]))
    def time_passes(self, seconds: float) -> None:
        self.now += int(seconds * TICKS_PER_SECOND)

    @rule(owner=st.sampled_from([A, B]), seconds=st.sampled_from([15, 60, INFINITE]))
    def acquire(self, owner: str, seconds: int) -> None:
        was_held_by_other = self.is_held() and self.holder != owner
        if self.attempt(AcquireLease(owner, seconds)):
            assert not was_held_by_other
            self.hold(owner, seconds)

    def hold(self, owner: str, seconds: int) -> None:
        self.holder = owner
        self.held_until = None if seconds == INFINITE else self.now + seconds * TICKS_PER_SECOND

    @rule(owner=st.sampled_from([A, B]))
    def renew(self, owner: str) -> None:
        was_held_by_other = self.is_held() and self.holder != owner
        if self.attempt(RenewLease(owner)):
            assert not was_held_by_other
            assert self.lease is not None
            self.hold(owner, self.lease.duration_seconds)

    @rule(owner=st.sampled_from([A, B]))
    def release(self, owner: str) -> None:
        was_held_by_other = self.is_held() and self.holder != owner
        if self.attempt(ReleaseLease(owner)):
            assert not was_held_by_other
            assert self.lease is None
            self.holder = None

    @precondition(lambda self: self.lease is not None)
    @rule(period=st.sampled_from([None, 0, 5, 60]))
    def break_it(self, period: int | None) -> None:
        was_locked = is_locked(self.lease, self.now)
        end_before = self.held_until
        assert self.attempt(BreakLease(period))
        assert self.lease is not None
        left = break_seconds_left(self.lease, self.now) * TICKS_PER_SECOND
        assert was_locked or left == 0
        assert end_before is None or self.now + left <= max(end_before, self.now) + TICKS_PER_SECOND
        self.held_until = self.lease.broken_at

    @rule(owner=st.sampled_from([None, A, B]))
    def write(self, owner: str | None) -> None:
        try:
            check_lease_for_write(self.lease, owner, self.now)
        except BlobRefused:
            return
        assert not self.is_held() or owner == self.holder
        self.lease = after_write(self.lease, self.now)

    @invariant()
    def a_confirmed_lease_is_in_force_until_its_end(self) -> None:
        assert not self.is_held() or is_locked(self.lease, self.now)


TestLeaseMachine = LeaseMachine.TestCase
