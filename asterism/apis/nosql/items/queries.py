"""Queries: of items, page by page, their plans, and queries of the short lists of databases, containers and offers."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from hashlib import blake2b

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.errors import CrossPartitionNotEnabled, NeedsQueryPlan
from asterism.apis.nosql.headers import is_true
from asterism.apis.nosql.items.feeds import asked_scopes, check_sessions, is_scoped, page_headers
from asterism.apis.nosql.items.query_metrics import metrics_headers
from asterism.apis.nosql.paging import encode_composite, encode_position, feed_body, page_items_max, position_of
from asterism.apis.nosql.session import session_token
from asterism.apis.transports.http import Headers, Request, Response
from asterism.apis.user_functions import ContainerFunctions
from asterism.languages.cosmos_sql import CompiledQuery
from asterism.languages.cosmos_sql.compiling.computed import document_view
from asterism.languages.cosmos_sql.compiling.container_policies import distance_functions
from asterism.languages.cosmos_sql.compiling.distance import DistanceFunctionOf, no_distance_function
from asterism.languages.cosmos_sql.compiling.environment import Udfs
from asterism.languages.cosmos_sql.functions import EvaluationContext
from asterism.languages.cosmos_sql.plans.features import check_features
from asterism.languages.cosmos_sql.plans.plan import make_plan, needs_plan
from asterism.languages.cosmos_sql.plans.ranges import range_of_key
from asterism.languages.cosmos_sql.request import QueryRequest, read_query_request
from asterism.models.documents.container import Container
from asterism.models.documents.forwarding import own_scopes
from asterism.models.documents.pages import range_scope
from asterism.models.documents.results import Scope
from asterism.partitioning.key_range import FULL
from asterism.reading.continuation import BEGINNING, Continuation
from asterism.reading.execute import run_page
from asterism.reading.explain import explanation
from asterism.reading.pinned_scopes import logical_partition_count, pinned_keys, scopes_of
from asterism.reading.turns import Turns
from asterism.throughput.charge import QUERY_PLAN
from asterism.values.json.text import dumps, loads
from asterism.values.undefined import UNDEFINED

# A query of this size is read in less than a turn.
_SHORT_BODY_BYTES = 4096


def compile_request(
    context: Context,
    body: bytes,
    udfs: Udfs | None = None,
    distance_function_of: DistanceFunctionOf = no_distance_function,
) -> QueryRequest:
    clock = context.clock
    evaluation = EvaluationContext(clock.wall_seconds(), random.random, clock.wall_seconds)
    return read_query_request(
        loads(body),
        evaluation,
        udfs=udfs,
        distance_function_of=distance_function_of,
        is_lenient=context.lenient_sql,
    )


async def _read_query_in_turns(context: Context, container: Container, body: bytes) -> QueryRequest:
    """Parse the query of a request for items; other requests are answered while a long text is parsed."""
    udfs, distances = ContainerFunctions(context.store, context.scripts, container), distance_functions(container)
    if len(body) <= _SHORT_BODY_BYTES:
        return compile_request(context, body, udfs, distances)
    return await Turns(context.clock.monotonic_seconds).run(compile_request, context, body, udfs, distances)


async def matching(
    context: Context, request: Request, entries: Sequence[tuple[str, dict[str, object]]]
) -> list[tuple[str, object]]:
    """Return the entries that the request's query, if it has one, leaves: (sort key, result) each."""
    if not is_true(request.headers.get(headers.IS_QUERY)):
        return list(entries)
    turns = Turns(context.clock.monotonic_seconds)
    query = (await turns.run(compile_request, context, request.body)).compiled
    query.meter.account.draw_on(context.result_sets.memory)
    query.meter.watch(turns)
    return await turns.run(_matching, query, entries)


def _matching(query: CompiledQuery, entries: Sequence[tuple[str, dict[str, object]]]) -> list[tuple[str, object]]:
    if query.is_plain and query.reads_items and query.window.is_open:
        found = [(place, query.project(resource)) for place, resource in entries if query.matches(resource)]
        return [(place, result) for place, result in found if result is not UNDEFINED]
    collector = query.new_collector()
    for resource in [resource for _, resource in entries] if query.reads_items else [{}]:
        collector.feed(resource)
    return [(f"{place:09d}", result) for place, result in enumerate(collector.results())]


async def query_items(call: Call) -> Response:
    context, request = call.context, call.request
    given = request.headers
    container = call.items_container()
    query = await _read_query_in_turns(context, container, request.body)
    if call.sampled is not None:
        call.sampled.query = query
    check_crossing(container, given, query.compiled)
    if must_plan(container, given, query):
        raise NeedsQueryPlan(plan_json=dumps(plan_of(container, query, given)).decode())
    asked = asked_scopes(container, given)
    scopes = [scope for each in asked for scope in scopes_of(container, query.compiled, each)]
    is_whole, rules = scopes == [range_scope(FULL)], container.keyspace.record.forwarding
    session = context.consistency_rules.session_of(given)
    for scope in asked:
        await check_sessions(context, container, scope, session)
    started = context.clock.monotonic_seconds()
    position = position_of(given)
    page = await run_page(
        context.reading_router(given, session),
        container,
        query.compiled,
        own_scopes(container.keyspace.record, scopes),
        continuation=BEGINNING if position is None else Continuation.from_bytes(position),
        items_max=page_items_max(given),
        monotonic_seconds=context.clock.monotonic_seconds,
        encode_result=dumps,
        view=document_view(container),
        client_gone=request.client_gone,
        result_sets=context.result_sets,
        memory=context.result_sets.memory,
        identity=_identity(container, request.body, asked),
    )
    if container.keyspace.record.forwarding is not rules:
        # Items may have left the container while the page was read.
        return await query_items(call)
    if call.sampled is not None:
        call.sampled.page = page
    answer_headers = page_headers(
        context,
        container,
        given,
        charge=page.charge,
        range_id=page.range_id,
        lsn=page.lsn,
        count=len(page.results),
        continuation=None
        if page.continuation is None
        else _continuation_text(container, page.continuation.to_bytes(), range_id=page.range_id, is_whole=is_whole),
    )
    seconds = context.clock.monotonic_seconds() - started
    answer_headers += metrics_headers(given, container, page, seconds=seconds)
    if query.compiled.directions:
        is_descending = query.compiled.directions[0]
        info = {"reverseRidEnabled": False, "reverseIndexScan": is_descending}
        answer_headers.append((headers.QUERY_EXECUTION_INFO, dumps(info).decode()))
    if is_true(given.get(headers.EXPLAIN)):
        # Header values are ASCII; paths in it may not be.
        count = logical_partition_count(container, scopes)
        explained = explanation(container.keyspace, query.compiled, page, logical_partitions=count)
        text = json.dumps(explained, separators=(",", ":"))
        answer_headers.append((headers.EXPLANATION, text))
    return Response(200, answer_headers, feed_body(context.facts(container).rid, "Documents", page.results))


def _continuation_text(container: Container, position: bytes, *, range_id: int, is_whole: bool) -> str:
    """Return the token for the next page: JSON if the query is over several partitions, as from the service."""
    ranges = container.keyspace.record.map.ranges
    if not is_whole or len(ranges) == 1:
        return encode_position(position)
    # The partition may have been split while the page was read; any of them is as good to a client.
    read_last = next((partition for partition in ranges if partition.id == range_id), ranges[-1])
    return encode_composite(position, read_last.range)


def _identity(container: Container, body: bytes, scopes: Sequence[Scope]) -> bytes:
    """Return a digest that is equal for all pages of a query: same text, same items, same settings."""
    record = container.keyspace.record
    places = [place for scope in scopes for place in (scope.start, scope.end)]
    parts = (record.rid, record.etag.encode(), *places, body)
    return blake2b(b"".join(len(part).to_bytes(4, "big") + part for part in parts), digest_size=16).digest()


def check_crossing(container: Container, given: Headers, query: CompiledQuery) -> None:
    """Refuse a query over all partitions, unless the client permits that. A filter that fixes the partition key, or
    the first levels of a hierarchical key, needs no permission."""
    if is_true(given.get(headers.ALLOW_CROSS_PARTITION)) or is_scoped(container, given) or not query.reads_items:
        return
    if container.record.definition.system_key or pinned_keys(container, query) is not None:
        return
    raise CrossPartitionNotEnabled


def must_plan(container: Container, given: Headers, query: QueryRequest) -> bool:
    """Return whether the client has to merge partitions: it may cross them, and names none. (If it may not, the query
    has a filter that fixes the key, or was refused.)"""
    crosses = is_true(given.get(headers.ALLOW_CROSS_PARTITION)) and not is_scoped(container, given)
    return crosses and needs_plan(query.tree) and not container.record.definition.system_key


def plan_of(container: Container, query: QueryRequest, given: Headers) -> dict[str, object]:
    definition = container.record.definition
    plan = make_plan(
        query.tree,
        text=query.text,
        parameters=query.parameters,
        partition_key_paths=definition.segments,
        computed_key=container.computed_key,
        conditions=query.compiled.index_conditions,
        range_of_key=range_of_key(definition),
        distance_function_of=distance_functions(container),
    )
    check_features(plan.features, given.get(headers.SUPPORTED_QUERY_FEATURES))
    return plan.to_json()


async def plan_query(call: Call) -> Response:
    """Return the plan of a query, for clients that merge partitions themselves.

    The answer names the container's newest partition: a client whose map is older learns of a split here, before it
    asks the partitions, and not in the middle of its query.
    """
    context, request = call.context, call.request
    container = call.items_container()
    query = await _read_query_in_turns(context, container, request.body)
    plan = plan_of(container, query, request.headers)
    newest = max(container.keyspace.record.map.ranges, key=lambda partition: partition.id)
    partition, lsn, _ = await context.store.services.router.read(container.keyspace, newest.range.start, ())
    answer_headers = [
        *context.facts(container).headers,
        (headers.CHARGE, str(QUERY_PLAN)),
        (headers.SESSION_TOKEN, session_token(partition.id, lsn)),
        (headers.PARTITION_RANGE_ID, str(partition.id)),
    ]
    return Response(200, answer_headers, dumps(plan))
