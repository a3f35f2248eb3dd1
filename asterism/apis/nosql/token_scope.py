"""What a resource token lets its holder ask for: its own resource, what lives in that, and the container around it."""

from __future__ import annotations

import json
from typing import cast

from asterism.access.resource_token import ResourceGrant, keys_agree
from asterism.apis.http import Request
from asterism.apis.nosql import headers
from asterism.apis.nosql.auth import is_query
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.items import id_in_path
from asterism.apis.nosql.named_key import named_key
from asterism.apis.nosql.scripts import FUNCTIONS, PROCEDURES, TRIGGERS, find_script
from asterism.errors import Forbidden, ItemNotFound, ResourceNotFound
from asterism.keyspaces.principals import PrincipalRecord
from asterism.partitioning.effective_key import from_text
from asterism.partitioning.partition_key import parse_header
from asterism.values.json_text import loads

_READ = "read"
_READING_METHODS = frozenset({"GET", "HEAD"})
# A path to a container has four segments, one to something in it six.
_CONTAINER_SEGMENTS = 4
# What any holder of a token for a container, or for something in it, may read of the container: without these no
# client finds the way to an item.
_READ_BY_ALL_KINDS = frozenset({"", "pkranges"})
# Where the partition key that a token is bound to can be compared with the request's.
_KEYED_KINDS = frozenset({"docs", "operations"})
_SCRIPT_FEEDS = {feed.segment: feed for feed in (PROCEDURES, TRIGGERS, FUNCTIONS)}


def granted_by(record: PrincipalRecord) -> ResourceGrant:
    """Return what a permission grants, without an end and bound to nothing."""
    properties = record.properties
    key = properties.get("resourcePartitionKey")
    return ResourceGrant(
        resource=properties["resource"].strip("/"),
        is_read_only=properties["permissionMode"].lower() == _READ,
        partition_key=None if key is None else tuple(key),
        expires_at_wall_seconds=0,
    )


def container_rid_of(context: Context, parts: list[str]) -> bytes | None:
    """Return the resource id of the container in a path, by whichever names or ids it is called; None if not there."""
    try:
        database = context.store.database(context.account, parts[1])
        return context.store.container(database, parts[3]).record.rid
    except ResourceNotFound:
        return None


async def check_token_scope(context: Context, request: Request, parts: list[str], grant: ResourceGrant) -> None:
    """Return when the grant covers the request; raise Forbidden."""
    if parts == [""]:
        # The account is where every client begins, whatever it may see afterwards.
        return
    _check_permission(context, grant)
    granted = grant.resource.strip("/").split("/")
    if not _is_granted_container(context, parts, granted, grant):
        raise Forbidden(reason="The resource token is for another resource than the one that the request names.")
    is_reading = request.method in _READING_METHODS or is_query(request, parts)
    kind = parts[_CONTAINER_SEGMENTS] if len(parts) > _CONTAINER_SEGMENTS else ""
    if is_reading and kind in _READ_BY_ALL_KINDS:
        return
    if grant.is_read_only and not is_reading:
        raise Forbidden(reason="The resource token permits reading only, and the request is a write.")
    if len(granted) > _CONTAINER_SEGMENTS and not await _is_granted_child(context, request, parts, granted):
        raise Forbidden(reason="The resource token is for one resource of the container, and not for this one.")
    if grant.partition_key is not None:
        _check_key(context, request, grant, kind, parts, is_reading=is_reading)


def _check_permission(context: Context, grant: ResourceGrant) -> None:
    """Refuse a token whose permission was deleted, or grants something else by now."""
    if grant.permission_rid is None:
        return
    record = context.store.catalog.permissions.get(grant.permission_rid)
    if record is None:
        raise Forbidden(reason="The permission of the resource token has been deleted.")
    now = granted_by(record)
    if (now.resource, now.partition_key) != (grant.resource, grant.partition_key) or (
        now.is_read_only and not grant.is_read_only
    ):
        raise Forbidden(reason="The permission of the resource token has been changed. Read it again for a new token.")


def _is_granted_container(context: Context, parts: list[str], granted: list[str], grant: ResourceGrant) -> bool:
    if len(parts) < _CONTAINER_SEGMENTS or parts[0] != "dbs" or parts[2] != "colls":
        return False
    asked_rid = container_rid_of(context, parts)
    if asked_rid is None:
        # One that is not there is still the same as itself: the handler then says that it is missing.
        return parts[:_CONTAINER_SEGMENTS] == granted[:_CONTAINER_SEGMENTS]
    granted_rid = grant.container_rid
    return asked_rid == (container_rid_of(context, granted) if granted_rid is None else granted_rid)


async def _is_granted_child(context: Context, request: Request, parts: list[str], granted: list[str]) -> bool:
    """Whether a path names the granted thing in the container: both may use names or resource ids."""
    if parts[_CONTAINER_SEGMENTS:] == granted[_CONTAINER_SEGMENTS:]:
        return True
    if len(parts) != len(granted) or parts[4] != granted[4]:
        return False
    container = context.items_container(request.headers, parts)
    asked_by_rid, granted_by_rid = (path[3] != container.record.name for path in (parts, granted))
    feed = _SCRIPT_FEEDS.get(parts[4])
    if feed is not None:
        scripts = feed.choose(context.store.catalog.scripts)
        found = find_script(scripts, container, parts[5])
        return found is not None and found == find_script(scripts, container, granted[5])
    if parts[4] != "docs" or asked_by_rid == granted_by_rid:
        return False
    try:
        key = named_key(container, request)
        if asked_by_rid:
            return await id_in_path(context, container, parts, key) == granted[5]
        if key is None:
            return False
        stored = cast("dict[str, object]", loads((await container.read_item(parts[5], key)).body))
        return stored["_rid"] == granted[5]
    except ItemNotFound:
        return False


def _check_key(
    context: Context, request: Request, grant: ResourceGrant, kind: str, parts: list[str], *, is_reading: bool
) -> None:
    """A token that is bound to a partition key reaches no other, and changes nothing that has none."""
    runs_script = kind == "sprocs" and request.method == "POST" and len(parts) > _CONTAINER_SEGMENTS + 1
    if kind not in _KEYED_KINDS and not runs_script:
        if is_reading:
            return
        raise Forbidden(reason="The resource token is for one partition key, and the request is for all of them.")
    told = request.headers
    if headers.is_true(told.get(headers.IS_BATCH)) and not headers.is_true(told.get(headers.BATCH_ATOMIC)):
        raise Forbidden(reason="The resource token is for one partition key, and a bulk request may name several.")
    if keys_agree(grant.partition_key, _asked_key(request)):
        return
    if not is_reading or not _is_within_key(context, request, grant, parts):
        raise Forbidden(reason="The resource token is for another partition key than the one that the request names.")


def _is_within_key(context: Context, request: Request, grant: ResourceGrant, parts: list[str]) -> bool:
    """Whether a request that names no key reads an interval of the hash line where only the granted one is: so the
    Python client asks for the change feed of a key."""
    told = request.headers
    start, end = told.get(headers.START_EPK), told.get(headers.END_EPK)
    if headers.PARTITION_KEY in told or not start or not end:
        return False
    container = context.items_container(told, parts)
    granted = parse_header(json.dumps(grant.partition_key), container.record.definition)
    scope = container.logical_scope(granted)
    return scope.start <= from_text(start) and from_text(end) <= scope.end


def _asked_key(request: Request) -> list[object] | None:
    text = request.headers.get(headers.PARTITION_KEY)
    try:
        asked = None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        asked = None
    return asked if isinstance(asked, list) else None
