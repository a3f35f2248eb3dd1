"""The door for administration on the engine in memory, and requests to it."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from urllib.parse import quote_plus
from xml.etree import ElementTree

from asterism.apis.amqp.administration.authorization import TokenChecker
from asterism.apis.amqp.administration.call import AdministrationServices
from asterism.apis.amqp.administration.door import AdministrationDoor
from asterism.apis.amqp.administration.operations import BusAdministration
from asterism.apis.amqp.administration.validation import Validator
from asterism.apis.amqp.settings import MessagingSettings
from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.pipeline import RequestMeter
from asterism.apis.transports.http import Request, Response
from asterism.clock import SYSTEM_CLOCK
from asterism.languages.bus_sql.rules import RuleCompiler
from asterism.models.messages.store import MessageStore
from asterism.models.namespaces.authorization import AuthorizationRules
from tests.support.event_logs import store_of as hub_store_of
from tests.support.world import open_world

NAMESPACE = "asterism"
KEY = "SAS_KEY_VALUE"
HOST = "asterism.servicebus.windows.net"
ROOT = "RootManageSharedAccessKey"
CONNECT = "{http://schemas.microsoft.com/netservices/2010/10/servicebus/connect}"
_ENTRY = (
    '<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><{name} xmlns:i="http://www.w3.org/2001/'
    'XMLSchema-instance" xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">{inner}</{name}>'
    "</content></entry>"
)


def random_bytes(count: int) -> bytes:
    return bytes(range(count))


def signature(uri: str = f"https://{HOST}", *, rule: str = ROOT, key: str = KEY, expires: int = 4_000_000_000) -> str:
    """Return a shared access signature for everything below an address."""
    digest = hmac.digest(key.encode(), f"{quote_plus(uri)}\n{expires}".encode(), "sha256")
    return (
        f"SharedAccessSignature sr={quote_plus(uri)}&sig={quote_plus(base64.b64encode(digest))}&se={expires}&skn={rule}"
    )


def bearer(**claims: Any) -> str:
    """Return a token without a signature."""
    parts = ({"alg": "none"}, {"aud": "https://servicebus.azure.net/", "exp": 4_000_000_000, **claims})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return f"Bearer {'.'.join(encoded)}."


def entry(name: str, **properties: object) -> bytes:
    """Return an entry with a description of plain elements."""
    return entry_of(name, "".join(f"<{key}>{value}</{key}>" for key, value in properties.items()))


def entry_of(name: str, inner: str) -> bytes:
    return _ENTRY.format(name=name, inner=inner).encode()


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def xml(self) -> ElementTree.Element:
        return ElementTree.fromstring(self.body)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def detail(self) -> str:
        """The text of an error, without the name of the request."""
        assert self.xml.findtext("Code") == str(self.status)
        return (self.xml.findtext("Detail") or "").partition(" TrackingId:")[0]

    def text(self, name: str) -> str | None:
        """The text of an element of the description."""
        found = self.xml.find(f".//{CONNECT}{name}")
        return None if found is None else found.text or ""

    @property
    def titles(self) -> list[str | None]:
        return [each.text for each in self.xml.findall("{*}entry/{*}title")]


class DoorAtHand:
    def __init__(self, services: AdministrationServices, *, is_public: bool) -> None:
        self.services = services
        numbers = count()
        self.door = AdministrationDoor(
            services,
            tokens=TokenChecker(services.rules, SYSTEM_CLOCK, lambda _: is_public),
            namespace_of=lambda _: NAMESPACE,
            is_public=lambda _: is_public,
            guard=BrowserGuard(),
            meter=RequestMeter(SYSTEM_CLOCK.monotonic_seconds),
            new_request_id=lambda: f"request-{next(numbers)}",
        )

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        query: str = "api-version=2024-05",
        authorization: str | None = "",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request, signed with the key of the namespace unless another authorization, or None, is given."""
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        if authorization is not None:
            sent["authorization"] = authorization or signature()
        response = await self.door.answer(
            Request(method, f"/{path}", query, sent, body, "https", f"{HOST}:5300", client_address="127.0.0.1:1")
        )
        assert isinstance(response, Response)
        return Reply(response.status, dict(response.headers), response.body)

    async def update(self, path: str, body: bytes, **more: Any) -> Reply:
        return await self.send("PUT", path, body, headers={"If-Match": "*"}, **more)

    async def arm(self, method: str, resource: str, properties: Any = None, **more: Any) -> Reply:
        """Send a request in the form of the resource manager."""
        provider = "Microsoft.EventHub" if resource.startswith("eventhubs") else "Microsoft.ServiceBus"
        path = f"subscriptions/0/resourceGroups/rg/providers/{provider}/namespaces/{NAMESPACE}/{resource}"
        body = b"" if properties is None else json.dumps({"properties": properties}).encode()
        return await self.send(method, path.rstrip("/"), more.pop("body", body), **more)


@asynccontextmanager
async def open_door(*, is_public: bool = True, **settings: Any) -> AsyncIterator[DoorAtHand]:
    async with open_world(None) as world:
        limits = replace(MessagingSettings(), **settings)
        hubs = hub_store_of(world, SYSTEM_CLOCK)
        compile_rules = RuleCompiler(random_bytes)
        messages = MessageStore(hubs.namespaces, world.router, SYSTEM_CLOCK, random_bytes, compile_rules)
        bus = BusAdministration(messages, Validator(limits, compile_rules), SYSTEM_CLOCK)
        keys = {NAMESPACE: (KEY,), "second": ("other", "another")}
        rules = AuthorizationRules(hubs.namespaces, keys.get)
        yield DoorAtHand(AdministrationServices(bus, hubs, rules, random_bytes), is_public=is_public)
        await messages.stop()
        await hubs.stop()


def run(test: Callable[[DoorAtHand], Awaitable[None]], **settings: Any) -> None:
    async def go() -> None:
        async with open_door(**settings) as door, asyncio.timeout(60):
            await test(door)

    asyncio.run(go())
