"""Permissions: what a user may do with one container or item. Every answer hands out a fresh token for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from asterism.access.resource_token import (
    LIFETIME_SECONDS_DEFAULT,
    LIFETIME_SECONDS_MAX,
    LIFETIME_SECONDS_MIN,
    ResourceGrant,
    make_resource_token,
)
from asterism.apis.http import Headers, Request, Response
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context, check_if_match, is_not_modified, json_object
from asterism.apis.nosql.headers import is_true, metadata_headers
from asterism.apis.nosql.paging import list_page
from asterism.apis.nosql.queries import matching
from asterism.apis.nosql.token_scope import container_rid_of, granted_by
from asterism.apis.nosql.users import user_at
from asterism.errors import MalformedRequest, ResourceNotFound
from asterism.keyspaces.principals import PrincipalRecord
from asterism.throughput.charge import METADATA, METADATA_CHANGE
from asterism.values.item import validate_resource_name
from asterism.values.json_text import dumps
from asterism.values.resource_ids import from_text, self_link_of_permission, to_text
from asterism.values.whole_numbers import whole_number

# The Python client writes the modes in lower case, the others with a capital; they are echoed as they came.
_MODES = frozenset({"all", "read"})


async def post_permissions(context: Context, request: Request, parts: list[str]) -> Response:
    told = request.headers
    if is_true(told.get(headers.IS_QUERY)):
        return await list_permissions(context, request, parts)
    permissions, user = context.store.catalog.permissions, user_at(context, parts)
    seconds = _lifetime_seconds(told)
    name, properties = _given(context, request)
    known = permissions.find(user.rid, name) if is_true(told.get(headers.IS_UPSERT)) else None
    if known is not None:
        check_if_match(told, known.etag)
        return _answer(context, 200, await permissions.replace(known, name, properties, now=context.now()), seconds)
    return _answer(context, 201, await permissions.create(user.rid, name, properties, now=context.now()), seconds)


async def list_permissions(context: Context, request: Request, parts: list[str]) -> Response:
    user, seconds = user_at(context, parts), _lifetime_seconds(request.headers)
    records = context.store.catalog.permissions.owned_by(user.rid)
    return list_page(
        request.headers,
        await matching(
            context, request, [(record.name, permission_json(context, record, seconds)) for record in records]
        ),
        rid=to_text(user.rid),
        name="Permissions",
        more_headers=metadata_headers(charge=METADATA),
    )


async def read_permission(context: Context, request: Request, parts: list[str]) -> Response:
    record = _permission_at(context, parts)
    if is_not_modified(request.headers, record.etag):
        return Response(304, metadata_headers(charge=METADATA, etag=record.etag))
    return _answer(context, 200, record, _lifetime_seconds(request.headers), charge=METADATA)


async def replace_permission(context: Context, request: Request, parts: list[str]) -> Response:
    record, seconds = _permission_at(context, parts), _lifetime_seconds(request.headers)
    check_if_match(request.headers, record.etag)
    name, properties = _given(context, request)
    replaced = await context.store.catalog.permissions.replace(record, name, properties, now=context.now())
    return _answer(context, 200, replaced, seconds)


async def delete_permission(context: Context, request: Request, parts: list[str]) -> Response:
    record = _permission_at(context, parts)
    check_if_match(request.headers, record.etag)
    await context.store.catalog.permissions.delete(record)
    return Response(204, metadata_headers(charge=METADATA_CHANGE))


def permission_json(context: Context, record: PrincipalRecord, lifetime_seconds: int) -> dict[str, object]:
    return {
        "id": record.name,
        **record.properties,
        "_rid": to_text(record.rid),
        "_self": self_link_of_permission(record.rid),
        "_etag": record.etag,
        "_ts": record.changed_at,
        "_token": make_resource_token(context.keys, _grant(context, record, context.now() + lifetime_seconds)),
    }


def _grant(context: Context, record: PrincipalRecord, expires_at_wall_seconds: int) -> ResourceGrant:
    granted = granted_by(record)
    return replace(
        granted,
        expires_at_wall_seconds=expires_at_wall_seconds,
        permission_rid=record.rid,
        container_rid=container_rid_of(context, granted.resource.split("/")) or b"",
    )


def _permission_at(context: Context, parts: list[str]) -> PrincipalRecord:
    user, permissions = user_at(context, parts), context.store.catalog.permissions
    found = permissions.find(user.rid, parts[5])
    if found is None:
        rid = from_text(parts[5])
        found = None if rid is None or not rid.startswith(user.rid) else permissions.get(rid)
    if found is None:
        raise ResourceNotFound(kind="permission", name=parts[5])
    return found


def _given(context: Context, request: Request) -> tuple[str, dict[str, Any]]:
    """The name and the properties of the permission in a request's body."""
    told = json_object(request, context)
    name = validate_resource_name(told.get("id"))
    mode, resource, key = told.get("permissionMode"), told.get("resource"), told.get("resourcePartitionKey")
    if not isinstance(mode, str) or mode.lower() not in _MODES:
        raise MalformedRequest(reason="A permission needs a 'permissionMode', which is All or Read.")
    if not isinstance(resource, str) or not _is_link(resource):
        raise MalformedRequest(
            reason="A permission needs a 'resource', the link of a container or of something in one, such as "
            "dbs/<database>/colls/<container>."
        )
    properties: dict[str, Any] = {"permissionMode": mode, "resource": resource}
    if key is not None:
        if not isinstance(key, list) or not key:
            raise MalformedRequest(reason="The 'resourcePartitionKey' of a permission must be a list of values.")
        properties["resourcePartitionKey"] = key
    return name, properties


def _is_link(resource: str) -> bool:
    parts = resource.strip("/").split("/")
    return len(parts) in (4, 6) and all(parts) and parts[0] == "dbs" and parts[2] == "colls"


def _lifetime_seconds(told: Headers) -> int:
    text = told.get(headers.EXPIRY_SECONDS)
    if text is None:
        return LIFETIME_SECONDS_DEFAULT
    seconds = whole_number(text, maximum=LIFETIME_SECONDS_MAX)
    if seconds is None or seconds < LIFETIME_SECONDS_MIN:
        raise MalformedRequest(
            reason=f"The value '{text[:32]}' specified for the header '{headers.EXPIRY_SECONDS}' is invalid: a token "
            f"lives {LIFETIME_SECONDS_MIN} to {LIFETIME_SECONDS_MAX} seconds."
        )
    return seconds


def _answer(
    context: Context, status: int, record: PrincipalRecord, lifetime_seconds: int, *, charge: float = METADATA_CHANGE
) -> Response:
    body = dumps(permission_json(context, record, lifetime_seconds))
    return Response(status, metadata_headers(charge=charge, etag=record.etag), body)
