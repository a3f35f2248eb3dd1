"""Queries for operators: over the whole container, merged by the server, with an explanation of the work."""

from __future__ import annotations

import random
from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import body_object, text_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest, ResourceNotFound
from asterism.languages.cosmos_sql.compiling.computed import document_view
from asterism.languages.cosmos_sql.compiling.container_policies import distance_functions
from asterism.languages.cosmos_sql.functions.context import EvaluationContext
from asterism.languages.cosmos_sql.request import read_query_request
from asterism.limits import PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX
from asterism.models.collections.collection import Collection as MongoCollection
from asterism.models.collections.item_view import item_key, item_rid
from asterism.models.documents.forwarding import own_scopes
from asterism.models.documents.results import Scope
from asterism.reading.collection_source import CollectionSource, intervals_of_query
from asterism.reading.continuation import BEGINNING, Continuation
from asterism.reading.execute import run_page
from asterism.reading.explain import ExplainedPage, explanation
from asterism.reading.pinned_scopes import logical_partition_count, scopes_of
from asterism.reading.source_page import BEGINNING as SOURCE_BEGINNING
from asterism.reading.source_page import SourceContinuation, run_source_page
from asterism.values.json.text import dumps

_WHOLE_LINE: Final = Scope(b"", b"\xff")


async def run_query(services: AdminServices, request: Request) -> Response:
    """Return a page: database, container, query, and maybe parameters, continuation, max_items, explain."""
    body = body_object(request)
    database, name = text_of(body, "database"), text_of(body, "container")
    try:
        container = services.container(database, name)
    except ResourceNotFound:
        collection = services.mongo_collection(database, name)
        if collection is None:
            raise
        return await _query_collection(services, request, collection, body)
    clock = services.store.services.clock
    evaluation = EvaluationContext(clock.wall_seconds(), random.random, clock.wall_seconds)
    query = read_query_request(
        body, evaluation, udfs=services.udfs_of(container), distance_function_of=distance_functions(container)
    ).compiled
    scopes = own_scopes(container.keyspace.record, scopes_of(container, query, _WHOLE_LINE))
    page = await run_page(
        services.router,
        container,
        query,
        scopes,
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
    rest = None if page.continuation is None else page.continuation.to_bytes().decode()
    count = logical_partition_count(container, scopes)
    explained = explanation(container.keyspace, query, page, logical_partitions=count)
    return _response(page, rest, explained if body.get("explain") else None)


async def _query_collection(
    services: AdminServices, request: Request, collection: MongoCollection, body: dict[str, Any]
) -> Response:
    """Return a page of a query over a collection of MongoDB, whose documents are items of JSON for it."""
    clock = services.store.services.clock
    evaluation = EvaluationContext(clock.wall_seconds(), random.random, clock.wall_seconds)
    query = read_query_request(body, evaluation).compiled
    keyspace, rules = collection.keyspace, collection.rules
    rid = item_rid(rules.record, keyspace.record)
    key, whole = item_key(rules.record, keyspace.record), [rules.whole_interval()]
    intervals = intervals_of_query(rules, key, query, whole)
    token = _token(body.get("continuation"))
    page = await run_source_page(
        CollectionSource(services.router, keyspace, intervals, rid),
        query,
        start=whole[0].start,
        continuation=SOURCE_BEGINNING if token is None else SourceContinuation.from_bytes(token),
        items_max=_items_max(body.get("max_items")),
        monotonic_seconds=clock.monotonic_seconds,
        encode_result=dumps,
        client_gone=request.client_gone,
        result_sets=services.result_sets,
        memory=services.result_sets.memory,
        identity=dumps([rid.hex(), body["query"], body.get("parameters")]),
    )
    rest = None if page.continuation is None else page.continuation.to_bytes().decode()
    explained = explanation(keyspace, query, page, logical_partitions=None)
    return _response(page, rest, explained if body.get("explain") else None)


def _response(page: ExplainedPage, continuation: str | None, explained: dict[str, object] | None) -> Response:
    about: dict[str, object] = {"continuation": continuation, "charge": page.charge}
    if explained is not None:
        about["explanation"] = explained
    # The results are JSON texts already.
    return Response(200, JSON_HEADERS, b'{"results":[%b],%b' % (b",".join(page.results), dumps(about)[1:]))


def _continuation(text: Any) -> Continuation:
    token = _token(text)
    return BEGINNING if token is None else Continuation.from_bytes(token)


def _token(text: Any) -> bytes | None:
    if text is not None and not isinstance(text, str):
        raise MalformedRequest(reason="'continuation' must be the text that the page before has given.")
    return None if text is None else text.encode()


def _items_max(count: Any) -> int:
    if count is None:
        return PAGE_ITEMS_DEFAULT
    if type(count) is not int or count < 1:
        raise MalformedRequest(reason="'max_items' must be a whole number from 1 on.")
    return min(count, PAGE_ITEMS_MAX)
