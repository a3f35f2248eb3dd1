"""Many operations in one request: a transactional batch, or the bulk form, where each operation stands for itself."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from asterism.apis.http import HeaderList, Request, Response
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.errors import TABLE
from asterism.apis.nosql.headers import is_true
from asterism.apis.nosql.named_key import required_key
from asterism.apis.nosql.patches import patch_of
from asterism.apis.nosql.session import session_token
from asterism.documents.answers import ItemAnswer
from asterism.documents.batch import BATCH_BYTES_MAX, BATCH_OPERATIONS_MAX, Operation, OperationKind
from asterism.documents.container import Container
from asterism.documents.transaction import UNCONDITIONAL, Conditions, Outcome
from asterism.errors import AsterismError, MalformedRequest, PartitionKeyMismatch, RequestRateTooLarge, TooLarge
from asterism.limits import ITEM_NESTING_LEVELS_MAX
from asterism.partitioning.partition_key import PartitionKey, extract, header_agrees_with_item, parse_header
from asterism.values.item import Item, check_nesting
from asterism.values.json_text import dumps, loads

Result = Outcome | ItemAnswer | AsterismError | None

_KINDS = {kind.value.lower(): kind for kind in OperationKind}
_KINDS_AS_TOLD = {kind.value: kind for kind in OperationKind}
_WITH_ITEM = (OperationKind.CREATE, OperationKind.UPSERT, OperationKind.REPLACE)
_NAMED_BY_ITEM = (OperationKind.CREATE, OperationKind.UPSERT)
_STATUS = {OperationKind.CREATE: 201, OperationKind.DELETE: 204}

_OK = 200
_MULTI_STATUS = 207
_NOT_MODIFIED = 304
_FAILED_DEPENDENCY = 424


async def post_batch(context: Context, request: Request, parts: list[str]) -> Response:
    told = request.headers
    container = context.items_container(told, parts)
    if not is_true(told.get(headers.BATCH_ATOMIC)):
        return await _run_each(context, container, request, _operations_in(request))
    async with context.batch_turns.turn(container.record.rid):
        return await _run_together(context, container, request, _operations_in(request))


def _operations_in(request: Request) -> list[object]:
    if len(request.body) > BATCH_BYTES_MAX:
        raise TooLarge(what="batch", bytes_max=BATCH_BYTES_MAX)
    told = loads(request.body)
    if not isinstance(told, list):
        raise MalformedRequest(reason="The body of a batch must be a JSON array of operations.")
    if not told:
        raise MalformedRequest(reason="Batch request has no operations.")
    if len(told) > BATCH_OPERATIONS_MAX:
        raise MalformedRequest(reason="Batch request has more operations than what is supported.")
    check_nesting(told, levels_max=ITEM_NESTING_LEVELS_MAX + 2)
    return told


# --- all or nothing -------------------------------------------------------------------------------------------------


async def _run_together(context: Context, container: Container, request: Request, told: Sequence[object]) -> Response:
    refusal = f"A batch needs its partition key, in the header {headers.PARTITION_KEY}."
    key = required_key(container, request, refusal=refusal)
    operations = [_parse_operation(container, one, place) for place, one in enumerate(told)]
    answer = await container.run_batch(key, operations)
    body = _results(request, operations, answer.results)
    told_headers = _headers(context, container, charge=answer.charge, lsns={answer.range_id: answer.lsn})
    return Response(_MULTI_STATUS if answer.failed else _OK, told_headers, body)


def _parse_operation(container: Container, told: object, place: int) -> Operation:
    given: Mapping[str, Any] = told if isinstance(told, dict) else {}
    name = given.get("operationType")
    kind = _KINDS_AS_TOLD.get(name) if type(name) is str else None
    if kind is None:
        kind = _KINDS.get(str(name).lower())
    if kind is None:
        raise MalformedRequest(
            reason=f"The operation at index {place} of the batch has no operationType of "
            f"{', '.join(one.value for one in OperationKind)}."
        )
    body = given.get("resourceBody")
    item: Item = {}
    if kind in _WITH_ITEM:
        if not isinstance(body, dict) or not body:
            raise MalformedRequest(reason=f"The operation at index {place} of the batch needs an item as resourceBody.")
        item = body
    item_id = item.get("id") if kind in _NAMED_BY_ITEM else given.get("id")
    if not isinstance(item_id, str) or not item_id:
        raise MalformedRequest(reason=f"The operation at index {place} of the batch needs an 'id', a string.")
    patch = patch_of(container, body) if kind is OperationKind.PATCH else None
    if_match, if_none_match = _text(given, "ifMatch"), _text(given, "ifNoneMatch")
    conditions = UNCONDITIONAL if if_match is None and if_none_match is None else Conditions(if_match, if_none_match)
    return Operation(kind, item_id, item, patch, conditions)


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    return value if isinstance(value, str) else None


# --- each for itself ------------------------------------------------------------------------------------------------


async def _run_each(context: Context, container: Container, request: Request, told: Sequence[object]) -> Response:
    """The bulk form. Operations on one item keep their order; the others share commits."""
    operations: list[Operation | None] = [None] * len(told)
    results: list[Result] = [None] * len(told)
    goes_on = is_true(request.headers.get(headers.BATCH_CONTINUE_ON_ERROR))
    chains: dict[object, list[tuple[int, PartitionKey, Operation]]] = {}
    for place, one in enumerate(told):
        try:
            operation = _parse_operation(container, one, place)
            key = _own_key(container, request, one, operation)
        except AsterismError as error:
            results[place] = error
        else:
            operations[place] = operation
            # Without permission to go on after an error there is one chain, in the order of the request.
            chain = (key, operation.item_id) if goes_on else None
            chains.setdefault(chain, []).append((place, key, operation))

    async def run(chain: Sequence[tuple[int, PartitionKey, Operation]]) -> None:
        for place, key, operation in chain:
            try:
                results[place] = await container.run_operation(key, operation)
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
    told_headers = _headers(context, container, charge=charge, lsns=lsns)
    return Response(status, told_headers, _results(request, operations, results))


def _own_key(container: Container, request: Request, told: object, operation: Operation) -> PartitionKey:
    """The partition key of one operation: its own, as JSON text, or the request's, or the one in its item."""
    definition = container.record.definition
    own, common = _text(cast("Mapping[str, Any]", told), "partitionKey"), request.headers.get(headers.PARTITION_KEY)
    text = common if own is None else own
    if text is not None:
        key = parse_header(text, definition)
        # What a resource token permits is decided by the header, so an operation must not go beyond it.
        if common is not None and not header_agrees_with_item(key, parse_header(common, definition)):
            raise PartitionKeyMismatch
        return key
    if operation.item or definition.system_key:
        return extract(definition, operation.item)
    raise MalformedRequest(reason="An operation without an item needs its 'partitionKey'.")


# --- what is told ---------------------------------------------------------------------------------------------------


def _headers(context: Context, container: Container, *, charge: float, lsns: Mapping[int, int]) -> HeaderList:
    told = [*context.facts(container).headers, (headers.CHARGE, str(charge))]
    if lsns:
        range_id = min(lsns)
        told += [
            (headers.SESSION_TOKEN, ",".join(session_token(one, lsn) for one, lsn in lsns.items())),
            (headers.LSN, str(lsns[range_id])),
            (headers.PARTITION_RANGE_ID, str(range_id)),
        ]
    return told


def _results(request: Request, operations: Sequence[Operation | None], results: Sequence[Result]) -> bytes:
    brief = request.headers.get(headers.PREFER) == "return=minimal"
    failed = any(isinstance(result, AsterismError) for result in results)
    told = [
        _result(operation, result, brief=brief, failed=failed)
        for operation, result in zip(operations, results, strict=True)
    ]
    return b"[%b]" % b",".join(told)


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
    rule = TABLE[type(error)]
    told: dict[str, object] = {"statusCode": rule.status, "requestCharge": 0, "message": rule.words(error)}
    if rule.substatus is not None:
        told["subStatusCode"] = rule.substatus
    if isinstance(error, RequestRateTooLarge):
        told["retryAfterMilliseconds"] = max(1, math.ceil(error.retry_after_seconds * 1000))
    return told
