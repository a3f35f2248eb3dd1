"""Results that a query has found and its pages have not answered yet, kept for a while.

A query that needs all items before its first result (groups, distinct results, an order that no index has) would
otherwise be computed again for each page. Kept results are bounded in bytes and in time; a page that finds none here
computes them again, so a restart, another process or a slow reader costs time and nothing else.

Collecting itself may take longer than a client waits for a page. The unfinished collection is then kept here too, and
the next page resumes it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from asterism.errors import QueryMemoryInUse
from asterism.limits import DEFAULT_LIMITS
from asterism.reading.candidate_sets import CandidateSet
from asterism.reading.collectors import Collector
from asterism.reading.limits import QueryMemory
from asterism.reading.order_plan import OrderPosition
from asterism.reading.runnable import Runnable

# Bytes kept for one query, and for all together.
SET_BYTES_MAX: Final = 4 * 1024 * 1024
ALL_BYTES_MAX: Final = 32 * 1024 * 1024
KEPT_SECONDS: Final = 60.0
# Limits of all collections that wait for their next page; one that finds no room runs to its end at once.
UNFINISHED_BYTES_MAX: Final = 64 * 1024 * 1024
UNFINISHED_MAX: Final = 1000
# Bytes encoded before other requests are served.
_SLICE_BYTES: Final = 128 * 1024
# Approximate memory of a position besides its key.
_POSITION_BYTES: Final = 150


@dataclass(frozen=True, slots=True)
class _Results:
    # The number of results before these.
    first: int
    results: list[bytes]
    # For each result in an order, the position at which it is the next; empty for others.
    positions: list[OrderPosition | None]


@dataclass(slots=True)
class _KeptValue:
    # The identity of the query: only the same query is answered from here.
    identity: bytes
    value: _Results | CandidateSet
    size_bytes: int
    expires_at: float


@dataclass(frozen=True, slots=True)
class _UnfinishedCollection:
    identity: bytes
    # The collector belongs to it: another query of the same text is compiled separately.
    query: Runnable
    collector: Collector
    size_bytes: int
    expires_at: float


class ResultSets:
    """Kept results and unfinished collections; one per process. Their names are random, and given only in the
    continuation of the query itself."""

    def __init__(
        self,
        *,
        monotonic_seconds: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        memory: QueryMemory | None = None,
    ) -> None:
        """`memory` is the memory that queries share; kept results count in it."""
        self.memory = memory or QueryMemory(DEFAULT_LIMITS.query_memory_bytes_max)
        self._monotonic_seconds = monotonic_seconds
        self._random_bytes = random_bytes
        self._kept: OrderedDict[str, _KeptValue] = OrderedDict()
        self._size_bytes = 0
        self._unfinished: OrderedDict[str, _UnfinishedCollection] = OrderedDict()
        self._unfinished_bytes = 0

    async def keep(
        self, identity: bytes, rest: Iterable[bytes], *, first: int, positions: Sequence[OrderPosition | None] = ()
    ) -> str | None:
        """Keep encoded results and return their name; None if they are too many, or memory is short."""
        results: list[bytes] = []
        size_bytes = sliced_bytes = 0
        for encoded in rest:
            results.append(encoded)
            size_bytes += len(encoded)
            if size_bytes > SET_BYTES_MAX:
                return None
            if size_bytes - sliced_bytes > _SLICE_BYTES:
                sliced_bytes = size_bytes
                await asyncio.sleep(0)
        size_bytes += sum(_POSITION_BYTES + len(position.key) for position in positions if position is not None)
        return self._keep(identity, _Results(first, results, list(positions)), size_bytes)

    def keep_candidates(self, identity: bytes, candidates: CandidateSet) -> str | None:
        """Keep candidates and return their name; None if they are too many, or memory is short."""
        return self._keep(identity, candidates, candidates.size_bytes)

    def find_candidates(self, name: str | None, identity: bytes) -> CandidateSet | None:
        """Return kept candidates and extend their time: every page brings them up to date."""
        kept = self._find(name, identity)
        if kept is None or not isinstance(kept.value, CandidateSet):
            return None
        kept.expires_at = self._monotonic_seconds() + KEPT_SECONDS
        return kept.value

    def _keep(self, identity: bytes, value: _Results | CandidateSet, size_bytes: int) -> str | None:
        if size_bytes > SET_BYTES_MAX:
            return None
        try:
            self.memory.take(size_bytes)
        except QueryMemoryInUse:
            return None
        name = self._random_bytes(16).hex()
        expires_at = self._monotonic_seconds() + KEPT_SECONDS
        self._kept[name] = _KeptValue(identity, value, size_bytes, expires_at)
        self._size_bytes += size_bytes
        self._make_room()
        return name

    def _find(self, name: str | None, identity: bytes) -> _KeptValue | None:
        kept = None if name is None else self._kept.get(name)
        if name is None or kept is None or kept.identity != identity:
            return None
        if kept.expires_at < self._monotonic_seconds():
            self._forget(name)
            return None
        self._kept.move_to_end(name)
        return kept

    def find(
        self, name: str | None, identity: bytes, *, first: int
    ) -> tuple[list[bytes], list[OrderPosition | None]] | None:
        """Return the results from the one with the number `first` on, with their positions if they are in an order;
        None if they are not kept (any more)."""
        kept = self._find(name, identity)
        found = None if kept is None else kept.value
        if not isinstance(found, _Results) or not found.first <= first < found.first + len(found.results):
            return None
        return found.results[first - found.first :], found.positions[first - found.first :]

    def keep_unfinished(self, identity: bytes, query: Runnable, collector: Collector) -> str | None:
        """Keep an unfinished collection, to be resumed by the next page, and return its name; None without room."""
        now, size_bytes = self._monotonic_seconds(), collector.held_bytes
        for name in [name for name, collection in self._unfinished.items() if collection.expires_at < now]:
            self._take_unfinished(name)
        if self._unfinished_bytes + size_bytes > UNFINISHED_BYTES_MAX or len(self._unfinished) >= UNFINISHED_MAX:
            return None
        name = self._random_bytes(16).hex()
        expires_at = now + KEPT_SECONDS
        self._unfinished[name] = _UnfinishedCollection(identity, query, collector, size_bytes, expires_at)
        self._unfinished_bytes += size_bytes
        return name

    def take_unfinished(self, name: str | None, identity: bytes) -> tuple[Runnable, Collector] | None:
        """Return an unfinished collection and its query, for one page alone; None if it is not kept (any more)."""
        if name is None or name not in self._unfinished or self._unfinished[name].identity != identity:
            return None
        collection = self._take_unfinished(name)
        is_expired = collection.expires_at < self._monotonic_seconds()
        return None if is_expired else (collection.query, collection.collector)

    def _take_unfinished(self, name: str) -> _UnfinishedCollection:
        collection = self._unfinished.pop(name)
        self._unfinished_bytes -= collection.size_bytes
        return collection

    def _make_room(self) -> None:
        now = self._monotonic_seconds()
        for name in [name for name, kept in self._kept.items() if kept.expires_at < now]:
            self._forget(name)
        while self._size_bytes > ALL_BYTES_MAX:
            self._forget(next(iter(self._kept)))

    def _forget(self, name: str) -> None:
        size_bytes = self._kept.pop(name).size_bytes
        self._size_bytes -= size_bytes
        self.memory.give_back(size_bytes)
