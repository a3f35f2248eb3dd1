"""Operations on a container as a whole: so far one, the deletion of a logical partition's items."""

from __future__ import annotations

from asterism.apis.http import Request, Response
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.errors import Refusal
from asterism.apis.nosql.named_key import required_key
from asterism.apis.nosql.session import session_token
from asterism.throughput.charge import METADATA


async def post_operation(context: Context, request: Request, parts: list[str]) -> Response:
    if parts[5] != "partitionkeydelete":
        raise Refusal(404, "NotFound", "There is nothing at this path.")
    return await _delete_partition_key(context, request, parts)


async def _delete_partition_key(context: Context, request: Request, parts: list[str]) -> Response:
    """Answered when the items are gone, or, where they are many, when it is certain that they will be."""
    container = context.items_container(request.headers, parts)
    refusal = f"The operation needs a partition key, in the header {headers.PARTITION_KEY}."
    key = required_key(container, request, refusal=refusal)
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
