"""Partitions that fill up, seen from the writes that fill them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from asterism.errors import AsterismError, OwnerNotFound
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.statistics import partition_size
from asterism.limits import Limits
from asterism.partitioning.partition_map import PartitionRange
from asterism.partitioning.split_merge import SIZE_SPLIT_FRACTION
from asterism.values.identifiers import PartitionNumber

_log = logging.getLogger(__name__)

# A partition that could not be split is checked again when it has grown by this share of the limit.
_REPLAN_FRACTION = 0.05
# Other processes write too: after this share of the limit the real size is looked up again.
_LOOK_UP_FRACTION = 0.02

Work = Callable[[Keyspace, PartitionRange], Awaitable[None]]


class GrowthWatch:
    """Approximate sizes of the partitions that this process writes to.

    `split` is called in the background for a partition that is nearly full.
    """

    def __init__(self, router: PartitionRouter, limits: Limits, split: Work) -> None:
        self._router = router
        self._limits = limits
        self._split = split
        # Bytes of each partition this process has written to; None while they are being looked up.
        self._sizes: dict[PartitionNumber, int | None] = {}
        # The approximate size at which the real size of each is looked up again, and at which a split is retried.
        self._look_up_at: dict[PartitionNumber, float] = {}
        self._split_at: dict[PartitionNumber, float] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    def notice(self, keyspace: Keyspace, partition: PartitionRange, bytes_delta: int) -> None:
        """Count a write, and look the size up when it may be near the limit. Cheap: called after every write."""
        number = partition.partition
        known = self._sizes.get(number)
        if known is None:
            if number not in self._sizes:
                self._sizes[number] = None
                self._run(self._look_up, keyspace, partition)
            return
        self._sizes[number] = size = known + bytes_delta
        if size >= self._look_up_at[number]:
            self._sizes[number] = None
            self._run(self._look_up, keyspace, partition)

    async def _look_up(self, keyspace: Keyspace, partition: PartitionRange) -> None:
        number, bytes_max = partition.partition, self._limits.physical_partition_bytes_max
        try:
            size = (await partition_size(self._router, keyspace, partition)).bytes
        except BaseException:
            self.forget(number)
            raise
        current = keyspace.record.map.get(partition.id)
        if current is None or current.partition != number:
            # Split, merged or moved meanwhile: the size is that of another partition.
            self.forget(number)
            return
        self._sizes[number] = size
        split_at = self._split_at.get(number, bytes_max * SIZE_SPLIT_FRACTION)
        if size >= split_at:
            # With any outcome, the next check is due only after some more growth.
            split_at = self._split_at[number] = size + bytes_max * _REPLAN_FRACTION
            self._run(self._split, keyspace, partition)
        self._look_up_at[number] = min(split_at, size + bytes_max * _LOOK_UP_FRACTION)

    def forget(self, number: PartitionNumber) -> None:
        for known in (self._sizes, self._look_up_at, self._split_at):
            known.pop(number, None)

    def _run(self, work: Work, keyspace: Keyspace, partition: PartitionRange) -> None:
        """Run a small piece of background work, and keep a reference to it until it is done."""

        async def run_guarded() -> None:
            try:
                await work(keyspace, partition)
            except OwnerNotFound:
                # Deleted meanwhile, so there is nothing left to do.
                pass
            except AsterismError as refusal:
                _log.warning("background work was refused: %s", refusal)

        task = asyncio.create_task(run_guarded())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def stop(self) -> None:
        await end_tasks(self._under_way)
