"""Advice on the partition key of a container: every candidate assessed on the same items and requests, and ranked.

Of much data, a first round scores all candidates on a part of it, and a second round the best ones on more. Everything
is a function of its arguments: a seeded generator gives the same advice again.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.keys.assessment import Assessment, rounded_ru
from asterism.advisor.keys.candidate import CandidateKey
from asterism.advisor.keys.caveats import caveats_of
from asterism.advisor.keys.demand import demands_of
from asterism.advisor.keys.item_profile import ItemProfile
from asterism.advisor.keys.mutability import changed_paths
from asterism.advisor.keys.propose import Spread, highest_cardinality, most_filtered, propose
from asterism.advisor.keys.ranking import rank
from asterism.advisor.keys.report import Report
from asterism.advisor.keys.sample_index import SampleIndex
from asterism.advisor.keys.scoring import Effort, Scorer, Workload, in_blocks
from asterism.limits import DEFAULT_LIMITS, Limits
from asterism.partitioning.split_merge import SIZE_SPLIT_FRACTION, partition_count_at_creation

FIRST_ROUND: Final = Effort(rows_max=5_000, requests_max=4_000)
SECOND_ROUND: Final = Effort(rows_max=20_000, requests_max=20_000)
# Candidates of the second round, with the present key and those that were asked for.
FINALISTS: Final = 10
_THROTTLED: Final = 429
HIGHEST_CARDINALITY: Final = "highest cardinality"
MOST_FILTERED: Final = "most filtered"


def _ignore(_done: int, _total: int) -> None:
    pass


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
    # Called with the number of assessments done, and of all.
    on_progress: Callable[[int, int], None] = _ignore


def advise(profile: ItemProfile, requests: Sequence[CapturedRequest], options: AdviseOptions) -> Report:
    """Return the candidates, best first, with their figures and warnings."""
    index = SampleIndex(profile)
    # A throttled request comes again when its client repeats it.
    served = [request for request in requests if request.status != _THROTTLED]
    in_time = sorted(served, key=lambda request: request.at)
    workload = Workload(
        demands_of(in_blocks(in_time, SECOND_ROUND.requests_max), index, options.present),
        weight=1.0 / options.sampling,
        requests=len(in_time),
        span_seconds=max(1.0, in_time[-1].at - in_time[0].at) if in_time else 1.0,
        changed=changed_paths(in_time, index),
    )
    return _Advisor(profile, workload, options).report()


class _Advisor:
    def __init__(self, profile: ItemProfile, workload: Workload, options: AdviseOptions) -> None:
        self._profile = profile
        self._workload = workload
        self._options = options
        rng = options.rng
        self._scorer = Scorer(
            profile,
            workload,
            present=options.present,
            limits=options.limits,
            draw=lambda count: int(rng.random() * count),
        )
        self._baselines = {
            HIGHEST_CARDINALITY: highest_cardinality(profile),
            MOST_FILTERED: most_filtered(profile, workload.demands),
        }
        self._done = 0
        self._peak_ru = self._scorer.peak_ru(FIRST_ROUND)
        self._partitions = self._partition_count()

    def report(self) -> Report:
        profile, workload, options = self._profile, self._workload, self._options
        ranked = self._ranked()
        ru = self._ru_to_judge_at(ranked)
        ranked = [self._scorer.with_throttling(each, ru) for each in ranked]
        return Report(
            ranked=tuple(ranked),
            present=next((each for each in ranked if each.is_present), None),
            items=profile.items,
            sampled_items=len(profile.sample.kept),
            total_bytes=profile.total_bytes,
            requests=workload.requests,
            span_seconds=workload.span_seconds if workload.demands else 0.0,
            partitions=self._partitions,
            ru_per_second=ru,
            warnings=tuple(caveats_of(profile, workload, options, self._partitions)),
            baselines={name: key.name for name, key in self._baselines.items() if key is not None},
            tables=self._scorer.tables,
        )

    def _ranked(self) -> list[Assessment]:
        candidates = self._candidates()
        is_much = (
            len(self._profile.sample.kept) > FIRST_ROUND.rows_max
            or len(self._workload.demands) > FIRST_ROUND.requests_max
        )
        total = len(candidates) + FINALISTS * is_much
        if not is_much:
            return rank(self._assessed(candidates, SECOND_ROUND, total))
        first = {each.candidate.name: each for each in self._assessed(candidates, FIRST_ROUND, total)}
        second = self._assessed(self._finalists(rank(list(first.values()))), SECOND_ROUND, total)
        return rank([*second, *_raised(first, second)])

    def _assessed(self, candidates: Sequence[CandidateKey], effort: Effort, total: int) -> list[Assessment]:
        assessed = []
        for candidate in candidates:
            assessed.append(self._scorer.assess(candidate, effort, partitions=self._partitions))
            self._done += 1
            self._options.on_progress(min(self._done, total), total)
        return assessed

    def _finalists(self, ranked: Sequence[Assessment]) -> list[CandidateKey]:
        asked_for = {key.name for key in (*self._options.wanted, *self._baselines.values()) if key is not None}
        return [
            each.candidate
            for place, each in enumerate(ranked)
            if place < FINALISTS or each.is_present or each.candidate.name in asked_for
        ]

    def _candidates(self) -> list[CandidateKey]:
        spread = Spread(
            partitions=self._partitions,
            peak_ru_per_second=self._peak_ru,
            bytes_per_key_max=self._options.limits.logical_partition_bytes_max / 2,
        )
        proposed = propose(self._profile, self._workload.demands, spread=spread, present=self._options.present)
        further = [*self._options.wanted, *(key for key in self._baselines.values() if key is not None)]
        return list({candidate.name: candidate for candidate in (*proposed, *further)}.values())

    # --- throughput -------------------------------------------------------------------------------------------------

    def _partition_count(self) -> int:
        """Return the physical partitions of a new container: for the throughput, or for the data if that needs more."""
        limits, given = self._options.limits, self._options.ru_per_second
        ru = given if given is not None else rounded_ru(self._peak_ru, limits)
        for_data = -(-self._profile.total_bytes // int(limits.physical_partition_bytes_max * SIZE_SPLIT_FRACTION))
        return max(partition_count_at_creation(ru, self._options.is_autoscale, limits), for_data)

    def _ru_to_judge_at(self, ranked: Sequence[Assessment]) -> int:
        if self._options.ru_per_second is not None:
            return self._options.ru_per_second
        needed = ranked[0].predicted.ru_needed if ranked else None
        return rounded_ru(self._peak_ru if needed is None else needed, self._options.limits)


def _raised(first: Mapping[str, Assessment], second: Sequence[Assessment]) -> list[Assessment]:
    """Return the other candidates of the first round, whose part of the requests may lack the peaks: with the RU/s
    needed raised as those of the finalists were."""
    names = {each.candidate.name for each in second}
    pairs = [(each.ru_ranked, first[each.candidate.name].ru_ranked) for each in second]
    factors = sorted(after / before for after, before in pairs if 0 < before < math.inf)
    factor = factors[len(factors) // 2] if factors else 1.0
    return [each.with_need_times(factor) for name, each in first.items() if name not in names]
