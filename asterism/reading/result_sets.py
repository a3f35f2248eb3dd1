"""Results that a query has found and its pages have not answered yet, kept for a while.

A query that needs all items before its first result (groups, distinct results, an order that no index has) would
otherwise be computed again for each page. What is kept is bounded in bytes and in time; a page that finds nothing here
computes it again, so a restart, another process or a slow reader costs time and nothing else.

Collecting itself may take longer than a client waits for a page. What was collected so far is then kept here too, and
the next page goes on with it.
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

# Of one query, and of all together.
SET_BYTES_MAX: Final = 4 * 1024 * 1024
ALL_BYTES_MAX: Final = 32 * 1024 * 1024
KEPT_SECONDS: Final = 60.0
# Of all collections that wait for their next page; one that finds no room is carried on to its end at once.
BEGUN_BYTES_MAX: Final = 64 * 1024 * 1024
BEGUN_MAX: Final = 1000
# So much is encoded before other requests are served.
_SLICE_BYTES: Final = 128 * 1024
# What a position takes besides its key, about.
_POSITION_BYTES: Final = 150


@dataclass(frozen=True, slots=True)
class _Results:
    # How many results came before these.
    first: int
    results: list[bytes]
    # Of results in an order, for each the position at which it is the next; empty for others.
    positions: list[OrderPosition | None]


@dataclass(slots=True)
class _Kept:
    # What was asked: only the same question is answered from here.
    identity: bytes
    value: _Results | CandidateSet
    size_bytes: int
    until: float


@dataclass(frozen=True, slots=True)
class _Begun:
    identity: bytes
    # The collector belongs to it: another one of the same text is compiled apart.
    query: Runnable
    collector: Collector
    size_bytes: int
    until: float


class ResultSets:
    """One per process. Names are random, and given only in the continuation of the query itself."""

    def __init__(
        self,
        *,
        monotonic_seconds: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        memory: QueryMemory | None = None,
    ) -> None:
        """`memory` is what the queries share whose results these are; what is kept here counts in it."""
        self.memory = memory or QueryMemory(DEFAULT_LIMITS.query_memory_bytes_max)
        self._monotonic_seconds = monotonic_seconds
        self._random_bytes = random_bytes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._size_bytes = 0
        self._begun: OrderedDict[str, _Begun] = OrderedDict()
        self._begun_bytes = 0

    async def keep(
        self, identity: bytes, rest: Iterable[bytes], *, first: int, positions: Sequence[OrderPosition | None] = ()
    ) -> str | None:
        """Return the name under which encoded results are found from now on; None when they are too many, or memory is
        short."""
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
        """Return the name under which candidates are found from now on, or None when they are too many or memory is
        short."""
        return self._keep(identity, candidates, candidates.size_bytes)

    def find_candidates(self, name: str | None, identity: bytes) -> CandidateSet | None:
        """Return candidates that are brought up to date by every page, and so kept as long as pages come."""
        kept = self._find(name, identity)
        if kept is None or not isinstance(kept.value, CandidateSet):
            return None
        kept.until = self._monotonic_seconds() + KEPT_SECONDS
        return kept.value

    def _keep(self, identity: bytes, value: _Results | CandidateSet, size_bytes: int) -> str | None:
        if size_bytes > SET_BYTES_MAX:
            return None
        try:
            self.memory.take(size_bytes)
        except QueryMemoryInUse:
            return None
        name = self._random_bytes(16).hex()
        until = self._monotonic_seconds() + KEPT_SECONDS
        self._kept[name] = _Kept(identity, value, size_bytes, until)
        self._size_bytes += size_bytes
        self._make_room()
        return name

    def _find(self, name: str | None, identity: bytes) -> _Kept | None:
        kept = None if name is None else self._kept.get(name)
        if name is None or kept is None or kept.identity != identity:
            return None
        if kept.until < self._monotonic_seconds():
            self._forget(name)
            return None
        self._kept.move_to_end(name)
        return kept

    def find(
        self, name: str | None, identity: bytes, *, first: int
    ) -> tuple[list[bytes], list[OrderPosition | None]] | None:
        """Return the results from the one with the number `first` on, with their positions if they are in an order;
        None when they are not kept (any more)."""
        kept = self._find(name, identity)
        found = None if kept is None else kept.value
        if not isinstance(found, _Results) or not found.first <= first < found.first + len(found.results):
            return None
        return found.results[first - found.first :], found.positions[first - found.first :]

    def keep_begun(self, identity: bytes, query: Runnable, collector: Collector) -> str | None:
        """Return the name under which a collection that is not at its end waits to be resumed; None without room."""
        now, size_bytes = self._monotonic_seconds(), collector.held_bytes
        for name in [name for name, begun in self._begun.items() if begun.until < now]:
            self._take_begun(name)
        if self._begun_bytes + size_bytes > BEGUN_BYTES_MAX or len(self._begun) >= BEGUN_MAX:
            return None
        name = self._random_bytes(16).hex()
        self._begun[name] = _Begun(identity, query, collector, size_bytes, now + KEPT_SECONDS)
        self._begun_bytes += size_bytes
        return name

    def take_begun(self, name: str | None, identity: bytes) -> tuple[Runnable, Collector] | None:
        """Return what was collected so far, to be resumed by one page alone; None when it is not kept (any more)."""
        if name is None or name not in self._begun or self._begun[name].identity != identity:
            return None
        begun = self._take_begun(name)
        return (begun.query, begun.collector) if begun.until >= self._monotonic_seconds() else None

    def _take_begun(self, name: str) -> _Begun:
        begun = self._begun.pop(name)
        self._begun_bytes -= begun.size_bytes
        return begun

    def _make_room(self) -> None:
        now = self._monotonic_seconds()
        for name in [name for name, kept in self._kept.items() if kept.until < now]:
            self._forget(name)
        while self._size_bytes > ALL_BYTES_MAX:
            self._forget(next(iter(self._kept)))

    def _forget(self, name: str) -> None:
        size_bytes = self._kept.pop(name).size_bytes
        self._size_bytes -= size_bytes
        self.memory.give_back(size_bytes)
