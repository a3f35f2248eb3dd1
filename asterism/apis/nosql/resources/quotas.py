"""The usage and the quotas of a container, in the form of the protocol's headers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.apis.transports.http import HeaderList
from asterism.keyspaces.routing.statistics import Size, partition_size
from asterism.limits import KIB
from asterism.models.documents.container import Container

# The service's limits of scripts in a container. Reported, as clients may read them, and not enforced.
_SCRIPTS_MAX: Final = "functions=25;storedProcedures=100;triggers=25;documentSize=10240;"
# The service reports 10 GB for a container of one partition, whatever a partition can hold by now.
_SMALL_CONTAINER_KILOBYTES: Final = 10_485_760


class Quota(NamedTuple):
    """The two header values. `maximum` is the capacity of a container of as many partitions, as the service reports it.
    Sizes are in KB, of the items alone: indexes are not counted."""

    maximum: str
    usage: str

    def headers(self) -> HeaderList:
        return [(headers.RESOURCE_QUOTA, self.maximum), (headers.RESOURCE_USAGE, self.usage)]


async def sizes_of(context: Context, container: Container) -> list[tuple[int, Size]]:
    """Return range id and size of every partition, from the statistics that are updated with every write."""
    router, keyspace = context.store.services.router, container.keyspace
    ranges = keyspace.record.map.ranges
    return [(partition.id, await partition_size(router, keyspace, partition)) for partition in ranges]


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
