"""The assessment of one candidate: its figures, and the problems that keep it from working."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from asterism.advisor.keys.candidate import CandidateKey
from asterism.advisor.keys.key_table import GROWTH_ITEMS_MIN, StorageFigures
from asterism.advisor.keys.load import Load, Routes
from asterism.advisor.keys.windows import Windows, busiest_window_ru, busy_ru
from asterism.advisor.wording import about_bytes, about_duration, about_share
from asterism.limits import Limits
from asterism.partitioning.partition_key import Component, PartitionKey

ProblemKind = Literal["full", "not unique", "unreachable", "mutable", "breaks batches", "absent"]

# How much a problem weighs: what cannot be repaired later weighs most.
_SEVERITY: Final[Mapping[ProblemKind, int]] = {
    "full": 4,
    "not unique": 4,
    "unreachable": 4,
    "mutable": 3,
    "breaks batches": 3,
    "absent": 2,
}
# A logical partition that is full sooner is a problem now.
GROWTH_HORIZON_SECONDS: Final = 365 * 86_400.0
# A peak counts as far as it is above so many times the busy windows: less is chance, and evened out by retries.
PEAK_RATIO: Final = 1.5
# All items without a value are one logical partition.
ABSENT_SHARE_MAX: Final = 0.1


@dataclass(frozen=True, slots=True)
class Problem:
    kind: ProblemKind
    text: str

    @property
    def severity(self) -> int:
        return _SEVERITY[self.kind]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Figures that the engine would measure. RU by kind are those of one request of the kind, on average."""

    ru_by_kind: Mapping[str, float] = field(default_factory=dict)
    requests_by_kind: Mapping[str, int] = field(default_factory=dict)
    ru_per_second: float = 0.0
    ru_share_by_partition: tuple[float, ...] = ()
    # Of all requests, at `throttled_at_ru` RU/s.
    throttled_share: float = 0.0
    throttled_at_ru: int = 0
    # The RU/s that the hottest partition needs in busy windows, times the partitions.
    ru_in_busy_windows: float = 0.0
    # The RU/s that the busiest partition needs in the busiest of twenty windows, times the partitions.
    ru_in_busiest_window: float = 0.0
    # The RU/s at which no request is refused; None if no throughput is enough, 0 without requests.
    ru_needed: float | None = 0.0


@dataclass(frozen=True, slots=True)
class RouteShares:
    """Of all requests: point reads and writes, other requests for one logical partition, for several, for all."""

    point: float = 0.0
    single: float = 0.0
    several: float = 0.0
    fan_out: float = 0.0

    @classmethod
    def of(cls, routes: Routes) -> RouteShares:
        total = max(1, routes.total)
        return cls(routes.point / total, routes.single / total, routes.several / total, routes.fan_out / total)

    @property
    def routed(self) -> float:
        """The share that reaches one logical partition."""
        return self.point + self.single


@dataclass(frozen=True, slots=True)
class Assessment:
    candidate: CandidateKey
    storage: StorageFigures
    predicted: Prediction
    routes: RouteShares
    windows: Windows
    partitions: int
    broken_batch_share: float = 0.0
    is_unique: bool = True
    changed_paths: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    is_present: bool = False
    # Estimated from a part of the requests.
    is_estimate: bool = False
    # Why it stands where it stands; set by the ranking.
    why: str = ""

    @property
    def ru_ranked(self) -> float:
        """The RU/s to compare candidates by: those of busy windows, unless a peak is far above them."""
        needed = self.predicted.ru_needed
        return math.inf if needed is None else max(self.predicted.ru_in_busy_windows, needed / PEAK_RATIO)

    @property
    def severity(self) -> int:
        return sum(problem.severity for problem in self.problems)

    def with_need_times(self, factor: float) -> Assessment:
        needed, busy = self.predicted.ru_needed, self.predicted.ru_in_busy_windows
        predicted = replace(
            self.predicted,
            ru_needed=None if needed is None else needed * factor,
            ru_in_busy_windows=busy * factor,
        )
        return replace(self, predicted=predicted)

    def with_why(self, why: str) -> Assessment:
        return replace(self, why=why)


def prediction_of(
    load: Load, windows: Windows, *, span_seconds: float, weight: float, ru_needed: float | None
) -> Prediction:
    """Return the prediction of a load; each of its requests stands for `weight` requests."""
    by_partition = load.ru_by_partition()
    total = sum(by_partition)
    return Prediction(
        ru_by_kind={kind: ru / load.requests_by_kind[kind] for kind, ru in load.ru_by_kind.items()},
        requests_by_kind=dict(load.requests_by_kind),
        ru_per_second=load.total_ru * weight / span_seconds,
        ru_share_by_partition=tuple(ru / total for ru in by_partition) if total else (),
        ru_in_busy_windows=busy_ru(windows) * weight,
        ru_in_busiest_window=busiest_window_ru(load, span_seconds=span_seconds) * weight,
        ru_needed=ru_needed,
    )


def problems_of(assessment: Assessment, limits: Limits) -> tuple[Problem, ...]:
    """Return what keeps a candidate from working, worst first."""
    found: list[Problem | None] = [
        _full(assessment.storage, limits),
        None if assessment.is_unique else Problem("not unique", "items with one id would have the same key"),
        _unreachable(assessment, limits),
        _mutable(assessment),
        _broken(assessment),
        _absent(assessment.storage),
    ]
    return tuple(sorted((problem for problem in found if problem is not None), key=lambda problem: -problem.severity))


def _full(storage: StorageFigures, limits: Limits) -> Problem | None:
    limit = about_bytes(limits.logical_partition_bytes_max)
    if storage.largest_bytes >= limits.logical_partition_bytes_max:
        return Problem(
            "full", f"its largest key has {about_bytes(storage.largest_bytes)}, more than the {limit} of one"
        )
    after = storage.full_after_seconds
    if after is not None and after < GROWTH_HORIZON_SECONDS:
        return Problem("full", f"its fastest key reaches {limit} in {about_duration(after)}")
    return None


def _unreachable(assessment: Assessment, limits: Limits) -> Problem | None:
    if assessment.predicted.ru_needed is not None:
        return None
    most = limits.physical_partition_ru_per_second_max
    return Problem("unreachable", f"one partition needs more than the {most:,} RU/s that it can have")


def _mutable(assessment: Assessment) -> Problem | None:
    if not assessment.changed_paths:
        return None
    return Problem("mutable", f"writes change {', '.join(assessment.changed_paths)} of items, which a key may not")


def _broken(assessment: Assessment) -> Problem | None:
    if not assessment.broken_batch_share:
        return None
    return Problem("breaks batches", f"{about_share(assessment.broken_batch_share)} of the transactions would break")


def _absent(storage: StorageFigures) -> Problem | None:
    if storage.absent_share <= ABSENT_SHARE_MAX:
        return None
    return Problem("absent", f"{about_share(storage.absent_share)} of the items have no value for it")


def is_unique(candidate: CandidateKey, families: Iterable[Sequence[Mapping[str, Component]]]) -> bool:
    """Return whether no two items of one id have the same key, among the families of items that were watched."""
    return all(len(family) == len({candidate.key_of_values(values) for values in family}) for family in families)


def written_bytes_per_second(
    candidate: CandidateKey, writes: Sequence[tuple[Mapping[str, Component], float]], *, span_seconds: float
) -> dict[PartitionKey, float]:
    """Return what new items add to each key, in bytes per second."""
    written: dict[PartitionKey, float] = defaultdict(float)
    counts: Counter[PartitionKey] = Counter()
    for values, size_bytes in writes:
        key = candidate.key_of_values(values)
        counts[key] += 1
        written[key] += size_bytes
    return {key: size / span_seconds for key, size in written.items() if counts[key] >= GROWTH_ITEMS_MIN}


def rounded_ru(needed: float, limits: Limits) -> int:
    """Return the throughput that can be bought for a need: in hundreds, and not below the minimum."""
    return max(limits.throughput_ru_per_second_min, math.ceil(needed / 100) * 100)
