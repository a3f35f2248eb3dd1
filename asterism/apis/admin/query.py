"""Queries for people: the whole container, merged by the server, with an explanation of what that took."""

from __future__ import annotations

import random
from typing import Any, Final

from asterism.apis.admin.console import Console
from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import body_object, text_of
from asterism.apis.http import Request, Response
from asterism.documents.answers import Scope
from asterism.errors import MalformedRequest
from asterism.limits import PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX
from asterism.query.asked import asked_query
from asterism.query.computed import computed_properties
from asterism.query.container_policies import distance_functions
from asterism.query.continuation import BEGINNING, Continuation
from asterism.query.execute import run_page
from asterism.query.explain import explanation
from asterism.query.functions.context import EvaluationContext
from asterism.query.pinned_scopes import scopes_of
from asterism.values.json_text import dumps

_WHOLE_LINE: Final = Scope(b"", b"\xff")


async def run_query(console: Console, request: Request) -> Response:
    """One page: database, container, query, and maybe parameters, continuation, max_items, explain."""
    told = body_object(request)
    container = console.container(text_of(told, "database"), text_of(told, "container"))
    clock = console.store.tools.clock
    evaluation = EvaluationContext(clock.wall_seconds(), random.random, clock.wall_seconds)
    query = asked_query(
        told, evaluation, udfs=console.udfs_of(container), distance_function_of=distance_functions(container)
    ).compiled
    page = await run_page(
        console.owner,
        container,
        query,
        scopes_of(container, query, _WHOLE_LINE),
        continuation=_continuation(told.get("continuation")),
        items_max=_items_max(told.get("max_items")),
        monotonic_seconds=clock.monotonic_seconds,
        computed=computed_properties(container),
        client_gone=request.client_gone,
        result_sets=console.result_sets,
        memory=console.result_sets.memory,
        identity=dumps([container.record.rid.hex(), container.record.etag, told["query"], told.get("parameters")]),
    )
    about: dict[str, object] = {
        "continuation": None if page.continuation is None else page.continuation.to_bytes().decode(),
        "charge": page.charge,
    }
    if told.get("explain"):
        about["explanation"] = explanation(container, query, page)
    # The results are JSON texts already.
    return Response(200, JSON_HEADERS, b'{"results":[%b],%b' % (b",".join(page.results), dumps(about)[1:]))


def _continuation(told: Any) -> Continuation:
    if told is None:
        return BEGINNING
    if not isinstance(told, str):
        raise MalformedRequest(reason="'continuation' must be the text that the page before has given.")
    return Continuation.from_bytes(told.encode())


def _items_max(told: Any) -> int:
    if told is None:
        return PAGE_ITEMS_DEFAULT
    if type(told) is not int or told < 1:
        raise MalformedRequest(reason="'max_items' must be a whole number from 1 on.")
    return min(told, PAGE_ITEMS_MAX)
