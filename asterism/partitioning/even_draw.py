"""A draw among the keys that an item may have, by which every physical partition gets equally many items.

A uniform draw would not do: 400 suffixes over 20 partitions leave 13 to 28 of them in one, as chance has it, and with
them the load. So a partition is drawn first, among those that have a key, and then one of its keys. The draw is made
from the item's id: two writers of one item meet in one logical partition, where one of them finds the other's item.
"""

from __future__ import annotations

from collections.abc import Sequence

import mmh3

from asterism.partitioning.partition_map import PartitionMap


def by_partition(points: Sequence[bytes], partition_map: PartitionMap) -> list[list[int]]:
    """Return the places of the points that lie in the same range of the map, range by range."""
    groups: dict[int, list[int]] = {}
    for place, point in enumerate(points):
        groups.setdefault(partition_map.find(point).id, []).append(place)
    return [groups[range_id] for range_id in sorted(groups)]


def draw(groups: Sequence[Sequence[int]], item_id: bytes) -> int:
    """Return one of the places for an item: equally often from each group, and equally often each of a group."""
    among_groups, among_places = mmh3.hash64(item_id, signed=False)
    group = groups[among_groups % len(groups)]
    return group[among_places % len(group)]
