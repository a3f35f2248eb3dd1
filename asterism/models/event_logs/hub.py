"""A hub in a running process: its description, its partitions, and the links that want to know of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.event_logs.budget import HubBudget
from asterism.models.event_logs.description import HubDescription
from asterism.models.event_logs.log import PartitionLog
from asterism.models.event_logs.services import EventLogServices
from asterism.models.namespaces.store import EntityRecord


class Hub:
    """The live handle on a hub. Links may keep it as long as they watch it."""

    def __init__(self, record: EntityRecord, services: EventLogServices) -> None:
        self.namespace = record.namespace
        self.name = record.name
        self.keyspace: Keyspace = record.keyspace
        self.partition_count = record.partition_count
        self._services = services
        self._logs: dict[int, PartitionLog] = {}
        self._budget: HubBudget | None = None
        # A process that starts must not begin where all others began.
        self._turn = services.random_bytes(1)[0]
        self._watchers: set[Callable[[], None]] = set()
        self._stored: Mapping[str, Any] = {}
        self._description: HubDescription
        self.refresh(record)

    # --- description --------------------------------------------------------------------------------------------------

    @property
    def description(self) -> HubDescription:
        return self._description

    @property
    def is_deleted(self) -> bool:
        return self.keyspace.deleted

    @property
    def message_bytes_max(self) -> int:
        """Return the size of the largest event, and of the largest batch."""
        return self._services.limits.message_bytes_max

    @property
    def throughput_units(self) -> int | None:
        """Return the throughput units that are in force; None if throughput is not limited."""
        own = self._description.throughput_units
        return self._services.limits.throughput_units if own is None else own

    def refresh(self, record: EntityRecord) -> None:
        """Take over the description that is in force."""
        if record.description is not self._stored:
            self._stored = record.description
            self._description = HubDescription.from_json(record.description)

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call back after each change of the description and after the deletion; return the end of the watch."""
        self._watchers.add(on_change)
        return lambda: self._watchers.discard(on_change)

    def notify(self) -> None:
        for on_change in list(self._watchers):
            on_change()

    # --- partitions ---------------------------------------------------------------------------------------------------

    def has_partition(self, partition: int) -> bool:
        return 0 <= partition < self.partition_count

    def log(self, partition: int) -> PartitionLog:
        """Return a partition, which must exist (`has_partition`)."""
        log = self._logs.get(partition)
        if log is None:
            if not self.has_partition(partition):
                raise ValueError("the hub has no such partition")
            log = PartitionLog(self.name, self.keyspace, partition, self._services, self.budget)
            self._logs[partition] = log
        return log

    def open_logs(self) -> Iterator[PartitionLog]:
        """Return the partitions that were used since the process started."""
        return iter(list(self._logs.values()))

    def next_log(self) -> PartitionLog:
        """Return the partition whose turn it is; those that are down are passed, as long as one is not."""
        for _ in range(self.partition_count):
            self._turn = (self._turn + 1) % self.partition_count
            log = self.log(self._turn)
            if not log.is_down:
                break
        return log

    def budget(self) -> HubBudget | None:
        """Return the buckets of the throughput units; None if the hub has none."""
        units = self.throughput_units
        if units is None:
            return None
        if self._budget is None or self._budget.units != units:
            self._budget = HubBudget(units, now=self._services.clock.monotonic_seconds())
        return self._budget

    async def stop(self) -> None:
        for log in self.open_logs():
            await log.stop()
