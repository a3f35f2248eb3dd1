"""A burst of writes, the same on several containers; throttled ones are lost, and counted by the server.

Nothing is waited for: a partition of 100 RU/s has 100 RU at once, about five of these writes. Only keys that spread the
twenty over four partitions get them through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from azure.cosmos import ContainerProxy
from azure.cosmos.exceptions import CosmosHttpResponseError
from partition_picture import Partition, load_since, partitions_of

WRITES = 20
# A write of an item with it costs about 19 RU.
LARGE_TEXT = "x" * 31_000

Operation = Callable[[ContainerProxy, int], object]


def is_admitted(operation: Operation, container: ContainerProxy, number: int) -> bool:
    """Carry out an operation; return False if it was throttled."""
    try:
        operation(container, number)
    except CosmosHttpResponseError as refused:
        if refused.status_code == 429:
            return False
        raise
    return True


def send_burst(
    containers: Sequence[ContainerProxy], operation: Operation
) -> list[tuple[ContainerProxy, list[Partition]]]:
    """Carry out the operation with 0, 1, 2, … in each container; return what that did to its partitions."""
    sent = []
    for container in containers:
        before = partitions_of(container)
        for number in range(WRITES):
            is_admitted(operation, container, number)
        sent.append((container, load_since(before, partitions_of(container))))
    return sent
