"""The watch of a stream that waits: on the partitions it reads, for the changes of other processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from asterism.models.collections.change_scope import ChangeScope
from asterism.models.collections.open_readers import scope_sources
from asterism.values.identifiers import PartitionNumber

if TYPE_CHECKING:
    from asterism.models.collections.store import CollectionStore

# A store that many machines share does not report the batches of every partition: a stream looks by itself as often.
_LOOK_SECONDS = 1.0


class OthersWatch:
    """Wakes the waiting readers of this process. Costs nothing while no other process serves the store."""

    __slots__ = ("_ends", "_scope", "_store")

    def __init__(self, store: CollectionStore, scope: ChangeScope) -> None:
        self._store = store
        self._scope = scope
        self._ends: dict[PartitionNumber, Callable[[], None]] = {}

    def begin(self, seconds_max: float) -> float:
        """Watch the partitions as the map has them now; return how long the stream may wait before it looks again."""
        services = self._store.services
        if not services.router.has_others:
            return seconds_max
        wanted = {
            partition.partition
            for source in scope_sources(self._store, self._scope)
            for partition in source.keyspace.record.map.ranges
        }
        for number in [number for number in self._ends if number not in wanted]:
            self._ends.pop(number)()
        for number in wanted - self._ends.keys():
            self._ends[number] = services.router.watch(number, services.signal.notify)
        return min(seconds_max, _LOOK_SECONDS)

    def end(self) -> None:
        while self._ends:
            self._ends.popitem()[1]()
