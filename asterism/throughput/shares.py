"""How processes that serve one partition divide its budget: each by what it is asked for, all together never more.

Every process works this out for itself from what all of them report. The reports are a moment old, so two processes may
for that long go by different numbers; the rule is steady, so that this matters little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# Of the budget, for all processes together that are asked for next to nothing: so that the first requests a process
# gets need not wait until the others have heard of them.
IDLE_FRACTION: Final = 0.05


def fair_shares(budget_ru: float, demands_ru: Sequence[float]) -> list[float]:
    """What each of the processes may spend, in the order of their demands; together exactly the budget.

    No process gets less than it asks for while another gets more than an equal part, and what nobody asks for is
    divided evenly. A demand above the budget counts as the budget: asking louder helps nobody.
    """
    count = len(demands_ru)
    least = budget_ru * IDLE_FRACTION / count
    asked = [min(max(demand, least), budget_ru) for demand in demands_ru]
    left = budget_ru
    shares = [0.0] * count
    for place, index in enumerate(sorted(range(count), key=asked.__getitem__)):
        shares[index] = min(asked[index], left / (count - place))
        left -= shares[index]
    return [share + left / count for share in shares]


def smoothed(before_ru: float, now_ru: float, *, seconds: float, memory_seconds: float = 0.3) -> float:
    """A demand measured over the last `seconds`, with what was measured before it still counting a little: single
    large requests would otherwise pull the shares to and fro."""
    weight = seconds / (seconds + memory_seconds)
    return before_ru + weight * (now_ru - before_ru)
