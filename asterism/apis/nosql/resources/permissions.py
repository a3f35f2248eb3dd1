"""Permissions: the access of a user to one container or item. Every answer carries a fresh token for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from asterism.access.resource_token import (
    LIFETIME_SECONDS_DEFAULT,
    LIFETIME_SECONDS_MAX,
    LIFETIME_SECONDS_MIN,
    ResourceGrant,
    make_resource_token,
)
from asterism.apis.granted_resources import granted_by
from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context, json_object
from asterism.apis.nosql.resources.resource_feed import ResourceFeed, ToJson
from asterism.apis.nosql.resources.users import USERS
from asterism.apis.nosql.token_scope import container_rid_of
from asterism.apis.transports.http import Headers, Request
from asterism.errors import MalformedRequest
from asterism.keyspaces.catalog.owned_records import OwnedRecord, OwnedRecords
from asterism.values.item import validate_resource_name
from asterism.values.resource_ids import self_link_of_permission, to_text
from asterism.values.whole_numbers import whole_number

# The Python client writes the modes in lower case, the others with a capital; they are echoed as they came.
_MODES = frozenset({"all", "read"})


class PermissionFeed(ResourceFeed):
    kind = "permission"
    segment = "permissions"
    envelope = "Permissions"

    def records(self, context: Context) -> OwnedRecords:
        return context.store.catalog.permissions

    def owner_rid(self, call: Call) -> bytes:
        return USERS.find(call).rid

    def name_at(self, call: Call) -> str:
        return call.permission_name

    def parse(self, call: Call) -> tuple[str, dict[str, Any]]:
        return _permission_in(call.context, call.request)

    def to_json_for(self, call: Call) -> ToJson:
        context, seconds = call.context, _lifetime_seconds(call.request.headers)
        return lambda record: _permission_json(context, record, seconds)


def _permission_json(context: Context, record: OwnedRecord, lifetime_seconds: int) -> dict[str, object]:
    return {
        "id": record.name,
        **record.properties,
        "_rid": to_text(record.rid),
        "_self": self_link_of_permission(record.rid),
        "_etag": record.etag,
        "_ts": record.changed_at,
        "_token": make_resource_token(context.keys, _grant(context, record, context.now() + lifetime_seconds)),
    }


def _grant(context: Context, record: OwnedRecord, expires_at_wall_seconds: int) -> ResourceGrant:
    granted = granted_by(record)
    return replace(
        granted,
        expires_at_wall_seconds=expires_at_wall_seconds,
        permission_rid=record.rid,
        container_rid=container_rid_of(context, granted.resource.split("/")) or b"",
    )


def _permission_in(context: Context, request: Request) -> tuple[str, dict[str, Any]]:
    """Parse the name and the properties of the permission in a request's body."""
    body = json_object(request, context)
    name = validate_resource_name(body.get("id"))
    mode, resource, key = body.get("permissionMode"), body.get("resource"), body.get("resourcePartitionKey")
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


def _lifetime_seconds(given: Headers) -> int:
    text = given.get(headers.EXPIRY_SECONDS)
    if text is None:
        return LIFETIME_SECONDS_DEFAULT
    seconds = whole_number(text, maximum=LIFETIME_SECONDS_MAX)
    if seconds is None or seconds < LIFETIME_SECONDS_MIN:
        raise MalformedRequest(
            reason=f"The value '{text[:32]}' specified for the header '{headers.EXPIRY_SECONDS}' is invalid: a token "
            f"lives {LIFETIME_SECONDS_MIN} to {LIFETIME_SECONDS_MAX} seconds."
        )
    return seconds


PERMISSIONS: Final = PermissionFeed()
