"""The operations of the door, one line each. A route is found by its method and the kinds of resources in its path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from asterism.apis.nosql import unavailable
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.errors import Refusal
from asterism.apis.nosql.items import change_feed, items, operations
from asterism.apis.nosql.resources import (
    account,
    conflicts,
    containers,
    databases,
    offers,
    pkranges,
)
from asterism.apis.nosql.resources.permissions import PERMISSIONS
from asterism.apis.nosql.resources.users import USERS
from asterism.apis.nosql.scripts import procedures
from asterism.apis.nosql.scripts.resources import FUNCTIONS, PROCEDURES, TRIGGERS, ScriptFeed
from asterism.apis.transports.http import Response

Handler = Callable[[Call], Awaitable[Response]]
# (method, number of segments, the kinds among them): ("GET", 6, "dbs/colls/docs").
RouteKey = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    # The name in metrics and logs; a handler of several operations at one address says which it is (`call.operation`).
    operation: str
    handler: Handler
    help: str
    # The type of the resource in the text that clients sign.
    resource_type: str = field(init=False)

    def __post_init__(self) -> None:
        kind = self.path.split("/")[::2][-1]
        # Deleting a partition key's items is an operation on the container, and signed as one.
        object.__setattr__(self, "resource_type", "colls" if kind == "operations" else kind)

    @property
    def key(self) -> RouteKey:
        return route_key(self.method, self.path.split("/"))


def route_key(method: str, parts: list[str]) -> RouteKey:
    return method, len(parts), "/".join(parts[::2])


# A name in a template is the name of a property of `Call`: {item} is `call.item_name`.
_DB: Final = "dbs/{database}"
_COLLS: Final = f"{_DB}/colls"
_COLL: Final = f"{_COLLS}/{{container}}"
_ITEMS: Final = f"{_COLL}/docs"
_ITEM: Final = f"{_ITEMS}/{{item}}"
_OPERATION: Final = f"{_COLL}/operations/{{operation}}"
_RANGES: Final = f"{_COLL}/pkranges"
_CONFLICTS: Final = f"{_COLL}/conflicts"
_CONFLICT: Final = f"{_CONFLICTS}/{{conflict}}"
_PROCEDURE: Final = f"{_COLL}/sprocs/{{script}}"
_USERS: Final = f"{_DB}/users"
_USER: Final = f"{_USERS}/{{user}}"
_GRANTS: Final = f"{_USER}/permissions"
_GRANT: Final = f"{_GRANTS}/{{permission}}"
_OFFER: Final = "offers/{offer}"


def _script_routes(feed: ScriptFeed) -> Iterator[Route]:
    path, kind, segment = f"{_COLL}/{feed.segment}", feed.kind, feed.segment
    script, single = f"{path}/{{script}}", segment.removesuffix("s")
    yield Route("GET", path, f"list_{segment}", feed.list_all, f"Each {kind} of a container, in pages.")
    yield Route("POST", path, f"create_{single}", feed.post, f"Create or upsert a {kind}, or query them.")
    yield Route("GET", script, f"read_{single}", feed.read, f"One {kind}.")
    yield Route("PUT", script, f"replace_{single}", feed.replace, f"Replace a {kind}.")
    yield Route("DELETE", script, f"delete_{single}", feed.delete, f"Delete a {kind}.")


ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "", "read_account", account.read_account, "The account: its consistency level and where to find it."),
    Route("GET", "dbs", "list_databases", databases.list_databases, "The databases, in pages."),
    Route("POST", "dbs", "create_database", databases.post_databases, "Create a database, or query the databases."),
    Route("GET", _DB, "read_database", databases.read_database, "One database."),
    Route("DELETE", _DB, "delete_database", databases.delete_database, "Delete a database with all it holds."),
    Route("GET", _COLLS, "list_containers", containers.list_containers, "The containers of a database, in pages."),
    Route("POST", _COLLS, "create_container", containers.post_containers, "Create a container, or query them."),
    Route("GET", _COLL, "read_container", containers.read_container, "One container, on request with its sizes."),
    Route("PUT", _COLL, "replace_container", containers.replace_container, "Replace a container's policies."),
    Route("DELETE", _COLL, "delete_container", containers.delete_container, "Delete a container with its items."),
    Route("GET", _ITEMS, "list_items", change_feed.read_items_or_changes, "The items of a container, or its changes."),
    Route("POST", _ITEMS, "create_item", items.post_items, "Create or upsert an item, query items, plan a query."),
    Route("GET", _ITEM, "read_item", items.read_item, "One item."),
    Route("PUT", _ITEM, "replace_item", items.replace_item, "Replace an item."),
    Route("PATCH", _ITEM, "patch_item", items.patch_item, "Change parts of an item, maybe on a condition."),
    Route("DELETE", _ITEM, "delete_item", items.delete_item, "Delete an item."),
    Route("POST", _OPERATION, "delete_partition_key", operations.post_operation, "Delete a partition key's items."),
    Route("GET", _RANGES, "list_ranges", pkranges.list_ranges, "The partitions, or their changes."),
    Route("GET", f"{_RANGES}/{{range}}", "read_range", pkranges.read_range, "One partition's range."),
    Route("GET", _CONFLICTS, "list_conflicts", conflicts.list_conflicts, "The conflicts: there never are any."),
    Route("POST", _CONFLICTS, "query_conflicts", conflicts.list_conflicts, "Query the conflicts."),
    Route("GET", _CONFLICT, "read_conflict", conflicts.find_conflict, "One conflict: does not exist."),
    Route("DELETE", _CONFLICT, "delete_conflict", conflicts.find_conflict, "Delete a conflict."),
    *_script_routes(PROCEDURES),
    Route("POST", _PROCEDURE, "execute_sproc", procedures.execute_procedure, "Run a stored procedure."),
    *_script_routes(TRIGGERS),
    *_script_routes(FUNCTIONS),
    Route("GET", _USERS, "list_users", USERS.list_all, "The users of a database, in pages."),
    Route("POST", _USERS, "create_user", USERS.post, "Create or upsert a user, or query them."),
    Route("GET", _USER, "read_user", USERS.read, "One user."),
    Route("PUT", _USER, "replace_user", USERS.replace, "Rename a user."),
    Route("DELETE", _USER, "delete_user", USERS.delete, "Delete a user with the user's permissions."),
    Route("GET", _GRANTS, "list_permissions", PERMISSIONS.list_all, "A user's permissions, with fresh tokens."),
    Route("POST", _GRANTS, "create_permission", PERMISSIONS.post, "Create, upsert or query permissions."),
    Route("GET", _GRANT, "read_permission", PERMISSIONS.read, "One permission, with a fresh token."),
    Route("PUT", _GRANT, "replace_permission", PERMISSIONS.replace, "Replace a permission."),
    Route("DELETE", _GRANT, "delete_permission", PERMISSIONS.delete, "Delete a permission."),
    Route("GET", "offers", "list_offers", offers.list_offers, "The throughput of everything that has its own."),
    Route("POST", "offers", "query_offers", offers.post_offers, "Query the offers."),
    Route("GET", _OFFER, "read_offer", offers.read_offer, "One offer, and whether it is in force already."),
    Route("PUT", _OFFER, "replace_offer", offers.replace_offer, "Change throughput."),
)

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")


def _refuser(words: str) -> Handler:
    async def refuse(call: Call) -> Response:  # noqa: ARG001
        raise Refusal(400, "BadRequest", words)

    return refuse


def _unavailable_routes() -> Iterator[Route]:
    for feed, words in unavailable.FEEDS:
        for path in (feed, f"{feed}/{{name}}"):
            for method in _METHODS:
                yield Route(method, path, "unavailable", _refuser(words), words)
    for method, path, words in unavailable.OPERATIONS:
        yield Route(method, path, "unavailable", _refuser(words), words)


UNAVAILABLE: Final[tuple[Route, ...]] = tuple(_unavailable_routes())

BY_KEY: Final[dict[RouteKey, Route]] = {route.key: route for route in (*UNAVAILABLE, *ROUTES)}
# The routes of single items, and of the feeds of items, by their methods, for paths that are known to be of one.
OF_ITEMS: Final[dict[str, Route]] = {route.method: route for route in ROUTES if route.path == _ITEM}
OF_FEEDS: Final[dict[str, Route]] = {route.method: route for route in ROUTES if route.path == _ITEMS}
_PATHS: Final = frozenset((count, kinds) for _, count, kinds in BY_KEY)


def refusal_for(method: str, parts: list[str]) -> Refusal:
    """Why no route was found: nothing lives at the path, or it does not know the method."""
    _, count, kinds = route_key(method, parts)
    if (count, kinds) in _PATHS:
        return Refusal(405, "MethodNotAllowed", f"The method {method[:16]} is not known at this path.")
    return Refusal(404, "NotFound", "There is nothing at this path.")
