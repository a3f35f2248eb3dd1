"""Queries for operators: over the whole container, merged by the server, with an explanation of the work."""

from __future__ import annotations

import random
from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import body_object, text_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql.compiling.computed import document_view
from asterism.languages.cosmos_sql.compiling.container_policies import distance_functions
from asterism.languages.cosmos_sql.functions.context import EvaluationContext
from asterism.languages.cosmos_sql.request import read_query_request
from asterism.limits import PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX
from asterism.models.documents.results import Scope
from asterism.reading.continuation import BEGINNING, Continuation
from asterism.reading.execute import run_page
from asterism.reading.explain import explanation
from asterism.reading.pinned_scopes import scopes_of
from asterism.values.json.text import dumps

_WHOLE_LINE: Final = Scope(b"", b"\xff")


async def run_query(services: AdminServices, request: Request) -> Response:
    """Return a page: database, container, query, and maybe parameters, continuation, max_items, explain."""
    body = body_object(request)
    container = services.container(text_of(body, "database"), text_of(body, "container"))
    clock = services.store.services.clock
    evaluation = EvaluationContext(clock.wall_seconds(), random.random, clock.wall_seconds)
    query = read_query_request(
        body, evaluation, udfs=services.udfs_of(container), distance_function_of=distance_functions(container)
    ).compiled
    page = await run_page(
        services.router,
        container,
        query,
        scopes_of(container, query, _WHOLE_LINE),
        continuation=_continuation(body.get("continuation")),
        items_max=_items_max(body.get("max_items")),
        monotonic_seconds=clock.monotonic_seconds,
        encode_result=dumps,
        view=document_view(container),
        client_gone=request.client_gone,
        result_sets=services.result_sets,
        memory=services.result_sets.memory,
        identity=dumps([container.record.rid.hex(), container.record.etag, body["query"], body.get("parameters")]),
    )
    about: dict[str, object] = {
        "continuation": None if page.continuation is None else page.continuation.to_bytes().decode(),
        "charge": page.charge,
    }
    if body.get("explain"):
        about["explanation"] = explanation(container, query, page)
    # The results are JSON texts already.
    return Response(200, JSON_HEADERS, b'{"results":[%b],%b' % (b",".join(page.results), dumps(about)[1:]))


def _continuation(text: Any) -> Continuation:
    if text is None:
        return BEGINNING
    if not isinstance(text, str):
        raise MalformedRequest(reason="'continuation' must be the text that the page before has given.")
    return Continuation.from_bytes(text.encode())


def _items_max(count: Any) -> int:
    if count is None:
        return PAGE_ITEMS_DEFAULT
    if type(count) is not int or count < 1:
        raise MalformedRequest(reason="'max_items' must be a whole number from 1 on.")
    return min(count, PAGE_ITEMS_MAX)
