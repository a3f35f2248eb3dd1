"""A picture of the physical partitions of a container, as text.

    by-date: request units by partition
      0  ########################     318 RU     38 items     310 KB  22 x 429
      1                                 0 RU      0 items       0 KB

PARTITION_FIGURES names a file to which the same figures are appended, a line of JSON for each picture; those of
docs/guides/patterns are drawn from them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

import operator_endpoint
from azure.cosmos import ContainerProxy

Measure: TypeAlias = Literal["items", "request_units"]
BAR_CHARACTERS = 24


@dataclass(frozen=True)
class Partition:
    id: str
    items: int
    bytes: int
    request_units: float
    # Requests that were answered with 429.
    throttled: int


def partitions_of(container: ContainerProxy) -> list[Partition]:
    """Return the partitions with their load since the server has started."""
    return [
        Partition(found["id"], found["items"], found["bytes"], found["ru_consumed"], found["throttled"])
        for found in operator_endpoint.partitions_of(container)
    ]


def load_since(before: Sequence[Partition], after: Sequence[Partition]) -> list[Partition]:
    """Return the partitions of `after` with the load between the two looks alone."""
    earlier = {partition.id: partition for partition in before}
    return [
        Partition(
            partition.id,
            partition.items,
            partition.bytes,
            round(partition.request_units - earlier[partition.id].request_units, 2),
            partition.throttled - earlier[partition.id].throttled,
        )
        for partition in after
    ]


def print_picture(title: str, partitions: Sequence[Partition], *, by: Measure) -> None:
    """Print a bar for each partition, as long as its share of the items or of the request units."""
    largest = max(1, *(getattr(partition, by) for partition in partitions))
    print(f"{title}: {by.replace('_', ' ')} by partition")
    for partition in partitions:
        bar = "#" * round(BAR_CHARACTERS * getattr(partition, by) / largest)
        refused = f"  {partition.throttled} x 429" if partition.throttled else ""
        print(
            f"  {partition.id:>2}  {bar:<{BAR_CHARACTERS}}  {partition.request_units:6,.0f} RU  "
            f"{partition.items:5,} items  {partition.bytes / 1024:6,.0f} KB{refused}"
        )
    if figures := os.environ.get("PARTITION_FIGURES"):
        picture = {"title": title, "by": by, "partitions": [asdict(partition) for partition in partitions]}
        with open(figures, "a", encoding="utf-8") as file:
            file.write(json.dumps(picture) + "\n")
