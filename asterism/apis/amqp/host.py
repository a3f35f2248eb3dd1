"""The nodes of one server: hubs and the bus behind one table of addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence

from asterism.apis.amqp.bus.addresses import is_management, managed_path
from asterism.apis.amqp.bus.nodes import BusNodes
from asterism.apis.amqp.hubs.nodes import HubNodes
from asterism.apis.amqp.metering import NodeMeter
from asterism.apis.amqp.nodes import (
    Attach,
    Intake,
    NodeReply,
    NodeRequest,
    OutgoingLink,
    Outlet,
    Right,
)
from asterism.models.namespaces.authorization import AuthorizationRules


class MessagingHost:
    """Everything that clients of one server can attach to; a `NodeHost`.

    Queues, topics and hubs of a namespace share their names, so the first look-up that finds a path decides.
    """

    def __init__(
        self,
        hubs: HubNodes,
        bus: BusNodes,
        rules: AuthorizationRules,
        *,
        default_namespace: str,
        takes_directory_tokens: Callable[[str], bool],
        meter: NodeMeter,
    ) -> None:
        self._hubs = hubs
        self._bus = bus
        self._rules = rules
        self._default_namespace = default_namespace
        self.takes_directory_tokens = takes_directory_tokens
        self._meter = meter

    def namespace_of(self, hostname: str | None) -> str:
        label = (hostname or "").partition(":")[0].partition(".")[0].lower()
        if not label or _is_address(hostname) or not self._rules.is_namespace(label):
            return self._default_namespace
        return label

    async def open_intake(self, attach: Attach) -> Intake:
        is_hub = await self._is_hub(attach.peer.namespace, attach.address)
        return self._meter.intake(await (self._hubs if is_hub else self._bus).open_intake(attach))

    async def open_coordinator(self, attach: Attach) -> Intake:
        return self._meter.intake(await self._bus.open_coordinator(attach))

    async def open_outlet(self, attach: Attach, link: OutgoingLink) -> Outlet:
        is_hub = await self._is_hub(attach.peer.namespace, attach.address)
        return self._meter.outlet(await (self._hubs if is_hub else self._bus).open_outlet(attach, link))

    def answers_requests(self, address: str) -> bool:
        return is_management(address)

    async def answer(self, request: NodeRequest) -> NodeReply:
        # The node of the namespace is about hubs.
        path = managed_path(request.address)
        is_hub = not path or await self._is_hub(request.peer.namespace, path)
        return await self._meter.reply((self._hubs if is_hub else self._bus).answer(request))

    async def check_audience(self, namespace: str, path: str) -> bool:
        path = managed_path(path) if is_management(path) else path
        if not path.strip("/"):
            return True
        return await self._is_hub(namespace, path) or self._bus.exists(namespace, path)

    async def keys_for(self, namespace: str, path: str) -> Mapping[str, tuple[Sequence[str], frozenset[Right]]]:
        found = await self._rules.applying_to(namespace, path)
        return {name: (rule.keys, frozenset(map(Right, rule.rights))) for name, rule in found.items()}

    async def _is_hub(self, namespace: str, path: str) -> bool:
        """Return whether a path is of a hub. One that is of nothing may have been created by another process."""
        if self._hubs.owns(namespace, path):
            return True
        if self._bus.exists(namespace, path):
            return False
        await self._bus.store.namespaces.catch_up()
        return self._hubs.owns(namespace, path)


def _is_address(hostname: str | None) -> bool:
    try:
        ipaddress.ip_address((hostname or "").strip("[]"))
    except ValueError:
        return False
    return True
