"""On which node a new partition goes."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeLoad:
    node: str
    partitions: int
    bytes: int
    regions: frozenset[str] = frozenset()


def place(count: int, nodes: Sequence[NodeLoad], *, required_region: str | None = None) -> tuple[str, ...]:
    """A node for each of `count` new partitions: always the one with the fewest partitions, then the fewest bytes,
    then the first by name, so that equal input gives equal placement."""
    fitting = [
        (load.partitions, load.bytes, load.node)
        for load in nodes
        if required_region is None or required_region in load.regions
    ]
    if not fitting:
        raise ValueError("no node can take a partition with these requirements")
    heapq.heapify(fitting)
    chosen: list[str] = []
    for _ in range(count):
        partitions, size_bytes, node = fitting[0]
        heapq.heapreplace(fitting, (partitions + 1, size_bytes, node))
        chosen.append(node)
    return tuple(chosen)
