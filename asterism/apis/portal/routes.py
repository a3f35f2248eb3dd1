"""The pages of the portal and what they send, a line each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from asterism.apis.portal.call import Portal, PortalCall
from asterism.apis.portal.pages import collections, graphs, home, messaging, proxy, signing
from asterism.apis.transports.http import Response

Handler = Callable[[Portal, PortalCall], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    # `{name}` stands for one segment, `{name*}` for the rest of the path.
    pattern: str
    operation: str
    handle: Handler
    help: str
    needs_session: bool = True


def _tab(name: str) -> Handler:
    return partial(collections.show_tab, tab=name)


ROUTES: Final = (
    Route("GET", "/", "home", home.show_home, "Doors, accounts, databases, containers, tables, jobs, nodes."),
    Route("GET", "/sign-in", "sign_in_page", signing.show_sign_in, "Asks for an account key.", needs_session=False),
    Route("POST", "/sign-out", "sign_out", signing.sign_out, "Ends the session."),
    Route(
        "GET",
        "/c/{account}/{database}/{container}",
        "partitions",
        _tab("partitions"),
        "The partitions of a container: line, sizes, load, history, verdict.",
    ),
    Route("GET", "/c/{account}/{database}/{container}/items", "items", _tab("items"), "Items and queries."),
    Route("GET", "/c/{account}/{database}/{container}/graph", "graph", graphs.show_graph, "Traversals of a graph."),
    Route("GET", "/c/{account}/{database}/{container}/scripts", "scripts", _tab("scripts"), "Scripts."),
    Route(
        "GET",
        "/c/{account}/{database}/{container}/settings",
        "settings",
        _tab("settings"),
        "Throughput, indexing policy, time to live, deletion.",
    ),
    Route("GET", "/c/{account}/{database}/{container}/feed", "feed", _tab("feed"), "The change feed as it grows."),
    Route("GET", "/t/{account}/{table}", "table_partitions", _tab("partitions"), "The ranges of a table."),
    Route("GET", "/t/{account}/{table}/entities", "entities", _tab("entities"), "Entities of a table."),
    Route("GET", "/t/{account}/{table}/settings", "table_settings", _tab("settings"), "Deletion of a table."),
    Route("GET", "/b/{account}/{blobs}", "blob_partitions", _tab("partitions"), "The ranges of a container of blobs."),
    Route("GET", "/q/{account}", "queue_partitions", _tab("partitions"), "The ranges of an account's queues."),
    Route(
        "GET", "/h/{namespace}/{hub}", "hub", messaging.show_hub, "The partitions of a hub, and the lag of its readers."
    ),
    Route(
        "GET",
        "/m/{namespace}/{entity*}",
        "messages",
        messaging.show_entity,
        "A queue, a topic or a subscription: fragments, messages, dead letters.",
    ),
    Route("GET", "/compare", "compare", collections.show_comparison, "Two containers side by side."),
    *(
        Route(method, "/api/{account}/{target}/{rest*}", f"api_{method.lower()}", proxy.forward, "A request to a door.")
        for method in ("GET", "POST", "PUT", "PATCH", "MERGE", "DELETE")
    ),
)


def find_route(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """Return the route of a request, and the parts of the path that its pattern names."""
    for route in ROUTES:
        if route.method == ("GET" if method == "HEAD" and route.method == "GET" else method):
            parts = match_path(route.pattern, path)
            if parts is not None:
                return route, parts
    return None


def match_path(pattern: str, path: str) -> dict[str, str] | None:
    wanted = pattern.split("/")
    if wanted[-1].endswith("*}"):
        given = path.split("/", len(wanted) - 1)
    else:
        given = path.split("/") if path == "/" else path.rstrip("/").split("/")
    if len(wanted) != len(given):
        return None
    parts: dict[str, str] = {}
    for name, text in zip(wanted, given, strict=True):
        if name.startswith("{"):
            if not text and not name.endswith("*}"):
                return None
            parts[name.strip("{*}")] = text
        elif name != text:
            return None
    return parts
