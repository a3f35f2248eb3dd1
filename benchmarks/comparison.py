"""Two checkouts side by side: the figures of alternating runs, their medians, ratio and spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.measurement import Measurement

Run = Sequence[Measurement]


@dataclass(frozen=True)
class Compared:
    """One figure of both checkouts, a value for each run. Runs at one place of the two lists form a pair."""

    case: str
    name: str
    unit: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratio(self) -> float | None:
        """Median of this checkout divided by that of the other; None where that is 0 or missing."""
        if not self.ours or not self.theirs or not median(self.theirs):
            return None
        return median(self.ours) / median(self.theirs)

    @property
    def ratios(self) -> tuple[float, ...]:
        """Ratio of each pair. A difference that every pair shows is hardly due to other load on the machine."""
        return tuple(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=False) if theirs)


def spread(values: Sequence[float]) -> float:
    """Return the distance between the least and the largest value as a share of the median."""
    middle = median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def compare(ours: Sequence[Run], theirs: Sequence[Run]) -> list[Compared]:
    """Join the runs of both by case and name, in the order of first appearance; failed runs add no value."""
    figures: dict[tuple[str, str], Measurement] = {}
    for run in (*ours, *theirs):
        for measurement in run:
            figures.setdefault((measurement.case, measurement.name), measurement)
    return [
        Compared(case, name, first.unit, _values(ours, case, name), _values(theirs, case, name))
        for (case, name), first in figures.items()
    ]


def _values(runs: Sequence[Run], case: str, name: str) -> tuple[float, ...]:
    found = (measurement for run in runs for measurement in run if (measurement.case, measurement.name) == (case, name))
    return tuple(measurement.value for measurement in found if measurement.value is not None)
