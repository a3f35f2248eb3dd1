"""Conflicts: what writes in two regions leave behind. An account with one write region never has any."""

from __future__ import annotations

from asterism.apis.http import Request, Response
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.paging import feed_body
from asterism.errors import ResourceNotFound
from asterism.throughput.charge import METADATA


async def list_conflicts(context: Context, request: Request, parts: list[str]) -> Response:
    container = context.items_container(request.headers, parts)
    facts = context.facts(container)
    answer_headers = [*facts.headers, (headers.CHARGE, str(METADATA)), (headers.ITEM_COUNT, "0")]
    return Response(200, answer_headers, feed_body(facts.rid, "Conflicts", []))


async def find_conflict(context: Context, request: Request, parts: list[str]) -> Response:
    context.items_container(request.headers, parts)
    raise ResourceNotFound(kind="conflict", name=parts[5])
