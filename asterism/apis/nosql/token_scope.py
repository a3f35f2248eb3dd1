"""What a resource token lets its holder ask for: its own resource, what lives in that, and the container around it."""

from __future__ import annotations

import json

from asterism.access.resource_token import ResourceGrant, keys_agree
from asterism.apis.http import Request
from asterism.apis.nosql import headers
from asterism.apis.nosql.auth import is_query
from asterism.apis.nosql.context import Context
from asterism.errors import Forbidden, ResourceNotFound
from asterism.partitioning.effective_key import from_text
from asterism.partitioning.partition_key import parse_header

_READING_METHODS = frozenset({"GET", "HEAD"})
# A path to a container has four segments, one to something in it six.
_CONTAINER_SEGMENTS = 4
# What any holder of a token for a container, or for something in it, may read of the container: without these no
# client finds the way to an item.
_READ_BY_ALL_KINDS = frozenset({"", "pkranges"})
# Where the partition key that a token is bound to can be compared with the request's.
_KEYED_KINDS = frozenset({"docs", "operations"})


def check_token_scope(context: Context, request: Request, parts: list[str], grant: ResourceGrant) -> None:
    """Returns when the grant covers the request; raises Forbidden."""
    if parts == [""]:
        # The account is where every client begins, whatever it may see afterwards.
        return
    granted = grant.resource.strip("/").split("/")
    if _container_of(context, parts) is None or _container_of(context, parts) != _container_of(context, granted):
        raise Forbidden(reason="The resource token is for another resource than the one that the request names.")
    is_reading = request.method in _READING_METHODS or is_query(request, parts)
    kind = parts[_CONTAINER_SEGMENTS] if len(parts) > _CONTAINER_SEGMENTS else ""
    if is_reading and kind in _READ_BY_ALL_KINDS:
        return
    if grant.is_read_only and not is_reading:
        raise Forbidden(reason="The resource token permits reading only, and the request is a write.")
    if len(granted) > _CONTAINER_SEGMENTS and parts[_CONTAINER_SEGMENTS:] != granted[_CONTAINER_SEGMENTS:]:
        raise Forbidden(reason="The resource token is for one resource of the container, and not for this one.")
    if grant.partition_key is not None:
        _check_key(context, request, grant, kind, parts, is_reading=is_reading)


def _container_of(context: Context, parts: list[str]) -> tuple[object, object] | None:
    """What tells a container from all others, by whichever names or ids a path calls it."""
    if len(parts) < _CONTAINER_SEGMENTS or parts[0] != "dbs" or parts[2] != "colls":
        return None
    try:
        database = context.store.database(context.account, parts[1])
        return database.rid, context.store.container(database, parts[3]).record.rid
    except ResourceNotFound:
        # One that is not there is still the same as itself: the handler then says that it is missing.
        return parts[1], parts[3]


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
    except ValueError:
        asked = None
    return asked if isinstance(asked, list) else None
