"""Tables: create, list, read, delete."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import quote

from asterism.access.sas_grants import ResourceType
from asterism.apis.storage.refusals import Refusal, invalid_input, resource_not_found
from asterism.apis.table import headers
from asterism.apis.table.context import Call, json_answer
from asterism.apis.table.continuation import read_token, write_token
from asterism.apis.table.entities.entity_json import Metadata
from asterism.apis.table.errors import properties_need_value
from asterism.apis.table.paging import read_top
from asterism.apis.table.resources.names import new_cosmos_name_refusal, storage_name_refusal
from asterism.apis.table.resources.throughput import throughput_of
from asterism.apis.transports.http import HeaderList, Response
from asterism.errors import MalformedRequest, ResourceNotFound
from asterism.languages.odata.match import make_matcher
from asterism.languages.odata.parser import parse_filter
from asterism.models.tables.entities import StoredEntity
from asterism.values.json.text import dumps, loads

# The service's limit.
PAGE_TABLES_MAX: Final = 1000
_EVERY: Final = 2**31
# Names examined without a pause for other requests.
_SLICE_TABLES: Final = 1000


async def create_table(call: Call) -> Response:
    call.allow("c|w", ResourceType.CONTAINER, None)
    name = _name_in(call.request.body)
    refusal = new_cosmos_name_refusal(name) if call.context.is_cosmos else storage_name_refusal(name)
    if refusal is not None:
        raise refusal
    # A form in which no answer can be written is refused before anything is created.
    level = call.level()
    throughput = throughput_of(call.request.headers) if call.context.is_cosmos else None
    await call.context.store.create_table(call.account.name, name, kind=call.context.kind, throughput=throughput)
    preference = headers.read_preference(call.request.headers)
    location = f"{call.base}/Tables('{quote(name)}')"
    more: HeaderList = [("location", location)]
    if preference is not None:
        more.append((headers.PREFERENCE_APPLIED, preference))
    if preference == "return-no-content":
        return Response(204, [*more, ("dataserviceid", location)])
    return json_answer(201, level, _table_body(call, name, level), more)


def _name_in(body: bytes) -> str:
    try:
        given = loads(body)
    except MalformedRequest as error:
        raise invalid_input(f"The body of the request is not valid. {error.reason}") from None
    if not isinstance(given, dict):
        raise invalid_input("The body of the request is not valid.")
    name = given.get("TableName")
    if name is None:
        raise properties_need_value()
    if not isinstance(name, str):
        raise invalid_input("The TableName is not a text.")
    return name


def _table_body(call: Call, name: str, level: Metadata) -> bytes:
    row = _row(call, name, level)
    if level is not Metadata.NONE:
        row = {"odata.metadata": f"{call.base}/$metadata#Tables/@Element", **row}
    return dumps(row)


def _row(call: Call, name: str, level: Metadata) -> dict[str, str]:
    if level is not Metadata.FULL:
        return {"TableName": name}
    link = f"Tables('{quote(name)}')"
    return {
        "odata.type": f"{call.account.name}.Tables",
        "odata.id": f"{call.base}/{link}",
        "odata.editLink": link,
        "TableName": name,
    }


async def list_tables(call: Call) -> Response:
    call.allow("l", ResourceType.CONTAINER, None)
    limit = read_top(call.query) or PAGE_TABLES_MAX
    matcher = make_matcher(parse_filter(call.query["$filter"])) if call.query.get("$filter") else None
    after = read_token(call.query.get("NextTableName"))
    names: list[str] = []
    next_name: str | None = None
    # All names in a single call: each call examines every name of the account.
    found = await call.context.store.list_tables(call.account.name, after, limit + 1 if matcher is None else _EVERY)
    for number, name in enumerate(found):
        if number % _SLICE_TABLES == _SLICE_TABLES - 1:
            await asyncio.sleep(0)
        if matcher is not None and not matcher.matches(_as_entity(name)):
            continue
        if len(names) == limit:
            next_name = names[-1]
            break
        names.append(name)
    level = call.level()
    body: dict[str, object] = {"value": [_row(call, name, level) for name in names]}
    if level is not Metadata.NONE:
        body = {"odata.metadata": f"{call.base}/$metadata#Tables", **body}
    more = [(headers.NEXT_TABLE_NAME, write_token(next_name))] if next_name is not None else []
    return json_answer(200, level, dumps(body), more)


def _as_entity(name: str) -> StoredEntity:
    """Return a table as an entity that a filter can examine, with a single property."""
    return StoredEntity("", "", 0, b'"TableName":' + dumps(name))


async def read_table(call: Call) -> Response:
    call.allow("l", ResourceType.CONTAINER, None)
    found = call.context.store.find_table(call.account.name, call.resource.table)
    if found is None:
        call.check_name(call.resource.table)
        raise resource_not_found()
    level = call.level()
    return json_answer(200, level, _table_body(call, found.name, level))


async def delete_table(call: Call) -> Response:
    call.allow("d", ResourceType.CONTAINER, None)
    try:
        await call.context.store.delete_table(call.account.name, call.resource.table)
    except ResourceNotFound:
        # A name that follows the rules of the other port may exist; a name that follows neither is refused as such.
        call.check_name(call.resource.table)
        raise resource_not_found() from None
    return Response(204, [])


async def behind_a_table(call: Call) -> Response:
    """Refuse a path behind a table, which comes from a table in the address of the account. The refusal depends on the
    rest of the path, as the service's does."""
    rest = call.resource.rest
    if call.context.is_cosmos:
        raise invalid_input("Request url is invalid.")
    if rest == "$batch":
        raise Refusal(415, "MediaTypeNotSupported", "None of the provided media types are supported")
    if "/" in rest:
        # The slashes were encoded, so they are a part of the name.
        call.check_name(f"{call.resource.table}/{rest}".partition("(")[0])
    call.table(call.resource.table)
    if rest.startswith("Tables("):
        raise invalid_input(
            "The number of keys specified in the URI does not match number of key properties for the resource."
        )
    if rest == "Tables":
        raise properties_need_value()
    raise Refusal(400, "InvalidUri", "The requested URI does not represent any resource on the server.")
