"""Conflicts of writes in two regions. An account with a single write region never has any."""

from __future__ import annotations

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.paging import feed_body
from asterism.apis.transports.http import Response
from asterism.errors import ResourceNotFound
from asterism.throughput.charge import METADATA


async def list_conflicts(call: Call) -> Response:
    context = call.context
    container = call.items_container()
    facts = context.facts(container)
    answer_headers = [*facts.headers, (headers.CHARGE, str(METADATA)), (headers.ITEM_COUNT, "0")]
    return Response(200, answer_headers, feed_body(facts.rid, "Conflicts", []))


async def find_conflict(call: Call) -> Response:
    call.items_container()
    raise ResourceNotFound(kind="conflict", name=call.conflict_name)
