"""Plans for dividing an ordered line where its load is, and for merging ranges without load.

Ordered keys are not spread by a hash, so load gathers wherever the keys in use are. A range that serves too much is
divided where half of its recent load lies on either side; two neighbours that hardly serve anything become one.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from asterism.limits import Limits
from asterism.partitioning.effective_key import border_at
from asterism.partitioning.key_range import FULL
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.partition_map import PartitionMap, PartitionRange
from asterism.partitioning.split_merge import CannotSplit, MergePlan, SplitPlan, SplitReason

# The effective key of a recent request and its cost; a sequence of them is in the order of time.
LoadSample = tuple[bytes, float]

# Fewer requests than this do not locate the load.
SAMPLES_MIN = 16
# A division that leaves less than this on one side does not help the other.
_LESSER_SHARE_MIN = 0.1
# A drift is a minimum of steps from one key to the next, a share of them in one direction, and a share to new keys.
# Eight steps go the same way by chance in one case of 128; and fewer samples than would show a drift must not divide
# anything.
_DRIFT_STEPS_MIN = SAMPLES_MIN // 2
_DRIFT_SHARE_MIN = 0.9
_DRIFT_NEW_SHARE_MIN = 0.5
# Two neighbors may merge if they hold at most this fraction of a partition's limit together: the result must not be
# about to split again.
_MERGE_BYTES_NUMERATOR, _MERGE_BYTES_DENOMINATOR = 2, 5


class Drift(enum.Enum):
    """Direction in which the load moves along the line, as it does when keys are times or counters."""

    NONE = "none"
    RISING = "rising"
    FALLING = "falling"


@dataclass(frozen=True, slots=True)
class LoadPicture:
    """Summary of a range's recent requests."""

    samples: int
    drift: Drift
    # The key with the largest share of the load, and that share, from 0 to 1.
    hottest_key: bytes | None
    hottest_share: float


def picture_of(samples: Sequence[LoadSample]) -> LoadPicture:
    weights = _weights(samples)
    total = sum(weights.values())
    if not total:
        return LoadPicture(len(samples), Drift.NONE, None, 0.0)
    hottest = max(weights, key=lambda key: weights[key])
    return LoadPicture(len(samples), drift_of([key for key, _ in samples]), hottest, weights[hottest] / total)


def drift_of(keys: Sequence[bytes]) -> Drift:
    steps = [(before, after) for before, after in pairwise(keys) if before != after]
    if len(steps) < _DRIFT_STEPS_MIN or len(set(keys)) < len(steps) * _DRIFT_NEW_SHARE_MIN:
        return Drift.NONE
    rising = sum([before < after for before, after in steps])
    if rising >= len(steps) * _DRIFT_SHARE_MIN:
        return Drift.RISING
    return Drift.FALLING if len(steps) - rising >= len(steps) * _DRIFT_SHARE_MIN else Drift.NONE


def plan_load_split(
    definition: PartitionKeyDefinition, partition_range: PartitionRange, samples: Sequence[LoadSample]
) -> SplitPlan | CannotSplit:
    """Plan the split of a range that serves too much, or state why a split would not help."""
    inside = [(key, cost) for key, cost in samples if partition_range.range.contains(key)]
    if len(inside) < SAMPLES_MIN:
        return CannotSplit("The range has had too few recent requests to locate its load.")
    drift = drift_of([key for key, _ in inside])
    if drift is not Drift.NONE:
        return CannotSplit(hotspot_text(drift, partition_range))
    weights = _weights([(border_at(definition, key), cost) for key, cost in inside])
    at, lesser_share = _balance(weights)
    if at is None:
        return CannotSplit(
            "All of the range's load goes to one partition key, and a logical partition cannot be divided. Choose a "
            "partition key with more values."
        )
    if lesser_share < _LESSER_SHARE_MIN:
        return CannotSplit(
            "Nearly all of the range's load goes to one partition key, so dividing the range would not help. Choose a "
            "partition key with more values, or spread this one over several."
        )
    return SplitPlan(range_id=partition_range.id, at=at, reason=SplitReason.LOAD)


def hotspot_text(drift: Drift, partition_range: PartitionRange) -> str:
    """Return the advice about load that moves along the line."""
    place = "the load moves along the line"
    if drift is Drift.RISING and partition_range.range.end == FULL.end:
        place = "all of the load is at the upper end of the line"
    elif drift is Drift.FALLING and partition_range.range.start == FULL.start:
        place = "all of the load is at the lower end of the line"
    return (
        f"The partition keys in use are {drift.value} (times or counters?), so {place}, and wherever the range is "
        "divided, one side gets all of it. Prefix the key with something that spreads it, such as a hash of the row."
    )


def _weights(samples: Sequence[LoadSample]) -> dict[bytes, float]:
    weights: dict[bytes, float] = {}
    for key, cost in samples:
        weights[key] = weights.get(key, 0.0) + cost
    return weights


def _balance(weights: Mapping[bytes, float]) -> tuple[bytes | None, float]:
    """Return the key that divides the load best, and the share of the load on the lesser side."""
    total = sum(weights.values())
    keys = sorted(weights)
    best: bytes | None = None
    best_lesser = -1.0
    before = 0.0
    for previous, key in pairwise(keys):
        before += weights[previous]
        lesser = min(before, total - before)
        if lesser > best_lesser:
            best, best_lesser = key, lesser
    return best, best_lesser / total if total else 0.0


def plan_cold_merges(
    partition_map: PartitionMap, *, cold_ids: Collection[int], bytes_by_range: Mapping[int, int], limits: Limits
) -> tuple[MergePlan, ...]:
    """Return disjoint pairs of cold neighbors that fit into one partition, from the start of the line on."""
    bytes_max = limits.physical_partition_bytes_max * _MERGE_BYTES_NUMERATOR // _MERGE_BYTES_DENOMINATOR
    plans: list[MergePlan] = []
    taken: set[int] = set()
    for left, right in pairwise(partition_map.ranges):
        is_cold = left.id in cold_ids and right.id in cold_ids
        together = bytes_by_range.get(left.id, 0) + bytes_by_range.get(right.id, 0)
        if is_cold and left.id not in taken and together < bytes_max:
            plans.append(MergePlan(left.id, right.id))
            taken.add(right.id)
    return tuple(plans)
