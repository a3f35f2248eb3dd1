"""Partition key ranges: the map as clients keep it, whole or as what changed since they last asked."""

from __future__ import annotations

from asterism.apis.http import Request, Response
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.paging import feed_body
from asterism.errors import ResourceNotFound
from asterism.keyspaces.records import KeyspaceRecord
from asterism.partitioning.partition_map import PartitionRange
from asterism.throughput.charge import METADATA
from asterism.values.json_text import dumps
from asterism.values.resource_ids import pkrange_rid, self_link_of_child, to_text
from asterism.values.whole_numbers import whole_number

_INCREMENTAL = "incremental feed"
# Versions count the changes of a container's map.
_VERSION_MAX = 2**63 - 1


def map_etag(record: KeyspaceRecord) -> str:
    """Names a version of one container's map. The Python client asks until it hears 304 for the etag it was given
    last, so every answer carries it."""
    return f'"{record.rid.hex()}-{record.map.version}"'


def version_in_etag(etag: str, record: KeyspaceRecord) -> int | None:
    """The version that an etag of this container names, or None for any other text."""
    rid, _, version = etag.strip('"').partition("-")
    return whole_number(version, maximum=_VERSION_MAX) if rid == record.rid.hex() else None


def range_json(record: KeyspaceRecord, one: PartitionRange) -> dict[str, object]:
    rid = pkrange_rid(record.rid, one.id)
    start, end = one.range.to_texts()
    return {
        "_rid": to_text(rid),
        "id": str(one.id),
        "_etag": f'"{record.map.version}-{one.id}"',
        "minInclusive": start,
        "maxExclusive": end,
        "ridPrefix": one.id,
        "_self": self_link_of_child(rid, segment="pkranges"),
        "throughputFraction": round(1 / len(record.map.ranges), 6),
        "status": one.status.value,
        "parents": [str(parent) for parent in one.parents],
        "ownedArchivalPKRangeIds": [],
        "_ts": record.changed_at,
        "lsn": record.map.version,
    }


async def list_ranges(context: Context, request: Request, parts: list[str]) -> Response:
    told = request.headers
    container = context.items_container(told, parts)
    facts = context.facts(container)
    record = container.keyspace.record
    etag = map_etag(record)
    answer_headers = [*facts.headers, (headers.CHARGE, str(METADATA)), (headers.ETAG, etag)]
    known = told.get(headers.IF_NONE_MATCH)
    if known == etag:
        return Response(304, answer_headers)
    ranges = record.map.ranges
    since = version_in_etag(known, record) if known else None
    if since is not None and (told.get(headers.CHANGE_FEED) or "").lower() == _INCREMENTAL:
        ranges = record.map.changed_since(since)
    answer_headers.append((headers.ITEM_COUNT, str(len(ranges))))
    bodies = [dumps(range_json(record, one)) for one in ranges]
    return Response(200, answer_headers, feed_body(facts.rid, "PartitionKeyRanges", bodies))


async def read_range(context: Context, request: Request, parts: list[str]) -> Response:
    container = context.items_container(request.headers, parts)
    record = container.keyspace.record
    for one in record.map.ranges:
        if parts[5] in (str(one.id), to_text(pkrange_rid(record.rid, one.id))):
            answer_headers = [*context.facts(container).headers, (headers.CHARGE, str(METADATA))]
            return Response(200, answer_headers, dumps(range_json(record, one)))
    raise ResourceNotFound(kind="partition key range", name=parts[5])
