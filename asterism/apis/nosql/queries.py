"""Queries: of items, page by page, and of the short lists of databases, containers and offers."""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from asterism.apis.http import HeaderList, Headers, Request, Response
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.feeds import check_sessions, is_scoped, page_headers, scope_of
from asterism.apis.nosql.headers import is_true, metadata_headers
from asterism.apis.nosql.paging import feed_body, page_items_max, position_of
from asterism.apis.nosql.script_functions import udfs_of
from asterism.documents.container import Container
from asterism.errors import CrossPartitionNotEnabled, MalformedRequest
from asterism.partitioning.effective_key import effective_key, to_text
from asterism.partitioning.partition_key import is_full
from asterism.query import CompiledQuery, compile_query, parse_query
from asterism.query.environment import Udfs
from asterism.query.execute import QueryPage, pinned_keys, run_page, scopes_of
from asterism.throughput.charge import QUERY_PLAN
from asterism.values.json_text import dumps, loads
from asterism.values.undefined import UNDEFINED


def compiled(body: bytes, udfs: Udfs | None = None) -> CompiledQuery:
    """The query of a request's body: `{"query", "parameters"}`."""
    told = loads(body)
    text = told.get("query") if isinstance(told, Mapping) else None
    if not isinstance(text, str):
        raise MalformedRequest(reason="A query needs a JSON object with 'query', a text, and maybe 'parameters'.")
    parameters = parameters_of(cast("Mapping[str, Any]", told).get("parameters"))
    return compile_query(parse_query(text), parameters, udfs=udfs)


def parameters_of(told: object) -> dict[str, object]:
    if told is None:
        return {}
    entries = told if isinstance(told, list) else [None]
    parameters: dict[str, object] = {}
    for entry in entries:
        given: Mapping[str, object] = entry if isinstance(entry, Mapping) else {}
        name = given.get("name")
        if not isinstance(name, str) or not name.startswith("@"):
            raise MalformedRequest(
                reason="The query's 'parameters' must be a list of objects with 'name', beginning with @, and 'value'."
            )
        # A parameter that a client left without a value has none.
        parameters[name] = given.get("value", UNDEFINED)
    return parameters


def matching(request: Request, entries: Sequence[tuple[str, dict[str, object]]]) -> list[tuple[str, object]]:
    """The entries that the request's query, if it has one, leaves: (what they are sorted by, result) each."""
    if not is_true(request.headers.get(headers.IS_QUERY)):
        return list(entries)
    query = compiled(request.body)
    if not query.reads_items:
        return [("", query.project({}))] if query.matches({}) else []
    found = [(place, query.project(resource)) for place, resource in entries if query.matches(resource)]
    return [(place, result) for place, result in found if result is not UNDEFINED]


async def query_items(context: Context, request: Request, parts: list[str]) -> Response:
    told = request.headers
    container = context.items_container(told, parts)
    query = compiled(request.body, udfs_of(context, container))
    check_crossing(container, told, query)
    scope = scope_of(container, told)
    scopes = scopes_of(container, query, scope)
    await check_sessions(context, container, scope, context.consistency_rules.session_of(told))
    started = context.clock.monotonic_seconds()
    page = await run_page(
        context.store.tools.owner,
        container,
        query,
        scopes,
        position=position_of(told),
        items_max=page_items_max(told),
        monotonic_seconds=context.clock.monotonic_seconds,
    )
    answer_headers = page_headers(
        context,
        container,
        told,
        charge=page.charge,
        range_id=page.range_id,
        lsn=page.lsn,
        count=len(page.results),
        position=page.position,
    )
    answer_headers += _metrics(told, page, seconds=context.clock.monotonic_seconds() - started)
    return Response(200, answer_headers, feed_body(context.facts(container).rid, "Documents", page.results))


def check_crossing(container: Container, told: Headers, query: CompiledQuery) -> None:
    """A query that may look anywhere needs the client's permission, or a filter that fixes the partition key."""
    if is_true(told.get(headers.ALLOW_CROSS_PARTITION)) or is_scoped(container, told) or not query.reads_items:
        return
    definition = container.record.definition
    keys = pinned_keys(container, query)
    if definition.system_key or (keys is not None and all(is_full(definition, key) for key in keys)):
        return
    raise CrossPartitionNotEnabled


def _metrics(told: Headers, page: QueryPage, *, seconds: float) -> HeaderList:
    metrics: HeaderList = []
    if is_true(told.get(headers.POPULATE_QUERY_METRICS)):
        metrics.append((headers.QUERY_METRICS, _query_metrics(page, seconds * 1000)))
    # The index is not consulted yet, which is just what these lists then say.
    if is_true(told.get(headers.POPULATE_INDEX_METRICS)):
        encoded = binascii.b2a_base64(dumps(_INDEX_METRICS), newline=False).decode("ascii")
        metrics.append((headers.INDEX_UTILIZATION, encoded))
    elif is_true(told.get(headers.POPULATE_INDEX_METRICS_V2)):
        metrics.append((headers.INDEX_UTILIZATION, quote(dumps(_INDEX_METRICS).decode())))
    return metrics


_INDEX_METRICS: dict[str, list[object]] = {
    "UtilizedSingleIndexes": [],
    "PotentialSingleIndexes": [],
    "UtilizedCompositeIndexes": [],
    "PotentialCompositeIndexes": [],
}


def _query_metrics(page: QueryPage, milliseconds: float) -> str:
    ratio = len(page.results) / page.items_loaded if page.items_loaded else 1.0
    figures = {
        "totalExecutionTimeInMs": round(milliseconds, 2),
        "queryCompileTimeInMs": 0.0,
        "queryLogicalPlanBuildTimeInMs": 0.0,
        "queryPhysicalPlanBuildTimeInMs": 0.0,
        "queryOptimizationTimeInMs": 0.0,
        "VMExecutionTimeInMs": round(milliseconds, 2),
        "indexLookupTimeInMs": 0.0,
        "instructionCount": 0,
        "documentLoadTimeInMs": 0.0,
        "systemFunctionExecuteTimeInMs": 0.0,
        "userFunctionExecuteTimeInMs": 0.0,
        "retrievedDocumentCount": page.items_loaded,
        "retrievedDocumentSize": page.bytes_loaded,
        "outputDocumentCount": len(page.results),
        "outputDocumentSize": page.bytes_returned,
        "writeOutputTimeInMs": 0.0,
        "indexUtilizationRatio": round(ratio, 2),
    }
    # No semicolon at the end: the JavaScript client cannot read one.
    return ";".join(f"{name}={value}" for name, value in figures.items())


async def plan_query(context: Context, request: Request, parts: list[str]) -> Response:
    """The plan of a query, for clients that merge partitions themselves. What runs here needs no merging, so the plan
    only says where to ask."""
    container = context.items_container(request.headers, parts)
    query = compiled(request.body, udfs_of(context, container))
    answer_headers = metadata_headers(charge=QUERY_PLAN)
    return Response(200, answer_headers, dumps(query_plan(container, query)))


def query_plan(container: Container, query: CompiledQuery) -> dict[str, object]:
    return {
        "partitionedQueryExecutionInfoVersion": 2,
        "queryInfo": {
            # The Python client takes a missing kind for DISTINCT.
            "distinctType": "None",
            "top": None,
            "offset": None,
            "limit": None,
            "orderBy": [],
            "orderByExpressions": [],
            "groupByExpressions": [],
            "groupByAliases": [],
            "aggregates": [],
            "groupByAliasToAggregateType": {},
            "rewrittenQuery": "",
            "hasSelectValue": False,
            "dCountInfo": None,
            "hasNonStreamingOrderBy": False,
        },
        "queryRanges": _query_ranges(container, query),
    }


def _query_ranges(container: Container, query: CompiledQuery) -> list[dict[str, object]]:
    definition = container.record.definition
    keys = pinned_keys(container, query)
    if keys is None:
        return [_range("", "FF", closed=False)]
    ranges = []
    for key in keys:
        start = to_text(effective_key(definition, key))
        full = is_full(definition, key)
        ranges.append(_range(start, start if full else start + "FF", closed=full))
    return sorted(ranges, key=lambda one: str(one["min"]))


def _range(start: str, end: str, *, closed: bool) -> dict[str, object]:
    return {"min": start, "max": end, "isMinInclusive": True, "isMaxInclusive": closed}
