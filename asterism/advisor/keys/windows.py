"""Skew in time: how uneven the load is in each window, which totals over a day do not show."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from asterism.advisor.keys.load import Load
from asterism.advisor.keys.spread import percentile
from asterism.partitioning.partition_key import PartitionKey

# With fewer requests in a window one of them is the hottest by chance.
REQUESTS_MIN: Final = 20
_WINDOWS_WANTED: Final = 60
_NICE_SECONDS: Final = (1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0, 21_600.0, 86_400.0)


@dataclass(frozen=True, slots=True)
class Skew:
    """Shares of the hottest in each window: the mean by request units, the 95th percentile and the worst."""

    mean: float = 0.0
    p95: float = 0.0
    worst: float = 0.0

    @classmethod
    def of(cls, shares: Sequence[tuple[float, float]]) -> Skew:
        """Summarize (share, weight) pairs."""
        total = sum(weight for _, weight in shares)
        if total <= 0:
            return cls()
        own = [share for share, _ in shares]
        return cls(sum(share * weight for share, weight in shares) / total, percentile(own, 0.95), max(own))


@dataclass(frozen=True, slots=True)
class Windows:
    """The load by window: request units of each physical partition, and the skew of partitions and of keys."""

    seconds: float
    ru: tuple[tuple[float, ...], ...]
    physical: Skew
    logical: Skew


def busy_ru(windows: Windows, *, busy: float = 0.9) -> float:
    """Return the RU/s that the hottest partition needs in a busy window, times the partitions: of all windows a tenth
    are busier, which are chance as often as not."""
    hottest = [max(row) * len(row) / windows.seconds for row in windows.ru]
    return percentile(hottest, busy)


def window_seconds(span_seconds: float) -> float:
    """Return a length that makes some tens of windows of the span."""
    wanted = span_seconds / _WINDOWS_WANTED
    return next((seconds for seconds in _NICE_SECONDS if seconds >= wanted), _NICE_SECONDS[-1])


def windows_of(load: Load, *, seconds: float) -> Windows:
    if not load.payments:
        return Windows(seconds, (), Skew(), Skew())
    start = load.payments[0][0]
    rows: dict[int, list[float]] = {}
    # A request may pay several partitions, but only in one window.
    requests: Counter[int] = Counter()
    latest = -1
    for at, partition, cost_ru, request in load.payments:
        window = int((at - start) / seconds)
        row = rows.get(window)
        if row is None:
            row = rows[window] = [0.0] * load.partitions
        row[partition] += cost_ru
        if request != latest:
            latest = request
            requests[window] += 1
    keys: dict[int, dict[PartitionKey, float]] = defaultdict(lambda: defaultdict(float))
    for at, key, cost in load.of_keys:
        keys[int((at - start) / seconds)][key] += cost
    busy = [window for window in rows if requests[window] >= REQUESTS_MIN] or list(rows)
    totals = {window: sum(rows[window]) for window in busy}
    physical = [(max(rows[window]) / totals[window], totals[window]) for window in busy if totals[window]]
    logical = [
        (max(keys[window].values(), default=0.0) / totals[window], totals[window]) for window in busy if totals[window]
    ]
    return Windows(seconds, tuple(tuple(rows[window]) for window in sorted(rows)), Skew.of(physical), Skew.of(logical))


def busiest_window_ru(load: Load, *, span_seconds: float, windows: int = 20) -> float:
    """Return the RU/s at which no partition is asked for more than its share in the busiest window of the span, whose
    shorter peaks are evened out."""
    if not load.payments:
        return 0.0
    start, seconds = load.payments[0][0], span_seconds / windows
    spent: dict[tuple[int, int], float] = defaultdict(float)
    for at, partition, cost_ru, _ in load.payments:
        spent[min(windows - 1, int((at - start) / seconds)), partition] += cost_ru
    return max(spent.values()) / seconds * load.partitions
