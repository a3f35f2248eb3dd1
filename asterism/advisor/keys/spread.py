"""How evenly amounts are spread over keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def gini(amounts: Collection[float]) -> float:
    """Return the Gini coefficient: 0 if all amounts are equal, near 1 if one of many has everything."""
    total = sum(amounts)
    if total <= 0 or len(amounts) < 2:
        return 0.0
    ordered = sorted(amounts)
    weighted = sum(rank * amount for rank, amount in enumerate(ordered, start=1))
    count = len(ordered)
    return min(1.0, max(0.0, 2 * weighted / (count * total) - (count + 1) / count))


def shares(amounts: Sequence[float]) -> list[float]:
    """Return each amount as a share of their sum; no shares of nothing."""
    total = sum(amounts)
    return [amount / total for amount in amounts] if total > 0 else [0.0] * len(amounts)


def top_share(amounts: Iterable[float], count: int) -> float:
    """Return the share of the largest amounts, so many of them."""
    ordered = sorted(amounts, reverse=True)
    total = sum(ordered)
    return sum(ordered[:count]) / total if total > 0 else 0.0


def percentile(values: Sequence[float], fraction: float) -> float:
    """Return the value below which a fraction of the values lies, the nearest one that occurs."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]
