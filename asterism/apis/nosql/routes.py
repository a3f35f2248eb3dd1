"""What the door can do, one line each. A route is found by its method and the kinds of resources in its path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final

from asterism.apis.http import Request, Response
from asterism.apis.nosql import (
    account,
    change_feed,
    conflicts,
    containers,
    databases,
    items,
    offers,
    operations,
    permissions,
    pkranges,
    procedures,
    unavailable,
    users,
)
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.errors import Refusal
from asterism.apis.nosql.scripts import FUNCTIONS, PROCEDURES, TRIGGERS, ScriptFeed

Handler = Callable[[Context, Request, list[str]], Awaitable[Response]]
# (method, number of segments, the kinds among them): ("GET", 6, "dbs/colls/docs").
RouteKey = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    # What requests sign as the type of the resource.
    resource_type: str
    handler: Handler
    help: str

    @property
    def key(self) -> RouteKey:
        return route_key(self.method, self.path.split("/"))


def route_key(method: str, parts: list[str]) -> RouteKey:
    return method, len(parts), "/".join(parts[::2])


_DB: Final = "dbs/{database}"
_COLL: Final = "dbs/{database}/colls/{container}"
_ITEM: Final = "dbs/{database}/colls/{container}/docs/{item}"
_USER: Final = "dbs/{database}/users/{user}"
_GRANTS: Final = f"{_USER}/permissions"
_GRANT: Final = f"{_GRANTS}/{{permission}}"


def _script_routes(feed: ScriptFeed) -> Iterator[Route]:
    path, one = f"{_COLL}/{feed.segment}", f"{_COLL}/{feed.segment}/{{script}}"
    yield Route("GET", path, feed.segment, feed.list_scripts, f"Each {feed.kind} of a container, in pages.")
    yield Route("POST", path, feed.segment, feed.post_scripts, f"Create or upsert a {feed.kind}, or query them.")
    yield Route("GET", one, feed.segment, feed.read_script, f"One {feed.kind}.")
    yield Route("PUT", one, feed.segment, feed.replace_script, f"Replace a {feed.kind}.")
    yield Route("DELETE", one, feed.segment, feed.delete_script, f"Delete a {feed.kind}.")


ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "", "", account.read_account, "The account: its consistency level and where to find it."),
    Route("GET", "dbs", "dbs", databases.list_databases, "The databases, in pages."),
    Route("POST", "dbs", "dbs", databases.post_databases, "Create a database, or query the databases."),
    Route("GET", _DB, "dbs", databases.read_database, "One database."),
    Route("DELETE", _DB, "dbs", databases.delete_database, "Delete a database with all it holds."),
    Route("GET", f"{_DB}/colls", "colls", containers.list_containers, "The containers of a database, in pages."),
    Route("POST", f"{_DB}/colls", "colls", containers.post_containers, "Create a container, or query them."),
    Route("GET", _COLL, "colls", containers.read_container, "One container, on request with its sizes."),
    Route("PUT", _COLL, "colls", containers.replace_container, "Replace a container's policies."),
    Route("DELETE", _COLL, "colls", containers.delete_container, "Delete a container with its items."),
    Route(
        "GET", f"{_COLL}/docs", "docs", change_feed.read_items_or_changes, "The items of a container, or what changed."
    ),
    Route("POST", f"{_COLL}/docs", "docs", items.post_items, "Create or upsert an item, query items, plan a query."),
    Route("GET", _ITEM, "docs", items.read_item, "One item."),
    Route("PUT", _ITEM, "docs", items.replace_item, "Replace an item."),
    Route("PATCH", _ITEM, "docs", items.patch_item, "Change parts of an item, maybe on a condition."),
    Route("DELETE", _ITEM, "docs", items.delete_item, "Delete an item."),
    Route(
        "POST", f"{_COLL}/operations/{{name}}", "colls", operations.post_operation, "Delete a partition key's items."
    ),
    Route("GET", f"{_COLL}/pkranges", "pkranges", pkranges.list_ranges, "The partitions, or what changed of them."),
    Route("GET", f"{_COLL}/pkranges/{{range}}", "pkranges", pkranges.read_range, "One partition's range."),
    Route("GET", f"{_COLL}/conflicts", "conflicts", conflicts.list_conflicts, "The conflicts: there never are any."),
    Route("POST", f"{_COLL}/conflicts", "conflicts", conflicts.list_conflicts, "Query the conflicts."),
    Route("GET", f"{_COLL}/conflicts/{{one}}", "conflicts", conflicts.find_conflict, "One conflict: not there."),
    Route("DELETE", f"{_COLL}/conflicts/{{one}}", "conflicts", conflicts.find_conflict, "Delete a conflict."),
    *_script_routes(PROCEDURES),
    Route("POST", f"{_COLL}/sprocs/{{script}}", "sprocs", procedures.execute_procedure, "Run a stored procedure."),
    *_script_routes(TRIGGERS),
    *_script_routes(FUNCTIONS),
    Route("GET", f"{_DB}/users", "users", users.list_users, "The users of a database, in pages."),
    Route("POST", f"{_DB}/users", "users", users.post_users, "Create or upsert a user, or query them."),
    Route("GET", _USER, "users", users.read_user, "One user."),
    Route("PUT", _USER, "users", users.replace_user, "Rename a user."),
    Route("DELETE", _USER, "users", users.delete_user, "Delete a user with the user's permissions."),
    Route("GET", _GRANTS, "permissions", permissions.list_permissions, "A user's permissions, with fresh tokens."),
    Route("POST", _GRANTS, "permissions", permissions.post_permissions, "Create, upsert or query permissions."),
    Route("GET", _GRANT, "permissions", permissions.read_permission, "One permission, with a fresh token."),
    Route("PUT", _GRANT, "permissions", permissions.replace_permission, "Replace a permission."),
    Route("DELETE", _GRANT, "permissions", permissions.delete_permission, "Delete a permission."),
    Route("GET", "offers", "offers", offers.list_offers, "The throughput of everything that has its own."),
    Route("POST", "offers", "offers", offers.post_offers, "Query the offers."),
    Route("GET", "offers/{offer}", "offers", offers.read_offer, "One offer, and whether it is in force already."),
    Route("PUT", "offers/{offer}", "offers", offers.replace_offer, "Change throughput."),
)

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")


def _refuser(words: str) -> Handler:
    async def refuse(context: Context, request: Request, parts: list[str]) -> Response:  # noqa: ARG001
        raise Refusal(400, "BadRequest", words)

    return refuse


def _unavailable_routes() -> Iterator[Route]:
    for feed, words in unavailable.FEEDS:
        resource_type = feed.rpartition("/")[2]
        for path in (feed, f"{feed}/{{one}}"):
            for method in _METHODS:
                yield Route(method, path, resource_type, _refuser(words), words)
    for method, path, resource_type, words in unavailable.OPERATIONS:
        yield Route(method, path, resource_type, _refuser(words), words)


UNAVAILABLE: Final[tuple[Route, ...]] = tuple(_unavailable_routes())

BY_KEY: Final[dict[RouteKey, Route]] = {route.key: route for route in (*UNAVAILABLE, *ROUTES)}
_PATHS: Final = frozenset((count, kinds) for _, count, kinds in BY_KEY)


def refusal_for(method: str, parts: list[str]) -> Refusal:
    """Why no route was found: nothing lives at the path, or it does not know the method."""
    _, count, kinds = route_key(method, parts)
    if (count, kinds) in _PATHS:
        return Refusal(405, "MethodNotAllowed", f"The method {method[:16]} is not known at this path.")
    return Refusal(404, "NotFound", "There is nothing at this path.")
