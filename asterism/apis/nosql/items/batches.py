"""Many operations in one request: a transactional batch, or the bulk form, where each operation stands alone."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.errors import TRANSLATION
from asterism.apis.nosql.forwarding import run_elsewhere
from asterism.apis.nosql.headers import is_true
from asterism.apis.nosql.items.partition_key_header import required_key
from asterism.apis.nosql.items.patches import patch_of
from asterism.apis.nosql.session import session_token
from asterism.apis.transports.http import HeaderList, Request, Response
from asterism.errors import AsterismError, MalformedRequest, PartitionKeyMismatch, RequestRateTooLarge, TooLarge
from asterism.limits import ITEM_NESTING_LEVELS_MAX
from asterism.models.documents.batch import BATCH_BYTES_MAX, BATCH_OPERATIONS_MAX, Operation, OperationKind
from asterism.models.documents.bulk import run_operation
from asterism.models.documents.container import Container
from asterism.models.documents.forwarding import PartitionFenced, PartitionForwarded
from asterism.models.documents.results import ItemAnswer
from asterism.models.documents.transaction import UNCONDITIONAL, Conditions, Outcome
from asterism.partitioning.partition_key import PartitionKey, header_agrees_with_item
from asterism.values.item import Item, check_nesting
from asterism.values.json.text import dumps, loads

Result = Outcome | ItemAnswer | AsterismError | None

_KINDS = {kind.value.lower(): kind for kind in OperationKind}
_KINDS_AS_SENT = {kind.value: kind for kind in OperationKind}
_WITH_ITEM = (OperationKind.CREATE, OperationKind.UPSERT, OperationKind.REPLACE)
_NAMED_BY_ITEM = (OperationKind.CREATE, OperationKind.UPSERT)
_STATUS = {OperationKind.CREATE: 201, OperationKind.DELETE: 204}

_OK = 200
_MULTI_STATUS = 207
_NOT_MODIFIED = 304
_FAILED_DEPENDENCY = 424


async def post_batch(call: Call) -> Response:
    context, request = call.context, call.request
    given = request.headers
    container = call.items_container()
    if not is_true(given.get(headers.BATCH_ATOMIC)):
        return await _run_each(context, container, request, _operations_in(request))
    async with context.batch_turns.turn(container.record.rid):
        return await _run_together(context, container, request, _operations_in(request))


def _operations_in(request: Request) -> list[object]:
    if len(request.body) > BATCH_BYTES_MAX:
        raise TooLarge(what="batch", bytes_max=BATCH_BYTES_MAX)
    entries = loads(request.body)
    if not isinstance(entries, list):
        raise MalformedRequest(reason="The body of a batch must be a JSON array of operations.")
    if not entries:
        raise MalformedRequest(reason="Batch request has no operations.")
    if len(entries) > BATCH_OPERATIONS_MAX:
        raise MalformedRequest(reason="Batch request has more operations than what is supported.")
    check_nesting(entries, levels_max=ITEM_NESTING_LEVELS_MAX + 2)
    return entries


# --- all or nothing -------------------------------------------------------------------------------------------------


async def _run_together(
    context: Context, container: Container, request: Request, entries: Sequence[object]
) -> Response:
    refusal = f"A batch needs its partition key, in the header {headers.PARTITION_KEY}."
    key = required_key(container, request, refusal=refusal)
    operations = [_parse_operation(container, entry, place) for place, entry in enumerate(entries)]
    answer = await container.run_batch(key, operations)
    body = _results(request, operations, answer.results)
    answer_headers = _headers(context, container, charge=answer.charge, lsns={answer.range_id: answer.lsn})
    return Response(_MULTI_STATUS if answer.failed else _OK, answer_headers, body)


def _parse_operation(container: Container, entry: object, place: int) -> Operation:
    fields: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
    name = fields.get("operationType")
    kind = _KINDS_AS_SENT.get(name) if type(name) is str else None
    if kind is None:
        kind = _KINDS.get(str(name).lower())
    if kind is None:
        raise MalformedRequest(
            reason=f"The operation at index {place} of the batch has no operationType of "
            f"{', '.join(known.value for known in OperationKind)}."
        )
    body = fields.get("resourceBody")
    item: Item = {}
    if kind in _WITH_ITEM:
        if not isinstance(body, dict) or not body:
            raise MalformedRequest(reason=f"The operation at index {place} of the batch needs an item as resourceBody.")
        item = body
    item_id = item.get("id") if kind in _NAMED_BY_ITEM else fields.get("id")
    if not isinstance(item_id, str) or not item_id:
        raise MalformedRequest(reason=f"The operation at index {place} of the batch needs an 'id', a string.")
    patch = patch_of(container, body) if kind is OperationKind.PATCH else None
    if_match, if_none_match = _text(fields, "ifMatch"), _text(fields, "ifNoneMatch")
    conditions = UNCONDITIONAL if if_match is None and if_none_match is None else Conditions(if_match, if_none_match)
    return Operation(kind, item_id.encode(), item, patch, conditions)


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None


# --- each for itself ------------------------------------------------------------------------------------------------


async def _run_each(context: Context, container: Container, request: Request, entries: Sequence[object]) -> Response:
    """Run the bulk form. Operations on the same item keep their order; the others share commits."""
    operations: list[Operation | None] = [None] * len(entries)
    results: list[Result] = [None] * len(entries)
    goes_on = is_true(request.headers.get(headers.BATCH_CONTINUE_ON_ERROR))
    chains: dict[object, list[tuple[int, PartitionKey, Operation]]] = {}
    for place, entry in enumerate(entries):
        try:
            operation = _parse_operation(container, entry, place)
            key = _own_key(container, request, entry, operation)
        except AsterismError as error:
            results[place] = error
        else:
            operations[place] = operation
            # Without permission to go on after an error there is one chain, in the order of the request.
            # A computed key has several names.
            named = key if container.computed_key is None else None
            chain = (named, operation.item_id) if goes_on else None
            chains.setdefault(chain, []).append((place, key, operation))

    async def run(chain: Sequence[tuple[int, PartitionKey, Operation]]) -> None:
        for place, key, operation in chain:
            try:
                results[place] = await _run_alone(context, container, key, operation)
            except AsterismError as error:
                results[place] = error
                if not goes_on:
                    return

    async with asyncio.TaskGroup() as group:
        for chain_of_one in chains.values():
            group.create_task(run(chain_of_one))
    answers = [result for result in results if isinstance(result, ItemAnswer)]
    lsns: dict[int, int] = {}
    for answer in answers:
        lsns[answer.range_id] = max(answer.lsn, lsns.get(answer.range_id, 0))
    charge = round(sum(answer.charge for answer in answers), 2)
    status = _OK if len(answers) == len(results) else _MULTI_STATUS
    answer_headers = _headers(context, container, charge=charge, lsns=lsns)
    return Response(status, answer_headers, _results(request, operations, results))


async def _run_alone(context: Context, container: Container, key: PartitionKey, operation: Operation) -> ItemAnswer:
    try:
        return await run_operation(container, key, operation)
    except (PartitionForwarded, PartitionFenced) as detour:
        return await run_elsewhere(context, container, key, operation, detour)


def _own_key(container: Container, request: Request, entry: object, operation: Operation) -> PartitionKey:
    """Return the partition key of an operation: its own, as JSON text, or the request's, or that of its item."""
    own, common = _text(cast("Mapping[str, Any]", entry), "partitionKey"), request.headers.get(headers.PARTITION_KEY)
    text = common if own is None else own
    if text is not None:
        key = container.key_named(text)
        # The scope of a resource token is checked by the header, so an operation must not go beyond it.
        if common is not None and not header_agrees_with_item(key, container.key_named(common)):
            raise PartitionKeyMismatch
        return key
    if operation.document or container.record.definition.system_key:
        return container.key_in(operation.document)
    raise MalformedRequest(reason="An operation without an item needs its 'partitionKey'.")


# --- the answer -----------------------------------------------------------------------------------------------------


def _headers(context: Context, container: Container, *, charge: float, lsns: Mapping[int, int]) -> HeaderList:
    answer_headers = [*context.facts(container).headers, (headers.CHARGE, str(charge))]
    if lsns:
        range_id = min(lsns)
        answer_headers += [
            (headers.SESSION_TOKEN, ",".join(session_token(partition_id, lsn) for partition_id, lsn in lsns.items())),
            (headers.LSN, str(lsns[range_id])),
            (headers.PARTITION_RANGE_ID, str(range_id)),
        ]
    return answer_headers


def _results(request: Request, operations: Sequence[Operation | None], results: Sequence[Result]) -> bytes:
    brief = request.headers.get(headers.PREFER) == "return=minimal"
    failed = any(isinstance(result, AsterismError) for result in results)
    texts = [
        _result(operation, result, brief=brief, failed=failed)
        for operation, result in zip(operations, results, strict=True)
    ]
    return b"[%b]" % b",".join(texts)


def _result(operation: Operation | None, result: Result, *, brief: bool, failed: bool) -> bytes:
    if isinstance(result, AsterismError):
        return dumps(_failure(result))
    if result is None or operation is None:
        assert failed, "only a failure leaves operations undone"
        return b'{"statusCode":%d,"requestCharge":0}' % _FAILED_DEPENDENCY
    status = 201 if result.created else _STATUS.get(operation.kind, _OK)
    is_read = operation.kind is OperationKind.READ
    if is_read and operation.conditions.if_none_match in (result.etag, "*"):
        status = _NOT_MODIFIED
    charge = str(result.charge).encode()
    if operation.kind is OperationKind.DELETE:
        return b'{"statusCode":%d,"requestCharge":%b}' % (status, charge)
    etag = dumps(result.etag)
    if status == _NOT_MODIFIED or (brief and not is_read):
        return b'{"statusCode":%d,"requestCharge":%b,"eTag":%b}' % (status, charge, etag)
    return b'{"statusCode":%d,"requestCharge":%b,"eTag":%b,"resourceBody":%b}' % (status, charge, etag, result.body)


def _failure(error: AsterismError) -> dict[str, object]:
    rule = TRANSLATION.row(error)
    failure: dict[str, object] = {"statusCode": rule.status, "requestCharge": 0, "message": rule.message(error)}
    if rule.substatus is not None:
        failure["subStatusCode"] = rule.substatus
    if isinstance(error, RequestRateTooLarge):
        failure["retryAfterMilliseconds"] = max(1, math.ceil(error.retry_after_seconds * 1000))
    return failure
