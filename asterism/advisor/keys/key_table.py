"""The logical partitions that a candidate would make of the sampled items: their keys, items and bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from asterism.advisor.keys.candidate import CandidateKey, Draw
from asterism.advisor.keys.item_profile import ItemProfile
from asterism.advisor.keys.sketches import estimate_distinct
from asterism.advisor.keys.spread import gini, top_share
from asterism.advisor.keys.time_stamps import BUCKET_SECONDS
from asterism.limits import Limits
from asterism.partitioning.partition_key import PartitionKey
from asterism.values.undefined import UNDEFINED

# Fewer sampled items of one key say nothing about its growth.
GROWTH_ITEMS_MIN: Final = 20
# The part of the time in which the latest items lie, by which growth is measured.
_LATEST_PART: Final = 0.25
_TOP: Final = 10


@dataclass(frozen=True, slots=True)
class StorageFigures:
    """How a key divides the data. Bytes are of all items, estimated from the sample."""

    cardinality: int
    largest_bytes: float
    largest_share: float
    largest_key: PartitionKey
    top_ten_share: float
    gini: float
    # Items without a value at a level of the key.
    absent_share: float
    # Bytes per second by which the fastest key grows, and the seconds until it has reached the limit.
    growth_bytes_per_second: float = 0.0
    full_after_seconds: float | None = None


class KeyTable:
    """Items and bytes of the sample by key, each item standing for `scale` items."""

    def __init__(self, profile: ItemProfile, candidate: CandidateKey, draw: Draw, *, rows_max: int) -> None:
        """Look at no more than `rows_max` items of the sample, evenly chosen."""
        self.profile = profile
        self.candidate = candidate
        kept = profile.sample.kept
        self._step = max(1, -(-len(kept) // rows_max))
        self.rows = kept[:: self._step]
        self.is_whole = len(self.rows) == profile.items
        self.scale = profile.items / max(1, len(self.rows))
        self.items: Counter[PartitionKey] = Counter()
        self.bytes: Counter[PartitionKey] = Counter()
        self.absent = 0
        self.key_of_row: list[PartitionKey] = []
        for item in self.rows:
            key = candidate.key_of_values(item.values, draw=draw)
            self.key_of_row.append(key)
            self.items[key] += 1
            self.bytes[key] += item.size_bytes
            self.absent += UNDEFINED in key
        self._prefixes: dict[int, Counter[PartitionKey]] = {}
        self.cardinality = self._cardinality()
        # The items of an ordinary key: of most there is at most one in a sample.
        self._mean_items = max(1.0, profile.items / max(1, self.cardinality))

    def items_below(self, key: PartitionKey) -> float:
        """Return the estimated items with a key, or with a key that begins so."""
        is_whole_key = len(key) == len(self.candidate.parsed.paths)
        counted = self.items if is_whole_key else self._prefixes.get(len(key)) or self._count_prefixes(len(key))
        count = counted.get(key, 0)
        # A sample overstates the rare keys that it has, and lacks most.
        return count * self.scale if count > 1 or self.is_whole else self._mean_items

    def _count_prefixes(self, length: int) -> Counter[PartitionKey]:
        counted: Counter[PartitionKey] = Counter()
        for key, count in self.items.items():
            counted[key[:length]] += count
        self._prefixes[length] = counted
        return counted

    def _cardinality(self) -> int:
        """Return how many keys all items have: counted over all of them for a single path, estimated for several."""
        profile, sources = self.profile, self.candidate.sources
        sampled = len(self.key_of_row)
        estimate = estimate_distinct(Counter(self.items.values()), sampled=sampled, total=profile.items)
        if self.is_whole or self.candidate.rule is not None:
            return estimate
        counts = [profile.distinct(path) for path in sources]
        if len(sources) == 1:
            return max(counts[0], 1)
        most = 1
        for count in counts:
            most *= max(count, 1)
        return max(min(estimate, most, profile.items), *counts)

    def storage(self, limits: Limits, *, write_bytes_per_second: Mapping[PartitionKey, float]) -> StorageFigures:
        """Return the figures; `write_bytes_per_second` is what requests write by key, if items have no time."""
        amounts = list(self.bytes.values())
        if not amounts:
            return StorageFigures(0, 0.0, 0.0, (), 0.0, 0.0, 0.0)
        largest_key, largest = max(self.bytes.items(), key=lambda entry: entry[1])
        sampled_bytes = sum(amounts)
        factor = self.profile.total_bytes / max(1, sampled_bytes)
        growth, full_after = self._growth(limits, factor, write_bytes_per_second)
        return StorageFigures(
            cardinality=self.cardinality,
            largest_bytes=largest * factor,
            largest_share=largest / sampled_bytes,
            largest_key=largest_key,
            top_ten_share=top_share(amounts, _TOP),
            gini=gini(amounts),
            absent_share=self.absent / len(self.key_of_row),
            growth_bytes_per_second=growth,
            full_after_seconds=full_after,
        )

    # --- growth -----------------------------------------------------------------------------------------------------

    def _growth(
        self, limits: Limits, factor: float, written: Mapping[PartitionKey, float]
    ) -> tuple[float, float | None]:
        """Return the growth of the key that is full first, and when that is; None if none will be."""
        rates = self._rates_of_items(factor) or written
        limit = limits.logical_partition_bytes_max
        bucket_seconds = self._bucket_seconds()
        first: tuple[float, float | None] = (max(rates.values(), default=0.0), None)
        for key, rate in rates.items():
            left = limit - self.bytes.get(key, 0) * factor
            if rate <= 0 or (bucket_seconds is not None and rate * bucket_seconds < limit):
                continue
            seconds = max(0.0, left / rate)
            if first[1] is None or seconds < first[1]:
                first = (rate, seconds)
        return first

    def _bucket_seconds(self) -> float | None:
        """Return for how long a key can grow that holds a span of time."""
        parts = () if self.candidate.rule is None else self.candidate.rule.parts
        lengths = [BUCKET_SECONDS[part.bucket] for part in parts if part.bucket is not None]
        return min(lengths, default=None)

    def _rates_of_items(self, factor: float) -> dict[PartitionKey, float]:
        """Return the bytes per second of each key in the latest quarter of the time that the items cover."""
        times = self.profile.sampled_times()
        if not times:
            return {}
        own = [(row, seconds) for row, seconds in enumerate(times[:: self._step]) if seconds is not None]
        low, high = min(own, key=lambda entry: entry[1])[1], max(own, key=lambda entry: entry[1])[1]
        span = (high - low) * _LATEST_PART
        if span <= 0:
            return {}
        latest: Counter[PartitionKey] = Counter()
        counted: Counter[PartitionKey] = Counter()
        for row, seconds in own:
            if seconds >= high - span:
                key = self.key_of_row[row]
                counted[key] += 1
                latest[key] += self.rows[row].size_bytes
        return {key: latest[key] * factor / span for key in latest if counted[key] >= GROWTH_ITEMS_MIN}
