"""The physical partitions of a container or a table, for operators."""

from __future__ import annotations

import heapq
from typing import Any, cast

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.ordered_ranges import describe_ordered, readable_key, readable_text
from asterism.apis.admin.parameters import keyspace_of, query_parameters
from asterism.apis.admin.services import AdminServices
from asterism.apis.admin.sizes import PartitionSizes
from asterism.apis.transports.http import Request, Response
from asterism.errors import AsterismError
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.statistics import Size, first_item, logical_partitions
from asterism.metrics import PartitionUsage
from asterism.models.documents.item_record import body_of
from asterism.partitioning.key_range import point_to_text
from asterism.partitioning.partition_key import PartitionKeyKind, extract
from asterism.partitioning.partition_map import PartitionRange
from asterism.values.item import Item
from asterism.values.json.text import dumps, loads
from asterism.values.undefined import UNDEFINED

# Of the largest and of the hottest logical partitions: enough to see one that stands out.
TOP_COUNT = 5
UNREACHABLE = "unreachable"
NO_DETAILS: dict[str, Any] = {"logical_partitions": None, "largest": [], "hottest": []}
_NAMES = ("database", "container", "account", "table")


async def show_partitions(services: AdminServices, request: Request) -> Response:
    """Describe the partitions; `details=false` leaves out the figures that need a scan of all logical partitions."""
    parameters = query_parameters(request)
    keyspace = keyspace_of(services, parameters)
    with_details = parameters.get("details") != "false"
    share = services.admission.share_of(keyspace)
    record = keyspace.record
    served = await services.usage.of_keyspace(keyspace)
    shown = []
    sizes = PartitionSizes(services.router)
    for partition in record.map.ranges:
        usage = served.get(partition.id) or PartitionUsage()
        size = await sizes.of(keyspace, partition)
        entry = _describe(services, partition, size, share, usage)
        if record.definition.kind is PartitionKeyKind.RANGE:
            entry |= describe_ordered(services.load, keyspace, partition)
        if with_details:
            entry |= NO_DETAILS if size is None else await _describe_logical(services, keyspace, partition, usage)
        shown.append(entry)
    answer: dict[str, Any] = {name: parameters[name] for name in _NAMES if name in parameters}
    answer |= {
        "partition_key": record.definition.to_json(),
        "map_version": record.map.version,
        "partitions": shown,
    }
    return Response(200, JSON_HEADERS, dumps(answer))


def _describe(
    services: AdminServices, partition: PartitionRange, size: Size | None, share: float | None, usage: PartitionUsage
) -> dict[str, Any]:
    """Describe a partition. Without a size, its node is unreachable."""
    start, end = partition.range.to_texts()
    return {
        "id": str(partition.id),
        "min": start,
        "max": end,
        "bytes": None if size is None else size.bytes,
        "items": None if size is None else size.items,
        "ru_share": share,
        "ru_consumed": round(usage.request_units, 2),
        "requests": usage.requests,
        "throttled": usage.throttled,
        "state": UNREACHABLE if size is None else partition.status.value,
        "node": services.node_name(partition.node),
        "parents": [str(parent) for parent in partition.parents],
    }


async def _describe_logical(
    services: AdminServices, keyspace: Keyspace, partition: PartitionRange, usage: PartitionUsage
) -> dict[str, Any]:
    largest: list[tuple[int, bytes, int]] = []
    count = 0
    async for logical in logical_partitions(services.router, keyspace, partition):
        count += 1
        heapq.heappush(largest, (logical.size.bytes, logical.effective_key, logical.size.items))
        if len(largest) > TOP_COUNT:
            heapq.heappop(largest)
    return {
        "logical_partitions": count,
        "largest": [
            {**await _name(services, keyspace, effective_key), "bytes": size, "items": items}
            for size, effective_key, items in sorted(largest, reverse=True)
        ],
        "hottest": [
            {**await _name(services, keyspace, effective_key), "request_units": round(request_units, 2)}
            for effective_key, request_units in usage.hottest.standing_out(TOP_COUNT)
        ],
    }


async def _name(services: AdminServices, keyspace: Keyspace, effective_key: bytes) -> dict[str, Any]:
    """Name a logical partition by its hash and by its partition key value, which an item of it shows."""
    named: dict[str, Any] = {"effective_key": point_to_text(effective_key)}
    record = keyspace.record
    if record.definition.kind is PartitionKeyKind.RANGE:
        return named | {"partition_key": [readable_key(effective_key)]}
    stored = await first_item(services.router, keyspace, effective_key)
    if stored is None:
        return named
    if "table" in record.settings:
        return named | {"partition_key": [readable_text(services.partition_key_of_entity(stored))]}
    item = cast(Item, loads(body_of(stored)))
    try:
        key = extract(record.definition, item)
    except AsterismError:
        return named
    # JSON cannot express an absent value; clients send an empty object for it.
    return named | {"partition_key": [{} if value is UNDEFINED else value for value in key]}
