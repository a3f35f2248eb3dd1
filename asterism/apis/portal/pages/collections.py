"""The pages of a container, a table or queues. A page names its collection; its script fetches and draws the rest."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.portal.call import Portal, PortalCall
from asterism.apis.portal.graph_keys import is_key_of_graph
from asterism.apis.transports.http import Response
from asterism.errors import MalformedRequest, ResourceNotFound

# The kind of collections of MongoDB, and their pages.
_MONGO: Final = "collection"
_MONGO_TABS: Final = ("partitions", "items")


async def show_tab(portal: Portal, call: PortalCall, *, tab: str) -> Response:
    """Show a page of a collection; `tab` names its template."""
    collection = collection_of(call.parts)
    partitions = await facts_of(portal, call, collection)
    key = partitions["partition_key"]
    is_mongo = partitions["kind"] == _MONGO
    if is_mongo:
        collection["kind"] = _MONGO
        if tab == "settings":
            return await _show_indexes(portal, call, collection, key)
        if tab not in _MONGO_TABS:
            raise ResourceNotFound(kind="page", name=tab)
        if key.get("systemKey"):
            # A collection without a shard key: there is nothing to choose its documents by.
            key = {**key, "paths": []}
    # Documents of MongoDB are changed by its own clients.
    is_read_only = is_mongo and tab == "items"
    context = call.context(
        collection=collection,
        tab=tab,
        partition_key=key,
        key_words=partitions["synthetic_key_words"],
        has_graph=not is_mongo and has_graphs(portal, key),
        is_read_only=is_read_only,
        may_change_items=call.visitor.may_change and not is_read_only,
    )
    return portal.renderer.page(f"{tab}.html", context)


async def _show_indexes(portal: Portal, call: PortalCall, collection: dict[str, Any], key: Any) -> Response:
    """Show the indexes and options of a collection of MongoDB."""
    found = await portal.client.admin(call.visitor, "collections", owner=collection["account"], **collection["names"])
    (facts,) = found["collections"]
    context = call.context(collection=collection, tab="settings", partition_key=key, has_graph=False, facts=facts)
    return portal.renderer.page("collection_settings.html", context)


async def show_comparison(portal: Portal, call: PortalCall) -> Response:
    """Show two collections side by side: `left` and `right`, each ACCOUNT/DATABASE/CONTAINER or ACCOUNT/TABLE."""
    sides = [_collection_of_text(call.parameter(side)) for side in ("left", "right")]
    for side in sides:
        await facts_of(portal, call, side)
    return portal.renderer.page("compare.html", call.context(sides=sides))


def has_graphs(portal: Portal, key: dict[str, Any]) -> bool:
    """Return True if a container with this partition key has a page of its graph."""
    return "gremlin" in portal.peers.doors and is_key_of_graph(key)


async def facts_of(portal: Portal, call: PortalCall, collection: dict[str, Any]) -> Any:
    """Return the partitions without their details; a collection that does not exist is refused by the door."""
    return await portal.client.admin(
        call.visitor, "partitions", owner=collection["account"], details="false", **collection["names"]
    )


def collection_of(parts: dict[str, str]) -> dict[str, Any]:
    """Return the collection as templates and scripts need it: what it is, its page, and how the doors name it."""
    account = parts["account"]
    if "table" in parts:
        table = parts["table"]
        return {
            "kind": "table",
            "account": account,
            "name": table,
            "page": f"/t/{account}/{table}",
            # `account` is a parameter of the route for tables.
            "names": {"account": account, "table": table},
            "title": table,
        }
    if "blobs" in parts:
        container = parts["blobs"]
        return {
            "kind": "container of blobs",
            "account": account,
            "name": container,
            "page": f"/b/{account}/{container}",
            "names": {"account": account, "blob": container},
            "title": container,
        }
    if "database" not in parts:
        return {
            "kind": "queues",
            "account": account,
            "name": "queues",
            "page": f"/q/{account}",
            # The queues of an account share their partitions.
            "names": {"account": account, "queue": "*"},
            "title": f"queues of {account}",
        }
    database, container = parts["database"], parts["container"]
    return {
        "kind": "container",
        "account": account,
        "database": database,
        "name": container,
        "page": f"/c/{account}/{database}/{container}",
        "names": {"database": database, "container": container},
        "title": f"{database} / {container}",
    }


def _collection_of_text(text: str) -> dict[str, Any]:
    parts = text.split("/")
    if len(parts) == 2 and all(parts):
        return collection_of({"account": parts[0], "table": parts[1]})
    if len(parts) == 3 and all(parts):
        return collection_of(dict(zip(("account", "database", "container"), parts, strict=True)))
    raise MalformedRequest(
        reason="Name the two sides as left=ACCOUNT/DATABASE/CONTAINER and right=ACCOUNT/DATABASE/CONTAINER."
    )
