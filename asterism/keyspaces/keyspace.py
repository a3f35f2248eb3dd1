"""A keyspace as the running process knows it: its record, its budgets, and what it has served."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from asterism.errors import RequestRateTooLarge
from asterism.keyspaces.at_work import AtWork
from asterism.keyspaces.records import KeyspaceRecord
from asterism.metrics import PartitionUsage
from asterism.partitioning.partition_map import PartitionRange
from asterism.throughput.token_bucket import Throttled, TokenBucket

# Every so many requests the past counts half, so that the hottest keys are those of now.
_FADE_REQUESTS = 100_000
# Every eighth request is remembered for a while; 100,000 is a multiple of eight.
_SAMPLING_MASK = 7


class Keyspace:
    """The live handle on a keyspace. Floors above hold it for the length of a request, never longer."""

    __slots__ = (
        "_earlier_work",
        "_map_changed",
        "_monotonic_seconds",
        "at_work",
        "buckets",
        "deleted",
        "record",
        "usage",
        "version",
    )

    def __init__(self, record: KeyspaceRecord, version: bytes, monotonic_seconds: Callable[[], float]) -> None:
        self.record = record
        # The catalog's version of the record: what a change of it must still find there.
        self.version = version
        self.deleted = False
        # Entered by whoever goes by the settings, for that long (`with keyspace.at_work`).
        self.at_work = AtWork(record.settings)
        self._earlier_work: list[AtWork] = []
        # Range id -> bucket; empty while throughput is not enforced.
        self.buckets: dict[int, TokenBucket] = {}
        self.usage: dict[int, PartitionUsage] = {}
        self._monotonic_seconds = monotonic_seconds
        self._map_changed: asyncio.Future[None] | None = None

    def replace_record(self, record: KeyspaceRecord, version: bytes) -> None:
        if record.settings is not self.at_work.settings:
            self._earlier_work = [one for one in (*self._earlier_work, self.at_work) if not one.is_idle]
            self.at_work = AtWork(record.settings)
        self.record = record
        self.version = version
        self._wake_waiting()

    async def earlier_work_done(self) -> None:
        """Returns when nobody is at work any more who began under other settings than those of now."""
        for one in self._earlier_work:
            await one.idle()

    def mark_deleted(self) -> None:
        self.deleted = True
        self._wake_waiting()

    def _wake_waiting(self) -> None:
        if self._map_changed is not None:
            self._map_changed.set_result(None)
            self._map_changed = None

    async def changed(self, *, seconds_max: float) -> None:
        """Returns when the record changes or the keyspace is deleted, or after a while."""
        if self._map_changed is None:
            self._map_changed = asyncio.get_running_loop().create_future()
        await asyncio.wait({self._map_changed}, timeout=seconds_max)

    def owe(self, partition: PartitionRange, request_units: float, effective_key: bytes) -> None:
        """Takes the cost of work that was admitted already and turned out longer: the next request waits for it."""
        bucket = self.buckets.get(partition.id)
        if bucket is not None:
            bucket.spend(request_units, now=self._monotonic_seconds())
        usage = self.usage.setdefault(partition.id, PartitionUsage())
        usage.request_units += request_units
        usage.hottest.add(effective_key, request_units)

    def spend(self, partition: PartitionRange, request_units: float, effective_key: bytes) -> None:
        """Takes a request's cost from its partition's budget, or raises RequestRateTooLarge (spec C11)."""
        range_id = partition.id
        usage = self.usage.get(range_id)
        if usage is None:
            usage = self.usage[range_id] = PartitionUsage()
        bucket = self.buckets.get(range_id)
        if bucket is not None:
            admission = bucket.take(request_units, now=self._monotonic_seconds())
            if isinstance(admission, Throttled):
                usage.throttled += 1
                raise RequestRateTooLarge(retry_after_seconds=admission.retry_after_seconds)
        usage.requests += 1
        if not usage.requests & _SAMPLING_MASK:
            usage.recent.append((effective_key, request_units))
            if not usage.requests % _FADE_REQUESTS:
                usage.hottest.halve()
        usage.request_units += request_units
        usage.hottest.add(effective_key, request_units)
