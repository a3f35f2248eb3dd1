"""A host with queues in memory, and nodes that fail in every way."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from asterism.apis.amqp.engine.serve import Engine
from asterism.apis.amqp.engine.settings import EngineSettings
from asterism.apis.amqp.nodes import (
    ACCEPTED,
    NOT_FOUND,
    Accepted,
    AmqpError,
    Attach,
    AttachReply,
    Declared,
    Delivery,
    Intake,
    NodeReply,
    NodeRequest,
    Outcome,
    OutgoingLink,
    Outlet,
    Rejected,
    Right,
    Settlement,
)
from asterism.clock import SYSTEM_CLOCK, Clock
from asterism.errors import AsterismError, StorageUnavailable
from asterism.values.amqp.message import BATCH_FORMAT, Message, batch_parts
from asterism.values.amqp.types import Described, Int

KEY_NAME = "RootManageSharedAccessKey"
KEY = "SAS_KEY_VALUE"


@dataclass
class ToyQueue:
    payloads: deque[bytes] = field(default_factory=deque)
    outlets: list[ToyOutlet] = field(default_factory=list)
    settled: list[Settlement] = field(default_factory=list)
    taken: list[list[Delivery]] = field(default_factory=list)

    def wake(self) -> None:
        for outlet in self.outlets:
            outlet.wake.set()


class ToyIntake:
    def __init__(self, host: ToyHost, queue: ToyQueue, name: str) -> None:
        self.reply = AttachReply(max_message_bytes=1000 if name == "small" else 1024 * 1024)
        self._host = host
        self._queue = queue
        self._name = name

    async def take(self, deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        if self._name == "gated":
            await self._host.gate.wait()
        if self._name == "broken":
            raise RuntimeError("the node is broken")
        if self._name == "unavailable":
            raise StorageUnavailable(reason="on purpose")
        if self._name == "detaching":
            raise AmqpError("amqp:resource-deleted", "gone")
        self._queue.taken.append(list(deliveries))
        outcomes: list[Outcome] = []
        for delivery in deliveries:
            if b"refuse me" in delivery.payload:
                outcomes.append(Rejected(AmqpError("amqp:not-allowed", "no")))
                continue
            is_batch = delivery.format == BATCH_FORMAT
            self._queue.payloads += batch_parts(delivery.payload)[1] if is_batch else [delivery.payload]
            outcomes.append(ACCEPTED)
        self._queue.wake()
        return outcomes

    def closed(self) -> None:
        self._host.closed.append(f"intake {self._name}")


class ToyCoordinator:
    """Declares transactions that do nothing."""

    def __init__(self) -> None:
        self.reply = AttachReply()
        self._numbers = itertools.count(1)

    async def take(self, deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        return [self._outcome(Message.parse(delivery.payload).body) for delivery in deliveries]

    def _outcome(self, body: Any) -> Outcome:
        assert isinstance(body, Described)
        if body.descriptor in (0x31, "amqp:declare:list"):
            return Declared(b"transaction %d" % next(self._numbers))
        return ACCEPTED

    def closed(self) -> None:
        return


class ToyOutlet:
    def __init__(self, host: ToyHost, queue: ToyQueue, link: OutgoingLink, attach: Attach) -> None:
        self.reply = AttachReply(properties=dict(attach.properties), filters=host.filters)
        self._host = host
        self._queue = queue
        self._link = link
        self._is_presettled = attach.is_presettled
        self._name = attach.address
        self.wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._queue.outlets.append(self)
        self._host.links.append(self._link)
        self._task = asyncio.create_task(self._send())

    def credit_changed(self) -> None:
        self.wake.set()

    async def _send(self) -> None:
        for number in itertools.count():
            while not (self._queue.payloads and self._link.credit > 0):
                if self._link.is_draining:
                    self._link.drained()
                self.wake.clear()
                await self.wake.wait()
            await self._link.writable()
            if self._link.is_closed:
                return
            if not self._queue.payloads or self._link.credit <= 0:
                continue
            payload = self._queue.payloads.popleft()
            tag = b"" if self._is_presettled else number.to_bytes(16, "big")
            self._link.send(payload, tag=tag, is_settled=self._is_presettled, mark=payload)

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Outcome]:
        if self._name == "broken":
            raise RuntimeError("the node is broken")
        self._queue.settled += settlements
        for settlement in settlements:
            if not isinstance(settlement.outcome, Accepted | Rejected) and settlement.transaction is None:
                self._queue.payloads.appendleft(settlement.mark)
        self._queue.wake()
        return [Rejected() if isinstance(each.outcome, Rejected) else each.outcome for each in settlements]

    def closed(self) -> None:
        self._host.closed.append(f"outlet {self._name}")
        if self in self._queue.outlets:
            self._queue.outlets.remove(self)
        if self._task is not None:
            self._task.cancel()


class ToyHost:
    def __init__(self) -> None:
        self.queues: dict[str, ToyQueue] = {}
        self.closed: list[str] = []
        self.gate = asyncio.Event()
        self.opening = asyncio.Event()
        self.requests: list[NodeRequest] = []
        self.links: list[OutgoingLink] = []
        self.filters: dict[str, Any] = {}
        self.attaches: list[Attach] = []
        # Addresses whose links need a right.
        self.is_guarded = False
        self.checks_directories = False

    def queue(self, name: str) -> ToyQueue:
        return self.queues.setdefault(name.lower(), ToyQueue())

    def namespace_of(self, hostname: str | None) -> str:
        label = (hostname or "").partition(".")[0]
        return "other" if label == "other" else "asterism"

    async def open_intake(self, attach: Attach) -> Intake:
        self._check(attach, Right.SEND)
        return ToyIntake(self, self.queue(attach.address), attach.address)

    async def open_coordinator(self, attach: Attach) -> Intake:
        self._check(attach, None)
        return ToyCoordinator()

    async def open_outlet(self, attach: Attach, link: OutgoingLink) -> Outlet:
        self._check(attach, Right.LISTEN)
        if attach.address == "never":
            try:
                self.opening.set()
                await asyncio.Event().wait()
            finally:
                self.closed.append("opening never")
        return ToyOutlet(self, self.queue(attach.address), link, attach)

    def _check(self, attach: Attach, right: Right | None) -> None:
        self.attaches.append(attach)
        if attach.address == "missing":
            raise AmqpError(NOT_FOUND, "There is no such entity.")
        if attach.address == "failing":
            raise RuntimeError("cannot be opened")
        if self.is_guarded and right is not None:
            attach.peer.require(attach.address, right)

    def answers_requests(self, address: str) -> bool:
        return address.lower().endswith("$management")

    async def answer(self, request: NodeRequest) -> NodeReply:
        self.requests.append(request)
        properties = request.message.application_properties
        if properties.get("wait"):
            await self.gate.wait()
        return NodeReply({"statusCode": Int(200), "address": request.address}, request.message.body)

    def takes_directory_tokens(self, namespace: str) -> bool:
        return not self.checks_directories

    async def check_audience(self, namespace: str, path: str) -> bool:
        return path != "missing"

    async def keys_for(self, namespace: str, path: str) -> Mapping[str, tuple[Sequence[str], frozenset[Right]]]:
        rules: dict[str, tuple[Sequence[str], frozenset[Right]]] = {KEY_NAME: ((KEY,), frozenset(Right))}
        if path.partition("/")[0] == "queue":
            rules["listener"] = (("old key", "listen key"), frozenset({Right.LISTEN}))
        return rules


def words(error: AsterismError) -> AmqpError:
    return AmqpError("com.microsoft:server-busy", error.sentence)


def toy_engine(host: ToyHost, *, clock: Clock = SYSTEM_CLOCK, **settings: Any) -> Engine:
    return Engine(host, words=words, clock=clock, settings=EngineSettings(**settings))
