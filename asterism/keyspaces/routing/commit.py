"""The commit of a planned batch, shared by all models: admission, refusals, ceilings, room, and the notice of growth.

A model plans a batch of entries; this adds the sizes of the batch's logical and physical partition, takes the cost
once, and applies the batch. A physical partition that is full is split first, and the batch is applied again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from asterism.errors import Forbidden, LogicalPartitionFull, PhysicalPartitionFull, TooMuchContention
from asterism.keyspaces.routing.families import LOGICAL_SIZES, TOTALS_KEY
from asterism.keyspaces.routing.keyspace import Keyspace, Spent
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.partitioning.partition_map import PartitionMap, PartitionRange
from asterism.storage.contract import Add, Batch, CeilingPassed
from asterism.values.identifiers import Lsn

# How often room is made for one batch: other writers may fill it before the batch is applied.
ROOM_ATTEMPTS_MAX = 100


class Growth(Protocol):
    """The part of the reshaper that writes need."""

    def notice_growth(self, keyspace: Keyspace, partition: PartitionRange, bytes_delta: int, /) -> None:
        """Count bytes that were written to a partition; must be cheap."""
        ...

    async def make_room(self, keyspace: Keyspace, point: bytes, /) -> bool:
        """Split the partition of `point`; return False if it cannot be split."""
        ...


class Committer:
    """Commits batches to one keyspace. Each batch belongs to one logical partition, that of its point."""

    __slots__ = ("_growth", "_keyspace", "_logical_bytes_max", "_physical_bytes_max", "_router")

    def __init__(
        self,
        keyspace: Keyspace,
        router: PartitionRouter,
        growth: Growth,
        *,
        logical_bytes_max: int | None,
        physical_bytes_max: int | None,
    ) -> None:
        """The ceilings bound the stored bytes of a logical and of a physical partition; None sets no ceiling."""
        self._keyspace = keyspace
        self._router = router
        self._growth = growth
        self._logical_bytes_max = logical_bytes_max
        self._physical_bytes_max = physical_bytes_max

    async def commit(
        self,
        point: bytes,
        batch: Batch,
        *,
        bytes_delta: int,
        items_delta: int,
        cost: float,
        planned_under: Mapping[str, Any] | None = None,
        on_map: PartitionMap | None = None,
        spent: Spent | None = None,
    ) -> tuple[PartitionRange, Lsn]:
        """Apply `batch`, with the sizes of its partitions added to it, and return where and with which LSN.

        The caller holds `keyspace.in_flight` from before it planned the batch until this returns. The cost is taken
        from the partition's budget once, before the first attempt, and counted in `spent`. `planned_under` are the
        settings that the batch was planned by; PlanOutdated if others are in force. `on_map` as for the router.

        Raises Forbidden while the keyspace refuses writes, LogicalPartitionFull and PhysicalPartitionFull at the
        ceilings, and the storage contract's ExpectationFailed, whose meaning the caller knows.
        """
        keyspace = self._keyspace
        record = keyspace.record
        assert planned_under is not record.settings or not keyspace.in_flight.is_idle, "in_flight is not held (K8)"
        if record.writes_refused:
            raise Forbidden(reason=record.writes_refused)
        if bytes_delta or items_delta:
            deltas = (bytes_delta, items_delta)
            batch.adds.append(Add(LOGICAL_SIZES + point, deltas, self._logical_bytes_max))
            batch.adds.append(Add(TOTALS_KEY, deltas, self._physical_bytes_max))
        for _ in range(ROOM_ATTEMPTS_MAX):
            try:
                partition, lsn = await self._router.apply(
                    keyspace, point, batch, planned_under=planned_under, on_map=on_map, cost=cost, spent=spent
                )
            except CeilingPassed as passed:
                if passed.key != TOTALS_KEY:
                    raise LogicalPartitionFull(bytes_max=self._logical_bytes_max or 0) from None
                if not await self._growth.make_room(keyspace, point):
                    raise PhysicalPartitionFull(bytes_max=self._physical_bytes_max or 0) from None
                # The next attempt is part of the same request.
                cost, spent = 0.0, None
            else:
                self._growth.notice_growth(keyspace, partition, bytes_delta)
                return partition, lsn
        raise TooMuchContention
