"""Admission of requests by the budget of a partition: serve now, or make the client wait.

A bucket holds at most one second's request units; a request is admitted while the balance is positive, and its cost
may take the balance below zero, so that even a cost above a second's budget is served eventually. Unused units flow
into a *reserve*, as in the service's burst capacity: see docs/request-units.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# The service's burst capacity: idle units of the last 300 s, spent at up to 3,000 RU/s in all, and only by
# partitions whose own share is below that.
BURST_RESERVE_SECONDS: Final = 300.0
BURST_RU_PER_SECOND_MAX: Final = 3_000.0

# Added to a wait, so that rounding cannot end it just before the balance is positive.
_WAIT_MARGIN_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request may run and is paid for."""


@dataclass(frozen=True, slots=True)
class BudgetSpent:
    """The request may not run; nothing is taken for it."""

    retry_after_seconds: float


TakeResult = Admitted | BudgetSpent
ADMITTED: Final = Admitted()


class TokenBucket:
    """The budget of one partition. Times are seconds of any monotonic clock."""

    __slots__ = (
        "_balance_ru",
        "_burst_enabled",
        "_burst_ready_ru",
        "_burst_ru_per_second",
        "_reserve_ru",
        "_reserve_ru_max",
        "_ru_per_second",
        "_share",
        "_updated_at",
        "asked_ru",
        "whole_ru_per_second",
    )

    def __init__(self, ru_per_second: float, *, burst: bool, now: float, share: float = 1.0) -> None:
        """Start with a full second and, with `burst`, a full reserve: like a partition that has long been idle.

        `share` is this bucket's fraction of the budget, the reserve included; other processes have the rest.
        """
        self._burst_enabled = burst
        self._updated_at = now
        # Sum of all costs so far, admitted or not.
        self.asked_ru = 0.0
        self._configure(ru_per_second, share)
        self._balance_ru = self._ru_per_second
        self._reserve_ru = self._reserve_ru_max
        self._burst_ready_ru = self._burst_ru_per_second

    def _configure(self, ru_per_second: float, share: float) -> None:
        if ru_per_second <= 0 or share <= 0:
            raise ValueError("a token bucket needs a positive rate")
        bursting = self._burst_enabled and ru_per_second < BURST_RU_PER_SECOND_MAX
        self.whole_ru_per_second = float(ru_per_second)
        self._share = share
        self._ru_per_second = ru_per_second * share
        self._reserve_ru_max = BURST_RESERVE_SECONDS * self._ru_per_second if bursting else 0.0
        self._burst_ru_per_second = (BURST_RU_PER_SECOND_MAX - ru_per_second) * share if bursting else 0.0

    @property
    def ru_per_second(self) -> float:
        return self._ru_per_second

    @property
    def balance_ru(self) -> float:
        """Balance as of the last call with a time."""
        return self._balance_ru

    @property
    def reserve_ru(self) -> float:
        return self._reserve_ru

    def take(self, cost: float, *, now: float) -> TakeResult:
        self.asked_ru += cost
        if now > self._updated_at:
            self._refill(now)
        balance = self._balance_ru
        if balance < cost and self._reserve_ru > 0.0:
            balance = self._draw_reserve(cost)
        if balance > 0.0:
            self._balance_ru = balance - cost
            return ADMITTED
        return BudgetSpent(self._seconds_until_positive())

    def spend(self, cost: float, *, now: float) -> None:
        """Deduct a cost that became known after the request, whatever the balance."""
        self.asked_ru += cost
        if now > self._updated_at:
            self._refill(now)
        if self._balance_ru < cost and self._reserve_ru > 0.0:
            self._draw_reserve(cost)
        self._balance_ru -= cost

    def set_rate(self, ru_per_second: float, *, now: float) -> None:
        """Change the rate; the savings stay, up to the maximum of the new rate."""
        self._change(ru_per_second, self._share, now)

    def set_share(self, share: float, *, now: float) -> None:
        """Change this bucket's fraction of the budget."""
        if share != self._share:
            self._change(self.whole_ru_per_second, share, now)

    def _change(self, ru_per_second: float, share: float, now: float) -> None:
        if now > self._updated_at:
            self._refill(now)
        self._configure(ru_per_second, share)
        self._balance_ru = min(self._balance_ru, self._ru_per_second)
        self._reserve_ru = min(self._reserve_ru, self._reserve_ru_max)
        self._burst_ready_ru = min(self._burst_ready_ru, self._burst_ru_per_second)

    def _refill(self, now: float) -> None:
        elapsed_seconds = now - self._updated_at
        self._updated_at = now
        rate = self._ru_per_second
        balance = self._balance_ru + rate * elapsed_seconds
        if balance > rate:
            self._reserve_ru = min(self._reserve_ru + balance - rate, self._reserve_ru_max)
            balance = rate
        self._balance_ru = balance
        burst_rate = self._burst_ru_per_second
        if burst_rate:
            self._burst_ready_ru += burst_rate * elapsed_seconds
            if balance < 0.0:
                # Debts are paid continuously, not only at requests: before the cap of one second is applied.
                self._draw_reserve(0.0)
            self._burst_ready_ru = min(self._burst_ready_ru, burst_rate)

    def _draw_reserve(self, cost: float) -> float:
        """Cover the missing part of the cost from the reserve, no faster than the burst rate."""
        drawn = min(cost - self._balance_ru, self._reserve_ru, self._burst_ready_ru)
        self._reserve_ru -= drawn
        self._burst_ready_ru -= drawn
        self._balance_ru += drawn
        return self._balance_ru

    def _seconds_until_positive(self) -> float:
        owed = -self._balance_ru
        with_reserve_seconds = owed / (self._ru_per_second + self._burst_ru_per_second)
        if self._reserve_ru >= self._burst_ru_per_second * with_reserve_seconds:
            return with_reserve_seconds + _WAIT_MARGIN_SECONDS
        return (owed - self._reserve_ru) / self._ru_per_second + _WAIT_MARGIN_SECONDS
