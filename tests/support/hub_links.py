"""Links to hubs without a connection: the engine's side of the boundary (`apis/amqp/nodes.py`), played by a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from asterism.apis.amqp.hubs.intake import HubIntake
from asterism.apis.amqp.hubs.nodes import HubNodes
from asterism.apis.amqp.hubs.outlet import HubOutlet
from asterism.apis.amqp.hubs.selectors import SELECTOR_FILTER
from asterism.apis.amqp.nodes import (
    UNAUTHORIZED,
    AmqpError,
    Attach,
    Delivery,
    NodeReply,
    NodeRequest,
    Outcome,
    Rejected,
    Right,
)
from asterism.values.amqp.message import (
    BATCH_FORMAT,
    Message,
    encode_annotations,
    encode_application_properties,
    encode_data_body,
)
from tests.support.event_logs import NAMESPACE, HubWorld, open_hubs

ALL_RIGHTS = frozenset(Right)


@dataclass
class FakePeer:
    rights: frozenset[Right] = ALL_RIGHTS
    namespace: str = NAMESPACE
    container_id: str = "test"
    peer_address: str = "127.0.0.1"
    shared: dict[str, Any] = field(default_factory=dict)

    def require(self, path: str, right: Right) -> None:
        if right not in self.rights:
            raise AmqpError(UNAUTHORIZED, f"no {right.value} on {path}")


@dataclass
class FakeLink:
    """A link on which the client of a test receives."""

    credit: int = 0
    is_draining: bool = False
    is_closed: bool = False
    outlet: HubOutlet | None = None
    received: list[Message] = field(default_factory=list)
    tags: list[bytes] = field(default_factory=list)
    settled: list[bool] = field(default_factory=list)
    error: AmqpError | None = None
    drained_count: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def send(self, payload: bytes, *, tag: bytes, is_settled: bool, mark: Any = None, keeps_state: bool = True) -> None:
        assert self.credit > 0, "more was sent than the client takes"
        assert not keeps_state, "the engine would remember every event"
        self.credit -= 1
        self.received.append(Message.parse(payload))
        self.tags.append(tag)
        self.settled.append(is_settled)
        self.news.set()

    async def writable(self) -> None:
        await asyncio.sleep(0)

    def drained(self) -> None:
        self.credit, self.is_draining = 0, False
        self.drained_count += 1
        self.news.set()

    def detach(self, error: AmqpError | None) -> None:
        self.is_closed, self.error = True, error
        self.news.set()

    # --- the client ---------------------------------------------------------------------------------------------------

    def flow(self, credit: int, *, drain: bool = False) -> None:
        assert self.outlet is not None
        self.credit, self.is_draining = credit, drain
        self.outlet.credit_changed()

    async def bodies(self, count: int) -> list[bytes]:
        """Return the bodies of all events when there are so many."""
        await self.until(lambda: len(self.received) >= count)
        return [message.body for message in self.received]

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(120):
            while not condition():
                self.news.clear()
                await self.news.wait()

    def close(self) -> None:
        assert self.outlet is not None
        self.is_closed = True
        self.outlet.closed()


@dataclass
class HubClient:
    world: HubWorld
    nodes: HubNodes
    peer: FakePeer = field(default_factory=FakePeer)
    # Of the links that nodes have ended, but for those on which the client receives.
    ended: list[AmqpError] = field(default_factory=list)

    def attach(self, address: str, **fields: Any) -> Attach:
        defaults: dict[str, Any] = {
            "peer": self.peer,
            "link_name": "link",
            "address": address,
            "filters": {},
            "properties": {},
            "desired_capabilities": (),
            "is_presettled": False,
            "source": None,
            "target": None,
            "end": self.ended.append,
        }
        return Attach(**{**defaults, **fields})

    async def sender(self, address: str) -> HubIntake:
        return await self.nodes.open_intake(self.attach(address))

    async def receiver(
        self,
        address: str,
        *,
        selector: str | None = None,
        credit: int = 1000,
        properties: Mapping[str, Any] | None = None,
        capabilities: Sequence[str] = (),
    ) -> FakeLink:
        link = FakeLink()
        link.outlet = await self.nodes.open_outlet(
            self.attach(
                address,
                filters={} if selector is None else {SELECTOR_FILTER: selector},
                properties=properties or {},
                desired_capabilities=capabilities,
            ),
            link,
        )
        link.outlet.start()
        link.flow(credit)
        return link

    async def ask(self, **properties: Any) -> NodeReply:
        payload = encode_application_properties(properties) + encode_data_body(b"")
        return await self.nodes.answer(NodeRequest(self.peer, "$management", Message.parse(payload)))


@asynccontextmanager
async def open_hub_client() -> AsyncIterator[HubClient]:
    async with open_hubs() as world:
        yield HubClient(world, HubNodes(world.store))


def event(body: bytes, annotations: Mapping[str, Any] | None = None) -> Delivery:
    sections = encode_annotations(annotations) if annotations else b""
    return Delivery(sections + encode_data_body(body), 0, b"tag", is_settled=False)


def batch(events: Sequence[Delivery], annotations: Mapping[str, Any] | None = None) -> Delivery:
    envelope = encode_annotations(annotations) if annotations else b""
    payload = envelope + b"".join(encode_data_body(part.payload) for part in events)
    return Delivery(payload, BATCH_FORMAT, b"tag", is_settled=False)


def condition_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Rejected)
    assert outcome.error is not None
    return outcome.error.condition
