"""The watch on the load of keyspaces with ordered keys: hot ranges are split, idle ones merged.

It measures every few seconds while there is load or something to merge, and sleeps otherwise.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from asterism.clock import Clock
from asterism.errors import AsterismError, ReshapeRefused
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.reshaping.job import ReshapeJob
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.statistics import bytes_by_range
from asterism.limits import Limits
from asterism.metrics import PartitionUsage
from asterism.partitioning.load_split import SAMPLES_MIN, LoadSample, plan_cold_merges, plan_load_split
from asterism.partitioning.partition_key import PartitionKeyKind
from asterism.partitioning.partition_map import PartitionRange
from asterism.partitioning.split_merge import CannotSplit

_log = logging.getLogger(__name__)

# A range with less than this part of the load at which it would be split is cold.
_COLD_SHARE = 0.05
# A range that could not be split is retried after this long.
_REFUSED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Patience:
    """The time that a load must last before a range is split or merged."""

    period_seconds: float = 5.0
    hot_periods: int = 3
    cold_seconds: float = 600.0


@dataclass(slots=True)
class RangeLoad:
    """The measured load of one range."""

    request_units: float
    cold_since: float
    ru_per_second: float = 0.0
    hot_periods: int = 0
    retry_at: float = 0.0
    # The reason, as a sentence, why a hot range is not split; empty otherwise.
    refusal: str = ""


async def own_usage(keyspace: Keyspace) -> Mapping[int, PartitionUsage]:
    """Return the usage that this process has served; enough where it is the only one."""
    return keyspace.usage


class LoadWatch:
    """The task that watches the load: one per process, at work in the leader.

    `wake` it when there is load and `is_asleep` is set. Where there are other processes it never sleeps, because their
    load does not wake it.
    """

    def __init__(
        self,
        catalog: Catalog,
        router: PartitionRouter,
        reshaper: Reshaper,
        limits: Limits,
        clock: Clock,
        *,
        patience: Patience | None = None,
        usage_of: Callable[[Keyspace], Awaitable[Mapping[int, PartitionUsage]]] = own_usage,
    ) -> None:
        """`usage_of` returns the usage that all processes together have served."""
        self._catalog = catalog
        self._router = router
        self._reshaper = reshaper
        self._limits = limits
        self._clock = clock
        self._patience = patience or Patience()
        self._usage_of = usage_of
        self._loads: dict[bytes, dict[int, RangeLoad]] = {}
        self._measured_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self.is_asleep = True

    async def start(self) -> None:
        if self._catalog.is_shared or any(len(keyspace.record.map.ranges) > 1 for keyspace in self._watched()):
            self.wake()

    def wake(self) -> None:
        if self.is_asleep and self._catalog.leads:
            self.is_asleep = False
            self._measured_at = self._clock.monotonic_seconds()
            for keyspace in self._watched():
                self._measure(keyspace, keyspace.usage, 0.0)
            self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        await end_tasks([self._task])

    def load_of(self, keyspace: Keyspace, range_id: int) -> RangeLoad | None:
        """Return the load of a range; None while there are no requests."""
        return None if self.is_asleep else self._loads.get(keyspace.record.rid, {}).get(range_id)

    def is_hot(self, load: RangeLoad) -> bool:
        return load.ru_per_second > self._limits.ordered_range_ru_per_second_max

    def _watched(self) -> list[Keyspace]:
        keyspaces = self._catalog.keyspaces.values()
        return [keyspace for keyspace in keyspaces if keyspace.record.definition.kind is PartitionKeyKind.RANGE]

    async def _watch(self) -> None:
        try:
            busy = True
            while busy or self._catalog.is_shared:
                await asyncio.sleep(self._patience.period_seconds)
                try:
                    busy = await self.look()
                except AsterismError as refusal:
                    _log.warning("the load could not be measured and is retried: %s", refusal)
        finally:
            self.is_asleep = True

    async def look(self) -> bool:
        """Measure, split and merge once; False when there is nothing more to expect."""
        now = self._clock.monotonic_seconds()
        elapsed, self._measured_at = now - self._measured_at, now
        busy = False
        watched = self._watched()
        for keyspace in watched:
            usage = await self._usage_of(keyspace)
            if self._measure(keyspace, usage, elapsed):
                busy = True
                await self._divide_hot(keyspace, usage, now)
            if len(keyspace.record.map.ranges) > 1 and await self._join_cold(keyspace, now):
                busy = True
        known = {keyspace.record.rid for keyspace in watched}
        self._loads = {rid: loads for rid, loads in self._loads.items() if rid in known}
        return busy

    def _measure(
        self, keyspace: Keyspace, usage_by_range: Mapping[int, PartitionUsage], elapsed_seconds: float
    ) -> bool:
        """Bring the loads of the keyspace's ranges up to date; True if it has served anything since."""
        known = self._loads.get(keyspace.record.rid, {})
        measured: dict[int, RangeLoad] = {}
        any_load = False
        hot = self._limits.ordered_range_ru_per_second_max
        for partition in keyspace.record.map.ranges:
            usage = usage_by_range.get(partition.id)
            spent = 0.0 if usage is None else usage.request_units
            load = known.get(partition.id) or RangeLoad(spent if elapsed_seconds == 0.0 else 0.0, self._measured_at)
            any_load = any_load or spent > load.request_units
            if elapsed_seconds > 0:
                load.ru_per_second = (spent - load.request_units) / elapsed_seconds
            load.request_units = spent
            is_hot = load.ru_per_second > hot
            load.hot_periods = load.hot_periods + 1 if is_hot else 0
            if not is_hot:
                load.refusal = ""
            if load.ru_per_second > hot * _COLD_SHARE:
                load.cold_since = self._measured_at
            measured[partition.id] = load
        self._loads[keyspace.record.rid] = measured
        return any_load

    async def _divide_hot(self, keyspace: Keyspace, usage_by_range: Mapping[int, PartitionUsage], now: float) -> None:
        record = keyspace.record
        for partition in record.map.ranges:
            load = self._loads[record.rid].get(partition.id)
            if load is None:
                # Published while the others were asked.
                continue
            usage = usage_by_range.get(partition.id)
            is_due = load.hot_periods >= self._patience.hot_periods and now >= load.retry_at
            # A few requests may be hot by their cost, and are too few to locate the load.
            if is_due and usage is not None and len(usage.recent) >= SAMPLES_MIN:
                load.retry_at = now + _REFUSED_SECONDS
                await self._divide(keyspace, partition, load, tuple(usage.recent))

    async def _divide(
        self, keyspace: Keyspace, partition: PartitionRange, load: RangeLoad, samples: Sequence[LoadSample]
    ) -> None:
        plan = plan_load_split(keyspace.record.definition, partition, samples)
        try:
            if isinstance(plan, CannotSplit):
                raise ReshapeRefused(reason=plan.reason)
            await self._reshaper.split_at(keyspace, plan)
        except ReshapeRefused as refusal:
            load.refusal = refusal.reason
            _log.warning("%s: range %d is hot: %s", keyspace.record.name, partition.id, refusal.reason)

    async def _join_cold(self, keyspace: Keyspace, now: float) -> bool:
        """Merge cold ranges; True if there are, or will be, some to merge."""
        record = keyspace.record
        loads = self._loads[record.rid]
        cold = {range_id for range_id, load in loads.items() if now - load.cold_since >= self._patience.cold_seconds}
        if len(cold) < 2:
            return True
        sizes = await bytes_by_range(self._router, keyspace)
        plans = plan_cold_merges(record.map, cold_ids=cold, bytes_by_range=sizes, limits=self._limits)
        begun: list[ReshapeJob] = []
        for plan in plans:
            try:
                begun.append(await self._reshaper.merge(keyspace, plan.left_id, plan.right_id))
            except ReshapeRefused as refusal:
                _log.info("%s: cold ranges stay apart: %s", record.name, refusal.reason)
        return bool(begun) or len(cold) < len(record.map.ranges)
