"""The operations of a simulation's clients and their outcomes, to be compared with the stored data in the end."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum

from tests.simulation.ledger import Item, Kind, LogEntry


class Outcome(Enum):
    """The outcome of an operation as its client knows it. If it is unknown, the operation was carried out, was not, or
    will be."""

    UNKNOWN = "unknown"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"


@dataclass(slots=True)
class Operation:
    number: int
    point: bytes
    # The largest LSN at the point that was acknowledged before the operation began: its own is larger.
    lsn_before: int
    outcome: Outcome = Outcome.UNKNOWN
    lsn: int = 0


@dataclass(frozen=True, slots=True)
class ItemRead:
    """A read of an item: the partition's LSN at that moment and the operation that had written it, 0 for none."""

    item: Item
    lsn: int
    operation: int


@dataclass(slots=True)
class History:
    operations: dict[int, Operation] = field(default_factory=dict)
    reads: list[ItemRead] = field(default_factory=list)
    # How often each operation took effect.
    effects: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    # Settings in the order in which the catalog got them, by their numbers, and the place of the last ones that were
    # acknowledged: nothing that was planned by older ones takes effect from then on.
    settings_places: dict[int, int] = field(default_factory=dict)
    _settings_in_force: int = 0
    _settings: int = 0
    _lsns: dict[bytes, int] = field(default_factory=dict)

    def begin(self, point: bytes) -> Operation:
        operation = Operation(len(self.operations) + 1, point, self.lsn_at(point))
        self.operations[operation.number] = operation
        return operation

    def next_settings(self) -> int:
        self._settings += 1
        return self._settings

    def note_settings(self, number: int) -> None:
        self.settings_places.setdefault(number, len(self.settings_places))

    def acknowledge_settings(self, number: int) -> None:
        self._settings_in_force = max(self.settings_places[number], self._settings_in_force)

    def are_outdated(self, settings: int) -> bool:
        return self.settings_places[settings] < self._settings_in_force

    def lsn_at(self, point: bytes) -> int:
        return self._lsns.get(point, 0)

    def acknowledge(self, operation: Operation, lsn: int) -> None:
        operation.outcome, operation.lsn = Outcome.ACKNOWLEDGED, lsn
        self._lsns[operation.point] = max(lsn, self.lsn_at(operation.point))

    def check(self, log: list[LogEntry]) -> list[str]:
        """Return the contradictions between the log of all partitions together and the replies to clients."""
        return [*self._check_operations(log), *_check_chains(log), *self._check_reads(log)]

    def _check_operations(self, log: list[LogEntry]) -> list[str]:
        problems = []
        lsns: defaultdict[int, set[int]] = defaultdict(set)
        for entry in log:
            lsns[entry.operation].add(entry.lsn)
        for number, operation in self.operations.items():
            found = lsns.get(number, set())
            match operation.outcome:
                case Outcome.ACKNOWLEDGED if found != {operation.lsn}:
                    problems.append(f"operation {number} was acknowledged with LSN {operation.lsn}; stored: {found}")
                case Outcome.REFUSED if found:
                    problems.append(f"operation {number} was refused, and is stored with {found}")
                case Outcome.UNKNOWN if len(found) > 1:
                    problems.append(f"operation {number} is stored more than once, with {found}")
                case _:
                    pass
        return problems

    def _check_reads(self, log: list[LogEntry]) -> list[str]:
        """Check that a read shows the item as the log has it at the read's LSN."""
        by_item: defaultdict[int, list[LogEntry]] = defaultdict(list)
        for entry in log:
            by_item[entry.item].append(entry)
        problems = []
        for read in self.reads:
            seen = [entry for entry in by_item[read.item.number] if entry.lsn <= read.lsn]
            expected = seen[-1].operation if seen and seen[-1].kind is Kind.PUT else 0
            if read.operation != expected:
                shown = f"a read of item {read.item.number} at LSN {read.lsn} showed operation {read.operation}"
                problems.append(f"{shown}, not {expected}")
        return problems


def _check_chains(log: list[LogEntry]) -> list[str]:
    """Check that every operation on an item was decided on the one before it: none was overwritten unseen."""
    problems = []
    last: dict[int, int] = {}
    for entry in log:
        if entry.previous != last.get(entry.item, 0):
            problems.append(
                f"operation {entry.operation} on item {entry.item} followed {entry.previous}, "
                f"and the log has {last.get(entry.item, 0)} before it"
            )
        last[entry.item] = entry.operation if entry.kind is Kind.PUT else 0
    return problems
