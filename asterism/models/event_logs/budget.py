"""The throughput units of a hub: what may come in and go out in a second. Off unless a hub has units."""

from __future__ import annotations

from typing import Final

from asterism.limits import MIB
from asterism.throughput.token_bucket import BudgetSpent, TakeResult, TokenBucket

# A unit of the service: 1 MB or 1,000 events a second in, whichever is reached first, and 2 MB a second out.
EVENTS_IN_PER_SECOND: Final = 1_000
BYTES_IN_PER_SECOND: Final = MIB
BYTES_OUT_PER_SECOND: Final = 2 * MIB


class HubBudget:
    """The buckets of one hub in one process; each process that serves the hub has the whole of it."""

    def __init__(self, units: int, *, now: float) -> None:
        self.units = units
        self._events_in = TokenBucket(EVENTS_IN_PER_SECOND * units, burst=False, now=now)
        self._bytes_in = TokenBucket(BYTES_IN_PER_SECOND * units, burst=False, now=now)
        self._bytes_out = TokenBucket(BYTES_OUT_PER_SECOND * units, burst=False, now=now)

    def take_in(self, *, events: int, bytes_in: int, now: float) -> TakeResult:
        """Take the cost of an append from both buckets, or from neither."""
        taken = self._events_in.take(events, now=now)
        if isinstance(taken, BudgetSpent):
            return taken
        admission = self._bytes_in.take(bytes_in, now=now)
        if isinstance(admission, BudgetSpent):
            # Back: nothing was appended.
            self._events_in.spend(-events, now=now)
        return admission

    def wait_seconds_out(self, *, now: float) -> float:
        """Return how long a reader must wait before it may be sent more; 0 if it need not."""
        admission = self._bytes_out.take(0.0, now=now)
        return admission.retry_after_seconds if isinstance(admission, BudgetSpent) else 0.0

    def spend_out(self, bytes_out: int, *, now: float) -> None:
        self._bytes_out.spend(bytes_out, now=now)
