"""Documents of collections as items: point reads, feeds and queries over their conversion to JSON."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.collections.view import CollectionView, collections_of, view_of
from asterism.apis.nosql.errors import (
    ContainerRecreated,
    CrossPartitionNotEnabled,
    NeedsQueryPlan,
    Refusal,
)
from asterism.apis.nosql.headers import is_true
from asterism.apis.nosql.items.feeds import asked_interval, feed_headers
from asterism.apis.nosql.items.queries import compile_request
from asterism.apis.nosql.paging import encode_position, feed_body, page_items_max, position_of
from asterism.apis.nosql.session import session_token
from asterism.apis.transports.http import Headers, Response
from asterism.errors import ItemNotFound, MalformedRequest, PartitionKeyMismatch
from asterism.languages.cosmos_sql.plans.features import check_features
from asterism.languages.cosmos_sql.plans.plan import make_plan, needs_plan
from asterism.languages.cosmos_sql.plans.ranges import EVERYWHERE, PlannedRange, range_of_key
from asterism.languages.cosmos_sql.request import QueryRequest
from asterism.models.collections.layout import DocumentKey, document_key
from asterism.models.collections.pages import read_stored
from asterism.partitioning.effective_key import from_text
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_key import PartitionKey, parse_header
from asterism.reading.collection_source import (
    CollectionSource,
    common_parts,
    intervals_of_keys,
    intervals_of_query,
    item_from,
    pinned_keys,
)
from asterism.reading.runnable import Runnable
from asterism.reading.source_page import (
    BEGINNING,
    SourceContinuation,
    run_source_page,
)
from asterism.reading.turns import Turns
from asterism.throughput import charge
from asterism.values.bson.json_view import ids_of_text
from asterism.values.json.text import dumps
from asterism.values.resource_ids import DocumentLinks

_ALL_ITEMS: Final = b'{"query":"SELECT * FROM c"}'
_KEY_NEEDED: Final = f"PartitionKey value must be supplied for this operation, in the header {headers.PARTITION_KEY}."
_NO_CHANGE_FEED: Final = (
    "The change feed of a MongoDB collection cannot be read through this endpoint. Open a change stream with a MongoDB "
    "client."
)


# --- one item -------------------------------------------------------------------------------------------------------


async def read_item(call: Call) -> Response:
    given, view = call.request.headers, _items_view(call)
    call.context.consistency_rules.session_of(given)
    router, keyspace = collections_of(call.context).services.router, view.collection.keyspace
    key = _key_asked(view, given)
    if key is None:
        raise MalformedRequest(reason=_KEY_NEEDED)
    if len(key) < len(view.definition.paths) and not view.definition.system_key:
        raise PartitionKeyMismatch
    ids = ids_of_text(call.item_name)
    for interval in intervals_of_keys(view.collection.rules, [key]):
        found = await read_stored(router, keyspace, interval.start, _keys(interval.start, ids))
        if found.document is None:
            continue
        cost = charge.point_read(len(found.document.body))
        keyspace.spend(found.partition, cost, interval.start)
        item = item_from(DocumentLinks(view.rid), found.document)
        answer_headers = [
            *view.facts.headers,
            (headers.CHARGE, str(cost)),
            (headers.SESSION_TOKEN, session_token(found.partition.id, found.lsn)),
            (headers.LSN, str(found.lsn)),
            (headers.PARTITION_RANGE_ID, str(found.partition.id)),
            (headers.ETAG, item["_etag"]),
        ]
        known = given.get(headers.IF_NONE_MATCH)
        if known is not None and known in (item["_etag"], "*"):
            return Response(304, answer_headers)
        return Response(200, answer_headers, dumps(item))
    raise ItemNotFound(item_id=call.item_name)


def _keys(point: bytes, ids: Sequence[Any]) -> list[DocumentKey]:
    return [document_key(point, document_id) for document_id in ids]


# --- feeds and queries ----------------------------------------------------------------------------------------------


async def list_items(call: Call) -> Response:
    if headers.CHANGE_FEED in call.request.headers:
        raise Refusal(400, "BadRequest", _NO_CHANGE_FEED)
    view = _items_view(call)
    return await _page(call, view, await _compiled(call, _ALL_ITEMS), _ALL_ITEMS)


async def post_items(call: Call) -> Response:
    """Answer a query, or plan it; the route refuses everything else."""
    given, view = call.request.headers, _items_view(call)
    query = await _compiled(call, call.request.body)
    if is_true(given.get(headers.IS_QUERY_PLAN)):
        call.operation = "plan_query"
        answer_headers = [*view.facts.headers, (headers.CHARGE, str(charge.QUERY_PLAN))]
        return Response(200, answer_headers, dumps(_plan(view, query, given)))
    call.operation = "query_items"
    is_scoped = _is_scoped(view, given)
    crosses = not is_scoped and not view.definition.system_key and query.compiled.reads_items
    if crosses and not is_true(given.get(headers.ALLOW_CROSS_PARTITION)):
        if pinned_keys(view.definition, query.compiled) is None:
            raise CrossPartitionNotEnabled
    elif crosses and needs_plan(query.tree):
        raise NeedsQueryPlan(plan_json=dumps(_plan(view, query, given)).decode())
    return await _page(call, view, query, call.request.body)


async def _compiled(call: Call, body: bytes) -> QueryRequest:
    turns = Turns(call.context.clock.monotonic_seconds)
    return await turns.run(compile_request, call.context, body)


async def _page(call: Call, view: CollectionView, query: QueryRequest, body: bytes) -> Response:
    context, given = call.context, call.request.headers
    context.consistency_rules.session_of(given)
    router, keyspace = collections_of(context).services.router, view.collection.keyspace
    intervals = _intervals_asked(view, given, query.compiled)
    token = position_of(given)
    page = await run_source_page(
        CollectionSource(router, keyspace, intervals, view.rid),
        query.compiled,
        start=intervals[0].start if intervals else view.collection.rules.whole_interval().start,
        continuation=BEGINNING if token is None else SourceContinuation.from_bytes(token),
        items_max=page_items_max(given),
        monotonic_seconds=context.clock.monotonic_seconds,
        encode_result=dumps,
        client_gone=call.request.client_gone,
        result_sets=context.result_sets,
        identity=_identity(view, body, intervals),
        memory=context.result_sets.memory,
    )
    newest = max(page.progress.ranges_read, default=page.progress.partition.id)
    place = keyspace.record.map.get(newest) or page.progress.partition
    partition, lsn, _ = await router.read(keyspace, place.range.start, ())
    answer_headers = feed_headers(
        view.facts,
        given,
        charge=page.charge,
        range_id=partition.id,
        lsn=lsn,
        count=len(page.results),
        continuation=None if page.continuation is None else encode_position(page.continuation.to_bytes()),
    )
    return Response(200, answer_headers, feed_body(view.facts.rid, "Documents", page.results))


def _identity(view: CollectionView, body: bytes, intervals: Sequence[KeyRange]) -> bytes:
    """Return a digest that is equal for all pages of a query: same text, same documents."""
    parts = [view.rid, body, *(bound for interval in intervals for bound in (interval.start, interval.end))]
    return blake2b(b"".join(len(part).to_bytes(4, "big") + part for part in parts), digest_size=16).digest()


def _plan(view: CollectionView, query: QueryRequest, given: Headers) -> dict[str, object]:
    known = range_of_key(view.definition)

    def range_of(key: Sequence[object]) -> PlannedRange:
        # Text may stand for a value of BSON, which lies elsewhere: the server finds the places of both.
        return EVERYWHERE if any(isinstance(part, str) for part in key) else known(tuple(key))

    plan = make_plan(
        query.tree,
        text=query.text,
        parameters=query.parameters,
        partition_key_paths=view.definition.segments,
        range_of_key=range_of,
    )
    check_features(plan.features, given.get(headers.SUPPORTED_QUERY_FEATURES))
    return plan.to_json()


# --- the part of a collection that a request names ------------------------------------------------------------------


def _items_view(call: Call) -> CollectionView:
    view = view_of(call.context, call.database_name, call.container_name)
    intended = call.request.headers.get(headers.INTENDED_CONTAINER_RID)
    if intended is not None and intended != view.facts.rid:
        raise ContainerRecreated(name=view.record.name)
    return view


def _key_asked(view: CollectionView, given: Headers) -> PartitionKey | None:
    text = given.get(headers.PARTITION_KEY)
    if text is not None and text.strip() == "[]" and not view.definition.system_key:
        return None
    if text is None:
        return () if view.definition.system_key else None
    return parse_header(text, view.definition)


def _is_scoped(view: CollectionView, given: Headers) -> bool:
    names = (headers.PARTITION_RANGE_ID, headers.START_EPK, headers.END_EPK)
    has_key = headers.PARTITION_KEY in given and _key_asked(view, given) is not None
    return has_key or any(name in given for name in names)


def _intervals_asked(view: CollectionView, given: Headers, query: Runnable) -> list[KeyRange]:
    """Return the intervals of the line that the headers of a request and the filter of its query leave, in order."""
    key, rules = _key_asked(view, given), view.collection.rules
    asked = [rules.whole_interval()] if key is None else intervals_of_keys(rules, [key])
    intervals = intervals_of_query(rules, view.definition, query, asked)
    range_id = given.get(headers.PARTITION_RANGE_ID)
    if range_id is not None:
        intervals = common_parts(intervals, [asked_interval(view.collection.keyspace, range_id)])
    start, end = given.get(headers.START_EPK), given.get(headers.END_EPK)
    if start is not None or end is not None:
        intervals = common_parts(intervals, [KeyRange(from_text(start or ""), from_text(end or "FF"))])
    return intervals
