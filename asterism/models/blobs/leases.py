"""Leases of blobs and containers: what they permit, and how they change.

A lease is a value; its state follows from it and the time. A lease that has expired or was broken stays, with its id,
until the resource is changed or leased again: its id still releases it, and renews it if it has expired.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, assert_never

from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.values.ticks import TICKS_PER_SECOND

INFINITE: Final = -1
# The service's limits of a lease that ends, and of the time that a break may take.
LEASE_SECONDS_MIN: Final = 15
LEASE_SECONDS_MAX: Final = 60
BREAK_SECONDS_MAX: Final = 60


class LeaseState(StrEnum):
    AVAILABLE = "available"
    LEASED = "leased"
    EXPIRED = "expired"
    BREAKING = "breaking"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that was acquired. Moments are ticks."""

    lease_id: str
    # INFINITE, or the seconds that an acquisition or a renewal lasts.
    duration_seconds: int
    # None while it is infinite.
    expires_at: int | None
    # The moment at which a break ends; None if it was not broken.
    broken_at: int | None = None

    def has_id(self, lease_id: str | None) -> bool:
        """Return whether an id is that of the lease; ids are GUIDs, whose case does not matter."""
        return lease_id is not None and self.lease_id.lower() == lease_id.lower()


@dataclass(frozen=True, slots=True)
class AcquireLease:
    lease_id: str
    duration_seconds: int


@dataclass(frozen=True, slots=True)
class RenewLease:
    lease_id: str


@dataclass(frozen=True, slots=True)
class ChangeLease:
    lease_id: str
    proposed_id: str


@dataclass(frozen=True, slots=True)
class ReleaseLease:
    lease_id: str


@dataclass(frozen=True, slots=True)
class BreakLease:
    # None: the rest of a lease that ends, and no time for an infinite lease.
    period_seconds: int | None = None


LeaseAction = AcquireLease | RenewLease | ChangeLease | ReleaseLease | BreakLease


def state_of(lease: Lease | None, now: int) -> LeaseState:
    if lease is None:
        return LeaseState.AVAILABLE
    if lease.broken_at is not None:
        return LeaseState.BREAKING if now < lease.broken_at else LeaseState.BROKEN
    if lease.expires_at is None or now < lease.expires_at:
        return LeaseState.LEASED
    return LeaseState.EXPIRED


def is_locked(lease: Lease | None, now: int) -> bool:
    """Return whether writes need the id of the lease."""
    return state_of(lease, now) in {LeaseState.LEASED, LeaseState.BREAKING}


def break_seconds_left(lease: Lease, now: int) -> int:
    """Return the whole seconds until a break ends, rounded up: another caller can acquire the lease then."""
    return 0 if lease.broken_at is None else max(0, -((now - lease.broken_at) // TICKS_PER_SECOND))


def check_lease_for_read(lease: Lease | None, lease_id: str | None, now: int) -> None:
    """Refuse a read whose lease id is not that of a lease in force. A read without an id is always permitted."""
    if lease_id is not None:
        _check_id(lease, lease_id, state_of(lease, now))


def check_lease_for_write(lease: Lease | None, lease_id: str | None, now: int) -> None:
    """Refuse a write that does not have the id of a lease in force, or has that of another."""
    state = state_of(lease, now)
    if lease_id is not None:
        _check_id(lease, lease_id, state)
    elif state is LeaseState.LEASED or state is LeaseState.BREAKING:
        raise BlobRefused(BlobFailure.LEASE_ID_MISSING)


def _check_id(lease: Lease | None, lease_id: str, state: LeaseState) -> None:
    if lease is None:
        raise BlobRefused(BlobFailure.LEASE_NOT_PRESENT)
    if not lease.has_id(lease_id):
        raise BlobRefused(BlobFailure.LEASE_ID_MISMATCH)
    if state is LeaseState.EXPIRED or state is LeaseState.BROKEN:
        raise BlobRefused(BlobFailure.LEASE_LOST)


def after_write(lease: Lease | None, now: int) -> Lease | None:
    """Return the lease after a write that was permitted: one that is over cannot be renewed any more."""
    return lease if is_locked(lease, now) else None


def apply_lease_action(lease: Lease | None, action: LeaseAction, now: int) -> Lease | None:
    """Return the lease after an action, or raise BlobRefused with the service's reason. Durations and periods are
    within their limits: callers check them, because only they can name the header."""
    match action:
        case AcquireLease(lease_id, duration_seconds):
            return _acquired(lease, lease_id, duration_seconds, now)
        case RenewLease(lease_id):
            return _renewed(lease, lease_id, now)
        case ChangeLease(lease_id, proposed_id):
            return _changed(lease, lease_id, proposed_id, now)
        case ReleaseLease(lease_id):
            if lease is None or not lease.has_id(lease_id):
                raise BlobRefused(BlobFailure.LEASE_ID_MISMATCH_WITH_LEASE)
            return None
        case BreakLease(period_seconds):
            return _broken(lease, period_seconds, now)
        case _:
            assert_never(action)


def _acquired(lease: Lease | None, lease_id: str, duration_seconds: int, now: int) -> Lease:
    if lease is not None:
        state = state_of(lease, now)
        is_own = lease.has_id(lease_id)
        if state is LeaseState.BREAKING and is_own:
            raise BlobRefused(BlobFailure.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED)
        if state is LeaseState.BREAKING or (state is LeaseState.LEASED and not is_own):
            raise BlobRefused(BlobFailure.LEASE_ALREADY_PRESENT)
    return Lease(lease_id, duration_seconds, _expiry(duration_seconds, now))


def _renewed(lease: Lease | None, lease_id: str, now: int) -> Lease:
    if lease is None or not lease.has_id(lease_id):
        raise BlobRefused(BlobFailure.LEASE_ID_MISMATCH_WITH_LEASE)
    if lease.broken_at is not None:
        raise BlobRefused(BlobFailure.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED)
    return replace(lease, expires_at=_expiry(lease.duration_seconds, now))


def _changed(lease: Lease | None, lease_id: str, proposed_id: str, now: int) -> Lease:
    state = state_of(lease, now)
    if lease is None or state is LeaseState.EXPIRED or state is LeaseState.BROKEN:
        raise BlobRefused(BlobFailure.LEASE_NOT_PRESENT_WITH_LEASE)
    # A repeated change finds the lease with the id that it proposed.
    if not lease.has_id(lease_id) and not lease.has_id(proposed_id):
        raise BlobRefused(BlobFailure.LEASE_ID_MISMATCH_WITH_LEASE)
    if state is LeaseState.BREAKING:
        raise BlobRefused(BlobFailure.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED)
    return replace(lease, lease_id=proposed_id)


def _broken(lease: Lease | None, period_seconds: int | None, now: int) -> Lease:
    if lease is None:
        raise BlobRefused(BlobFailure.LEASE_NOT_PRESENT_WITH_LEASE)
    state = state_of(lease, now)
    if state is LeaseState.BROKEN:
        return lease
    if state is LeaseState.EXPIRED:
        return replace(lease, broken_at=now)
    # The moment at which it would end by itself: a break only brings it nearer.
    end = lease.broken_at if lease.broken_at is not None else lease.expires_at
    if period_seconds is not None:
        wanted = now + period_seconds * TICKS_PER_SECOND
        end = wanted if end is None else min(end, wanted)
    return replace(lease, broken_at=now if end is None else end)


def _expiry(duration_seconds: int, now: int) -> int | None:
    return None if duration_seconds == INFINITE else now + duration_seconds * TICKS_PER_SECOND
