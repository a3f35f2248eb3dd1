"""Budgets that hold over all processes together: each reports its demand, and its buckets fill as fast as its share of
each budget allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.keyspaces.admission import Admission
from asterism.throughput.shares import fair_shares, smoothed

# A smaller demand counts as none.
_DEMAND_RU_MIN = 0.5


class BudgetSharer:
    """This process's part of the agreement. A `Presence` of `Coordination`."""

    def __init__(self, admission: Admission, *, monotonic: Callable[[], float]) -> None:
        self._admission = admission
        self._monotonic = monotonic
        self._asked: dict[str, float] = {}
        self._demands: dict[str, float] = {}
        self._measured_at = monotonic()

    @property
    def is_busy(self) -> bool:
        return bool(self._demands) or self._admission.has_been_asked(self._asked)

    def report(self) -> Mapping[str, Any]:
        now = self._monotonic()
        seconds = max(now - self._measured_at, 0.001)
        self._measured_at = now
        asked = {name: bucket.asked_ru for name, bucket in self._admission.budgets().items()}
        demands: dict[str, float] = {}
        for name, total in asked.items():
            before = self._demands.get(name, 0.0)
            spent = total - self._asked.get(name, total)
            if spent or before:
                demand = smoothed(before, spent / seconds, seconds=seconds)
                if demand >= _DEMAND_RU_MIN:
                    demands[name] = demand
        self._asked, self._demands = asked, demands
        return {"demand": {name: round(demand, 1) for name, demand in demands.items()}}

    def hear(self, reports: list[Mapping[str, Any]]) -> None:
        reported: list[Mapping[str, float]] = [report.get("demand", {}) for report in reports]
        asked = self._demands.keys() | {name for demands_of_process in reported for name in demands_of_process}
        even_share = 1.0 / (1 + len(reports))
        for name, bucket in self._admission.budgets().items():
            share = even_share
            if name in asked:
                demands = [
                    self._demands.get(name, 0.0),
                    *(demands_of_process.get(name, 0.0) for demands_of_process in reported),
                ]
                budget = bucket.whole_ru_per_second
                share = fair_shares(budget, demands)[0] / budget
            bucket.set_share(share, now=self._measured_at)
        self._admission.processes = 1 + len(reports)
