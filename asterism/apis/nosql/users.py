"""Users of a database: names that permissions hang on. Nobody signs in as one; programs bring a permission's token."""

from __future__ import annotations

from asterism.apis.http import Request, Response
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context, check_if_match, is_not_modified, json_object
from asterism.apis.nosql.headers import is_true, metadata_headers
from asterism.apis.nosql.paging import list_page
from asterism.apis.nosql.queries import matching
from asterism.errors import ResourceNotFound
from asterism.keyspaces.principals import PrincipalRecord
from asterism.keyspaces.records import DatabaseRecord
from asterism.throughput.charge import METADATA, METADATA_CHANGE
from asterism.values.item import validate_resource_name
from asterism.values.json_text import dumps
from asterism.values.resource_ids import from_text, self_link_of_user, to_text


def user_json(record: PrincipalRecord) -> dict[str, object]:
    return {
        "id": record.name,
        "_rid": to_text(record.rid),
        "_self": self_link_of_user(record.rid),
        "_etag": record.etag,
        "_permissions": "permissions/",
        "_ts": record.changed_at,
    }


def user_at(context: Context, parts: list[str]) -> PrincipalRecord:
    """The user that a path names, by name or by resource id."""
    return _user_of(context, context.owning_database(parts), parts[3])


def _user_of(context: Context, database: DatabaseRecord, name_or_rid: str) -> PrincipalRecord:
    users = context.store.catalog.users
    found = users.find(database.rid, name_or_rid)
    if found is None:
        rid = from_text(name_or_rid)
        found = None if rid is None or not rid.startswith(database.rid) else users.get(rid)
    if found is None:
        raise ResourceNotFound(kind="user", name=name_or_rid)
    return found


async def post_users(context: Context, request: Request, parts: list[str]) -> Response:
    told = request.headers
    if is_true(told.get(headers.IS_QUERY)):
        return await list_users(context, request, parts)
    users, database = context.store.catalog.users, context.owning_database(parts)
    name = validate_resource_name(json_object(request, context).get("id"))
    known = users.find(database.rid, name) if is_true(told.get(headers.IS_UPSERT)) else None
    if known is not None:
        check_if_match(told, known.etag)
        return _answer(200, await users.replace(known, name, {}, now=context.now()))
    return _answer(201, await users.create(database.rid, name, {}, now=context.now()))


async def list_users(context: Context, request: Request, parts: list[str]) -> Response:
    database = context.owning_database(parts)
    entries = [(record.name, user_json(record)) for record in context.store.catalog.users.owned_by(database.rid)]
    return list_page(
        request.headers,
        await matching(context, request, entries),
        rid=to_text(database.rid),
        name="Users",
        more_headers=metadata_headers(charge=METADATA),
    )


async def read_user(context: Context, request: Request, parts: list[str]) -> Response:
    record = user_at(context, parts)
    if is_not_modified(request.headers, record.etag):
        return Response(304, metadata_headers(charge=METADATA, etag=record.etag))
    return _answer(200, record, charge=METADATA)


async def replace_user(context: Context, request: Request, parts: list[str]) -> Response:
    record = user_at(context, parts)
    check_if_match(request.headers, record.etag)
    name = validate_resource_name(json_object(request, context).get("id"))
    return _answer(200, await context.store.catalog.users.replace(record, name, {}, now=context.now()))


async def delete_user(context: Context, request: Request, parts: list[str]) -> Response:
    """Delete a user with the user's permissions; the tokens that were handed out for them end with that."""
    record = user_at(context, parts)
    check_if_match(request.headers, record.etag)
    await context.store.catalog.delete_user(record)
    return Response(204, metadata_headers(charge=METADATA_CHANGE))


def _answer(status: int, record: PrincipalRecord, *, charge: float = METADATA_CHANGE) -> Response:
    return Response(status, metadata_headers(charge=charge, etag=record.etag), dumps(user_json(record)))
