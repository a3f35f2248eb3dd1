"""Advice on the partition key of a container: every candidate assessed on the same items and requests, and ranked.

The first round scores all candidates, on a part of the requests if there are many; the second one scores the best on
all of them. Everything is a function of its arguments: a seeded generator gives the same advice again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.keys.assessment import (
    Assessment,
    RouteShares,
    is_unique,
    prediction_of,
    problems_of,
    rounded_ru,
    written_bytes_per_second,
)
from asterism.advisor.keys.candidate import CandidateKey
from asterism.advisor.keys.caveats import caveats_of
from asterism.advisor.keys.demand import Demand, demands_of
from asterism.advisor.keys.item_profile import ItemProfile
from asterism.advisor.keys.key_table import KeyTable
from asterism.advisor.keys.load import Load, LoadMaker
from asterism.advisor.keys.mutability import changed_paths
from asterism.advisor.keys.propose import Spread, highest_cardinality, most_filtered, propose
from asterism.advisor.keys.ranking import rank
from asterism.advisor.keys.report import Report
from asterism.advisor.keys.sample_index import SampleIndex
from asterism.advisor.keys.throttling import rate_needed, throttled_share
from asterism.advisor.keys.windows import window_seconds, windows_of
from asterism.limits import DEFAULT_LIMITS, Limits
from asterism.partitioning.partition_key import Component
from asterism.partitioning.split_merge import SIZE_SPLIT_FRACTION, partition_count_at_creation

# Requests of the first round; more are taken in blocks that follow each other, so that peaks stay peaks.
FIRST_ROUND_REQUESTS: Final = 10_000
_BLOCK_REQUESTS: Final = 500
# Candidates of the second round.
FINALISTS: Final = 8
# Partitions are doubled so often in the search for a throughput that is enough.
_DOUBLINGS_MAX: Final = 4
# A change of a source in fewer writes of items than this part of them is called a mistake, not a habit.
_CHANGES_MIN: Final = 1


@dataclass(frozen=True, slots=True)
class AdviseOptions:
    """`ru_per_second` is the throughput to judge at; None: what the best candidate needs."""

    present: CandidateKey | None = None
    ru_per_second: int | None = None
    is_autoscale: bool = False
    # Further candidates to assess.
    wanted: Sequence[CandidateKey] = ()
    # The part of the requests that was captured.
    sampling: float = 1.0
    has_digests: bool = False
    limits: Limits = DEFAULT_LIMITS
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    # Called with the number of candidates scored, and of all.
    on_progress: Callable[[int, int], None] = lambda _done, _total: None


def advise(profile: ItemProfile, requests: Sequence[CapturedRequest], options: AdviseOptions) -> Report:
    """Return the candidates, ranked, with their figures and warnings."""
    return _Advisor(profile, requests, options).report()


class _Advisor:
    def __init__(self, profile: ItemProfile, requests: Sequence[CapturedRequest], options: AdviseOptions) -> None:
        self._profile = profile
        self._requests = requests
        self._options = options
        self._limits = options.limits
        self._index = SampleIndex(profile)
        self._demands = demands_of(requests, self._index, options.present)
        self._changed = changed_paths(sorted(requests, key=lambda request: request.at), self._index)
        self._weight = 1.0 / options.sampling
        self._span = max(1.0, self._demands[-1].at - self._demands[0].at) if self._demands else 1.0
        self._writes = [
            (demand.values, float(profile.mean_bytes))
            for demand in self._demands
            if demand.values is not None and (demand.access == "insert" or demand.is_new)
        ]
        self._families: list[list[Mapping[str, Component]]] = [
            [item.values for item in family] for family in profile.twins.families.values() if len(family) > 1
        ]
        self._tables: dict[str, KeyTable] = {}
        # Loads of few payments, which are needed again.
        self._loads: dict[str, Load] = {}
        self._done = 0
        self._partitions = self._partition_count()

    # --- the rounds -------------------------------------------------------------------------------------------------

    def report(self) -> Report:
        options = self._options
        present = options.present
        candidates = self._candidates()
        part, is_part = _blocks(self._demands, FIRST_ROUND_REQUESTS), self._is_long
        total = len(candidates) + (FINALISTS if is_part else 0)
        first = [self._scored(candidate, part, total) for candidate in candidates]
        ranked = rank(first)
        if is_part:
            names = {each.candidate.name for each in ranked[:FINALISTS]}
            names |= {each.name for each in (present, *self._baselines()) if each is not None}
            again = [
                self._scored(each.candidate, self._demands, total) for each in first if each.candidate.name in names
            ]
            ranked = rank([*again, *(each for each in first if each.candidate.name not in names)])
        ru = self._ru_to_judge_at(ranked)
        ranked = [self._throttled(each, ru) for each in ranked]
        return Report(
            ranked=tuple(ranked),
            present=next((each for each in ranked if each.is_present), None),
            items=self._profile.items,
            sampled_items=len(self._profile.sample.kept),
            total_bytes=self._profile.total_bytes,
            requests=len(self._requests),
            span_seconds=self._span if self._demands else 0.0,
            partitions=self._partitions,
            ru_per_second=ru,
            warnings=tuple(caveats_of(self._profile, self._demands, options, self._span, self._partitions)),
            baselines={
                name: candidate.name
                for name, candidate in zip(("highest cardinality", "most filtered"), self._baselines(), strict=True)
                if candidate is not None
            },
            tables=self._tables,
        )

    def _candidates(self) -> list[CandidateKey]:
        spread = Spread(
            partitions=self._partitions,
            peak_ru_per_second=self._peak_ru(),
            bytes_per_key_max=self._limits.logical_partition_bytes_max / 2,
        )
        proposed = propose(self._profile, self._demands, spread=spread, present=self._options.present)
        further = [*self._options.wanted, *(each for each in self._baselines() if each is not None)]
        return list({candidate.name: candidate for candidate in (*proposed, *further)}.values())

    def _baselines(self) -> tuple[CandidateKey | None, CandidateKey | None]:
        return highest_cardinality(self._profile), most_filtered(self._profile, self._demands)

    @property
    def _is_long(self) -> bool:
        """True if the first round takes a part of the requests."""
        return len(self._demands) > FIRST_ROUND_REQUESTS

    # --- one candidate ----------------------------------------------------------------------------------------------

    def _scored(self, candidate: CandidateKey, demands: Sequence[Demand], total: int) -> Assessment:
        assessment = self._assess(candidate, demands)
        self._done += 1
        self._options.on_progress(min(self._done, total), total)
        return assessment

    def _assess(self, candidate: CandidateKey, demands: Sequence[Demand]) -> Assessment:
        table = self._table(candidate)
        load, ru_needed = self._load_with_need(candidate, table, demands)
        if len(demands) <= FIRST_ROUND_REQUESTS:
            self._loads[candidate.name] = load
        span = self._span * len(demands) / max(1, len(self._demands))
        written = written_bytes_per_second(candidate, self._writes, span_seconds=self._span)
        assessment = Assessment(
            candidate=candidate,
            storage=table.storage(self._limits, write_bytes_per_second=written),
            predicted=prediction_of(load, span_seconds=span, weight=self._weight, ru_needed=ru_needed),
            routes=RouteShares.of(load.routes) if demands else RouteShares(),
            windows=windows_of(load, seconds=window_seconds(self._span)),
            partitions=load.partitions,
            broken_batch_share=load.broken_batches / max(1, load.batches),
            is_unique=is_unique(candidate, self._families),
            changed_paths=tuple(path for path in candidate.sources if self._changed[path] >= _CHANGES_MIN),
            is_present=candidate == self._options.present,
            is_estimate=len(demands) < len(self._demands),
        )
        return replace(assessment, problems=problems_of(assessment, self._limits))

    def _table(self, candidate: CandidateKey) -> KeyTable:
        table = self._tables.get(candidate.name)
        if table is None:
            table = self._tables[candidate.name] = KeyTable(self._profile, candidate, self._draw)
        return table

    def _draw(self, count: int) -> int:
        return int(self._options.rng.random() * count)

    def _load(self, candidate: CandidateKey, table: KeyTable, demands: Sequence[Demand], partitions: int) -> Load:
        return LoadMaker(candidate, table, partitions=partitions, draw=self._draw).make(demands)

    def _load_with_need(
        self, candidate: CandidateKey, table: KeyTable, demands: Sequence[Demand]
    ) -> tuple[Load, float | None]:
        """Return the load at the number of partitions that is judged at, and the RU/s that it needs; None if more
        partitions do not help."""
        partitions = self._partitions
        judged = load = self._load(candidate, table, demands, partitions)
        for _ in range(_DOUBLINGS_MAX):
            rate = rate_needed(load) * self._weight
            if rate <= self._limits.physical_partition_ru_per_second_max:
                return judged, rate * partitions
            partitions *= 2
            load = self._load(candidate, table, demands, partitions)
        return judged, None

    # --- throughput -------------------------------------------------------------------------------------------------

    def _partition_count(self) -> int:
        """Return the physical partitions of a new container: for the throughput, or for the data if that needs more."""
        limits, given = self._limits, self._options.ru_per_second
        ru = given if given is not None else rounded_ru(self._peak_ru(), limits)
        for_data = -(-self._profile.total_bytes // int(limits.physical_partition_bytes_max * SIZE_SPLIT_FRACTION))
        return max(partition_count_at_creation(ru, self._options.is_autoscale, limits), for_data)

    def _peak_ru(self) -> float:
        """Return the most RU in a second if every request found what it wants in one place."""
        if not self._demands:
            return 0.0
        least = CandidateKey.of_paths("/id")
        load = self._load(least, self._table(least), _blocks(self._demands, FIRST_ROUND_REQUESTS), 1)
        return rate_needed(load) * self._weight

    def _ru_to_judge_at(self, ranked: Sequence[Assessment]) -> int:
        if self._options.ru_per_second is not None:
            return self._options.ru_per_second
        needed = ranked[0].predicted.ru_needed if ranked else None
        return rounded_ru(self._peak_ru() if needed is None else needed, self._limits)

    def _throttled(self, assessment: Assessment, ru: int) -> Assessment:
        candidate = assessment.candidate
        load = self._loads.get(candidate.name) if assessment.is_estimate or not self._is_long else None
        if load is None:
            load = self._load(candidate, self._table(candidate), self._demands, assessment.partitions)
        share = throttled_share(load, ru_per_second=ru / self._weight)
        predicted = replace(assessment.predicted, throttled_share=share, throttled_at_ru=ru)
        return replace(assessment, predicted=predicted)


def _blocks(demands: Sequence[Demand], most: int) -> Sequence[Demand]:
    """Return all demands, or blocks of them that lie evenly in time, and together are `most`."""
    if len(demands) <= most:
        return demands
    count = most // _BLOCK_REQUESTS
    step = len(demands) / count
    starts = [min(int(number * step), len(demands) - _BLOCK_REQUESTS) for number in range(count)]
    return [demand for start in starts for demand in demands[start : start + _BLOCK_REQUESTS]]
