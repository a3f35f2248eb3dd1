"""Watches the load of keyspaces with ordered keys: divides ranges that serve too much, joins those that are idle.

It looks every few seconds while there is load or something to join, and sleeps otherwise.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from asterism.clock import Clock
from asterism.errors import AsterismError, ReshapeRefused
from asterism.keyspaces.background_tasks import end_tasks
from asterism.keyspaces.catalog import Catalog
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.reshape_job import ReshapeJob
from asterism.keyspaces.reshaping import Reshaping
from asterism.keyspaces.statistics import bytes_by_range
from asterism.limits import Limits
from asterism.metrics import PartitionUsage
from asterism.partitioning.load_split import SAMPLES_MIN, Sample, plan_cold_merges, plan_load_split
from asterism.partitioning.partition_key import PartitionKeyKind
from asterism.partitioning.partition_map import PartitionRange
from asterism.partitioning.split_merge import Refusal

_log = logging.getLogger(__name__)

# A range with less than this part of the load at which it would be divided is cold.
_COLD_SHARE = 0.05
# A range that could not be divided is looked at again after so long.
_REFUSED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a load must last before something is done about it."""

    period_seconds: float = 5.0
    hot_periods: int = 3
    cold_seconds: float = 600.0


@dataclass(slots=True)
class RangeLoad:
    """What is known of one range's load."""

    request_units: float
    cold_since: float
    ru_per_second: float = 0.0
    hot_periods: int = 0
    look_again_at: float = 0.0
    # Why the range is hot and stays undivided, in a sentence; empty when there is nothing to say.
    refusal: str = ""


async def own_usage(keyspace: Keyspace) -> Mapping[int, PartitionUsage]:
    """What this process has served; enough where it is the only one."""
    return keyspace.usage


class LoadWatch:
    """One per process, at work in the one that leads. `wake` it when there is load (`is_asleep` tells whether that is
    needed); where there are other processes it never sleeps, because their load does not wake it."""

    def __init__(
        self,
        catalog: Catalog,
        owner: Owner,
        reshaping: Reshaping,
        limits: Limits,
        clock: Clock,
        *,
        patience: Patience | None = None,
        usage_of: Callable[[Keyspace], Awaitable[Mapping[int, PartitionUsage]]] = own_usage,
    ) -> None:
        """`usage_of` tells what all processes together have served."""
        self._catalog = catalog
        self._owner = owner
        self._reshaping = reshaping
        self._limits = limits
        self._clock = clock
        self._patience = patience or Patience()
        self._usage_of = usage_of
        self._loads: dict[bytes, dict[int, RangeLoad]] = {}
        self._looked_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self.is_asleep = True

    async def start(self) -> None:
        if self._catalog.is_shared or any(len(keyspace.record.map.ranges) > 1 for keyspace in self._watched()):
            self.wake()

    def wake(self) -> None:
        if self.is_asleep and self._catalog.leads:
            self.is_asleep = False
            self._looked_at = self._clock.monotonic_seconds()
            for keyspace in self._watched():
                self._measure(keyspace, keyspace.usage, 0.0)
            self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        await end_tasks([self._task])

    def load_of(self, keyspace: Keyspace, range_id: int) -> RangeLoad | None:
        """What is known of a range's load; nothing while nobody asks anything of it."""
        return None if self.is_asleep else self._loads.get(keyspace.record.rid, {}).get(range_id)

    def is_hot(self, load: RangeLoad) -> bool:
        return load.ru_per_second > self._limits.ordered_range_ru_per_second_max

    def _watched(self) -> list[Keyspace]:
        keyspaces = self._catalog.keyspaces.values()
        return [one for one in keyspaces if one.record.definition.kind is PartitionKeyKind.RANGE]

    async def _watch(self) -> None:
        try:
            busy = True
            while busy or self._catalog.is_shared:
                await asyncio.sleep(self._patience.period_seconds)
                try:
                    busy = await self.look()
                except AsterismError as refusal:
                    _log.warning("the load could not be looked at: %s", refusal)
        finally:
            self.is_asleep = True

    async def look(self) -> bool:
        """One look at everything; False when there is nothing more to expect."""
        now = self._clock.monotonic_seconds()
        elapsed, self._looked_at = now - self._looked_at, now
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
        """Brings what is known of the keyspace's ranges up to now; whether it has served anything since."""
        known = self._loads.get(keyspace.record.rid, {})
        measured: dict[int, RangeLoad] = {}
        any_load = False
        hot = self._limits.ordered_range_ru_per_second_max
        for one in keyspace.record.map.ranges:
            usage = usage_by_range.get(one.id)
            spent = 0.0 if usage is None else usage.request_units
            load = known.get(one.id) or RangeLoad(spent if elapsed_seconds == 0.0 else 0.0, self._looked_at)
            any_load = any_load or spent > load.request_units
            if elapsed_seconds > 0:
                load.ru_per_second = (spent - load.request_units) / elapsed_seconds
            load.request_units = spent
            is_hot = load.ru_per_second > hot
            load.hot_periods = load.hot_periods + 1 if is_hot else 0
            if not is_hot:
                load.refusal = ""
            if load.ru_per_second > hot * _COLD_SHARE:
                load.cold_since = self._looked_at
            measured[one.id] = load
        self._loads[keyspace.record.rid] = measured
        return any_load

    async def _divide_hot(self, keyspace: Keyspace, usage_by_range: Mapping[int, PartitionUsage], now: float) -> None:
        record = keyspace.record
        for one in record.map.ranges:
            load = self._loads[record.rid].get(one.id)
            if load is None:
                # Published while the others were asked.
                continue
            usage = usage_by_range.get(one.id)
            is_due = load.hot_periods >= self._patience.hot_periods and now >= load.look_again_at
            # A few requests may be hot by their cost, and say nothing yet about where the load is.
            if is_due and usage is not None and len(usage.recent) >= SAMPLES_MIN:
                load.look_again_at = now + _REFUSED_SECONDS
                await self._divide(keyspace, one, load, tuple(usage.recent))

    async def _divide(
        self, keyspace: Keyspace, partition: PartitionRange, load: RangeLoad, samples: Sequence[Sample]
    ) -> None:
        plan = plan_load_split(keyspace.record.definition, partition, samples)
        try:
            if isinstance(plan, Refusal):
                raise ReshapeRefused(reason=plan.reason)
            await self._reshaping.split_at(keyspace, plan)
        except ReshapeRefused as refusal:
            load.refusal = refusal.reason
            _log.warning("%s: range %d is hot: %s", keyspace.record.name, partition.id, refusal.reason)

    async def _join_cold(self, keyspace: Keyspace, now: float) -> bool:
        """Whether there is, or will be, something to join."""
        record = keyspace.record
        loads = self._loads[record.rid]
        cold = {range_id for range_id, load in loads.items() if now - load.cold_since >= self._patience.cold_seconds}
        if len(cold) < 2:
            return True
        sizes = await bytes_by_range(self._owner, keyspace)
        plans = plan_cold_merges(record.map, cold_ids=cold, bytes_by_range=sizes, limits=self._limits)
        begun: list[ReshapeJob] = []
        for plan in plans:
            try:
                begun.append(await self._reshaping.merge(keyspace, plan.left_id, plan.right_id))
            except ReshapeRefused as refusal:
                _log.info("%s: cold ranges stay apart: %s", record.name, refusal.reason)
        return bool(begun) or len(cold) < len(record.map.ranges)
