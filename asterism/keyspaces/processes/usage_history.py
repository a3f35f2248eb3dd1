"""The usage of partitions over the last hours: every process samples its own counters, and hears the samples of others.

A sample is the difference of two readings of counters that requests keep anyway, so that requests do nothing more for
it. Processes send their last sample with the reports that they exchange anyway (`Coordination`); none has to ask, and
an idle process sends nothing. Each process has the whole history from its own start on, and loses it with its end.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from asterism.clock import Clock
from asterism.errors import AsterismError
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.families import LOGICAL_SIZES
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import Reads
from asterism.keyspaces.routing.statistics import size_from
from asterism.metrics import PartitionUsage
from asterism.throughput.key_growth import KeyGrowth, KeyGrowths
from asterism.throughput.usage_series import Consumption, RangeSteps, UsageSeries
from asterism.values.identifiers import NodeNumber

_log = logging.getLogger(__name__)

SLOT_SECONDS: Final = 10.0
# The cells of all keyspaces together: at 20 bytes each, at most 20 MB. 100 partitions under load fill a fifth of it in
# six hours.
CELLS_MAX: Final = 1_000_000
# Sizes of the hottest logical partitions are read at every sixth sample: once a minute.
_SAMPLES_PER_MEASUREMENT: Final = 6
# Logical partitions of a keyspace whose sizes are read; as many as a partition's hottest ones are shown.
_MEASURED_KEYS_MAX: Final = 10
# A node that takes longer to answer with a size is not asked again until the next minute.
_SIZE_SECONDS_MAX: Final = 3.0
# Timers may fire a little early, and samples of other processes arrive late: both count for the slot that ended last.
_EARLY_SECONDS: Final = 1.0
# After this many keyspaces other requests get their turn.
_KEYSPACES_PER_TURN: Final = 200


@dataclass(frozen=True, slots=True)
class KeyspaceHistory:
    """The usage of a keyspace in equal steps. `began_at` and `ended_at` are wall seconds; ranges without any usage are
    absent, and those that were split, merged or moved away are present."""

    step_seconds: float
    began_at: float
    ended_at: float
    by_range: dict[int, RangeSteps]

    @property
    def steps(self) -> int:
        return round((self.ended_at - self.began_at) / self.step_seconds)


class UsageHistory:
    """The history, and the task that samples. A `Presence` of `Coordination`. One per process."""

    def __init__(
        self, catalog: Catalog, router: Reads, clock: Clock, *, history_seconds: float, cells_max: int = CELLS_MAX
    ) -> None:
        """`history_seconds` 0: nothing is sampled."""
        self._catalog = catalog
        self._router = router
        self._clock = clock
        self._slots_max = math.ceil(history_seconds / SLOT_SECONDS)
        self._series = UsageSeries(slots_max=self._slots_max, cells_max=cells_max)
        self._growths = KeyGrowths()
        # The counters at the last sample, by keyspace and range.
        self._read: dict[bytes, dict[int, Consumption]] = {}
        # The keyspaces that were used since sizes were last read, with keys that other processes named.
        self._used: dict[bytes, list[bytes]] = {}
        # The last sample, as the other processes get it, and the last of theirs that were added, by process.
        self._report: dict[str, Any] = {}
        self._heard: dict[str, int] = {}
        # The slot of the last sample; 0 before the first.
        self._last_slot = 0
        self._sampler: asyncio.Task[None] | None = None
        self._measurer: asyncio.Task[None] | None = None

    @property
    def history_seconds(self) -> float:
        return self._slots_max * SLOT_SECONDS

    # --- for doors --------------------------------------------------------------------------------------------------

    def of_keyspace(self, keyspace: Keyspace, *, seconds: float, points_max: int) -> KeyspaceHistory:
        """Return the usage in the last `seconds`, or in the whole history if that is shorter, in at most `points_max`
        steps. It ends with the last sample."""
        slots = max(1, min(math.ceil(seconds / SLOT_SECONDS), self._slots_max))
        slots_per_step = math.ceil(slots / points_max)
        steps = math.ceil(slots / slots_per_step)
        now = self._clock.monotonic_seconds()
        last_slot = self._last_slot or _slot_at(now)
        first_slot = last_slot + 1 - steps * slots_per_step
        # Slot n is sampled at its end, n times SLOT_SECONDS.
        ended_at = self._clock.wall_seconds() - (now - last_slot * SLOT_SECONDS)
        step_seconds = slots_per_step * SLOT_SECONDS
        return KeyspaceHistory(
            step_seconds,
            began_at=ended_at - steps * step_seconds,
            ended_at=ended_at,
            by_range=self._series.steps_of(
                keyspace.record.rid, first_slot=first_slot, slots_per_step=slots_per_step, steps=steps
            ),
        )

    def growing_keys(self, keyspace: Keyspace) -> list[KeyGrowth]:
        """Return those of the hottest logical partitions that grow, the fastest first."""
        return self._growths.of_keyspace(keyspace.record.rid, now=self._clock.monotonic_seconds())

    # --- the task ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        if self._slots_max and self._sampler is None:
            # Whatever was served before was not served in the first slot.
            self._read = {rid: _counters_of(keyspace) for rid, keyspace in self._catalog.keyspaces.items()}
            self._sampler = asyncio.create_task(self._sample_forever())

    async def stop(self) -> None:
        await end_tasks([self._sampler, self._measurer])
        self._sampler = self._measurer = None

    async def _sample_forever(self) -> None:
        samples = 0
        while True:
            now = self._clock.monotonic_seconds()
            await asyncio.sleep((_slot_at(now) + 1) * SLOT_SECONDS - now)
            samples += 1
            names_keys = samples % _SAMPLES_PER_MEASUREMENT == 0
            await self.sample(names_keys=names_keys)
            if names_keys and self._used and (self._measurer is None or self._measurer.done()):
                # On its own, so that a node that does not answer delays no sample.
                self._measurer = asyncio.create_task(self.measure_growth())

    async def sample(self, *, names_keys: bool = False) -> None:
        """Add what this process has served since the last sample, and have the others hear of it; with `names_keys`,
        also of its hottest logical partitions."""
        slot = _slot_at(self._clock.monotonic_seconds())
        self._series.advance(slot)
        cells: dict[str, list[float]] = {}
        used: list[Keyspace] = []
        keyspaces = dict(self._catalog.keyspaces)
        for place, (rid, keyspace) in enumerate(keyspaces.items(), start=1):
            consumed = self._consumed(keyspace) if keyspace.usage else {}
            for range_id, consumption in consumed.items():
                self._series.add(slot, rid, range_id, consumption)
                cells[f"{rid.hex()}/{range_id}"] = _numbers(consumption)
            if consumed:
                self._used.setdefault(rid, [])
                used.append(keyspace)
            if place % _KEYSPACES_PER_TURN == 0:
                await asyncio.sleep(0)
        self._series.keep_only(keyspaces.keys())
        self._read = {rid: read for rid, read in self._read.items() if rid in keyspaces}
        self._report = self._make_report(slot, cells, used if names_keys else [])
        self._last_slot = slot

    def _consumed(self, keyspace: Keyspace) -> dict[int, Consumption]:
        """Read the counters of a keyspace, and return the differences by range that are not zero."""
        rid = keyspace.record.rid
        before, now = self._read.get(rid, {}), _counters_of(keyspace)
        self._read[rid] = now
        differences = {range_id: _difference(before.get(range_id), counted) for range_id, counted in now.items()}
        return {range_id: consumption for range_id, consumption in differences.items() if consumption}

    # --- growth -----------------------------------------------------------------------------------------------------

    async def measure_growth(self) -> None:
        """Read the sizes of the hottest logical partitions of every keyspace that was used since the last time."""
        used, self._used = self._used, {}
        away: set[NodeNumber] = set()
        for rid, heard_keys in used.items():
            keyspace = self._catalog.keyspaces.get(rid)
            if keyspace is not None:
                # Keys of this process, then of the others: all of them see about the same ones.
                keys = dict.fromkeys((*hottest_keys(keyspace), *heard_keys))
                for key in list(keys)[:_MEASURED_KEYS_MAX]:
                    await self._measure(keyspace, key, away)
            await asyncio.sleep(0)
        self._growths.keep_only(self._catalog.keyspaces.keys(), now=self._clock.monotonic_seconds())

    async def _measure(self, keyspace: Keyspace, key: bytes, away: set[NodeNumber]) -> None:
        node = keyspace.record.map.find(key).node
        if node in away:
            return
        try:
            async with asyncio.timeout(_SIZE_SECONDS_MAX):
                _, _, (stored,) = await self._router.read(keyspace, key, (LOGICAL_SIZES + key,))
            size = size_from(stored)
        except (AsterismError, TimeoutError) as problem:
            away.add(node)
            _log.info("sizes of logical partitions on node %d cannot be read for now: %s", node, problem)
            return
        self._growths.add(keyspace.record.rid, key, size.bytes, now=self._clock.monotonic_seconds())

    # --- among the others -------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """False: samples can wait for the next report, however late it is."""
        return False

    def report(self) -> Mapping[str, Any]:
        return self._report if self._catalog.is_shared else {}

    def hear(self, reports: list[Mapping[str, Any]]) -> None:
        """Add the samples of the others that are new."""
        if not self._slots_max:
            return
        heard: dict[str, int] = {}
        slot = _slot_at(self._clock.monotonic_seconds())
        for report in reports:
            sampled = report.get("sampled")
            if sampled is not None:
                process = str(sampled["process"])
                heard[process] = sampled["slot"]
                if self._heard.get(process) != sampled["slot"]:
                    self._add_sample(slot, sampled)
        self._heard = heard

    def _add_sample(self, slot: int, sampled: Mapping[str, Any]) -> None:
        for name, (request_units, throttled, requests) in sampled["cells"].items():
            rid_hex, _, range_id = name.partition("/")
            rid = bytes.fromhex(rid_hex)
            if rid in self._catalog.keyspaces:
                self._series.add(slot, rid, int(range_id), Consumption(request_units, throttled, requests))
                self._used.setdefault(rid, [])
        for rid_hex, keys in sampled["keys"].items():
            if (known := self._used.get(bytes.fromhex(rid_hex))) is not None:
                known += [bytes.fromhex(key) for key in keys if len(known) < _MEASURED_KEYS_MAX]

    def _make_report(self, slot: int, cells: Mapping[str, list[float]], named: list[Keyspace]) -> dict[str, Any]:
        if not cells:
            return {}
        keys = {keyspace.record.rid.hex(): [key.hex() for key in hottest_keys(keyspace)] for keyspace in named}
        # The boot number is unique among all processes of the store, and the slot in this process.
        return {"sampled": {"process": self._catalog.boot_number, "slot": slot, "cells": dict(cells), "keys": keys}}


def hottest_keys(keyspace: Keyspace) -> list[bytes]:
    """Return the effective keys of the logical partitions that stand out in this process, the hottest first."""
    standing_out = (
        (request_units, key)
        for usage in keyspace.usage.values()
        for key, request_units in usage.hottest.standing_out(_MEASURED_KEYS_MAX)
    )
    return [key for _, key in heapq.nlargest(_MEASURED_KEYS_MAX, standing_out)]


def _slot_at(monotonic_seconds: float) -> int:
    """Return the last slot that has ended; slot n ends at n times SLOT_SECONDS."""
    return math.floor((monotonic_seconds + _EARLY_SECONDS) / SLOT_SECONDS)


def _counters_of(keyspace: Keyspace) -> dict[int, Consumption]:
    return {range_id: _counted(usage) for range_id, usage in keyspace.usage.items()}


def _counted(usage: PartitionUsage) -> Consumption:
    return Consumption(usage.request_units, usage.throttled, usage.requests)


def _difference(before: Consumption | None, now: Consumption) -> Consumption:
    # Counters never get smaller, unless the keyspace has a new handle, which begins at 0: all of it is new then.
    if before is None or now.requests < before.requests or now.throttled < before.throttled:
        return now
    return Consumption(
        # Differences of large sums are not exact, and may even be a trifle below 0.
        max(now.request_units - before.request_units, 0.0),
        now.throttled - before.throttled,
        now.requests - before.requests,
    )


def _numbers(consumption: Consumption) -> list[float]:
    return [round(consumption.request_units, 3), consumption.throttled, consumption.requests]
