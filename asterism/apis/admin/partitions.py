"""The physical partitions of a container or a table as an operator wants to see them."""

from __future__ import annotations

import heapq
from typing import Any, cast

from asterism.apis.admin.console import Console
from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.ordered_ranges import describe_ordered, readable_key, readable_text
from asterism.apis.admin.parameters import keyspace_of, query_parameters
from asterism.apis.admin.sizes import SizesAtHand
from asterism.apis.http import Request, Response
from asterism.documents.item_record import body_of
from asterism.errors import AsterismError
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import ITEMS, after_prefix
from asterism.keyspaces.statistics import Size, logical_partitions
from asterism.metrics import PartitionUsage
from asterism.partitioning.key_range import point_to_text
from asterism.partitioning.partition_key import PartitionKeyKind, extract
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span
from asterism.values.item import Item
from asterism.values.json_text import dumps, loads
from asterism.values.undefined import UNDEFINED

TOP_COUNT = 5
UNREACHABLE = "unreachable"
NO_DETAILS: dict[str, Any] = {"logical_partitions": None, "largest": [], "hottest": []}
_NAMES = ("database", "container", "account", "table")


async def show_partitions(console: Console, request: Request) -> Response:
    """`details=false` leaves out what has to look at every logical partition."""
    told = query_parameters(request)
    keyspace = keyspace_of(console, told)
    with_details = told.get("details") != "false"
    share = console.admission.share_of(keyspace)
    record = keyspace.record
    served = await console.usage.of_keyspace(keyspace)
    shown = []
    sizes = SizesAtHand(console.owner)
    for partition in record.map.ranges:
        usage = served.get(partition.id) or PartitionUsage()
        size = await sizes.of(keyspace, partition)
        entry = _describe(console, partition, size, share, usage)
        if record.definition.kind is PartitionKeyKind.RANGE:
            entry |= describe_ordered(console.load, keyspace, partition)
        if with_details:
            entry |= NO_DETAILS if size is None else await _describe_logical(console, keyspace, partition, usage)
        shown.append(entry)
    answer: dict[str, Any] = {name: told[name] for name in _NAMES if name in told}
    answer |= {
        "partition_key": record.definition.to_json(),
        "map_version": record.map.version,
        "partitions": shown,
    }
    return Response(200, JSON_HEADERS, dumps(answer))


def _describe(
    console: Console, partition: PartitionRange, size: Size | None, share: float | None, usage: PartitionUsage
) -> dict[str, Any]:
    """Without a size, its node is away."""
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
        "node": console.node_name(partition.node),
        "parents": [str(one) for one in partition.parents],
    }


async def _describe_logical(
    console: Console, keyspace: Keyspace, partition: PartitionRange, usage: PartitionUsage
) -> dict[str, Any]:
    largest: list[tuple[int, bytes, int]] = []
    count = 0
    async for one in logical_partitions(console.owner, keyspace, partition):
        count += 1
        heapq.heappush(largest, (one.size.bytes, one.effective_key, one.size.items))
        if len(largest) > TOP_COUNT:
            heapq.heappop(largest)
    return {
        "logical_partitions": count,
        "largest": [
            {**await _name(console, keyspace, effective_key), "bytes": size, "items": items}
            for size, effective_key, items in sorted(largest, reverse=True)
        ],
        "hottest": [
            {**await _name(console, keyspace, effective_key), "request_units": round(request_units, 2)}
            for effective_key, request_units in usage.hottest.standing_out(TOP_COUNT)
        ],
    }


async def _name(console: Console, keyspace: Keyspace, effective_key: bytes) -> dict[str, Any]:
    """A logical partition by its hash and, found in one of its items, by its partition key value."""
    named: dict[str, Any] = {"effective_key": point_to_text(effective_key)}
    record = keyspace.record
    if record.definition.kind is PartitionKeyKind.RANGE:
        return named | {"partition_key": [readable_key(effective_key)]}
    prefix = ITEMS + effective_key
    page = await console.owner.scan(
        keyspace,
        record,
        record.map.find(effective_key),
        Span(prefix, after_prefix(prefix)),
        limit=1,
        bytes_max=1,
    )
    if page is not None and page.entries and "table" in record.settings:
        return named | {"partition_key": [readable_text(console.partition_key_of_entity(page.entries[0][1]))]}
    if page is not None and page.entries:
        item = cast(Item, loads(body_of(page.entries[0][1])))
        try:
            key = extract(record.definition, item)
        except AsterismError:
            return named
        # JSON has no word for an absent value; an empty object is what clients send for it.
        named["partition_key"] = [{} if one is UNDEFINED else one for one in key]
    return named
