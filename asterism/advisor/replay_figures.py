"""Figures of a replay: what the requests under one key have cost, where, and how many were refused; and the same as
the advisor has predicted it.

All rates are those of the captured workload: a replay that was thinned and compressed is scaled back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from asterism.advisor.keys.assessment import Prediction, prediction_of
from asterism.advisor.keys.load import Load, Payment
from asterism.advisor.keys.throttling import rate_needed
from asterism.advisor.keys.windows import window_seconds, windows_of
from asterism.advisor.replay_schedule import Schedule, Unit


@dataclass(slots=True)
class KindFigures:
    """Requests of one kind: those that were sent, those of them that were refused with 429, and what the rest cost."""

    requests: int = 0
    throttled: int = 0
    request_units: float = 0.0

    @property
    def charge(self) -> float:
        """The mean charge of a request that was served."""
        served = self.requests - self.throttled
        return self.request_units / served if served else 0.0


@dataclass(frozen=True, slots=True)
class Reply:
    """The server's answer to one call, as far as it counts. `range_id`: None if the answer does not name one."""

    status: int
    charge: float
    range_id: str | None
    # Of a page of a query or feed.
    results: int = 0
    loaded: int = 0


@dataclass(slots=True)
class Measured:
    """Findings of a replay under one key."""

    partitions: int
    kinds: defaultdict[str, KindFigures] = field(default_factory=lambda: defaultdict(KindFigures))
    # Request units by partition, as the server counts them.
    by_range: dict[str, float] = field(default_factory=dict)
    # Every charge, at the time that its request has in the capture.
    payments: list[Payment] = field(default_factory=list)
    broken_batches: int = 0
    moved_items: int = 0
    # Refusals other than 429 that the workload does not expect, by status.
    refused: Counter[int] = field(default_factory=Counter)
    # The longest time by which a request was sent too late: the machine was busier than the schedule assumes.
    late_seconds: float = 0.0
    _units: int = 0
    _ranges: dict[str, int] = field(default_factory=dict)

    def add(self, unit: Unit, replies: Sequence[Reply]) -> None:
        """Count a unit, however many calls it took. It is throttled if any of them is; the operations of a batch have
        equal parts of its charge."""
        is_throttled = any(reply.status == 429 for reply in replies)
        charge = 0.0 if is_throttled else sum(reply.charge for reply in replies) / len(unit)
        for request in unit:
            figures = self.kinds[request.operation]
            figures.requests += 1
            figures.throttled += is_throttled
            figures.request_units += charge
        for reply in replies:
            if reply.status >= 400 and reply.status not in (404, 429):
                self.refused[reply.status] += 1
            if reply.range_id is not None:
                place = self._ranges.setdefault(reply.range_id, len(self._ranges))
                self.payments.append((unit[0].at, place, reply.charge, self._units))
        self._units += 1

    @property
    def requests(self) -> int:
        return sum(figures.requests for figures in self.kinds.values())

    @property
    def throttled_share(self) -> float:
        return sum(figures.throttled for figures in self.kinds.values()) / self.requests if self.requests else 0.0

    @property
    def demanded_ru(self) -> float:
        """The request units of all requests, the refused ones as dear as the others of their kind."""
        return sum(figures.charge * figures.requests for figures in self.kinds.values())

    @property
    def skew(self) -> float:
        """The request units of the busiest partition as a multiple of the mean."""
        total = sum(self.by_range.values())
        return max(self.by_range.values()) * self.partitions / total if total else 1.0

    def shares(self) -> list[float]:
        """Return the share of each partition in the request units, the largest first."""
        total = sum(self.by_range.values()) or 1.0
        return sorted((units / total for units in self.by_range.values()), reverse=True)

    def ru_per_second(self, schedule: Schedule) -> float:
        """Return the mean use of the captured workload."""
        return self.demanded_ru / schedule.kept / schedule.captured_seconds

    def as_prediction(self, schedule: Schedule) -> Prediction:
        """Return the figures by which candidates are compared, computed as the advisor does, of the measured charges.

        Refused requests have no charge, so the figures are true only if there were none.
        """
        load = Load(self.partitions, payments=sorted(self.payments))
        span = schedule.captured_seconds
        windows = windows_of(load, seconds=window_seconds(span))
        needed = rate_needed(load) * self.partitions / schedule.kept
        return prediction_of(load, windows, span_seconds=span, weight=1 / schedule.kept, ru_needed=needed)


def skew_of(prediction: Prediction) -> float:
    """Return the predicted request units of the busiest partition as a multiple of the mean."""
    shares = prediction.ru_share_by_partition
    return max(shares) * len(shares) if shares else 1.0


def error_of(predicted: float, measured: float) -> float:
    """Return the deviation of a prediction as a fraction of what was measured."""
    if measured == 0:
        return 0.0 if predicted == 0 else 1.0
    return abs(predicted - measured) / measured
