"""The headers of lease operations, of blobs and of containers."""

from __future__ import annotations

from typing import Final

from asterism.apis.blob.context import BlobCall
from asterism.apis.blob.request_headers import guid_text, read_lease_id
from asterism.apis.storage.refusals import invalid_header_value, missing_header
from asterism.apis.transports.http import HeaderList, Response
from asterism.models.blobs.leases import (
    INFINITE,
    AcquireLease,
    BreakLease,
    ChangeLease,
    Lease,
    LeaseAction,
    ReleaseLease,
    RenewLease,
    break_seconds_left,
)

ACTION: Final = "x-ms-lease-action"
_DURATION: Final = "x-ms-lease-duration"
_PERIOD: Final = "x-ms-lease-break-period"
_LEASE_ID: Final = "x-ms-lease-id"
_PROPOSED: Final = "x-ms-proposed-lease-id"
# The service's limits.
_DURATIONS: Final = range(15, 61)
_PERIODS: Final = range(61)
_STATUS: Final[dict[type[LeaseAction], int]] = {AcquireLease: 201, BreakLease: 202}


def read_lease_action(call: BlobCall) -> LeaseAction:
    name = call.headers.get(ACTION)
    if not name:
        raise missing_header(ACTION)
    match name.lower():
        case "acquire":
            proposed = read_lease_id(call.headers, _PROPOSED)
            return AcquireLease(proposed or call.context.new_id(), _duration(call))
        case "renew":
            return RenewLease(_required(call, _LEASE_ID))
        case "change":
            return ChangeLease(_required(call, _LEASE_ID), _required(call, _PROPOSED))
        case "release":
            return ReleaseLease(_required(call, _LEASE_ID))
        case "break":
            return BreakLease(_period(call))
        case _:
            raise invalid_header_value(ACTION, name)


def _required(call: BlobCall, name: str) -> str:
    text = call.headers.get(name)
    if not text:
        raise missing_header(name)
    return guid_text(name, text)


def _duration(call: BlobCall) -> int:
    text = call.headers.get(_DURATION)
    if not text:
        raise missing_header(_DURATION)
    if text == str(INFINITE):
        return INFINITE
    if not text.isascii() or not text.isdigit() or len(text) > 2 or int(text) not in _DURATIONS:
        raise invalid_header_value(_DURATION, text, "A lease lasts 15 to 60 seconds, or -1 for one without an end.")
    return int(text)


def _period(call: BlobCall) -> int | None:
    text = call.headers.get(_PERIOD)
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 2 or int(text) not in _PERIODS:
        raise invalid_header_value(_PERIOD, text, "A lease breaks within 0 to 60 seconds.")
    return int(text)


def lease_answer(action: LeaseAction, lease: Lease | None, state_headers: HeaderList, now: int) -> Response:
    """Return the answer to an action that was done; `lease` is the lease after it."""
    answer = list(state_headers)
    if isinstance(action, BreakLease):
        answer.append(("x-ms-lease-time", str(0 if lease is None else _seconds_left(action, lease, now))))
    elif lease is not None:
        answer.append((_LEASE_ID, lease.lease_id))
    return Response(_STATUS.get(type(action), 200), answer)


def _seconds_left(action: BreakLease, lease: Lease, now: int) -> int:
    """Return the seconds until a break ends. `now` is a moment before the action, so they may seem to be one more."""
    left = break_seconds_left(lease, now)
    longest = _PERIODS.stop if lease.duration_seconds == INFINITE else lease.duration_seconds
    return min(left, longest if action.period_seconds is None else action.period_seconds)
