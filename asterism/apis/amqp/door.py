"""The door for Service Bus and Event Hubs: AMQP over TCP and websockets, administration over HTTP, on each port."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from asterism.apis.amqp.accounts import NamespaceAccounts
from asterism.apis.amqp.administration.authorization import TokenChecker
from asterism.apis.amqp.administration.call import AdministrationServices
from asterism.apis.amqp.administration.config_entities import create_configured_entities
from asterism.apis.amqp.administration.door import AdministrationDoor
from asterism.apis.amqp.administration.operations import BusAdministration
from asterism.apis.amqp.administration.validation import Validator
from asterism.apis.amqp.bus.nodes import BusNodes
from asterism.apis.amqp.engine.serve import Engine
from asterism.apis.amqp.errors import words
from asterism.apis.amqp.host import MessagingHost
from asterism.apis.amqp.hubs.nodes import HubNodes
from asterism.apis.amqp.metering import NodeMeter
from asterism.apis.amqp.web_pages import page_refusal
from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.transports.http import BodyRefused, Request, Response
from asterism.apis.transports.tcp import ByteStream
from asterism.apis.transports.websocket import WebSocket, WebSocketStream
from asterism.models.namespaces.authorization import AuthorizationRules

if TYPE_CHECKING:
    from asterism.apis.amqp.settings import MessagingSettings
    from asterism.apis.services import DoorServices

# .NET writes a slash behind it.
_WEBSOCKET_PATH: Final = "/$servicebus/websocket"
# Clients of Python and JavaScript refuse an answer without it [A11].
_SUBPROTOCOL: Final = "AMQPWSB10"


class AmqpDoor:
    """Answers at a port, whatever a client speaks there."""

    def __init__(
        self,
        engine: Engine,
        administration: AdministrationDoor,
        guard: BrowserGuard,
        is_public: Callable[[str], bool],
        connections_max: int,
    ) -> None:
        """`is_public` tells of a host name if a key of its namespace is printed in documentation."""
        self._engine = engine
        self._administration = administration
        self._guard = guard
        self._is_public = is_public
        self._connections_max = connections_max

    async def serve(self, stream: ByteStream) -> None:
        # Clients try again after some seconds when they are closed without a word.
        if self._engine.counters.connections < self._connections_max:
            await self._engine.serve(stream)

    async def serve_websocket(self, socket: WebSocket) -> None:
        if socket.path.rstrip("/") != _WEBSOCKET_PATH:
            await socket.refuse(404)
            return
        authority = socket.headers.get("host") or ""
        reason = page_refusal(self._guard, socket.headers, authority) if self._is_public(authority) else None
        if reason is not None:
            await socket.refuse(403, reason.encode())
            return
        if _SUBPROTOCOL not in socket.offered_subprotocols:
            await socket.refuse(400, f"Offer the subprotocol {_SUBPROTOCOL}.".encode())
            return
        await socket.accept(subprotocol=_SUBPROTOCOL)
        await AmqpDoor.serve(self, WebSocketStream(socket))

    async def answer(self, request: Request) -> Response:
        return await self._administration.answer(request)

    def word_refusal(self, refused: BodyRefused, request: Request) -> Response:
        return self._administration.word_refusal(refused, request)


class TlsOnlyDoor(AmqpDoor):
    """The same for a port whose clients have to use TLS."""

    async def serve(self, stream: ByteStream) -> None:
        if stream.is_tls:
            await super().serve(stream)

    async def serve_websocket(self, socket: WebSocket) -> None:
        if socket.scheme not in ("https", "wss"):
            await socket.refuse(403, b"Use TLS at this port.")
            return
        await super().serve_websocket(socket)


class _Parts:
    """Everything that the ports of the door share. One per process."""

    def __init__(self, services: DoorServices, settings: MessagingSettings) -> None:
        self.accounts = NamespaceAccounts(settings.namespaces, services.documents.catalog.accounts)
        self.rules = AuthorizationRules(services.messages.namespaces, self.accounts.keys_of)
        services.event_logs.services.limits = settings.hub_limits()
        validator = Validator(settings, services.messages.services.compile_rules)
        self.administration = AdministrationServices(
            BusAdministration(services.messages, validator, services.clock),
            services.event_logs,
            self.rules,
            services.random_bytes,
        )
        self._takes_unsigned = settings.unsigned_tokens

    def takes_directory_tokens(self, namespace: str) -> bool:
        """Return whether a namespace takes tokens whose signature cannot be checked. Where a key is printed in
        documentation, a signature would prove nothing."""
        return self._takes_unsigned or self.accounts.is_public(namespace)


def make_doors(services: DoorServices, settings: MessagingSettings) -> Mapping[str, AmqpDoor]:
    """Build the door of each port, by its name."""
    parts = _Parts(services, settings)
    host = MessagingHost(
        HubNodes(services.event_logs),
        BusNodes(services.messages, settings.bus_limits(), services.random_bytes),
        parts.rules,
        default_namespace=parts.accounts.default,
        takes_directory_tokens=parts.takes_directory_tokens,
        meter=NodeMeter(services.meter.counts.of_door("amqp"), services.clock.monotonic_seconds),
    )
    administration = AdministrationDoor(
        parts.administration,
        tokens=TokenChecker(parts.rules, services.clock, parts.takes_directory_tokens),
        namespace_of=host.namespace_of,
        is_public=parts.accounts.is_public,
        guard=services.guard,
        meter=services.meter,
        new_request_id=services.new_request_id,
    )
    engine = Engine(host, words=words, clock=services.clock, settings=settings.engine_settings())

    # A websocket that is opened from a web page has the namespace of its host name, as other requests have.
    def is_public(hostname: str) -> bool:
        return parts.accounts.is_public(host.namespace_of(hostname))

    shared = (engine, administration, services.guard, is_public, settings.messaging_connections_max)
    door = AmqpDoor(*shared)
    return {"amqp": door, "amqps": TlsOnlyDoor(*shared), "messaging": door}


async def create_configured(services: DoorServices, settings: MessagingSettings) -> Sequence[str]:
    """Create the entities of the file that the settings name, and return counts for the operator."""
    if settings.messaging_config is None:
        return ()
    parts = _Parts(services, settings)
    return await create_configured_entities(
        settings.messaging_config, parts.administration, default_namespace=parts.accounts.default
    )
