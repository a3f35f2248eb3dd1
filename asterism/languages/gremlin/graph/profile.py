"""Store operations of a traversal: what they cost, and where they went, for `executionProfile` and `profile`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.partitioning.partition_map import PartitionRange


@dataclass(slots=True)
class StoreOperation:
    """One operation of a step: a batch of point reads, a scan, lookups in an index, or writes."""

    # GetVertices, GetEdges or GetNeighborVertices, as the service calls them; or AddV, AddE, ...
    kind: str
    # Ids of the ranges that were asked.
    partitions: set[int] = field(default_factory=set)
    count: int = 0
    size_bytes: int = 0
    charge: float = 0.0
    seconds: float = 0.0
    # The path of the index that was used; empty for point reads and scans.
    index: str = ""


class Ledger:
    """The request units of a traversal, taken from the budgets of partitions as they are spent, and, where a profile
    is wanted, its operations."""

    __slots__ = ("_keyspace", "charge", "monotonic", "operations")

    def __init__(self, keyspace: Keyspace, monotonic: Callable[[], float]) -> None:
        self._keyspace = keyspace
        self.monotonic = monotonic
        self.charge = 0.0
        # None unless a profile is wanted.
        self.operations: list[StoreOperation] | None = None

    def spend(self, partition: PartitionRange, cost: float, point: bytes) -> None:
        """Take a cost from a partition's budget. Raises RequestRateTooLarge; the work was done by then, and counts."""
        self.charge += cost
        self._keyspace.spend(partition, cost, point)

    def begin(self, kind: str, index: str = "") -> RunningOperation:
        """Return the record of an operation that begins now."""
        operations = self.operations
        if operations is None:
            return _UNRECORDED
        operation = StoreOperation(kind, index=index)
        operations.append(operation)
        return RecordedOperation(operation, self.monotonic)


class RunningOperation:
    """An operation under way, without a record."""

    __slots__ = ()

    def add(self, partition: PartitionRange, *, count: int, size_bytes: int, charge: float) -> None:
        """Count what one partition answered."""

    def end(self) -> None:
        """Note the time."""


_UNRECORDED = RunningOperation()


class RecordedOperation(RunningOperation):
    """An operation under way, with its record."""

    __slots__ = ("_began", "_monotonic", "_operation")

    def __init__(self, operation: StoreOperation, monotonic: Callable[[], float]) -> None:
        self._operation = operation
        self._monotonic = monotonic
        self._began = monotonic()

    def add(self, partition: PartitionRange, *, count: int, size_bytes: int, charge: float) -> None:
        operation = self._operation
        operation.partitions.add(partition.id)
        operation.count += count
        operation.size_bytes += size_bytes
        operation.charge += charge

    def end(self) -> None:
        self._operation.seconds = self._monotonic() - self._began
