"""Items: create, upsert, read, replace, patch and delete. Most requests come through here, so it is kept lean."""

from __future__ import annotations

from typing import cast

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.headers import is_true
from asterism.apis.nosql.items.batches import post_batch
from asterism.apis.nosql.items.indexing_directive import indexing_of
from asterism.apis.nosql.items.partition_key_header import named_key, required_key
from asterism.apis.nosql.items.patches import PATCH_NESTING_LEVELS, patch_of
from asterism.apis.nosql.items.queries import plan_query, query_items
from asterism.apis.nosql.scripts.triggers import names_triggers, write_with_triggers
from asterism.apis.transports.http import HeaderList, Headers, Request, Response
from asterism.errors import ItemNotFound, MalformedRequest, TooLarge
from asterism.keyspaces.routing.families import ITEMS
from asterism.limits import ITEM_NESTING_LEVELS_MAX
from asterism.models.documents.batch import Operation, OperationKind
from asterism.models.documents.container import Container
from asterism.models.documents.forwarding import check_read
from asterism.models.documents.pages import scan_items
from asterism.models.documents.results import ItemAnswer
from asterism.models.documents.transaction import UNCONDITIONAL, Conditions, DocumentEdit
from asterism.partitioning.partition_key import PartitionKey
from asterism.throughput.charge import MISS
from asterism.values import resource_ids
from asterism.values.item import Item, check_nesting, parse_item
from asterism.values.json.text import loads, loads_stored

_KEY_NEEDED = f"PartitionKey value must be supplied for this operation, in the header {headers.PARTITION_KEY}."


def _headers(context: Context, container: Container, answer: ItemAnswer) -> HeaderList:
    lsn, range_id = str(answer.lsn), str(answer.range_id)
    return [
        *context.facts(container).headers,
        (headers.CHARGE, str(answer.charge)),
        (headers.SESSION_TOKEN, f"{range_id}:-1#{lsn}"),
        (headers.LSN, lsn),
        (headers.PARTITION_RANGE_ID, range_id),
    ]


async def post_items(call: Call) -> Response:
    """Answer one of the five operations that share this address; headers say which."""
    context, request = call.context, call.request
    given = request.headers
    # First: azure-cosmos for Python up to 4.9 sends a plan request as a query too.
    if is_true(given.get(headers.IS_QUERY_PLAN)):
        call.operation = "plan_query"
        return await plan_query(call)
    if is_true(given.get(headers.IS_QUERY)):
        call.operation = "query_items"
        return await query_items(call)
    if is_true(given.get(headers.IS_BATCH)):
        call.operation = "run_batch"
        return await post_batch(call)
    container = call.items_container()
    item = parse_item(request.body, bytes_max=context.limits.item_bytes_max)
    key = named_key(container, request)
    is_upsert = is_true(given.get(headers.IS_UPSERT))
    if is_upsert:
        call.operation = "upsert_item"
    log: HeaderList = []
    if names_triggers(request):
        kind = OperationKind.UPSERT if is_upsert else OperationKind.CREATE
        answer, log = await write_with_triggers(context, container, request, _operation(request, kind, "", item), key)
    elif is_upsert:
        answer = await container.upsert_item(
            item, key, conditions=_conditions(given), indexes=indexing_of(given.get(headers.INDEXING_DIRECTIVE))
        )
    else:
        answer = await container.create_item(item, key, indexes=indexing_of(given.get(headers.INDEXING_DIRECTIVE)))
    return _write_response(context, container, request, answer, log, status=201 if answer.created else 200)


async def read_item(call: Call) -> Response:
    context, request = call.context, call.request
    given = request.headers
    container = call.items_container()
    key = required_key(container, request, refusal=_KEY_NEEDED)
    item_id = call.item_id_in(container)
    if item_id is None:
        item_id = await id_in_path(call, container, key)
    session = context.consistency_rules.session_of(given)
    router = context.reading_router(given, session)
    answer = await container.read_item(item_id.encode(), key, session=session, router=router)
    answer_headers = _headers(context, container, answer)
    answer_headers.append((headers.ETAG, answer.etag))
    known = given.get(headers.IF_NONE_MATCH)
    if known is not None and known in (answer.etag, "*"):
        return Response(304, [pair for pair in answer_headers if pair[0] != headers.CHARGE] + _MISS_CHARGE)
    return Response(200, answer_headers, answer.body)


_MISS_CHARGE = [(headers.CHARGE, str(MISS))]


async def replace_item(call: Call) -> Response:
    context, request = call.context, call.request
    given = request.headers
    container = call.items_container()
    item = parse_item(request.body, bytes_max=context.limits.item_bytes_max)
    key = named_key(container, request)
    item_id = call.item_id_in(container)
    if item_id is None:
        item_id = await id_in_path(call, container, key, expected=item)
    log: HeaderList = []
    if names_triggers(request):
        operation = _operation(request, OperationKind.REPLACE, item_id, item)
        answer, log = await write_with_triggers(context, container, request, operation, key)
    else:
        indexes = indexing_of(given.get(headers.INDEXING_DIRECTIVE))
        answer = await container.replace_item(
            item_id.encode(), item, key, conditions=_conditions(given), indexes=indexes
        )
    return _write_response(context, container, request, answer, log, status=200)


async def patch_item(call: Call) -> Response:
    context, request = call.context, call.request
    given = request.headers
    container = call.items_container()
    if len(request.body) > context.limits.item_bytes_max:
        raise TooLarge(what="patch", bytes_max=context.limits.item_bytes_max)
    body = loads(request.body)
    check_nesting(body, levels_max=ITEM_NESTING_LEVELS_MAX + PATCH_NESTING_LEVELS)
    patch = patch_of(container, body)
    key = required_key(container, request, refusal=_KEY_NEEDED)
    item_id = call.item_id_in(container)
    if item_id is None:
        item_id = await id_in_path(call, container, key)
    log: HeaderList = []
    if names_triggers(request):
        operation = _operation(request, OperationKind.PATCH, item_id, {}, patch)
        answer, log = await write_with_triggers(context, container, request, operation, key)
    else:
        indexes = indexing_of(given.get(headers.INDEXING_DIRECTIVE))
        answer = await container.patch_item(
            item_id.encode(), patch, key, conditions=_conditions(given), indexes=indexes
        )
    return _write_response(context, container, request, answer, log, status=200)


async def delete_item(call: Call) -> Response:
    context, request = call.context, call.request
    given = request.headers
    container = call.items_container()
    key = required_key(container, request, refusal=_KEY_NEEDED)
    item_id = call.item_id_in(container)
    if item_id is None:
        item_id = await id_in_path(call, container, key)
    log: HeaderList = []
    if names_triggers(request):
        operation = _operation(request, OperationKind.DELETE, item_id, {})
        answer, log = await write_with_triggers(context, container, request, operation, key)
    else:
        answer = await container.delete_item(item_id.encode(), key, conditions=_conditions(given))
    return Response(204, [*_headers(context, container, answer), *log])


def _write_response(
    context: Context, container: Container, request: Request, answer: ItemAnswer, log: HeaderList, *, status: int
) -> Response:
    answer_headers = _headers(context, container, answer)
    answer_headers.append((headers.ETAG, answer.etag))
    answer_headers += log
    if request.headers.get(headers.PREFER) == "return=minimal":
        return Response(status, answer_headers)
    return Response(status, answer_headers, answer.body)


def _conditions(given: Headers) -> Conditions:
    if_match = given.get(headers.IF_MATCH)
    return UNCONDITIONAL if if_match is None else Conditions(if_match)


def _operation(
    request: Request, kind: OperationKind, item_id: str, item: Item, edit: DocumentEdit | None = None
) -> Operation:
    return Operation(kind, item_id.encode(), item, edit, _conditions(request.headers))


async def id_in_path(
    call: Call, container: Container, key: PartitionKey | None, *, expected: Item | None = None
) -> str:
    """Return the id of an item whose path is made of resource ids: clients send such paths for items they were given.

    Items are kept by id, so an item that is known by its resource id alone is looked for in its logical partition.
    """
    text = call.item_name
    rid = resource_ids.from_text(text)
    if rid is None or len(rid) != resource_ids.CHILD_RID_BYTES or not rid.startswith(container.record.rid):
        return text
    if expected is not None and expected.get("_rid") == text and isinstance(expected.get("id"), str):
        return cast(str, expected["id"])
    if key is None:
        raise MalformedRequest(
            reason=f"An item addressed by resource ids needs its partition key in {headers.PARTITION_KEY}."
        )
    if container.keyspace.record.forwarding is not None:
        check_read(container.keyspace.record, container.logical_scope(key).start)
    wanted = f'"_rid":"{text}"'.encode()
    router = call.context.store.services.router
    for scope in map(container.logical_scope, container.keys_named(key)):
        async for piece in scan_items(router, container, scope, position=None):
            for place, body in piece.items:
                if wanted in body:
                    item = cast(Item, loads_stored(body, key=(ITEMS + place).hex()))
                    if item.get("_rid") == text:
                        return cast(str, item["id"])
    raise ItemNotFound(item_id=text)
