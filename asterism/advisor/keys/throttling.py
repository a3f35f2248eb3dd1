"""Refusals for lack of throughput (429), and the throughput at which there are none, by the server's own buckets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from asterism.advisor.keys.load import Load, Payment
from asterism.throughput.token_bucket import ADMITTED, TokenBucket

# The search for the lowest rate ends at this precision.
_PRECISION: Final = 0.01
# The busiest partitions that are searched: one of them decides.
_BUSIEST: Final = 3
# Around the busiest second, payments this near and so many decide how much is needed.
_SECONDS_NEAR: Final = 10.0
_PAYMENTS_MAX: Final = 20_000


def throttled_share(load: Load, *, ru_per_second: float) -> float:
    """Return the share of requests of which a payment is refused, on partitions that were idle before. Refused requests
    are not repeated."""
    if not load.payments:
        return 0.0
    share = ru_per_second / load.partitions
    start = load.payments[0].at
    buckets = [TokenBucket(share, burst=True, now=start) for _ in range(load.partitions)]
    refused: set[int] = set()
    for payment in load.payments:
        if buckets[payment.partition].take(payment.cost_ru, now=payment.at) is not ADMITTED:
            refused.add(payment.request)
    return len(refused) / max(1, load.routes.total)


def rate_needed(load: Load) -> float:
    """Return the RU/s of a partition at which none refuses anything, without savings from idle times."""
    by_partition: dict[int, list[Payment]] = defaultdict(list)
    for payment in load.payments:
        by_partition[payment.partition].append(payment)
    peaks = {partition: _peak(payments) for partition, payments in by_partition.items()}
    busiest = sorted(peaks, key=lambda partition: -peaks[partition][0])[:_BUSIEST]
    return max((_lowest_rate(by_partition[partition], *peaks[partition]) for partition in busiest), default=0.0)


def _peak(payments: Sequence[Payment]) -> tuple[float, int]:
    """Return the most request units within any second, and the index of the payment at its end."""
    first, held, most, place = 0, 0.0, 0.0, 0
    for index, payment in enumerate(payments):
        held += payment.cost_ru
        while payments[first].at <= payment.at - 1.0:
            held -= payments[first].cost_ru
            first += 1
        if held > most:
            most, place = held, index
    return most, place


def _lowest_rate(payments: Sequence[Payment], peak: float, place: int) -> float:
    at = payments[place].at
    near = payments[max(0, place - _PAYMENTS_MAX // 2) : place + _PAYMENTS_MAX // 2]
    near = [payment for payment in near if abs(payment.at - at) <= _SECONDS_NEAR]
    # A bucket that holds a second's units refuses nothing at the peak's rate; at a tenth of it nearly always.
    high, low = peak, peak / 10
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if _admits_all(near, middle):
            high = middle
        else:
            low = middle
    return high


def _admits_all(payments: Sequence[Payment], rate: float) -> bool:
    bucket = TokenBucket(rate, burst=False, now=payments[0].at)
    return all(bucket.take(payment.cost_ru, now=payment.at) is ADMITTED for payment in payments)
