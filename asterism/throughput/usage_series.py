"""Consumption by partition over the last hours, in bounded memory.

Time is divided into slots. A slot that is over is a handful of arrays with a cell for each partition that served
anything in it, sorted by keyspace: forgetting the oldest is one step, and reading a keyspace is a binary search in
every slot.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from itertools import count
from typing import Final

# Keyspace, range, request units, throttled and requests: five columns of four bytes.
CELL_BYTES: Final = 20
# A cell's counts are unsigned numbers of four bytes; more is not served within a slot.
_COUNT_MAX: Final = 2**32 - 1


@dataclass(slots=True)
class Consumption:
    """The work of a partition in some time."""

    request_units: float = 0.0
    throttled: int = 0
    requests: int = 0

    def add(self, other: Consumption) -> None:
        self.request_units += other.request_units
        self.throttled += other.throttled
        self.requests += other.requests

    def __bool__(self) -> bool:
        return bool(self.request_units or self.throttled or self.requests)


@dataclass(slots=True)
class RangeSteps:
    """The work of a partition range, step by step."""

    request_units: list[float]
    throttled: list[int]
    requests: list[int]

    @classmethod
    def empty(cls, steps: int) -> RangeSteps:
        return cls([0.0] * steps, [0] * steps, [0] * steps)


class _Slot:
    """A slot that is over: columns of equal length, sorted by keyspace."""

    __slots__ = ("keyspaces", "number", "ranges", "request_units", "requests", "throttled")

    def __init__(self, number: int, cells: dict[tuple[int, int], Consumption]) -> None:
        self.number = number
        keys = sorted(cells)
        self.keyspaces = array("I", [keyspace for keyspace, _ in keys])
        self.ranges = array("I", [range_id for _, range_id in keys])
        self.request_units = array("f", [cells[key].request_units for key in keys])
        self.throttled = array("I", [min(cells[key].throttled, _COUNT_MAX) for key in keys])
        self.requests = array("I", [min(cells[key].requests, _COUNT_MAX) for key in keys])

    def add_to(self, by_range: dict[int, RangeSteps], keyspace: int, *, step: int, steps: int) -> None:
        """Add the cells of a keyspace to a step of its ranges."""
        first = bisect_left(self.keyspaces, keyspace)
        for place in range(first, bisect_right(self.keyspaces, keyspace, lo=first)):
            _add_to_step(
                by_range,
                self.ranges[place],
                Consumption(self.request_units[place], self.throttled[place], self.requests[place]),
                step=step,
                steps=steps,
            )


class UsageSeries:
    """The cells of all keyspaces. Slots are numbered by their time; a cell is never added to an earlier slot than the
    last. At most `slots_max` slots and `cells_max` cells are kept, the latest."""

    def __init__(self, *, slots_max: int, cells_max: int) -> None:
        self._slots_max = slots_max
        self._cells_max = cells_max
        self._closed: deque[_Slot] = deque()
        self._closed_cells = 0
        # The last slot, which still gets cells.
        self._open_number = 0
        self._open: dict[tuple[int, int], Consumption] = {}
        # Numbers in place of resource ids, which are longer. A number is never given twice, so that the cells of a
        # deleted keyspace belong to no other until they expire.
        self._numbers: dict[bytes, int] = {}
        self._next_number = count(1)

    @property
    def cells(self) -> int:
        return self._closed_cells + len(self._open)

    @property
    def keyspaces(self) -> int:
        return len(self._numbers)

    def add(self, slot: int, keyspace_rid: bytes, range_id: int, consumption: Consumption) -> None:
        """Add to the cell of a partition, in `slot` or in the last one, whichever is later."""
        self.advance(slot)
        number = self._numbers.get(keyspace_rid)
        if number is None:
            number = self._numbers[keyspace_rid] = next(self._next_number)
        self._open.setdefault((number, range_id), Consumption()).add(consumption)
        self._forget_surplus()

    def advance(self, slot: int) -> None:
        """Begin a slot if it is later than the last, and forget the slots that are too old for it."""
        if slot <= self._open_number:
            return
        if self._open:
            self._closed.append(_Slot(self._open_number, self._open))
            self._closed_cells += len(self._open)
            self._open = {}
        self._open_number = slot
        while self._closed and self._closed[0].number <= slot - self._slots_max:
            self._forget_oldest()

    def keep_only(self, keyspace_rids: Collection[bytes]) -> None:
        """Forget every other keyspace."""
        self._numbers = {rid: number for rid, number in self._numbers.items() if rid in keyspace_rids}

    def _forget_surplus(self) -> None:
        while self._closed and self.cells > self._cells_max:
            self._forget_oldest()
        if self.cells > self._cells_max:
            # A single slot with more partitions than may be kept; those that were met first stay.
            self._open.popitem()

    def _forget_oldest(self) -> None:
        self._closed_cells -= len(self._closed.popleft().keyspaces)

    def steps_of(
        self, keyspace_rid: bytes, *, first_slot: int, slots_per_step: int, steps: int
    ) -> dict[int, RangeSteps]:
        """Return the work of a keyspace's ranges in equal steps from `first_slot` on; ranges without any are absent."""
        number = self._numbers.get(keyspace_rid)
        by_range: dict[int, RangeSteps] = {}
        if number is None:
            return by_range
        for slot in self._closed:
            step = (slot.number - first_slot) // slots_per_step
            if 0 <= step < steps:
                slot.add_to(by_range, number, step=step, steps=steps)
        step = (self._open_number - first_slot) // slots_per_step
        if 0 <= step < steps:
            for (keyspace, range_id), consumption in self._open.items():
                if keyspace == number:
                    _add_to_step(by_range, range_id, consumption, step=step, steps=steps)
        return by_range


def _add_to_step(
    by_range: dict[int, RangeSteps], range_id: int, consumption: Consumption, *, step: int, steps: int
) -> None:
    served = by_range.get(range_id)
    if served is None:
        served = by_range[range_id] = RangeSteps.empty(steps)
    served.request_units[step] += consumption.request_units
    served.throttled[step] += consumption.throttled
    served.requests[step] += consumption.requests
