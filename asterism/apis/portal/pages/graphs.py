"""The page of a graph: traversals, drawn."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.portal.call import Portal, PortalCall
from asterism.apis.portal.graph_keys import can_be_graph, is_key_of_graph, key_property
from asterism.apis.portal.pages.collections import collection_of, facts_of, has_graphs
from asterism.apis.transports.http import Response
from asterism.errors import MalformedRequest

_NO_GRAPH: Final = (
    "This container cannot be a graph: a graph is divided by one property, which is neither the id nor the label, "
    "and is not computed. Create a container with a partition key such as /pk, or run `asterism graphs create`."
)
# Names of other graphs that the page offers; the first page finds the rest.
_OTHERS_MAX: Final = 100


async def show_graph(portal: Portal, call: PortalCall) -> Response:
    collection = collection_of(call.parts)
    facts = await facts_of(portal, call, collection)
    key = facts["partition_key"]
    if facts["kind"] != "container" or not is_key_of_graph(key):
        raise MalformedRequest(reason=_NO_GRAPH)
    context = call.context(
        collection=collection,
        tab="graph",
        partition_key=key,
        key_words=facts["synthetic_key_words"],
        key_property=key_property(key),
        has_graph=True,
        is_served=has_graphs(portal, key),
        others=await _other_graphs(portal, call, collection),
    )
    return portal.renderer.page("graph.html", context)


async def _other_graphs(portal: Portal, call: PortalCall, shown: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the containers of the account, each with its page."""
    overview = await portal.client.admin(
        call.visitor, "overview", owner=shown["account"], search="", offset="0", limit=str(_OTHERS_MAX), sort="name"
    )
    return [
        {"title": f"{row['database']} / {row['name']}", "page": f"/c/{row['account']}/{row['database']}/{row['name']}"}
        for row in overview["collections"]
        if row["kind"] == "container" and row["account"] == shown["account"] and can_be_graph(row["partition_key"])
    ]
