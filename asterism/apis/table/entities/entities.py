"""Single entities: insert, read, replace, merge, delete."""

from __future__ import annotations

from typing import Final

from asterism.access.sas_grants import ResourceType
from asterism.apis.storage.refusals import Refusal, invalid_input, resource_not_found
from asterism.apis.table import headers
from asterism.apis.table.context import Call, json_answer
from asterism.apis.table.entities.entity_json import GivenEntity, read_entity, write_entity
from asterism.apis.table.entities.entity_keys import check_keys, entity_reference, read_keys
from asterism.apis.table.etags import etag_text, ticks_of_etag
from asterism.apis.table.paging import read_select
from asterism.apis.transports.http import HeaderList, Headers, Response
from asterism.models.tables.entities import EntityWrite, IfMatch, StoredEntity, WriteKind
from asterism.models.tables.keys import EntityKeys

# The verb of a write with a condition, and without: then it writes whether or not the entity exists.
_KINDS_WITH_CONDITION: Final = {"PUT": WriteKind.REPLACE, "MERGE": WriteKind.MERGE}
_KINDS_WITHOUT: Final = {"PUT": WriteKind.INSERT_OR_REPLACE, "MERGE": WriteKind.INSERT_OR_MERGE}

# The permissions that each kind of write needs of a shared access signature.
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
    # A form in which no answer can be written is refused before anything is stored.
    level = call.level()
    write = plan_insert(call, call.resource.table, call.request.body)
    (stored,) = await table.apply((write,), call.spent)
    assert stored is not None, "an insert leaves an entity"
    more = insert_headers(call, call.resource.table, stored, call.request.headers)
    if headers.read_preference(call.request.headers) == "return-no-content":
        return Response(204, more)
    body = write_entity(stored, call.table_url(table.name), level, None, kind="/@Element")
    return json_answer(201, level, body, more)


async def read_entity_by_keys(call: Call) -> Response:
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
    body = write_entity(stored, call.table_url(table.name), level, selected, kind="/@Element")
    return json_answer(200, level, body, [("etag", etag_text(stored.etag_time))])


async def write_entity_by_keys(call: Call) -> Response:
    """Handle PUT and MERGE: an update with `If-Match`, an upsert without."""
    table = call.table(call.resource.table)
    keys = read_keys(call.resource.keys)
    write = plan_update(call, call.resource.table, keys, call.method, call.request.headers, call.request.body)
    (stored,) = await table.apply((write,), call.spent)
    assert stored is not None, "an update leaves an entity"
    return Response(204, [("etag", etag_text(stored.etag_time))])


async def delete_entity_by_keys(call: Call) -> Response:
    table = call.table(call.resource.table)
    keys = read_keys(call.resource.keys)
    await table.apply((plan_delete(call, call.resource.table, keys, call.request.headers),), call.spent)
    return Response(204, [])


# --- writes, of a request of their own or of a change set ------------------------------------------------------------


def plan_insert(call: Call, table: str, body: bytes) -> EntityWrite:
    call.allow(_PERMISSIONS[WriteKind.INSERT], ResourceType.OBJECT, table)
    entity = _read_body(call, body)
    keys = entity.body_keys()
    _check(call, keys)
    return EntityWrite(WriteKind.INSERT, keys.partition_key, keys.row_key, entity.properties)


def plan_update(call: Call, table: str, keys: EntityKeys, method: str, given: Headers, body: bytes) -> EntityWrite:
    """Plan an update of the keys in the URL; keys in the body are ignored."""
    condition = read_condition(given)
    kind = _KINDS_WITHOUT[method] if condition is None else _KINDS_WITH_CONDITION[method]
    call.allow(_PERMISSIONS[kind], ResourceType.OBJECT, table)
    entity = _read_body(call, body)
    if call.context.is_cosmos:
        entity.check_types()
    _check(call, keys)
    return EntityWrite(kind, keys.partition_key, keys.row_key, entity.properties, condition)


def plan_delete(call: Call, table: str, keys: EntityKeys, given: Headers) -> EntityWrite:
    call.allow(_PERMISSIONS[WriteKind.DELETE], ResourceType.OBJECT, table)
    condition = read_condition(given)
    if condition is None:
        raise Refusal(
            400, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified: If-Match."
        )
    call.allow_key(keys.partition_key, keys.row_key)
    return EntityWrite(WriteKind.DELETE, keys.partition_key, keys.row_key, b"", condition)


def _read_body(call: Call, body: bytes) -> GivenEntity:
    return read_entity(body, is_cosmos=call.context.is_cosmos)


def _check(call: Call, keys: EntityKeys) -> None:
    check_keys(keys, call.context.kind)
    call.allow_key(keys.partition_key, keys.row_key)


def read_condition(given: Headers) -> IfMatch:
    etag = headers.read_if_match(given)
    if etag is None:
        return None
    if etag == "*":
        return "*"
    ticks = ticks_of_etag(etag)
    if ticks is None:
        raise invalid_input("The etag value specified in one of the request headers is not valid.")
    return ticks


def insert_headers(call: Call, table: str, stored: StoredEntity, given: Headers) -> HeaderList:
    location = f"{call.base}/{entity_reference(table, EntityKeys(stored.partition_key, stored.row_key))}"
    more: HeaderList = [("etag", etag_text(stored.etag_time)), ("location", location)]
    preference = headers.read_preference(given)
    if preference is not None:
        more.append((headers.PREFERENCE_APPLIED, preference))
    if preference == "return-no-content":
        more.append(("dataserviceid", location))
    return more
