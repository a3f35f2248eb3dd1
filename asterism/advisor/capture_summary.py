"""A captured workload in a few figures: operations by kind, and the filters of its queries.

Figures are those of the sample; `CaptureSummary.sampling` tells of how many requests it is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from asterism.advisor.captured_request import BadLine, CapturedRequest, CaptureHeader

THROTTLED_STATUS: Final = 429
# Different filters that are counted apart: programs have some dozens, and a million would be made up ones.
FILTERS_MAX: Final = 10_000
_QUERIES: Final = ("query", "feed")


class Filter(NamedTuple):
    """The paths by which queries find their items, in the order of their names, and those they sort by."""

    fixed: tuple[str, ...]
    bounded: tuple[str, ...]
    order: tuple[str, ...]
    # True if the query named a partition key besides.
    names_key: bool


@dataclass(slots=True)
class Totals:
    count: int = 0
    request_units: float = 0.0
    throttled: int = 0
    results: int = 0
    loaded: int = 0

    def add(self, request: CapturedRequest) -> None:
        self.count += 1
        self.request_units += request.charge or 0.0
        self.throttled += request.status == THROTTLED_STATUS
        self.results += request.results or 0
        self.loaded += request.loaded or 0


@dataclass(slots=True)
class CaptureSummary:
    by_operation: dict[str, Totals] = field(default_factory=dict)
    by_filter: dict[Filter, Totals] = field(default_factory=dict)
    # Transactional batches; their operations are among the others.
    batches: int = 0
    # Seconds since the epoch; of requests, not of the capture.
    first_at: float | None = None
    last_at: float | None = None
    sampling: float = 1.0
    dropped: int = 0
    bad_lines: list[BadLine] = field(default_factory=list)

    @property
    def totals(self) -> Totals:
        found = self.by_operation.values()
        return Totals(
            count=sum(totals.count for totals in found),
            request_units=sum(totals.request_units for totals in found),
            throttled=sum(totals.throttled for totals in found),
        )


def summarize(entries: Iterable[CaptureHeader | CapturedRequest | BadLine]) -> CaptureSummary:
    summary = CaptureSummary()
    batches: set[str] = set()
    for entry in entries:
        match entry:
            case CaptureHeader():
                summary.sampling = entry.sampling
                summary.dropped += entry.dropped
            case BadLine():
                summary.bad_lines.append(entry)
            case CapturedRequest():
                _add(summary, entry)
                if entry.batch is not None:
                    batches.add(entry.batch)
    summary.batches = len(batches)
    return summary


def _add(summary: CaptureSummary, request: CapturedRequest) -> None:
    at = request.at
    summary.first_at = at if summary.first_at is None else min(summary.first_at, at)
    summary.last_at = at if summary.last_at is None else max(summary.last_at, at)
    summary.by_operation.setdefault(request.operation, Totals()).add(request)
    if request.operation in _QUERIES:
        wanted = Filter(
            tuple(sorted(request.equal)), tuple(sorted(request.between)), request.order, request.key is not None
        )
        if wanted in summary.by_filter or len(summary.by_filter) < FILTERS_MAX:
            summary.by_filter.setdefault(wanted, Totals()).add(request)
