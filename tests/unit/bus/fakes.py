"""The engine's side of links, and a channel of a few messages, for nodes that are tested without either."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from asterism.apis.amqp.nodes import AmqpError, Attach, Right
from asterism.models.messages.messages import Action, Failure, MessageState, Received
from asterism.values.amqp.message import encode_data_body

BODY = encode_data_body(b"body")


def token(number: int) -> bytes:
    return number.to_bytes(16, "big")


def message(number: int, *, locked: bool = True) -> Received:
    return Received(
        sequence_number=number,
        enqueued_ms=1,
        expires_ms=None,
        locked_until_ms=60_000 if locked else None,
        delivery_count=0,
        state=MessageState.ACTIVE,
        message_id=str(number),
        session_id=None,
        partition_key=None,
        fragment=0,
        enqueued_sequence_number=None,
        dead_letter_source=None,
        scheduled_ms=None,
        lock_token=token(number) if locked else None,
        content=BODY,
    )


class FakePeer:
    """A client with rights on everything, or only some."""

    namespace = "asterism"
    container_id = "test"
    peer_address = "127.0.0.1:1"

    def __init__(self, *rights: Right) -> None:
        self.shared: dict[str, Any] = {}
        self.rights = rights or tuple(Right)

    def require(self, path: str, right: Right) -> None:
        if right not in self.rights:
            raise AmqpError("amqp:unauthorized-access", f"{path}: {right.value}")


def attach(address: str, peer: FakePeer | None = None, **fields: Any) -> Attach:
    given: dict[str, Any] = {
        "peer": peer or FakePeer(),
        "link_name": "link",
        "address": address,
        "filters": {},
        "properties": {},
        "desired_capabilities": (),
        "is_presettled": False,
        "source": None,
        "target": None,
    }
    return Attach(**{**given, **fields})


class FakeLink:
    """Collects the deliveries of a receiving link."""

    def __init__(self, credit: int = 0) -> None:
        self.credit = credit
        self.is_draining = False
        self.is_closed = False
        self.sent: list[tuple[bytes, bool, Any]] = []
        self.payloads: list[bytes] = []
        self.drained_count = 0
        self.error: AmqpError | None = None

    def send(self, payload: bytes, *, tag: bytes, is_settled: bool, mark: Any = None, keeps_state: bool = True) -> None:
        assert keeps_state
        self.credit -= 1
        self.payloads.append(payload)
        self.sent.append((tag, is_settled, mark))

    async def writable(self) -> None:
        await asyncio.sleep(0)

    def drained(self) -> None:
        self.credit = 0
        self.is_draining = False
        self.drained_count += 1

    def detach(self, error: AmqpError | None) -> None:
        self.is_closed = True
        self.error = error


class FakeChannel:
    """A channel whose messages the test puts there; gives back what a canceled call had taken."""

    path = "queue"
    requires_session = False
    lock_ms = 60_000

    def __init__(self) -> None:
        self.messages: list[Received] = []
        self.arrived = asyncio.Event()
        self.settled: list[tuple[Sequence[bytes], Action]] = []
        self.failures: dict[bytes, Failure] = {}
        self.failure: Exception | None = None
        self.waiting = 0

    def put(self, *messages: Received) -> None:
        self.messages += messages
        self.arrived.set()

    async def receive(self, count: int, *, lock: bool, session: Any = None, wait: bool = True) -> list[Received]:
        del lock, session
        if self.failure is not None:
            raise self.failure
        self.waiting += wait
        try:
            while wait and not self.messages:
                self.arrived.clear()
                await self.arrived.wait()
        finally:
            self.waiting -= wait
        taken, self.messages = self.messages[:count], self.messages[count:]
        return taken

    async def settle(
        self, tokens: Sequence[bytes], action: Action, *, session_id: str | None = None
    ) -> list[Failure | None]:
        del session_id
        self.settled.append((list(tokens), action))
        return [self.failures.get(each) for each in tokens]
