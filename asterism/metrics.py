"""What the database counts about itself: cheap to add to, bounded in memory, read by the operator."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class HeavyHitters(Generic[Key]):
    """The keys with the largest sums, in bounded memory.

    The space-saving sketch: at most `capacity` keys are kept; a new one takes the place of the smallest and inherits
    its sum, so a key that truly has more than total / capacity is never missed and a sum is never too small.
    """

    __slots__ = ("_capacity", "_sums")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._sums: dict[Key, float] = {}

    def add(self, key: Key, amount: float) -> None:
        sums = self._sums
        known = sums.get(key)
        if known is not None:
            sums[key] = known + amount
        elif len(sums) < self._capacity:
            sums[key] = amount
        else:
            smallest = min(sums, key=sums.__getitem__)
            sums[key] = sums.pop(smallest) + amount

    def top(self, count: int) -> list[tuple[Key, float]]:
        return sorted(self._sums.items(), key=lambda entry: entry[1], reverse=True)[:count]

    def halve(self) -> None:
        """Lets the past fade, so that what was hot an hour ago does not hide what is hot now."""
        self._sums = {key: amount / 2 for key, amount in self._sums.items() if amount >= 1.0}


@dataclass(slots=True)
class PartitionUsage:
    """What one physical partition has served since the process started."""

    requests: int = 0
    throttled: int = 0
    request_units: float = 0.0
    # Effective keys of logical partitions by request units; 64 are enough to name the hottest ten.
    hottest: HeavyHitters[bytes] = field(default_factory=lambda: HeavyHitters(64))
