"""A verdict on a partition key: how well it spreads the data and the load of a container, in a sentence.

The facts are sizes and recent request units by physical partition, with the keys that stand out. The rules know no
store and no clock; the order of the partitions does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from asterism.advisor.wording import about_bytes, about_duration, about_share

Kind = Literal[
    "unknown",
    "empty",
    "few items",
    "even",
    "skewed storage",
    "hot partition",
    "hot key",
    "short of throughput",
    "large key",
    "growing key",
]

# With fewer items chance alone makes partitions differ: at 50 items each, the fullest of ten has a third more than
# the mean.
ITEMS_MIN: Final = 100
ITEMS_PER_PARTITION_MIN: Final = 50
# Of the fullest partition, as a multiple of the mean. A partition whose neighbor was just split has 1.5 times the mean
# of the three.
SKEW_MIN: Final = 1.5
# Request units in the window below which nothing is said about load: some hundred reads.
LOAD_RU_MIN: Final = 500.0
# Of the load or the data: a key with more outweighs all others together.
DOMINANT_SHARE: Final = 0.5
# Partitions that use less than this fraction of what the hottest uses are idle beside it.
IDLE_FRACTION: Final = 0.5
# Below this fraction of its RU/s a partition is busy with nothing, however uneven the load is.
BUSY_USE: Final = 0.5
# Of the bytes that a logical partition may have: late enough to be certain, early enough to act.
LARGE_FRACTION: Final = 0.8
# A key that needs longer to fill up may stop growing before.
GROWTH_SECONDS_MAX: Final = 90 * 86_400.0
_SOON_SECONDS: Final = 86_400.0
_WEEK_SECONDS: Final = 7 * 86_400.0

_MORE_VALUES: Final = "choose a partition key with more values, or add a level to it, and copy the items over"


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A logical partition that stands out in its physical one: its name, and its bytes or request units."""

    name: str
    amount: float


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """A physical partition; sizes are None while its node does not answer. Load is that of the window."""

    id: str
    size_bytes: int | None
    items: int | None
    request_units: float = 0.0
    throttled: int = 0
    # Of the busiest part of the window; None if it is not known.
    peak_ru_per_second: float | None = None
    largest: KeyPart | None = None
    hottest: KeyPart | None = None


@dataclass(frozen=True, slots=True)
class GrowingKey:
    name: str
    size_bytes: int
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Facts about the whole container. `logical_bytes_max` is None where a logical partition has no limit of its own,
    `ru_share` where throughput is not provisioned."""

    noun: str
    logical_bytes_max: int | None
    ru_share: float | None


@dataclass(frozen=True, slots=True)
class Observation:
    kind: Kind
    # The larger, the sooner it hurts.
    severity: int
    sentence: str
    advice: str
    partition: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    # The fullest partition, and the busiest, as multiples of the mean; None without data, or without load.
    storage_skew: float | None
    load_skew: float | None
    # RU/s at the peak, by partition, as a fraction of its share; empty where throughput is not provisioned.
    normalized_ru: dict[str, float]
    hottest_key: str | None
    hottest_key_share: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The most severe finding, and all of them in the order of severity."""

    kind: Kind
    sentence: str
    advice: str
    findings: tuple[Observation, ...]
    figures: Figures


def judge(
    partitions: Sequence[PartitionFacts], *, growing: Sequence[GrowingKey], surroundings: Surroundings
) -> Verdict:
    ordered = sorted(partitions, key=lambda partition: (len(partition.id), partition.id))
    figures = _figures(ordered, surroundings)
    found = [
        *_large_keys(ordered, surroundings),
        *_growing_keys(growing, surroundings),
        *_load_findings(ordered, figures),
        *_storage_findings(ordered, figures),
    ]
    found.sort(key=lambda finding: (-finding.severity, finding.kind, finding.partition or "", finding.key or ""))
    if not found:
        found = [_calm(ordered, figures, surroundings)]
    first = found[0]
    return Verdict(first.kind, first.sentence, first.advice, tuple(found), figures)


# --- figures --------------------------------------------------------------------------------------------------------


def _figures(partitions: Sequence[PartitionFacts], surroundings: Surroundings) -> Figures:
    hottest = _hottest_key(partitions)
    total_ru = sum(partition.request_units for partition in partitions)
    share = surroundings.ru_share
    normalized = {
        partition.id: partition.peak_ru_per_second / share
        for partition in partitions
        if share and partition.peak_ru_per_second is not None
    }
    return Figures(
        storage_skew=_skew([partition.size_bytes for partition in partitions]),
        load_skew=_skew([partition.request_units for partition in partitions]),
        normalized_ru=normalized,
        hottest_key=None if hottest is None else hottest[1].name,
        hottest_key_share=None if hottest is None or not total_ru else min(1.0, hottest[1].amount / total_ru),
    )


def _skew(amounts: Sequence[float | None]) -> float | None:
    """Return the largest amount as a multiple of the mean; None if there is nothing, or some are unknown."""
    known = [amount for amount in amounts if amount is not None]
    total = sum(known)
    if len(known) < len(amounts) or not total:
        return None
    return max(known) * len(known) / total


def _hottest_key(partitions: Sequence[PartitionFacts]) -> tuple[PartitionFacts, KeyPart] | None:
    hot = [(partition, partition.hottest) for partition in partitions if partition.hottest is not None]
    return max(hot, key=lambda entry: entry[1].amount, default=None)


def _has_enough_items(partitions: Sequence[PartitionFacts]) -> bool:
    items = sum(partition.items or 0 for partition in partitions)
    return items >= _items_needed(len(partitions))


def _items_needed(partitions: int) -> int:
    return max(ITEMS_MIN, ITEMS_PER_PARTITION_MIN * partitions)


# --- keys near their limit ------------------------------------------------------------------------------------------


def _large_keys(partitions: Sequence[PartitionFacts], surroundings: Surroundings) -> list[Observation]:
    bytes_max = surroundings.logical_bytes_max
    if bytes_max is None:
        return []
    return [
        Observation(
            "large key",
            100 if large.amount >= 0.95 * bytes_max else 80,
            f"The key {large.name} holds {about_bytes(large.amount)} of the {about_bytes(bytes_max)} that one key may "
            "have; writes beyond are refused with 403.",
            f"Delete or expire some of its items now, and {_MORE_VALUES}.",
            partition.id,
            large.name,
        )
        for partition in partitions
        if (large := partition.largest) is not None and large.amount > LARGE_FRACTION * bytes_max
    ]


def _growing_keys(growing: Sequence[GrowingKey], surroundings: Surroundings) -> list[Observation]:
    bytes_max = surroundings.logical_bytes_max
    found = []
    for key in growing:
        if bytes_max is None or key.bytes_per_second <= 0 or key.size_bytes >= bytes_max:
            continue
        seconds = (bytes_max - key.size_bytes) / key.bytes_per_second
        if seconds <= GROWTH_SECONDS_MAX:
            severity = 95 if seconds <= _SOON_SECONDS else 75 if seconds <= _WEEK_SECONDS else 50
            found.append(
                Observation(
                    "growing key",
                    severity,
                    f"The key {key.name} will reach {about_bytes(bytes_max)} in about {about_duration(seconds)} at the "
                    f"present rate of {about_bytes(key.bytes_per_second)}/s.",
                    f"Writes to it are then refused with 403: {_MORE_VALUES}.",
                    key=key.name,
                )
            )
    return found


# --- load -----------------------------------------------------------------------------------------------------------


def _load_findings(partitions: Sequence[PartitionFacts], figures: Figures) -> list[Observation]:
    total = sum(partition.request_units for partition in partitions)
    if total < LOAD_RU_MIN:
        return []
    busiest = max(partitions, key=lambda partition: partition.request_units)
    others = (total - busiest.request_units) / (len(partitions) - 1) if len(partitions) > 1 else 0.0
    stands_alone = len(partitions) > 1 and others < IDLE_FRACTION * busiest.request_units
    use = figures.normalized_ru.get(busiest.id)
    is_busy = use is None or use >= BUSY_USE or busiest.throttled > 0
    hottest = _hottest_key(partitions)
    found: list[Observation] = []
    if hottest is not None and _is_hot(hottest, total, is_throttled_alone=stands_alone and busiest.throttled > 0):
        found.append(_hot_key(*hottest, total=total, stands_alone=stands_alone, is_busy=is_busy))
    elif stands_alone and is_busy:
        found.append(_hot_partition(busiest, total, len(partitions)))
    elif any(partition.throttled for partition in partitions) and not stands_alone:
        found.append(_short_of_throughput(partitions))
    return found


def _is_hot(hottest: tuple[PartitionFacts, KeyPart], total: float, *, is_throttled_alone: bool) -> bool:
    partition, key = hottest
    dominates_partition = key.amount > DOMINANT_SHARE * partition.request_units
    return key.amount > DOMINANT_SHARE * total or (is_throttled_alone and dominates_partition)


def _hot_key(
    partition: PartitionFacts, key: KeyPart, *, total: float, stands_alone: bool, is_busy: bool
) -> Observation:
    share = about_share(min(1.0, key.amount / total))
    sentence = f"The key {key.name} takes {share} of the request units"
    if partition.throttled:
        rest = " while the others are nearly idle" if stands_alone else ""
        sentence += f", and partition {partition.id}, which has it, answers 429{rest}"
    advice = (
        "One key never gets more than the share of one partition, so more throughput helps little: choose a partition "
        "key with more values, or spread this one over several, such as with a suffix."
    )
    severity = 90 if partition.throttled else 60 if is_busy else 45
    return Observation("hot key", severity, f"{sentence}.", advice, partition.id, key.name)


def _hot_partition(partition: PartitionFacts, total: float, count: int) -> Observation:
    sentence = (
        f"Partition {partition.id} serves {about_share(partition.request_units / total)} of the load, "
        f"{partition.request_units * count / total:.1f} times the mean of {count} partitions"
    )
    if partition.throttled:
        sentence += ", and answers 429 while the others are nearly idle"
    advice = f"Split partition {partition.id}: its load is that of several keys, and half of them would move."
    return Observation("hot partition", 85 if partition.throttled else 55, f"{sentence}.", advice, partition.id)


def _short_of_throughput(partitions: Sequence[PartitionFacts]) -> Observation:
    throttled = sum(partition.throttled for partition in partitions)
    return Observation(
        "short of throughput",
        70,
        f"{throttled:,} requests were refused with 429, on partitions that are all busy.",
        "Raise the throughput: the load is spread, so that every partition can use its part of it.",
    )


# --- storage --------------------------------------------------------------------------------------------------------


def _storage_findings(partitions: Sequence[PartitionFacts], figures: Figures) -> list[Observation]:
    skew = figures.storage_skew
    if skew is None or not _has_enough_items(partitions):
        return []
    total = sum(partition.size_bytes or 0 for partition in partitions)
    fullest = max(partitions, key=lambda partition: partition.size_bytes or 0)
    held, large = fullest.size_bytes or 0, fullest.largest
    is_of_one_key = large is not None and large.amount > DOMINANT_SHARE * held
    if skew > SKEW_MIN:
        sentence = (
            f"Partition {fullest.id} holds {about_share(held / total)} of all data, {skew:.1f} times the mean of "
            f"{len(partitions)} partitions"
        )
        if is_of_one_key and large is not None:
            sentence += f", and {about_share(large.amount / held)} of it under the key {large.name}"
            advice = f"A single key is never divided: {_MORE_VALUES}."
        else:
            advice = f"Split partition {fullest.id}: its data belongs to several keys, and half of them would move."
        key = large.name if is_of_one_key and large is not None else None
        return [Observation("skewed storage", 40 if skew > 3 else 35, f"{sentence}.", advice, fullest.id, key)]
    if len(partitions) == 1 and is_of_one_key and large is not None:
        sentence = f"The key {large.name} holds {about_share(large.amount / held)} of all data."
        advice = f"A single key is never divided, so the data cannot spread: {_MORE_VALUES}."
        return [Observation("skewed storage", 30, sentence, advice, fullest.id, large.name)]
    return []


def _calm(partitions: Sequence[PartitionFacts], figures: Figures, surroundings: Surroundings) -> Observation:
    """Return the verdict where nothing stands out."""
    items = sum(partition.items or 0 for partition in partitions)
    needed, count = _items_needed(len(partitions)), len(partitions)
    if any(partition.size_bytes is None for partition in partitions):
        return Observation(
            "unknown", 0, "Some partitions cannot be read now.", "Look at the nodes: one of them does not answer."
        )
    if items == 0:
        return Observation(
            "empty", 0, f"The {surroundings.noun} holds no items yet.", "Insert some; a verdict needs data."
        )
    if not _has_enough_items(partitions):
        plural = "item" if items == 1 else "items"
        return Observation(
            "few items",
            0,
            f"There are too few items to judge: {items:,} {plural} in {count} partition{'' if count == 1 else 's'}.",
            f"From {needed:,} items on chance no longer matters.",
        )
    if count == 1:
        sentence = "All data is in one physical partition, and no key in it stands out."
        return Observation("even", 0, sentence, "Nothing is to be done: it can be divided when it grows.")
    skew = figures.storage_skew or 1.0
    return Observation(
        "even",
        0,
        f"Data and load are spread evenly over {count} partitions: the fullest holds {skew:.1f} times the mean.",
        "Nothing is to be done: the partition key spreads well.",
    )
