"""Refusals for lack of throughput (429), and the throughput at which there are none, by the server's own buckets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from asterism.advisor.keys.load import Load
from asterism.throughput.token_bucket import ADMITTED, TokenBucket

# The search for the lowest rate ends at this precision.
_PRECISION: Final = 0.01
# The busiest partitions that are searched: one of them decides.
_BUSIEST: Final = 3
# Around the busiest second, payments this near and so many decide how much is needed.
_SECONDS_NEAR: Final = 10.0
_PAYMENTS_MAX: Final = 20_000

# (time, request units)
_Cost = tuple[float, float]


def throttled_share(load: Load, *, ru_per_second: float, burst: bool = True) -> float:
    """Return the share of requests of which a payment is refused, on partitions that were idle before and, with
    `burst`, have saved request units then. Refused requests are not repeated."""
    if not load.payments:
        return 0.0
    share = ru_per_second / load.partitions
    start = load.payments[0][0]
    buckets = [TokenBucket(share, burst=burst, now=start) for _ in range(load.partitions)]
    refused: set[int] = set()
    for at, partition, cost_ru, request in load.payments:
        if buckets[partition].take(cost_ru, now=at) is not ADMITTED:
            refused.add(request)
    return len(refused) / max(1, load.routes.total)


def rate_needed(load: Load) -> float:
    """Return the RU/s of a partition at which none refuses anything, without savings from idle times."""
    by_partition: dict[int, list[_Cost]] = defaultdict(list)
    for at, partition, cost_ru, _ in load.payments:
        by_partition[partition].append((at, cost_ru))
    peaks = {partition: _peak(payments) for partition, payments in by_partition.items()}
    busiest = sorted(peaks, key=lambda partition: -peaks[partition][0])[:_BUSIEST]
    return max((_lowest_rate(by_partition[partition], *peaks[partition]) for partition in busiest), default=0.0)


def _peak(costs: Sequence[_Cost]) -> tuple[float, int]:
    """Return the most request units within any second, and the index of the cost at its end."""
    first, held, most, place = 0, 0.0, 0.0, 0
    for index, (at, cost_ru) in enumerate(costs):
        held += cost_ru
        while costs[first][0] <= at - 1.0:
            held -= costs[first][1]
            first += 1
        if held > most:
            most, place = held, index
    return most, place


def _lowest_rate(costs: Sequence[_Cost], peak: float, place: int) -> float:
    peak_at = costs[place][0]
    near = costs[max(0, place - _PAYMENTS_MAX // 2) : place + _PAYMENTS_MAX // 2]
    near = [cost for cost in near if abs(cost[0] - peak_at) <= _SECONDS_NEAR]
    # A bucket that holds a second's units refuses nothing at the peak's rate; at a tenth of it nearly always.
    high, low = peak, peak / 10
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if _admits_all(near, middle):
            high = middle
        else:
            low = middle
    return high


def _admits_all(costs: Sequence[_Cost], rate: float) -> bool:
    take = TokenBucket(rate, burst=False, now=costs[0][0]).take
    for at, cost_ru in costs:  # noqa: SIM110 - a generator takes half as long again
        if take(cost_ru, now=at) is not ADMITTED:
            return False
    return True
