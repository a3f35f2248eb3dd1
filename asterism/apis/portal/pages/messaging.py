"""The pages of a hub, and of a queue, a topic or a subscription. Their scripts fetch and draw the rest."""

from __future__ import annotations

from urllib.parse import quote

from asterism.apis.portal.call import Portal, PortalCall
from asterism.apis.transports.http import Response


async def show_hub(portal: Portal, call: PortalCall) -> Response:
    """Show the partitions of a hub and the lag of its consumer groups."""
    namespace, hub = call.parts["namespace"], call.parts["hub"]
    found = await portal.client.admin(call.visitor, "messaging/hub", namespace=namespace, hub=hub, limit="1")
    subject = {"namespace": namespace, "path": found["path"], "kind": "hub", "page": hub_page(namespace, found["path"])}
    context = call.context(subject=subject, found=found)
    return portal.renderer.page("messaging_hub.html", context)


async def show_entity(portal: Portal, call: PortalCall) -> Response:
    """Show a queue, a topic or a subscription: its messages, dead letters and fragments."""
    namespace, path = call.parts["namespace"], call.parts["entity"]
    found = await portal.client.admin(
        call.visitor, "messaging/entity", namespace=namespace, entity=path, subscriptions="0"
    )
    topic = found["path"].rpartition("/subscriptions/")[0] if found["kind"] == "subscription" else None
    subject = {
        "namespace": namespace,
        "path": found["path"],
        "kind": found["kind"],
        "page": entity_page(namespace, found["path"]),
        "topic": topic,
        "topic_page": None if topic is None else entity_page(namespace, topic),
    }
    return portal.renderer.page("messaging_entity.html", call.context(subject=subject, found=found))


def hub_page(namespace: str, name: str) -> str:
    return f"/h/{quote(namespace, safe='')}/{quote(name, safe='')}"


def entity_page(namespace: str, path: str) -> str:
    return f"/m/{quote(namespace, safe='')}/{quote(path)}"
