"""The figures of candidates on one workload, from all of it or from a part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from asterism.advisor.keys.assessment import (
    Assessment,
    RouteShares,
    is_unique,
    prediction_of,
    problems_of,
    written_bytes_per_second,
)
from asterism.advisor.keys.candidate import CandidateKey, Draw
from asterism.advisor.keys.demand import Demand
from asterism.advisor.keys.item_profile import ItemProfile
from asterism.advisor.keys.key_table import KeyTable
from asterism.advisor.keys.load import Load, LoadMaker
from asterism.advisor.keys.throttling import rate_needed, throttled_share
from asterism.advisor.keys.windows import window_seconds, windows_of
from asterism.limits import Limits
from asterism.partitioning.partition_key import Component

_Element = TypeVar("_Element")

_BLOCK_REQUESTS: Final = 200
# Partitions are doubled so often in the search for a throughput that is enough.
_DOUBLINGS_MAX: Final = 2


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of the sample and of the requests a round looks at."""

    rows_max: int
    requests_max: int


@dataclass(slots=True)
class Workload:
    """Demands in the order of time, and what was learned of the requests at once for all candidates."""

    demands: Sequence[Demand]
    # Of the container's requests, the part that was captured stands for so many each.
    weight: float
    # Of all requests, of which the demands may be a part.
    requests: int
    span_seconds: float
    # How often writes changed the value at a path.
    changed: Counter[str] = field(default_factory=Counter)

    def new_items(self, mean_bytes: float) -> list[tuple[Mapping[str, Component], float]]:
        """Return the values and bytes of the items that requests add."""
        return [
            (demand.values, mean_bytes)
            for demand in self.demands
            if demand.values is not None and (demand.access == "insert" or demand.is_new)
        ]


def in_blocks(sequence: Sequence[_Element], most: int) -> Sequence[_Element]:
    """Return all elements, or blocks of them that lie evenly: within a block, peaks in time stay peaks."""
    if len(sequence) <= most:
        return sequence
    count = max(1, most // _BLOCK_REQUESTS)
    starts = [int(number * len(sequence) / count) for number in range(count)]
    return [element for start in starts for element in sequence[start : start + _BLOCK_REQUESTS]]


class Scorer:
    """Assesses candidates one by one; keeps what the page of charts needs."""

    def __init__(
        self, profile: ItemProfile, workload: Workload, *, present: CandidateKey | None, limits: Limits, draw: Draw
    ) -> None:
        self._profile = profile
        self._workload = workload
        self._present = present
        self._limits = limits
        self._draw = draw
        self._new_items = workload.new_items(profile.mean_bytes)
        self._families = [
            [item.values for item in family] for family in profile.twins.families.values() if len(family) > 1
        ]
        # The latest of each candidate, by name.
        self.tables: dict[str, KeyTable] = {}
        self._loads: dict[str, Load] = {}

    def assess(self, candidate: CandidateKey, effort: Effort, *, partitions: int) -> Assessment:
        demands = in_blocks(self._workload.demands, effort.requests_max)
        weight = self._workload.weight
        table = KeyTable(self._profile, candidate, self._draw, rows_max=effort.rows_max)
        load = self._load(candidate, table, demands, partitions)
        self.tables[candidate.name], self._loads[candidate.name] = table, load
        whole = self._workload.requests / max(1, len(demands))
        span = self._workload.span_seconds
        windows = windows_of(load, seconds=window_seconds(span))
        # The new items of a part of the requests came in a part of the time.
        span_of_part = span * len(self._workload.demands) / max(1, self._workload.requests * weight)
        written = written_bytes_per_second(candidate, self._new_items, span_seconds=max(span_of_part, 1e-9))
        assessment = Assessment(
            candidate=candidate,
            storage=table.storage(self._limits, write_bytes_per_second=written),
            predicted=prediction_of(
                load,
                windows,
                span_seconds=span,
                weight=weight * whole,
                ru_needed=self._ru_needed(load, candidate, table, demands) if demands else 0.0,
            ),
            routes=RouteShares.of(load.routes) if demands else RouteShares(),
            windows=windows,
            partitions=partitions,
            broken_batch_share=load.broken_batches / max(1, load.batches),
            is_unique=is_unique(candidate, self._families),
            changed_paths=tuple(path for path in candidate.sources if self._workload.changed[path]),
            is_present=candidate == self._present,
            is_estimate=len(demands) < len(self._workload.demands),
        )
        return replace(assessment, problems=problems_of(assessment, self._limits))

    def with_throttling(self, assessment: Assessment, ru_per_second: int) -> Assessment:
        """Add the share of requests that are refused at a throughput."""
        load = self._loads[assessment.candidate.name]
        share = throttled_share(load, ru_per_second=ru_per_second / self._workload.weight)
        predicted = replace(assessment.predicted, throttled_share=share, throttled_at_ru=ru_per_second)
        return replace(assessment, predicted=predicted)

    def peak_ru(self, effort: Effort) -> float:
        """Return the RU/s that are needed if every request finds what it wants in one place."""
        demands = in_blocks(self._workload.demands, effort.requests_max)
        by_id = CandidateKey.of_paths("/id")
        table = KeyTable(self._profile, by_id, self._draw, rows_max=effort.rows_max)
        return rate_needed(self._load(by_id, table, demands, 1)) * self._workload.weight if demands else 0.0

    def _load(self, candidate: CandidateKey, table: KeyTable, demands: Sequence[Demand], partitions: int) -> Load:
        return LoadMaker(candidate, table, partitions=partitions, draw=self._draw).make(demands)

    def _ru_needed(
        self, load: Load, candidate: CandidateKey, table: KeyTable, demands: Sequence[Demand]
    ) -> float | None:
        """Return the RU/s at which nothing is refused; None if more partitions do not help."""
        for doublings in range(_DOUBLINGS_MAX + 1):
            if doublings:
                load = self._load(candidate, table, demands, 2 * load.partitions)
            rate = rate_needed(load) * self._workload.weight
            if rate <= self._limits.physical_partition_ru_per_second_max:
                return rate * load.partitions
        return None
