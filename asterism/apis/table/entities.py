"""One entity: insert, read, replace, merge, delete."""

from __future__ import annotations

from typing import Final

from asterism.access.shared_access import ResourceType
from asterism.apis.http import HeaderList, Headers, Response
from asterism.apis.table import headers
from asterism.apis.table.context import Call, json_answer
from asterism.apis.table.entity_json import GivenEntity, read_entity, write_entity
from asterism.apis.table.entity_keys import EntityKeys, check_keys, entity_reference, read_keys
from asterism.apis.table.errors import (
    Refusal,
    condition_not_satisfied,
    entity_exists,
    entity_too_large,
    invalid_input,
    resource_not_found,
    too_many_properties,
)
from asterism.apis.table.paging import read_select
from asterism.apis.table.store_contract import TableLike
from asterism.apis.table.stored import EntityWrite, FailureReason, IfMatch, OperationFailed, StoredEntity, WriteKind
from asterism.apis.table.timestamps import etag_text, ticks_of_etag

REFUSALS: Final = {
    FailureReason.EXISTS: entity_exists,
    FailureReason.NOT_FOUND: resource_not_found,
    FailureReason.ETAG_MISMATCH: condition_not_satisfied,
    FailureReason.TOO_MANY_PROPERTIES: too_many_properties,
    FailureReason.TOO_LARGE: entity_too_large,
}

# The verb of a write with a condition, and without one: then it writes whether the entity is there or not.
_KINDS_WITH_CONDITION: Final = {"PUT": WriteKind.REPLACE, "MERGE": WriteKind.MERGE}
_KINDS_WITHOUT: Final = {"PUT": WriteKind.INSERT_OR_REPLACE, "MERGE": WriteKind.INSERT_OR_MERGE}

# What a shared access signature must permit for each kind of write.
_PERMISSIONS: Final = {
    WriteKind.INSERT: "a",
    WriteKind.REPLACE: "u",
    WriteKind.MERGE: "u",
    WriteKind.INSERT_OR_REPLACE: "au",
    WriteKind.INSERT_OR_MERGE: "au",
    WriteKind.DELETE: "d",
}


async def insert_entity(call: Call) -> Response:
    table = call.table(call.resource.table)
    # Before anything is written: a form that nobody can answer in is refused here.
    level = call.level()
    write = plan_insert(call, call.resource.table, call.request.body)
    stored = await _apply(call, table, write)
    assert stored is not None
    more = insert_headers(call, call.resource.table, stored, call.request.headers)
    if headers.read_preference(call.request.headers) == "return-no-content":
        return Response(204, more)
    body = write_entity(stored, call.place(table.name), level, None, kind="/@Element")
    return json_answer(201, level, body, more)


async def read_one_entity(call: Call) -> Response:
    name = call.resource.table
    table = call.table(name)
    call.allow("r", ResourceType.OBJECT, name)
    level = call.level()
    keys = read_keys(call.resource.keys)
    call.allow_key(keys.partition_key, keys.row_key)
    stored = await table.get(keys.partition_key, keys.row_key, call.spent)
    if stored is None:
        raise resource_not_found()
    query = call.query
    selected = read_select(query) if query else None
    body = write_entity(stored, call.place(table.name), level, selected, kind="/@Element")
    return json_answer(200, level, body, [("etag", etag_text(stored.etag_time))])


async def write_one_entity(call: Call) -> Response:
    """PUT and MERGE: an update with `If-Match`, an upsert without."""
    table = call.table(call.resource.table)
    keys = read_keys(call.resource.keys)
    write = plan_update(call, call.resource.table, keys, call.method, call.request.headers, call.request.body)
    stored = await _apply(call, table, write)
    assert stored is not None
    return Response(204, [("etag", etag_text(stored.etag_time))])


async def delete_one_entity(call: Call) -> Response:
    table = call.table(call.resource.table)
    keys = read_keys(call.resource.keys)
    await _apply(call, table, plan_delete(call, call.resource.table, keys, call.request.headers))
    return Response(204, [])


async def _apply(call: Call, table: TableLike, write: EntityWrite) -> StoredEntity | None:
    try:
        (stored,) = await table.apply((write,), call.spent)
    except OperationFailed as failure:
        raise REFUSALS[failure.reason]() from None
    return stored


# --- what a request asks for, alone or in a change set --------------------------------------------------------------


def plan_insert(call: Call, table: str, body: bytes) -> EntityWrite:
    call.allow(_PERMISSIONS[WriteKind.INSERT], ResourceType.OBJECT, table)
    given = _read_body(call, body)
    keys = given.body_keys()
    _check(call, keys)
    return EntityWrite(WriteKind.INSERT, keys.partition_key, keys.row_key, given.properties)


def plan_update(call: Call, table: str, keys: EntityKeys, method: str, told: Headers, body: bytes) -> EntityWrite:
    """The keys of the URL count, whatever the body says."""
    condition = read_condition(told)
    kind = _KINDS_WITHOUT[method] if condition is None else _KINDS_WITH_CONDITION[method]
    call.allow(_PERMISSIONS[kind], ResourceType.OBJECT, table)
    given = _read_body(call, body)
    if call.context.is_cosmos:
        given.check_types()
    _check(call, keys)
    return EntityWrite(kind, keys.partition_key, keys.row_key, given.properties, condition)


def plan_delete(call: Call, table: str, keys: EntityKeys, told: Headers) -> EntityWrite:
    call.allow(_PERMISSIONS[WriteKind.DELETE], ResourceType.OBJECT, table)
    condition = read_condition(told)
    if condition is None:
        raise Refusal(
            400, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified: If-Match."
        )
    call.allow_key(keys.partition_key, keys.row_key)
    return EntityWrite(WriteKind.DELETE, keys.partition_key, keys.row_key, b"", condition)


def _read_body(call: Call, body: bytes) -> GivenEntity:
    return read_entity(body, is_cosmos=call.context.is_cosmos)


def _check(call: Call, keys: EntityKeys) -> None:
    check_keys(keys, is_cosmos=call.context.is_cosmos)
    call.allow_key(keys.partition_key, keys.row_key)


def read_condition(told: Headers) -> IfMatch:
    etag = headers.read_if_match(told)
    if etag is None:
        return None
    if etag == "*":
        return "*"
    ticks = ticks_of_etag(etag)
    if ticks is None:
        raise invalid_input("The etag value specified in one of the request headers is not valid.")
    return ticks


def insert_headers(call: Call, table: str, stored: StoredEntity, told: Headers) -> HeaderList:
    location = f"{call.base}/{entity_reference(table, EntityKeys(stored.partition_key, stored.row_key))}"
    more: HeaderList = [("etag", etag_text(stored.etag_time)), ("location", location)]
    preference = headers.read_preference(told)
    if preference is not None:
        more.append((headers.PREFERENCE_APPLIED, preference))
    if preference == "return-no-content":
        more.append(("dataserviceid", location))
    return more
