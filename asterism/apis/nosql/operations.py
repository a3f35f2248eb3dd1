"""Operations on a container as a whole: so far one, the deletion of a logical partition's items."""

from __future__ import annotations

from asterism.apis.http import Request, Response
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.errors import Refusal
from asterism.apis.nosql.session import session_token
from asterism.errors import MalformedRequest
from asterism.partitioning.partition_key import PartitionKey, parse_header
from asterism.throughput.charge import METADATA


async def post_operation(context: Context, request: Request, parts: list[str]) -> Response:
    if parts[5] != "partitionkeydelete":
        raise Refusal(404, "NotFound", "There is nothing at this path.")
    return await _delete_partition_key(context, request, parts)


async def _delete_partition_key(context: Context, request: Request, parts: list[str]) -> Response:
    """Answered when the items are gone, or, where they are many, when it is certain that they will be."""
    container = context.items_container(request.headers, parts)
    definition = container.record.definition
    text = request.headers.get(headers.PARTITION_KEY)
    if text is None and not definition.system_key:
        raise MalformedRequest(reason=f"The operation needs a partition key, in the header {headers.PARTITION_KEY}.")
    key: PartitionKey = () if text is None else parse_header(text, definition)
    point = container.planner.point(key)
    await context.store.housekeeping.delete_partition_key(container, key)
    partition, lsn, _ = await context.store.tools.owner.read(container.keyspace, point, ())
    answer_headers = [
        *context.facts(container).headers,
        (headers.CHARGE, str(METADATA)),
        (headers.SESSION_TOKEN, session_token(partition.id, lsn)),
        (headers.LSN, str(lsn)),
        (headers.PARTITION_RANGE_ID, str(partition.id)),
    ]
    return Response(200, answer_headers)
