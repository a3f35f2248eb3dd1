"""What the database counts about itself: cheap to add to, bounded in memory, read by the operator."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class HeavyHitters(Generic[Key]):
    """The keys with the largest sums, in bounded memory and constant time on average.

    At most four times `capacity` keys are kept; then all but the largest `capacity` are forgotten, and what was the
    most any of them had is what a key met later starts from. So a sum is never too small, and a key that has more
    than the total divided by `capacity` is never missed.
    """

    __slots__ = ("_capacity", "_floor", "_sums")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._floor = 0.0
        self._sums: dict[Key, float] = {}

    def add(self, key: Key, amount: float) -> None:
        sums = self._sums
        known = sums.get(key)
        if known is not None:
            sums[key] = known + amount
            return
        if len(sums) >= 4 * self._capacity:
            self._forget_the_small()
        self._sums[key] = self._floor + amount

    def _forget_the_small(self) -> None:
        ranked = self.top(len(self._sums))
        self._sums = dict(ranked[: self._capacity])
        self._floor = ranked[self._capacity][1]

    def top(self, count: int) -> list[tuple[Key, float]]:
        return sorted(self._sums.items(), key=lambda entry: entry[1], reverse=True)[:count]

    def standing_out(self, count: int) -> list[tuple[Key, float]]:
        """Of the top those whose sum is mostly their own. Where no key has more than others, none does, and what the
        sums would tell is only how many keys were met."""
        return [entry for entry in self.top(count) if entry[1] >= 2 * self._floor]

    def halve(self) -> None:
        """Lets the past fade, so that what was hot an hour ago does not hide what is hot now."""
        self._sums = {key: amount / 2 for key, amount in self._sums.items() if amount >= 1.0}
        self._floor /= 2


@dataclass(slots=True)
class PartitionUsage:
    """What one physical partition has served since the process started."""

    requests: int = 0
    throttled: int = 0
    request_units: float = 0.0
    # Effective keys of logical partitions by request units; 64 are enough to name the hottest ten.
    hottest: HeavyHitters[bytes] = field(default_factory=lambda: HeavyHitters(64))
    # Effective keys and costs of one in eight of the last requests, in their order: where the load is now.
    recent: deque[tuple[bytes, float]] = field(default_factory=lambda: deque(maxlen=256))
