"""The scope of a resource token: its own resource, the resources in that, and the container around it."""

from __future__ import annotations

import json
from typing import cast

from asterism.access.resource_token import ResourceGrant, keys_agree
from asterism.apis.granted_resources import check_permission
from asterism.apis.nosql import headers
from asterism.apis.nosql.auth import is_query
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.items.items import id_in_path
from asterism.apis.nosql.items.partition_key_header import named_key
from asterism.apis.nosql.resources.resource_feed import find_owned
from asterism.apis.nosql.scripts.resources import FUNCTIONS, PROCEDURES, TRIGGERS
from asterism.apis.transports.http import Request
from asterism.errors import Forbidden, ItemNotFound, ResourceNotFound
from asterism.models.documents.forwarding import PartitionForwarded
from asterism.partitioning.effective_key import from_text
from asterism.values.json.text import loads

_READING_METHODS = frozenset({"GET", "HEAD"})
# A path to a container has four segments, one to something in it six.
_CONTAINER_SEGMENTS = 4
# Readable with any token for a container, or for something in it: without these no client finds the way to an item.
_READ_BY_ALL_KINDS = frozenset({"", "pkranges"})
# Requests whose partition key can be compared with the one that a token is bound to.
_KEYED_KINDS = frozenset({"docs", "operations"})
_SCRIPT_FEEDS = {feed.segment: feed for feed in (PROCEDURES, TRIGGERS, FUNCTIONS)}


def container_rid_of(context: Context, parts: list[str]) -> bytes | None:
    """Return the resource id of the container in a path, by names or by ids; None if it does not exist."""
    try:
        database = context.store.database(context.account, parts[1])
        return context.store.container(database, parts[3]).record.rid
    except ResourceNotFound:
        return None


async def check_token_scope(call: Call, grant: ResourceGrant) -> None:
    """Return when the grant covers the request; raise Forbidden."""
    context, request, parts = call.context, call.request, call.parts
    if parts == [""]:
        # Every client begins with the account, whatever it may read afterwards.
        return
    check_permission(context.store.catalog.permissions, grant)
    granted = grant.resource.strip("/").split("/")
    if not _is_granted_container(context, parts, granted, grant):
        raise Forbidden(reason="The resource token is for another resource than the one that the request names.")
    is_reading = request.method in _READING_METHODS or is_query(request, parts)
    kind = parts[_CONTAINER_SEGMENTS] if len(parts) > _CONTAINER_SEGMENTS else ""
    if is_reading and kind in _READ_BY_ALL_KINDS:
        return
    if grant.is_read_only and not is_reading:
        raise Forbidden(reason="The resource token permits reading only, and the request is a write.")
    if len(granted) > _CONTAINER_SEGMENTS and not await _is_granted_child(call, granted):
        raise Forbidden(reason="The resource token is for one resource of the container, and not for this one.")
    if grant.partition_key is not None:
        _check_key(call, grant, kind, is_reading=is_reading)


def _is_granted_container(context: Context, parts: list[str], granted: list[str], grant: ResourceGrant) -> bool:
    if len(parts) < _CONTAINER_SEGMENTS or parts[0] != "dbs" or parts[2] != "colls":
        return False
    asked_rid = container_rid_of(context, parts)
    if asked_rid is None:
        # A missing container is still the same as itself: the handler then answers that it does not exist.
        return parts[:_CONTAINER_SEGMENTS] == granted[:_CONTAINER_SEGMENTS]
    granted_rid = grant.container_rid
    return asked_rid == (container_rid_of(context, granted) if granted_rid is None else granted_rid)


async def _is_granted_child(call: Call, granted: list[str]) -> bool:
    """Return whether a path names the granted child of the container: both may use names or resource ids."""
    parts = call.parts
    if parts[_CONTAINER_SEGMENTS:] == granted[_CONTAINER_SEGMENTS:]:
        return True
    if len(parts) != len(granted) or parts[4] != granted[4]:
        return False
    container = call.items_container()
    asked_by_rid, granted_by_rid = (path[3] != container.record.name for path in (parts, granted))
    feed = _SCRIPT_FEEDS.get(parts[4])
    if feed is not None:
        scripts, rid = feed.records(call.context), container.record.rid
        found = find_owned(scripts, rid, parts[5])
        return found is not None and found == find_owned(scripts, rid, granted[5])
    if parts[4] != "docs" or asked_by_rid == granted_by_rid:
        return False
    try:
        key = named_key(container, call.request)
        if asked_by_rid:
            return await id_in_path(call, container, key) == granted[5]
        if key is None:
            return False
        stored = cast("dict[str, object]", loads((await container.read_item(parts[5].encode(), key)).body))
        return stored["_rid"] == granted[5]
    except (ItemNotFound, PartitionForwarded):
        # Of a promoted key, items are granted by the path that the permission has.
        return False


def _check_key(call: Call, grant: ResourceGrant, kind: str, *, is_reading: bool) -> None:
    """Refuse a request that reaches beyond the partition key of a token, or changes anything without a key."""
    request, parts = call.request, call.parts
    runs_script = kind == "sprocs" and request.method == "POST" and len(parts) > _CONTAINER_SEGMENTS + 1
    if kind not in _KEYED_KINDS and not runs_script:
        if is_reading:
            return
        raise Forbidden(reason="The resource token is for one partition key, and the request is for all of them.")
    given = request.headers
    if headers.is_true(given.get(headers.IS_BATCH)) and not headers.is_true(given.get(headers.BATCH_ATOMIC)):
        raise Forbidden(reason="The resource token is for one partition key, and a bulk request may name several.")
    asked = _asked_key(request)
    if keys_agree(grant.partition_key, asked) and not _is_open(call, asked):
        return
    if not is_reading or not _is_within_key(call, grant):
        raise Forbidden(reason="The resource token is for another partition key than the one that the request names.")


def _is_within_key(call: Call, grant: ResourceGrant) -> bool:
    """Return whether a request that names no key reads an interval of the hash line where only the granted key is:
    so the Python client asks for the change feed of a key."""
    given = call.request.headers
    start, end = given.get(headers.START_EPK), given.get(headers.END_EPK)
    if headers.PARTITION_KEY in given or not start or not end:
        return False
    container = call.items_container()
    granted = container.keys_named(container.key_named(json.dumps(grant.partition_key)))
    scope = container.logical_scope(granted[0])
    return len(granted) == 1 and scope.start <= from_text(start) and from_text(end) <= scope.end


def _is_open(call: Call, asked: list[object] | None) -> bool:
    """Return whether a key is left open: the absent value then stands for whatever the item's own properties give."""
    return asked is not None and {} in asked and call.items_container().computed_key is not None


def _asked_key(request: Request) -> list[object] | None:
    text = request.headers.get(headers.PARTITION_KEY)
    try:
        asked = None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        asked = None
    return asked if isinstance(asked, list) else None
