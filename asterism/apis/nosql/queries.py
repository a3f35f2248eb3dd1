"""Queries: of items, page by page, their plans, and queries of the short lists of databases, containers and offers."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from hashlib import blake2b

from asterism.apis.http import Headers, Request, Response
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.feeds import check_sessions, is_scoped, page_headers, scope_of
from asterism.apis.nosql.headers import is_true
from asterism.apis.nosql.paging import encode_composite, encode_position, feed_body, page_items_max, position_of
from asterism.apis.nosql.query_metrics import metrics_headers
from asterism.apis.nosql.script_functions import udfs_of
from asterism.apis.nosql.session import session_token
from asterism.documents.answers import Scope
from asterism.documents.container import Container
from asterism.documents.pages import range_scope
from asterism.errors import CrossPartitionNotEnabled, NeedsQueryPlan
from asterism.partitioning.key_range import FULL
from asterism.query import CompiledQuery
from asterism.query.asked import AskedQuery, asked_query
from asterism.query.computed import computed_properties
from asterism.query.container_policies import distance_functions
from asterism.query.continuation import BEGINNING, Continuation
from asterism.query.distance import DistanceFunctionOf, no_distance_function
from asterism.query.environment import Udfs
from asterism.query.execute import run_page
from asterism.query.explain import explanation
from asterism.query.functions import EvaluationContext
from asterism.query.pinned_scopes import pinned_keys, scopes_of
from asterism.query.plan import make_plan, needs_plan
from asterism.query.plan_features import check_features
from asterism.query.plan_ranges import range_of_key
from asterism.query.turns import Turns
from asterism.throughput.charge import QUERY_PLAN
from asterism.values.json_text import dumps, loads
from asterism.values.undefined import UNDEFINED

# A query of this size is read in less than a turn.
_SHORT_BODY_BYTES = 4096


def asked(
    context: Context,
    body: bytes,
    udfs: Udfs | None = None,
    distance_function_of: DistanceFunctionOf = no_distance_function,
) -> AskedQuery:
    clock = context.clock
    evaluation = EvaluationContext(clock.wall_seconds(), random.random, clock.wall_seconds)
    return asked_query(
        loads(body),
        evaluation,
        udfs=udfs,
        distance_function_of=distance_function_of,
        is_lenient=context.lenient_sql,
    )


async def _asked_of(context: Context, container: Container, body: bytes) -> AskedQuery:
    """The query of a request for items; others are answered while a long text is read."""
    udfs, distances = udfs_of(context, container), distance_functions(container)
    if len(body) <= _SHORT_BODY_BYTES:
        return asked(context, body, udfs, distances)
    return await Turns(context.clock.monotonic_seconds).run(asked, context, body, udfs, distances)


async def matching(
    context: Context, request: Request, entries: Sequence[tuple[str, dict[str, object]]]
) -> list[tuple[str, object]]:
    """The entries that the request's query, if it has one, leaves: (what they are sorted by, result) each."""
    if not is_true(request.headers.get(headers.IS_QUERY)):
        return list(entries)
    turns = Turns(context.clock.monotonic_seconds)
    query = (await turns.run(asked, context, request.body)).compiled
    query.meter.account.draw_on(context.result_sets.memory)
    query.meter.watch(turns)
    return await turns.run(_matching, query, entries)


def _matching(query: CompiledQuery, entries: Sequence[tuple[str, dict[str, object]]]) -> list[tuple[str, object]]:
    if query.is_plain and query.reads_items and query.top is None and query.limit is None:
        found = [(place, query.project(resource)) for place, resource in entries if query.matches(resource)]
        return [(place, result) for place, result in found if result is not UNDEFINED]
    collector = query.new_collector()
    for resource in [resource for _, resource in entries] if query.reads_items else [{}]:
        collector.feed(resource)
    return [(f"{place:09d}", result) for place, result in enumerate(collector.results())]


async def query_items(context: Context, request: Request, parts: list[str]) -> Response:
    told = request.headers
    container = context.items_container(told, parts)
    query = await _asked_of(context, container, request.body)
    check_crossing(container, told, query.compiled)
    if must_plan(container, told, query):
        raise NeedsQueryPlan(plan_json=dumps(plan_of(container, query, told)).decode())
    scope = scope_of(container, told)
    scopes = scopes_of(container, query.compiled, scope)
    is_whole = scopes == [range_scope(FULL)]
    session = context.consistency_rules.session_of(told)
    await check_sessions(context, container, scope, session)
    started = context.clock.monotonic_seconds()
    position = position_of(told)
    page = await run_page(
        context.reading_owner(told, session),
        container,
        query.compiled,
        scopes,
        continuation=BEGINNING if position is None else Continuation.from_bytes(position),
        items_max=page_items_max(told),
        monotonic_seconds=context.clock.monotonic_seconds,
        computed=computed_properties(container),
        client_gone=request.client_gone,
        result_sets=context.result_sets,
        memory=context.result_sets.memory,
        identity=_identity(container, request.body, scope),
    )
    answer_headers = page_headers(
        context,
        container,
        told,
        charge=page.charge,
        range_id=page.range_id,
        lsn=page.lsn,
        count=len(page.results),
        continuation=None
        if page.continuation is None
        else _continuation_text(container, page.continuation.to_bytes(), range_id=page.range_id, is_whole=is_whole),
    )
    seconds = context.clock.monotonic_seconds() - started
    answer_headers += metrics_headers(told, container, page, seconds=seconds)
    if query.compiled.order_by:
        is_descending = query.compiled.order_by[0].descending
        info = {"reverseRidEnabled": False, "reverseIndexScan": is_descending}
        answer_headers.append((headers.QUERY_EXECUTION_INFO, dumps(info).decode()))
    if is_true(told.get(headers.EXPLAIN)):
        # Header values are ASCII; paths in it may not be.
        text = json.dumps(explanation(container, query.compiled, page), separators=(",", ":"))
        answer_headers.append((headers.EXPLANATION, text))
    return Response(200, answer_headers, feed_body(context.facts(container).rid, "Documents", page.results))


def _continuation_text(container: Container, position: bytes, *, range_id: int, is_whole: bool) -> str:
    """Return the token for the next page: JSON where the query is over several partitions, as from the service."""
    ranges = container.keyspace.record.map.ranges
    if not is_whole or len(ranges) == 1:
        return encode_position(position)
    # The partition may have been split while the page was read; any of them is as good to a client.
    read_last = next((partition for partition in ranges if partition.id == range_id), ranges[-1])
    return encode_composite(position, read_last.range)


def _identity(container: Container, body: bytes, scope: Scope) -> bytes:
    """Equal for the pages of one query: the same question, about the same items, under the same settings."""
    record = container.keyspace.record
    parts = (record.rid, record.etag.encode(), scope.start, scope.end, body)
    return blake2b(b"".join(len(part).to_bytes(4, "big") + part for part in parts), digest_size=16).digest()


def check_crossing(container: Container, told: Headers, query: CompiledQuery) -> None:
    """Refuse a query that may look anywhere, unless the client permits that. A filter that fixes the partition key, or
    the first levels of a hierarchical one, needs no permission."""
    if is_true(told.get(headers.ALLOW_CROSS_PARTITION)) or is_scoped(container, told) or not query.reads_items:
        return
    if container.record.definition.system_key or pinned_keys(container, query) is not None:
        return
    raise CrossPartitionNotEnabled


def must_plan(container: Container, told: Headers, query: AskedQuery) -> bool:
    """Whether the client has to merge partitions: it may cross them, and names none. (One that may not cross them has
    a filter that fixes the key, or was refused.)"""
    crosses = is_true(told.get(headers.ALLOW_CROSS_PARTITION)) and not is_scoped(container, told)
    return crosses and needs_plan(query.tree) and not container.record.definition.system_key


def plan_of(container: Container, query: AskedQuery, told: Headers) -> dict[str, object]:
    definition = container.record.definition
    plan = make_plan(
        query.tree,
        text=query.text,
        parameters=query.parameters,
        partition_key_paths=definition.segments,
        range_of_key=range_of_key(definition),
        distance_function_of=distance_functions(container),
    )
    check_features(plan.features, told.get(headers.SUPPORTED_QUERY_FEATURES))
    return plan.to_json()


async def plan_query(context: Context, request: Request, parts: list[str]) -> Response:
    """The plan of a query, for clients that merge partitions themselves.

    The answer names the container's newest partition: a client whose map is older learns of a split here, before it
    asks the partitions, and need not be told in the middle of its query.
    """
    container = context.items_container(request.headers, parts)
    query = await _asked_of(context, container, request.body)
    plan = plan_of(container, query, request.headers)
    newest = max(container.keyspace.record.map.ranges, key=lambda one: one.id)
    partition, lsn, _ = await context.store.tools.owner.read(container.keyspace, newest.range.start, ())
    answer_headers = [
        *context.facts(container).headers,
        (headers.CHARGE, str(QUERY_PLAN)),
        (headers.SESSION_TOKEN, session_token(partition.id, lsn)),
        (headers.PARTITION_RANGE_ID, str(partition.id)),
    ]
    return Response(200, answer_headers, dumps(plan))
