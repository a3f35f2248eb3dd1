"""A keyspace in a running process: its record, its budgets, and the usage of its partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from asterism.errors import RequestRateTooLarge
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.in_flight import InFlight
from asterism.metrics import PartitionUsage
from asterism.partitioning.partition_map import PartitionRange
from asterism.throughput.token_bucket import BudgetSpent, TokenBucket

# After so many requests the past counts half, so that the hottest keys are the present ones.
_FADE_REQUESTS = 100_000
# Every eighth request is kept as a sample; 100,000 is a multiple of eight.
_SAMPLING_MASK = 7


class Spent:
    """The cost of one request so far, in request units."""

    __slots__ = ("charge",)

    def __init__(self) -> None:
        self.charge = 0.0


class Keyspace:
    """The live handle on a keyspace. Callers hold it for the length of a request, never longer."""

    __slots__ = (
        "_earlier_work",
        "_map_changed",
        "_monotonic_seconds",
        "buckets",
        "deleted",
        "in_flight",
        "record",
        "usage",
        "version",
    )

    def __init__(self, record: KeyspaceRecord, version: bytes, monotonic_seconds: Callable[[], float]) -> None:
        self.record = record
        # The version of the record in the catalog, which a change of it expects.
        self.version = version
        self.deleted = False
        # Callers hold it while they use the settings (`with keyspace.in_flight`).
        self.in_flight = InFlight(record.settings)
        self._earlier_work: list[InFlight] = []
        # Range id -> bucket; empty while throughput is not enforced.
        self.buckets: dict[int, TokenBucket] = {}
        self.usage: dict[int, PartitionUsage] = {}
        self._monotonic_seconds = monotonic_seconds
        self._map_changed: asyncio.Future[None] | None = None

    def replace_record(self, record: KeyspaceRecord, version: bytes) -> None:
        if record.settings is not self.in_flight.settings:
            self._earlier_work = [work for work in (*self._earlier_work, self.in_flight) if not work.is_idle]
            self.in_flight = InFlight(record.settings)
        self.record = record
        self.version = version
        self._wake_waiting()

    async def earlier_work_done(self) -> None:
        """Return when all work that began under other settings than the present ones has finished."""
        for work in self._earlier_work:
            await work.idle()

    def mark_deleted(self) -> None:
        self.deleted = True
        self._wake_waiting()

    def _wake_waiting(self) -> None:
        if self._map_changed is not None:
            self._map_changed.set_result(None)
            self._map_changed = None

    async def changed(self, *, seconds_max: float) -> None:
        """Return when the record changes or the keyspace is deleted, at the latest after `seconds_max`."""
        if self._map_changed is None:
            self._map_changed = asyncio.get_running_loop().create_future()
        await asyncio.wait({self._map_changed}, timeout=seconds_max)

    def owe(self, partition: PartitionRange, request_units: float, effective_key: bytes) -> None:
        """Take the cost of work that was admitted and turned out larger: the next request waits for it."""
        bucket = self.buckets.get(partition.id)
        if bucket is not None:
            bucket.spend(request_units, now=self._monotonic_seconds())
        usage = self.usage.setdefault(partition.id, PartitionUsage())
        usage.request_units += request_units
        usage.hottest.add(effective_key, request_units)

    def spend(self, partition: PartitionRange, request_units: float, effective_key: bytes) -> None:
        """Take a request's cost from the budget of its partition; RequestRateTooLarge if it is spent (spec C11)."""
        range_id = partition.id
        usage = self.usage.get(range_id)
        if usage is None:
            usage = self.usage[range_id] = PartitionUsage()
        bucket = self.buckets.get(range_id)
        if bucket is not None:
            admission = bucket.take(request_units, now=self._monotonic_seconds())
            if isinstance(admission, BudgetSpent):
                usage.throttled += 1
                raise RequestRateTooLarge(retry_after_seconds=admission.retry_after_seconds)
        usage.requests += 1
        if not usage.requests & _SAMPLING_MASK:
            usage.recent.append((effective_key, request_units))
            if not usage.requests % _FADE_REQUESTS:
                usage.hottest.halve()
        usage.request_units += request_units
        usage.hottest.add(effective_key, request_units)
