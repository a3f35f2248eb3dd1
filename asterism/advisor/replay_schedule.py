"""Which requests of a capture are replayed, when, and with how many request units.

A capture may last for days; a replay takes a minute at most. Requests are left out at random (*thinned*), and their
times are moved closer together (*compressed*), each as far as the bounds ask. Both change how many requests come in a
second; the request units of the replay's containers are changed by the same factor, so that a partition is as busy as
it would be. A second of the replay then stands for several of the capture: bursts that are shorter are evened out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.replay_items import is_first_write, relation_of
from asterism.throughput.budgets import MANUAL_STEP_RU

# Of one request, or of a batch: half of what one process of the server answers on a slow machine, for fan-outs too.
REQUESTS_PER_SECOND: Final = 250.0
SECONDS_MIN: Final = 4.0
SECONDS_MAX: Final = 60.0
# Below it a few requests would be a partition's whole second.
_PARTITION_RU_MIN: Final = 100

Unit = tuple[CapturedRequest, ...]
"""A request, or the operations of one batch."""


@dataclass(frozen=True, slots=True)
class Bounds:
    requests_max: int
    items_max: int
    # Of a new container, and of a partition.
    ru_min: int = 400
    partition_ru_max: int = 10_000


@dataclass(frozen=True, slots=True)
class Schedule:
    """The units in the order of their times, with the time of each from the start of the replay."""

    units: tuple[Unit, ...]
    due_seconds: tuple[float, ...]
    captured_units: int
    captured_seconds: float
    # Of the requests that the container had, those that are replayed.
    kept: float
    # Captured seconds in one of the replay.
    compression: float
    # Of the container whose workload was captured, and of the containers of the replay.
    given_ru_per_second: int
    ru_per_second: int

    @property
    def seconds(self) -> float:
        return self.captured_seconds / self.compression

    @property
    def load_factor(self) -> float:
        """The rate of requests in the replay as a multiple of the captured rate."""
        return self.kept * self.compression

    @property
    def is_to_scale(self) -> bool:
        """Return whether the request units have the same factor. Where a day with little load is replayed in a minute,
        no container can have so many: the replay then refuses rather more than the capture would."""
        return self.load_factor * self.given_ru_per_second <= self.ru_per_second * 1.01


def make_schedule(
    requests: Iterable[CapturedRequest],
    *,
    ru_per_second: int,
    partitions: int,
    bounds: Bounds,
    draw: random.Random,
    sampling: float = 1.0,
) -> Schedule:
    """Choose the units and their times. `ru_per_second` is that of the container whose workload was captured, and
    `sampling` the fraction of its requests that the capture has."""
    units = units_of(requests)
    began_at, ended_at = (units[0][0].at, units[-1][0].at) if units else (0.0, 0.0)
    captured_seconds = max(ended_at - began_at, 1.0)
    kept_units = sorted(_thinned(units, bounds, draw), key=lambda unit: unit[0].at)
    kept = sampling * len(kept_units) / max(len(units), 1) or sampling
    wanted_seconds = max(len(kept_units) / REQUESTS_PER_SECOND, SECONDS_MIN)
    scaled_ru = _rounded(ru_per_second * kept * captured_seconds / wanted_seconds)
    scaled_ru = min(max(scaled_ru, bounds.ru_min, _PARTITION_RU_MIN * partitions), bounds.partition_ru_max * partitions)
    # The rounded throughput decides, so that the time fits to it exactly, as long as the replay is not too long.
    compression = max(scaled_ru / ru_per_second / kept, captured_seconds / SECONDS_MAX)
    return Schedule(
        tuple(kept_units),
        tuple((unit[0].at - began_at) / compression for unit in kept_units),
        len(units),
        captured_seconds,
        kept,
        compression,
        ru_per_second,
        scaled_ru,
    )


def units_of(requests: Iterable[CapturedRequest]) -> list[Unit]:
    """Return the requests in the order of their times, with the operations of a batch together."""
    batches: dict[str, list[CapturedRequest]] = {}
    alone: list[Unit] = []
    for request in requests:
        if request.batch is None:
            alone.append((request,))
        else:
            batches.setdefault(request.batch, []).append(request)
    return sorted([*alone, *map(tuple, batches.values())], key=lambda unit: unit[0].at)


def _thinned(units: Sequence[Unit], bounds: Bounds, draw: random.Random) -> list[Unit]:
    """Return units in a random order, as many as the bounds allow: of requests, and of the items that they need.

    A query needs all items that it finds, or it would read less than it did.
    """
    shuffled = list(units)
    draw.shuffle(shuffled)
    needed: set[object] = set()
    items = 0
    for count, unit in enumerate(shuffled):
        if count >= bounds.requests_max:
            return shuffled[:count]
        for request in unit:
            items += _new_items(request, needed)
        if items > bounds.items_max and count:
            return shuffled[:count]
    return shuffled


def _new_items(request: CapturedRequest, needed: set[object]) -> int:
    """Return how many further items must be stored for a request; `needed` has the names of the others."""
    relation = relation_of(request)
    if relation is not None:
        fresh = [(relation[0], values) for values in relation[1] if (relation[0], values) not in needed]
        needed.update(fresh)
        return math.ceil((request.results or 1) * len(fresh) / max(len(relation[1]), 1))
    name = (request.item_id, request.key)
    if request.item_id is None or name in needed or is_first_write(request):
        return 0
    needed.add(name)
    return 1


def _rounded(ru: float) -> int:
    return max(round(ru / MANUAL_STEP_RU), 1) * MANUAL_STEP_RU
