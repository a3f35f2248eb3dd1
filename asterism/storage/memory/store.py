"""The data of a memory engine: what the disk is to the other engines."""

from __future__ import annotations

from collections.abc import Callable

from asterism.storage.contract import PartitionUnknown
from asterism.storage.memory.partition import MemoryPartition
from asterism.values.identifiers import SEQUENCE_BITS, PartitionNumber, sequence_of

_SEQUENCE_MASK = (1 << SEQUENCE_BITS) - 1


class MemoryStore:
    """Partitions by their place in the fleet's sequence, and the watches on them.

    Several engines may be open on one store, as several processes may be on one directory; it outlives them all.
    """

    def __init__(self) -> None:
        # Those that are being dropped too.
        self.partitions: dict[int, MemoryPartition] = {}
        self._watches: dict[int, dict[object, Callable[[], None]]] = {}

    def partition(self, number: PartitionNumber) -> MemoryPartition:
        found = self.partitions.get(number & _SEQUENCE_MASK)
        if found is None or found.dropping:
            raise PartitionUnknown(number)
        return found

    def watch(self, number: PartitionNumber, callback: Callable[[], None]) -> Callable[[], None]:
        """Return the function that ends the watch, which may be called again."""
        watches, token = self._watches.setdefault(sequence_of(number), {}), object()
        watches[token] = callback

        def end() -> None:
            watches.pop(token, None)

        return end

    def watches_of(self, partition: MemoryPartition) -> list[Callable[[], None]]:
        return list(self._watches.get(sequence_of(partition.number), {}).values())
