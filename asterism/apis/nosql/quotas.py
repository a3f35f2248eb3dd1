"""What a container holds and may hold, in the words of the protocol's quota headers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from asterism.apis.http import HeaderList
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.documents.container import Container
from asterism.keyspaces.statistics import Size, partition_size
from asterism.limits import KIB

# How many scripts of each kind the service lets a container have. Told, as clients may read it, and not enforced.
_SCRIPTS_MAX: Final = "functions=25;storedProcedures=100;triggers=25;documentSize=10240;"


# What the service tells of a container that has one partition: 10 GB, whatever a partition can hold by now.
_SMALL_CONTAINER_KILOBYTES: Final = 10_485_760


class Quota(NamedTuple):
    """`maximum` is what a container of as many partitions can hold, as the service tells it. Sizes are in KB, and those
    of the items alone: what indexes take is not counted."""

    maximum: str
    usage: str

    def headers(self) -> HeaderList:
        return [(headers.RESOURCE_QUOTA, self.maximum), (headers.RESOURCE_USAGE, self.usage)]


async def sizes_of(context: Context, container: Container) -> list[tuple[int, Size]]:
    """Range id and size of every partition, from the statistics that are kept with every write."""
    owner, keyspace = context.store.tools.owner, container.keyspace
    return [(one.id, await partition_size(owner, keyspace, one)) for one in keyspace.record.map.ranges]


def quota_of(context: Context, container: Container, sizes: Sequence[tuple[int, Size]]) -> Quota:
    scripts, rid = context.store.catalog.scripts, container.record.rid
    kilobytes_max = context.limits.physical_partition_bytes_max * len(sizes) // KIB
    if len(sizes) == 1:
        kilobytes_max = min(kilobytes_max, _SMALL_CONTAINER_KILOBYTES)
    kilobytes = sum(size.bytes for _, size in sizes) // KIB
    counts = ";".join(
        f"{name}={len(kind.owned_by(rid))}"
        for name, kind in (
            ("functions", scripts.functions),
            ("storedProcedures", scripts.stored_procedures),
            ("triggers", scripts.triggers),
        )
    )
    return Quota(
        f"{_SCRIPTS_MAX}documentsSize={kilobytes_max};documentsCount=-1;collectionSize={kilobytes_max};",
        f"{counts};documentSize=0;documentsSize={kilobytes};"
        f"documentsCount={sum(size.items for _, size in sizes)};collectionSize={kilobytes};",
    )
