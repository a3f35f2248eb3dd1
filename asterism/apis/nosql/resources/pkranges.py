"""Partition key ranges: the map as clients keep it, whole or as what changed since they last asked."""

from __future__ import annotations

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import ContainerFacts
from asterism.apis.nosql.paging import feed_body
from asterism.apis.transports.http import Request, Response
from asterism.errors import ResourceNotFound
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.partitioning.partition_map import PartitionRange
from asterism.throughput.charge import METADATA
from asterism.values.json.text import dumps
from asterism.values.resource_ids import pkrange_rid, self_link_of_child, to_text
from asterism.values.whole_numbers import whole_number

_INCREMENTAL = "incremental feed"
# Versions count the changes of a container's map.
_VERSION_MAX = 2**63 - 1


def map_etag(record: KeyspaceRecord) -> str:
    """Return the name of a version of a container's map. The Python client asks until it gets 304 for the etag of its
    last answer, so every answer carries it."""
    return f'"{record.rid.hex()}-{record.map.version}"'


def version_in_etag(etag: str, record: KeyspaceRecord) -> int | None:
    """Return the version that an etag of this container names, or None for any other text."""
    rid, _, version = etag.strip('"').partition("-")
    return whole_number(version, maximum=_VERSION_MAX) if rid == record.rid.hex() else None


def range_json(record: KeyspaceRecord, partition: PartitionRange) -> dict[str, object]:
    rid = pkrange_rid(record.rid, partition.id)
    start, end = partition.range.to_texts()
    return {
        "_rid": to_text(rid),
        "id": str(partition.id),
        "_etag": f'"{record.map.version}-{partition.id}"',
        "minInclusive": start,
        "maxExclusive": end,
        "ridPrefix": partition.id,
        "_self": self_link_of_child(rid, segment="pkranges"),
        "throughputFraction": round(1 / len(record.map.ranges), 6),
        "status": partition.status.value,
        "parents": [str(parent) for parent in partition.parents],
        "ownedArchivalPKRangeIds": [],
        "_ts": record.changed_at,
        "lsn": record.map.version,
    }


async def list_ranges(call: Call) -> Response:
    container = call.items_container()
    return ranges_response(call.request, container.keyspace.record, call.context.facts(container))


def ranges_response(request: Request, record: KeyspaceRecord, facts: ContainerFacts) -> Response:
    given = request.headers
    etag = map_etag(record)
    answer_headers = [*facts.headers, (headers.CHARGE, str(METADATA)), (headers.ETAG, etag)]
    known = given.get(headers.IF_NONE_MATCH)
    if known == etag:
        return Response(304, answer_headers)
    ranges = record.map.ranges
    since = version_in_etag(known, record) if known else None
    if since is not None and (given.get(headers.CHANGE_FEED) or "").lower() == _INCREMENTAL:
        ranges = record.map.changed_since(since)
    answer_headers.append((headers.ITEM_COUNT, str(len(ranges))))
    bodies = [dumps(range_json(record, partition)) for partition in ranges]
    return Response(200, answer_headers, feed_body(facts.rid, "PartitionKeyRanges", bodies))


async def read_range(call: Call) -> Response:
    container = call.items_container()
    return range_response(call.range_name, container.keyspace.record, call.context.facts(container))


def range_response(name: str, record: KeyspaceRecord, facts: ContainerFacts) -> Response:
    for partition in record.map.ranges:
        if name in (str(partition.id), to_text(pkrange_rid(record.rid, partition.id))):
            answer_headers = [*facts.headers, (headers.CHARGE, str(METADATA))]
            return Response(200, answer_headers, dumps(range_json(record, partition)))
    raise ResourceNotFound(kind="partition key range", name=name)
