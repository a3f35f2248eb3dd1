"""A draw among the keys that an item may have, which spreads items evenly over the hash line and never changes.

A uniform draw would not do: the points of 400 suffixes lie on the line as chance has it, and of 20 physical partitions
the fullest gets 1.4 times the mean, on the median day of a year. So a suffix is drawn as often as the line is empty
around it: the fullest partition gets 1.1 times the mean, and the most frequent suffix 2.4 times that of all.

The draw is made from the item's id, and depends on nothing else: two writers of one item meet in one logical
partition, and a create finds what an earlier one wrote, however the partitions were divided since.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

import mmh3

from asterism.partitioning.effective_key import effective_key
from asterism.partitioning.hash_space import hash_fraction
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_key import PartitionKeyDefinition

# Neighbors on either side between which the line around a point is measured. Fewer make suffixes differ more, up to
# seven times the mean with one; more leave more to chance where a partition begins and ends.
_NEIGHBORS: Final = 3
_HASHES: Final = 2**64


def draw(definition: PartitionKeyDefinition, values: tuple[str, ...], item_id: bytes) -> int:
    """Return the place of the value that an item gets. `definition` is that of the level which is drawn, alone."""
    shares = _cumulated_shares(definition, values)
    (hashed, _) = mmh3.hash64(item_id, signed=False)
    return min(bisect_right(shares, hashed / _HASHES), len(values) - 1)


# Many writes in a row have the same base, such as a day.
@lru_cache(maxsize=256)
def _cumulated_shares(definition: PartitionKeyDefinition, values: tuple[str, ...]) -> list[float]:
    places = [hash_fraction(definition, KeyRange(b"", effective_key(definition, (value,)))) for value in values]
    shares = shares_of(places)
    return list(accumulate(shares))


def shares_of(places: Sequence[float]) -> list[float]:
    """Return the share of each point in the line, taken as a circle of length 1, from the distances of its neighbors;
    together they are one."""
    count = len(places)
    reach = min(_NEIGHBORS, (count - 1) // 2)
    if reach < 1:
        return [1 / count] * count
    in_order = sorted(range(count), key=places.__getitem__)
    shares = [0.0] * count
    for rank, place in enumerate(in_order):
        before, behind = in_order[rank - reach], in_order[(rank + reach) % count]
        shares[place] = (places[behind] - places[before]) % 1.0
    total = sum(shares)
    return [share / total for share in shares]
