"""Operations on collections of MongoDB through this door, a line each: reading. All others are refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from asterism.access.resource_token import ResourceGrant
from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.collections import items, resources
from asterism.apis.nosql.context import check_common_headers, read_only_words
from asterism.apis.nosql.errors import Refusal
from asterism.apis.nosql.headers import is_true
from asterism.apis.nosql.token_scope import check_token_scope
from asterism.apis.transports.http import Response
from asterism.errors import AsterismError, Forbidden, ResourceNotFound

Handler = Callable[[Call], Awaitable[Response]]

# A path to a container has four segments.
_CONTAINER_SEGMENTS: Final = 4

# By the name of the route that the path has for containers.
HANDLERS: Final[dict[str, Handler]] = {
    "read_database": resources.read_database,
    "list_containers": resources.list_containers,
    "create_container": resources.list_containers,
    "read_container": resources.read_container,
    "list_ranges": resources.list_ranges,
    "read_range": resources.read_range,
    "list_items": items.list_items,
    "create_item": items.post_items,
    "read_item": items.read_item,
    "list_sprocs": resources.empty_feed("StoredProcedures"),
    "create_sproc": resources.empty_feed("StoredProcedures"),
    "list_triggers": resources.empty_feed("Triggers"),
    "create_trigger": resources.empty_feed("Triggers"),
    "list_udfs": resources.empty_feed("UserDefinedFunctions"),
    "create_udf": resources.empty_feed("UserDefinedFunctions"),
    "list_conflicts": resources.empty_feed("Conflicts"),
    "query_conflicts": resources.empty_feed("Conflicts"),
    "list_users": resources.empty_feed("Users"),
    "create_user": resources.empty_feed("Users"),
}
# Reads of things that a collection never has.
_ABSENT: Final = frozenset({"read_sproc", "read_trigger", "read_udf", "read_conflict", "read_user"})


async def answer_for_collections(
    call: Call, route: str, grant: ResourceGrant | None, missing: AsterismError
) -> Response:
    """Answer a request whose database or container does not exist, if it names a collection; raise `missing` if not."""
    if not resources.is_collections(call):
        raise missing
    if grant is not None:
        await _check_grant(call, grant)
    check_common_headers(call.request.headers)
    if route in _ABSENT:
        raise ResourceNotFound(kind="script", name=call.parts[-1])
    handler = HANDLERS.get(route)
    if handler is None or (call.request.method == "POST" and not _is_query(call)):
        raise Refusal(403, "Forbidden", read_only_words(call.context.mongo_address()))
    return await handler(call)


def _is_query(call: Call) -> bool:
    given = call.request.headers
    is_plan = call.parts[-1] == "docs" and is_true(given.get(headers.IS_QUERY_PLAN))
    return is_plan or is_true(given.get(headers.IS_QUERY))


async def _check_grant(call: Call, grant: ResourceGrant) -> None:
    """Refuse tokens for less than a collection: their scopes are those of containers."""
    if grant.partition_key is not None or len(grant.resource.strip("/").split("/")) != _CONTAINER_SEGMENTS:
        raise Forbidden(reason="A resource token for a MongoDB collection must be for the whole collection.")
    await check_token_scope(call, grant)
