"""Shares of processes in the budget of a partition that all of them serve: by demand, and never more in total.

Every process computes the shares itself from the reports of all. The reports are slightly old, so two processes may
briefly use different numbers; the rule is continuous, so the difference is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# Fraction of the budget for all nearly idle processes together, so that the first requests of a process need not wait
# until its report reaches the others.
IDLE_FRACTION: Final = 0.05


def fair_shares(budget_ru: float, demands_ru: Sequence[float]) -> list[float]:
    """Return the share of each process, in the order of their demands; the sum is exactly the budget.

    No process gets less than its demand while another gets more than an equal part, and the unclaimed rest is divided
    evenly. A demand above the budget counts as the budget, so that exaggeration does not pay.
    """
    count = len(demands_ru)
    least = budget_ru * IDLE_FRACTION / count
    clipped = [min(max(demand, least), budget_ru) for demand in demands_ru]
    left = budget_ru
    shares = [0.0] * count
    for served, index in enumerate(sorted(range(count), key=clipped.__getitem__)):
        shares[index] = min(clipped[index], left / (count - served))
        left -= shares[index]
    return [share + left / count for share in shares]


def smoothed(before_ru: float, now_ru: float, *, seconds: float, memory_seconds: float = 0.3) -> float:
    """Return the demand measured over the last `seconds`, smoothed with the measurement before it: single large
    requests would otherwise make the shares swing."""
    weight = seconds / (seconds + memory_seconds)
    return before_ru + weight * (now_ru - before_ru)
