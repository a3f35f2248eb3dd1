"""Entity group transactions: up to a hundred writes of a single PartitionKey, all or nothing."""

from __future__ import annotations

from typing import Final

from asterism.access.sas_grants import ResourceType
from asterism.apis.storage.headers import read_query
from asterism.apis.storage.multipart import PartResponse
from asterism.apis.storage.refusals import Refusal, body_too_large, invalid_input, resource_not_found
from asterism.apis.table import headers
from asterism.apis.table.context import Call
from asterism.apis.table.entities.batch_multipart import OPERATIONS_MAX, PartRequest, read_batch, write_batch
from asterism.apis.table.entities.entities import (
    insert_headers,
    plan_delete,
    plan_insert,
    plan_update,
)
from asterism.apis.table.entities.entity_json import Metadata, write_entity
from asterism.apis.table.entities.entity_keys import read_keys
from asterism.apis.table.errors import error_body, refusal_of
from asterism.apis.table.etags import etag_text
from asterism.apis.table.paging import read_select
from asterism.apis.table.resource_paths import Kind, Resource, read_resource
from asterism.apis.transports.http import HeaderList, Response
from asterism.errors import AsterismError
from asterism.limits import MIB
from asterism.models.tables.entities import EntityWrite, OperationFailed, StoredEntity, WriteKind
from asterism.models.tables.table import Table

STORAGE_BYTES_MAX: Final = 4 * MIB
COSMOS_BYTES_MAX: Final = 2 * MIB

_PLAIN_HEADERS: Final[HeaderList] = [
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-cache"),
]


async def post_batch(call: Call) -> Response:
    body = call.request.body
    if len(body) > (COSMOS_BYTES_MAX if call.context.is_cosmos else STORAGE_BYTES_MAX):
        raise body_too_large()
    operations = read_batch(call.request.headers.get("content-type"), body)
    if not operations:
        # Clients take any refusal of an empty change set for an empty result.
        raise invalid_input("The batch request has no operation.")
    if len(operations) == 1 and operations[0].method == "GET":
        return await _answer_read(call, operations[0])
    try:
        responses = await _transact(call, operations)
    except Refusal as refusal:
        if refusal.is_xml or refusal.status == 429 or refusal.status >= 500:
            # A refusal of credentials, a 429 and a 5xx answer the whole batch: only there do clients look for them.
            raise
        responses = [_refused(call, refusal)]
    return _batch_answer(call, responses)


def _batch_answer(call: Call, responses: list[PartResponse], *, is_change_set: bool = True) -> Response:
    content_type, body = write_batch(responses, guid=call.request_id, is_change_set=is_change_set)
    return Response(202, [("content-type", content_type)], body)


async def _transact(call: Call, operations: list[PartRequest]) -> list[PartResponse]:
    if len(operations) > OPERATIONS_MAX:
        raise invalid_input("0:The batch request operation exceeds the maximum 100 changes per change set.")
    table, table_name, writes = _plan(call, operations)
    try:
        stored = await table.apply(writes, call.spent)
    except OperationFailed as failure:
        raise refusal_of(failure).at(failure.index) from None
    except AsterismError as error:
        raise refusal_of(error).at(0) from None
    return [
        _done(call, table_name, number, operation, write, entity)
        for number, (operation, write, entity) in enumerate(zip(operations, writes, stored, strict=True))
    ]


def _plan(call: Call, operations: list[PartRequest]) -> tuple[Table, str, list[EntityWrite]]:
    """Plan the writes of a change set, and refuse what can be refused without reading data."""
    table: Table | None = None
    table_name = ""
    writes: list[EntityWrite] = []
    row_keys: set[str] = set()
    for index, operation in enumerate(operations):
        try:
            resource = read_resource(operation.target)
            if table is None:
                table, table_name = _table_of(call, operation, resource), resource.table
            write = _plan_write(call, operation, resource)
            if writes and not (
                _is_of(table, table_name, resource.table) and write.partition_key == writes[0].partition_key
            ):
                raise Refusal(
                    400,
                    "CommandsInBatchActOnDifferentPartitions",
                    "All commands in a batch must operate on same entity group.",
                )
            if write.row_key in row_keys:
                raise Refusal(
                    400,
                    "InvalidDuplicateRow",
                    "The batch request contains multiple changes with same row key. An entity can appear only once "
                    "in a batch request.",
                )
        except Refusal as refusal:
            if refusal.is_xml:
                raise
            raise refusal.at(index) from None
        row_keys.add(write.row_key)
        writes.append(write)
    assert table is not None, "a change set has an operation"
    return table, table_name, writes


def _is_of(table: Table, table_name: str, other_name: str) -> bool:
    """Return whether an operation names the same table as the first; names of storage tables ignore case."""
    return other_name == table_name or (table.kind == "storage" and other_name.lower() == table_name.lower())


def _table_of(call: Call, operation: PartRequest, resource: Resource) -> Table:
    """Return the table of the first operation, which all others must name too."""
    if resource.kind is Kind.BEHIND_A_TABLE:
        # The slash was encoded, so it is a part of the name.
        call.check_name(operation.target.partition("(")[0])
    return call.table(resource.table)


def _plan_write(call: Call, operation: PartRequest, resource: Resource) -> EntityWrite:
    name = resource.table
    method = "MERGE" if operation.method == "PATCH" else operation.method
    if resource.kind is Kind.ENTITIES and method == "POST":
        # A form in which no answer can be written is refused before anything is stored.
        headers.metadata_level(operation.headers, {})
        return plan_insert(call, name, operation.body)
    if resource.kind is Kind.ENTITY and method in ("PUT", "MERGE", "DELETE"):
        keys = read_keys(resource.keys)
        if method == "DELETE":
            return plan_delete(call, name, keys, operation.headers)
        return plan_update(call, name, keys, method, operation.headers, operation.body)
    raise invalid_input("The operation cannot be part of a change set.")


def _done(
    call: Call,
    table_name: str,
    number: int,
    operation: PartRequest,
    write: EntityWrite,
    stored: StoredEntity | None,
) -> PartResponse:
    answer: HeaderList = [("Content-ID", operation.headers.get("content-id", str(number))), *_PLAIN_HEADERS]
    if stored is None or write.kind is WriteKind.DELETE:
        return PartResponse(204, [*answer, ("DataServiceVersion", "1.0;")])
    if write.kind is not WriteKind.INSERT:
        return PartResponse(204, [*answer, ("DataServiceVersion", "1.0;"), ("ETag", etag_text(stored.etag_time))])
    answer += [("DataServiceVersion", "3.0;"), *insert_headers(call, table_name, stored, operation.headers)]
    if headers.read_preference(operation.headers) == "return-no-content":
        return PartResponse(204, answer)
    level = headers.metadata_level(operation.headers, {})
    answer.append(("Content-Type", headers.JSON_TYPES[level]))
    return PartResponse(201, answer, write_entity(stored, call.table_url(table_name), level, None, kind="/@Element"))


def _refused(call: Call, refusal: Refusal) -> PartResponse:
    index = refusal.message.partition(":")[0]
    answer: HeaderList = [
        ("Content-ID", index if index.isdigit() else "0"),
        *_PLAIN_HEADERS,
        ("DataServiceVersion", "3.0;"),
        ("Content-Type", headers.JSON_TYPES[Metadata.MINIMAL]),
    ]
    body = error_body(refusal, request_id=call.request_id, now_wall_seconds=call.context.clock.wall_seconds())
    return PartResponse(refusal.status, answer, body)


async def _answer_read(call: Call, operation: PartRequest) -> Response:
    """Answer a batch that holds a single read instead of a change set."""
    try:
        resource = read_resource(operation.target)
        if resource.kind is not Kind.ENTITY:
            raise invalid_input("A batch with a read can hold only that read, of a single entity.")
        table = call.table(resource.table)
        call.allow("r", ResourceType.OBJECT, resource.table)
        keys = read_keys(resource.keys)
        call.allow_key(keys.partition_key, keys.row_key)
        stored = await table.get(keys.partition_key, keys.row_key, call.spent)
        if stored is None:
            raise resource_not_found()
    except Refusal as refusal:
        return _batch_answer(call, [_refused(call, refusal)], is_change_set=False)
    query = read_query(operation.query_string, of_tables=True)
    level = headers.metadata_level(operation.headers, query)
    answer = [("ETag", etag_text(stored.etag_time)), ("Content-Type", headers.JSON_TYPES[level]), *_PLAIN_HEADERS]
    content = write_entity(stored, call.table_url(table.name), level, read_select(query), kind="/@Element")
    return _batch_answer(call, [PartResponse(200, answer, content)], is_change_set=False)
