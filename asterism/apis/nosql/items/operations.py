"""Operations on a container as a whole: so far one, the deletion of a logical partition's items."""

from __future__ import annotations

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.errors import Refusal
from asterism.apis.nosql.items.partition_key_header import required_key
from asterism.apis.nosql.session import session_token
from asterism.apis.transports.http import Response
from asterism.throughput.charge import METADATA


async def post_operation(call: Call) -> Response:
    if call.operation_name != "partitionkeydelete":
        raise Refusal(404, "NotFound", "There is nothing at this path.")
    return await _delete_partition_key(call)


async def _delete_partition_key(call: Call) -> Response:
    """Delete a logical partition's items. Answers when they are gone, or, if many, when their deletion is certain."""
    context, request = call.context, call.request
    container = call.items_container()
    refusal = f"The operation needs a partition key, in the header {headers.PARTITION_KEY}."
    key = required_key(container, request, refusal=refusal)
    keys = container.keys_named(key)
    for each in keys:
        await context.store.housekeeper.delete_partition_key(container, each)
    point = container.planner.point(keys[0])
    partition, lsn, _ = await context.store.services.router.read(container.keyspace, point, ())
    answer_headers = [
        *context.facts(container).headers,
        (headers.CHARGE, str(METADATA)),
        (headers.SESSION_TOKEN, session_token(partition.id, lsn)),
        (headers.LSN, str(lsn)),
        (headers.PARTITION_RANGE_ID, str(partition.id)),
    ]
    return Response(200, answer_headers)
