"""Nodes that answer requests, such as `$management`: a link for requests and one for answers, paired by addresses.

A request is accepted at once and answered when its answer is there. The answer goes over the link of the same node
whose target is the request's reply-to, or the only one that there is: the target of some clients is the node's own
name, and they leave the reply-to out.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.engine.attach import address_of, without_host
from asterism.apis.amqp.engine.cbs import CBS_ADDRESS
from asterism.apis.amqp.engine.frame_codec import EMPTY_FRAME
from asterism.apis.amqp.nodes import (
    ACCEPTED,
    INVALID_FIELD,
    AmqpError,
    AttachReply,
    Delivery,
    NodeReply,
    NodeRequest,
    Outcome,
    Rejected,
    Settlement,
)
from asterism.values.amqp.message import (
    Message,
    Properties,
    encode_application_properties,
    encode_properties,
    encode_value_body,
    text_of,
)
from asterism.values.amqp.types import Int, InvalidAmqp, Symbol

if TYPE_CHECKING:
    from asterism.apis.amqp.engine.connection import Connection
    from asterism.apis.amqp.engine.incoming_link import IncomingLink
    from asterism.apis.amqp.engine.outgoing_link import OutgoingLink

# Around the payload of an answer that waits.
_ANSWER_BYTES: Final = 64
_INTERNAL_ERROR: Final = 500


class RequestNodes:
    """The nodes of one session that answer requests, and its links for answers."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._responses: list[ResponseOutlet] = []

    def serves(self, address: str) -> bool:
        return address.lower() == CBS_ADDRESS or self._connection.host.answers_requests(address)

    async def open_requests(self, link: IncomingLink) -> RequestIntake:
        return RequestIntake(self._connection, self, link)

    async def open_responses(self, link: OutgoingLink) -> ResponseOutlet:
        outlet = ResponseOutlet(self, link)
        self._responses.append(outlet)
        return outlet

    def forget(self, outlet: ResponseOutlet) -> None:
        self._responses = [held for held in self._responses if held is not outlet]

    def responses_for(self, address: str, reply_to: str | None) -> ResponseOutlet | None:
        """Return the link for the answer to a request, or None if the client has attached none."""
        of_node = [outlet for outlet in self._responses if outlet.address == address.lower()]
        if reply_to is not None:
            for outlet in of_node:
                if outlet.target in (reply_to, without_host(reply_to)):
                    return outlet
        # The last: a client that attaches again may not have closed the first.
        return of_node[-1] if of_node else None


class ResponseOutlet:
    """An `Outlet` for answers, each settled when it is sent."""

    def __init__(self, nodes: RequestNodes, link: OutgoingLink) -> None:
        self.reply = AttachReply()
        self.address = link.fields.address.lower()
        self.target = address_of(link.fields.target)
        self._nodes = nodes
        self._link = link
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._waiting_bytes_max = link.connection.settings.answers_bytes_max
        self._count = 0

    def send(self, payload: bytes) -> None:
        self._waiting.append(payload)
        self._waiting_bytes += len(payload) + _ANSWER_BYTES
        self._send_waiting()
        while self._waiting_bytes > self._waiting_bytes_max:
            self._waiting_bytes -= len(self._waiting.popleft()) + _ANSWER_BYTES

    def start(self) -> None:
        return

    def credit_changed(self) -> None:
        self._send_waiting()
        if self._link.is_draining:
            self._link.drained()

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Outcome]:
        return [settlement.outcome for settlement in settlements]

    def closed(self) -> None:
        self._nodes.forget(self)

    def _send_waiting(self) -> None:
        while self._waiting and self._link.credit > 0:
            self._count += 1
            payload = self._waiting.popleft()
            self._waiting_bytes -= len(payload) + _ANSWER_BYTES
            self._link.send(payload, tag=(self._count & 0xFFFFFFFF).to_bytes(4, "big"), is_settled=True)
            if self.address != CBS_ADDRESS:
                # Threads of the synchronous client wait for frames in turn, with the lock of their socket held, and
                # may read each other's answers: the last then waits 0.2 s for nothing, and all others for it. With an
                # empty frame behind each answer, 120 renewals by six threads took 0.3 s instead of 3 s.
                self._link.connection.write(EMPTY_FRAME)


class RequestIntake:
    """An `Intake` for requests."""

    def __init__(self, connection: Connection, nodes: RequestNodes, link: IncomingLink) -> None:
        self.reply = AttachReply(max_message_bytes=connection.settings.message_bytes_max)
        self._connection = connection
        self._nodes = nodes
        self._link = link
        self._address = link.fields.address
        self._slots = asyncio.Semaphore(connection.settings.requests_at_once_max)

    async def take(self, deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        outcomes: list[Outcome] = []
        for delivery in deliveries:
            try:
                message = Message.parse(delivery.payload)
                properties = message.properties
            except InvalidAmqp as error:
                outcomes.append(Rejected(AmqpError(INVALID_FIELD, f"The request is not a message: {error}.")))
                continue
            # While as many as allowed are under way, this one and those behind it wait; and while the client leaves
            # answers unread.
            while not self._link.is_closed and not self._link.session.is_writable:
                await self._connection.change()
            await self._slots.acquire()
            self._connection.spawn(self._answer(message, properties))
            outcomes.append(ACCEPTED)
        return outcomes

    def closed(self) -> None:
        return

    async def _answer(self, message: Message, properties: Properties) -> None:
        correlation_id = properties.message_id
        if correlation_id is None:
            correlation_id = properties.correlation_id
        try:
            payload = _encoded(await self._reply(message), correlation_id)
        except Exception as error:
            # Answers never fail; this is a fault of the node.
            payload = _encoded(_reply_of_failure(self._connection.failure_of(error)), correlation_id)
        finally:
            self._slots.release()
        outlet = self._nodes.responses_for(self._address, text_of(properties.reply_to))
        if outlet is not None:
            outlet.send(payload)

    async def _reply(self, message: Message) -> NodeReply:
        connection = self._connection
        if self._address.lower() == CBS_ADDRESS:
            return await connection.cbs.answer(message)
        return await connection.host.answer(NodeRequest(connection.peer, self._address, message))


def _reply_of_failure(failure: AmqpError) -> NodeReply:
    """Return the answer for a failure of a node: with the names of both kinds of nodes, as clients know either."""
    status, text, condition = Int(_INTERNAL_ERROR), failure.description, Symbol(failure.condition)
    return NodeReply(
        {
            "statusCode": status,
            "statusDescription": text,
            "errorCondition": condition,
            "status-code": status,
            "status-description": text,
            "error-condition": condition,
        }
    )


def _encoded(reply: NodeReply, correlation_id: Any) -> bytes:
    return b"".join(
        (
            encode_properties(Properties(correlation_id=correlation_id)),
            encode_application_properties(reply.properties),
            encode_value_body(reply.body),
        )
    )
