"""Counters of the database about itself: cheap to add to, bounded in memory, read by the operator."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

# Upper bounds of the latency histogram, three to a decade. A point read takes some 30 µs within the server, and the
# longest requests (a page of a query, a script) end after seconds; slower ones fall behind the last bound.
LATENCY_SECONDS: Final = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)


class HeavyHitters(Generic[Key]):
    """The keys with the largest sums, in bounded memory and constant time on average.

    At most four times `capacity` keys are kept; then all but the largest `capacity` are forgotten, and a key met later
    starts from the largest sum among the forgotten. So a sum is never too small, and a key that has more than the
    total divided by `capacity` is never missed.
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
        """Return those of the top whose sum is mostly their own. Where no key has more than others, none does, and
        the sums would only say how many keys were met."""
        return [entry for entry in self.top(count) if entry[1] >= 2 * self._floor]

    def halve(self) -> None:
        """Let the past fade, so that keys that were hot an hour ago do not hide those that are hot now."""
        self._sums = {key: amount / 2 for key, amount in self._sums.items() if amount >= 1.0}
        self._floor /= 2


@dataclass(slots=True)
class PartitionUsage:
    """The work of one physical partition since the process started."""

    requests: int = 0
    throttled: int = 0
    request_units: float = 0.0
    # Effective keys of logical partitions by request units; 64 are enough to name the hottest ten.
    hottest: HeavyHitters[bytes] = field(default_factory=lambda: HeavyHitters(64))
    # Effective keys and costs of one in eight of the last requests, in their order: where the load is now.
    recent: deque[tuple[bytes, float]] = field(default_factory=lambda: deque(maxlen=256))


class OperationRequests:
    """The requests of one operation: how many ended with each status, and how long they took."""

    __slots__ = ("by_latency", "by_status", "seconds")

    def __init__(self) -> None:
        self.by_status: dict[int | str, int] = {}
        # One more than there are bounds: the last counts whatever took longer.
        self.by_latency = [0] * (len(LATENCY_SECONDS) + 1)
        self.seconds = 0.0


class DoorRequests:
    """The requests of one door. Operations are those of its route table, so their number is bounded."""

    __slots__ = ("in_flight", "operations")

    def __init__(self) -> None:
        self.in_flight = 0
        self.operations: dict[str, OperationRequests] = {}

    def add(self, operation: str, status: int | str, seconds: float) -> None:
        """Count a request that has ended."""
        counted = self.operations.get(operation)
        if counted is None:
            counted = self.operations[operation] = OperationRequests()
        counted.by_latency[bisect_left(LATENCY_SECONDS, seconds)] += 1
        counted.seconds += seconds
        by_status = counted.by_status
        by_status[status] = by_status.get(status, 0) + 1


@dataclass(slots=True)
class WorkCounts:
    """Work behind the requests of a process."""

    # Splits, merges and moves that were finished, by kind.
    reshapes: Counter[str] = field(default_factory=Counter)
    # Transactions that its storage engines have committed.
    store_commits: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the counts in the form in which processes send them to each other."""
        return {"reshapes": dict(self.reshapes), "store_commits": self.store_commits}

    def add_json(self, counts: Mapping[str, Any]) -> None:
        """Add the counts of another process; of a version without them there are none."""
        self.reshapes.update(counts.get("reshapes", {}))
        self.store_commits += counts.get("store_commits", 0)


class RequestCounts:
    """The requests of all doors of a process, by door, operation and status, with their latencies."""

    __slots__ = ("doors",)

    def __init__(self) -> None:
        self.doors: dict[str, DoorRequests] = {}

    def of_door(self, name: str) -> DoorRequests:
        return self.doors.setdefault(name, DoorRequests())

    def to_json(self) -> dict[str, Any]:
        """Return the counts in the form in which processes send them to each other."""
        return {
            name: {
                "in_flight": door.in_flight,
                "operations": {
                    operation: {
                        "by_status": {str(status): count for status, count in counted.by_status.items()},
                        "by_latency": list(counted.by_latency),
                        "seconds": counted.seconds,
                    }
                    for operation, counted in door.operations.items()
                },
            }
            for name, door in self.doors.items()
        }

    def add_json(self, counts: Mapping[str, Any]) -> None:
        """Add the counts of another process."""
        for name, others in counts.items():
            door = self.of_door(name)
            door.in_flight += others["in_flight"]
            for operation, other in others["operations"].items():
                by_latency = other["by_latency"]
                # A process of another version may have other bounds: its latencies cannot be added to these.
                if len(by_latency) == len(LATENCY_SECONDS) + 1:
                    counted = door.operations.setdefault(operation, OperationRequests())
                    counted.by_latency = [own + more for own, more in zip(counted.by_latency, by_latency, strict=True)]
                    counted.seconds += other["seconds"]
                    for status, count in other["by_status"].items():
                        counted.by_status[status] = counted.by_status.get(status, 0) + count
