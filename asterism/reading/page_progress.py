"""The progress of a page of a query: its results so far, their cost, and its payments."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from asterism.errors import QueryMemoryInUse, QueryTookTooLong, TooLarge
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.limits import PAGE_BYTES_MAX
from asterism.partitioning.partition_map import PartitionRange
from asterism.reading.limits import QueryMemory, QueryMeter
from asterism.reading.turns import Turns
from asterism.throughput import charge

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class QueryAbandoned(Exception):
    """The client of a page has disconnected."""


class ClientWatch:
    """A watch for the disconnect of a long query's client. A short query is not worth the check."""

    # Slices of about a millisecond each.
    _FIRST_CHECK_SLICES = 200

    def __init__(self, client_gone: Callable[[], Awaitable[None]] | None) -> None:
        self._client_gone = client_gone
        self._gone: asyncio.Future[None] | None = None
        self._slices = 0

    def __enter__(self) -> ClientWatch:
        return self

    def __exit__(self, *_: object) -> None:
        if self._gone is not None:
            self._gone.cancel()

    def check(self) -> None:
        """Raise QueryAbandoned if the client has disconnected; called between two slices."""
        self._slices += 1
        if self._gone is not None:
            if self._gone.done():
                raise QueryAbandoned
        elif self._client_gone is not None and self._slices >= self._FIRST_CHECK_SLICES:
            self._gone = asyncio.ensure_future(self._client_gone())


@dataclass(slots=True)
class PageProgress:
    keyspace: Keyspace
    items_max: int
    # The time at which the page ends with the results it has.
    finish_at: float
    monotonic_seconds: Callable[[], float]
    partition: PartitionRange
    client: ClientWatch
    # Encodes a result.
    encode: Callable[[object], bytes]
    is_paid_later: bool = False
    results: list[bytes] = field(default_factory=list)
    bytes_returned: int = 0
    items_loaded: int = 0
    bytes_loaded: int = 0
    index_lookups: int = 0
    charge: float = 0.0
    # For `explain` and the index metrics: the indexes and the partitions that were read.
    indexes_used: set[str] = field(default_factory=set)
    ranges_read: set[int] = field(default_factory=set)
    has_scanned: bool = False
    # The meter of the query's own work; None until `measure` sets it.
    _meter: QueryMeter | None = None
    _turns: Turns | None = None
    # The counts of the meter when the page began; not zero if it resumes a collection.
    _steps_before: int = 0
    _built_before: int = 0

    def measure(self, meter: QueryMeter, *, memory: QueryMemory | None, in_turns: bool) -> None:
        """Count the work of a query from now on, and its memory as part of the `memory` that queries share.

        With `in_turns`, work on an item that takes long yields to other requests.
        """
        self._meter = meter
        self._steps_before, self._built_before = meter.steps, meter.bytes_built
        if memory is not None:
            meter.account.draw_on(memory)
        if in_turns:
            self._turns = Turns(self.monotonic_seconds, self.client.check)
            meter.watch(self._turns)

    async def in_turns(
        self, function: Callable[_Parameters, _Result], *arguments: _Parameters.args, **named: _Parameters.kwargs
    ) -> _Result:
        """Return the result of a function; other requests are answered meanwhile if it may take long.

        Raises QueryAbandoned if the client has disconnected.
        """
        if self._turns is None:
            return function(*arguments, **named)
        return await self._turns.run(function, *arguments, **named)

    @contextmanager
    def paying_when_refused(self, effective_key: bytes) -> Iterator[None]:
        """Charge a query that exceeds a limit for the work it did: trying would be free otherwise."""
        try:
            yield
        except (TooLarge, QueryTookTooLong, QueryMemoryInUse, QueryAbandoned):
            if self.is_paid_later or not self.charge:
                self.keyspace.owe(self.partition, self._total(), effective_key)
            else:
                self.pay(effective_key)
            raise

    @property
    def is_full(self) -> bool:
        return len(self.results) >= self.items_max or self.bytes_returned >= PAGE_BYTES_MAX

    @property
    def results_wanted(self) -> int:
        """The number of results that the page still has room for."""
        return self.items_max - len(self.results)

    @property
    def is_out_of_time(self) -> bool:
        """True if the page's time has expired; never before an item was loaded, so that every page makes progress."""
        return self.items_loaded > 0 and self.monotonic_seconds() >= self.finish_at

    def enter(self, partition: PartitionRange) -> None:
        self.partition = partition
        self.ranges_read.add(partition.id)

    def load(self, body: bytes) -> None:
        self.items_loaded += 1
        self.bytes_loaded += len(body)

    def load_all(self, items: Sequence[tuple[bytes, bytes]]) -> None:
        self.items_loaded += len(items)
        self.bytes_loaded += sum([len(body) for _, body in items])

    def answer(self, result: object) -> None:
        if self._turns is not None and self._meter is not None:
            self._meter.check_result(result)
        self.answer_encoded(self.encode(result))

    def has_room_for(self, encoded: Sequence[bytes], encoded_bytes: int) -> bool:
        """Return True if the page is not full after these results, and so has room for every one of them."""
        return (
            len(self.results) + len(encoded) < self.items_max and self.bytes_returned + encoded_bytes < PAGE_BYTES_MAX
        )

    def answer_all_encoded(self, encoded: Sequence[bytes], encoded_bytes: int) -> None:
        self.results += encoded
        self.bytes_returned += encoded_bytes

    def answer_encoded(self, encoded: bytes) -> None:
        self.results.append(encoded)
        self.bytes_returned += len(encoded)

    def pay(self, effective_key: bytes) -> None:
        """Take the cost since the last payment from the budget of the partition that was read.

        The first payment may be refused. Work that was begun is finished: if it were refused in the middle, the client
        would retry all of it, perhaps forever.
        """
        total = self._total()
        keyspace = self.keyspace
        take = keyspace.owe if self.charge else keyspace.spend
        if not self.is_paid_later:
            take(self.partition, total - self.charge, effective_key)
        self.charge = total

    def _total(self) -> float:
        meter = self._meter
        return charge.query(
            index_lookups=self.index_lookups,
            items_loaded=self.items_loaded,
            bytes_loaded=self.bytes_loaded,
            results=len(self.results),
            bytes_returned=self.bytes_returned,
            steps=0 if meter is None else meter.steps - self._steps_before,
            bytes_built=0 if meter is None else meter.bytes_built - self._built_before,
        )
