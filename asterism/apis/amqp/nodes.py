"""The boundary between the engine of AMQP connections and the entities behind it: nodes that links attach to.

The engine (`apis/amqp/engine`) knows frames, sessions, links, credit, delivery ids and settlement. A node knows what a
message means. The engine calls a node for one link at a time: deliveries of a link reach `Intake.take` in order and
never two calls at once, so that those that arrive meanwhile form the next call.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from asterism.values.amqp.message import Message
from asterism.values.amqp.types import Described

# --- errors ---------------------------------------------------------------------------------------------------------

NOT_FOUND: Final = "amqp:not-found"
NOT_ALLOWED: Final = "amqp:not-allowed"
UNAUTHORIZED: Final = "amqp:unauthorized-access"
INTERNAL_ERROR: Final = "amqp:internal-error"
INVALID_FIELD: Final = "amqp:invalid-field"
RESOURCE_LIMIT: Final = "amqp:resource-limit-exceeded"
LINK_STOLEN: Final = "amqp:link:stolen"
SIZE_EXCEEDED: Final = "amqp:link:message-size-exceeded"


class AmqpError(Exception):
    """An error that a client is told: the condition of the protocol, a sentence, and further fields."""

    def __init__(self, condition: str, description: str, info: Mapping[str, Any] | None = None) -> None:
        super().__init__(description)
        self.condition = condition
        self.description = description
        self.info = info


# --- outcomes -------------------------------------------------------------------------------------------------------


class Accepted:
    """The delivery has been taken over, durably."""


class Released:
    """The delivery is available again, as if it had not been sent."""


@dataclass(frozen=True, slots=True)
class Rejected:
    # None: rejected for a reason that the other side knows, as a dead letter is.
    error: AmqpError | None = None


@dataclass(frozen=True, slots=True)
class Modified:
    delivery_failed: bool = False
    undeliverable_here: bool = False
    annotations: Mapping[Any, Any] | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """The answer to the declaration of a transaction."""

    transaction: bytes


Outcome = Accepted | Released | Rejected | Modified | Declared
ACCEPTED: Final = Accepted()
RELEASED: Final = Released()

# --- connections and links ------------------------------------------------------------------------------------------


def _no_link(_: AmqpError) -> None:
    """End of a link that there is not."""


class Right(enum.Enum):
    SEND = "Send"
    LISTEN = "Listen"
    MANAGE = "Manage"


class Peer(Protocol):
    """The client of a connection, as nodes see it."""

    namespace: str
    container_id: str
    peer_address: str
    # Any state that the nodes of one connection share (transactions), by a key of their own.
    shared: dict[str, Any]

    def require(self, path: str, right: Right) -> None:
        """Check that a token of the connection gives a right on an entity; AmqpError (unauthorized) if none does."""
        ...


@dataclass(slots=True)
class Attach:
    """A client's request for a link, as nodes need it."""

    peer: Peer
    link_name: str
    # The address of the node, without scheme and host, and with the case that the client gave it; without the leading
    # slash. Empty for a target without an address.
    address: str
    # Of a receiving client: the filters of the source, by the text of their key. A described filter is its value.
    filters: Mapping[str, Any]
    properties: Mapping[str, Any]
    desired_capabilities: Sequence[str]
    # snd-settle-mode 1: deliveries are settled when they are sent.
    is_presettled: bool
    # The lists of the protocol as they came, with nulls up to their last field.
    source: Described | None
    target: Described | None
    # Detaches the link from this side; what waits for its node is dropped, and the node is told by `closed`.
    end: Callable[[AmqpError], None] = _no_link


@dataclass(slots=True)
class AttachReply:
    """The parts of the answer to an attach that a node decides; the engine echoes the rest."""

    properties: Mapping[str, Any] = field(default_factory=dict)
    offered_capabilities: Sequence[str] = ()
    # Replaces filters of the source by key, where the node has settled them.
    filters: Mapping[str, Any] = field(default_factory=dict)
    # Of a link on which the client sends.
    max_message_bytes: int = 0


# --- links on which the client sends --------------------------------------------------------------------------------


@dataclass(slots=True)
class Delivery:
    """A whole message from a client; the payload is as it came, `format` says whether it is a batch."""

    payload: bytes
    format: int
    tag: bytes
    is_settled: bool
    transaction: bytes | None = None


class Intake(Protocol):
    """A node's side of a link on which the client sends."""

    @property
    def reply(self) -> AttachReply: ...

    async def take(self, deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        """Take deliveries over and return the outcome of each, in order. Durable on return.

        An AmqpError that is raised detaches the link with it; any other error refuses all of these deliveries, and the
        link goes on. Refusals of a single delivery are outcomes.
        """
        ...

    def closed(self) -> None:
        """Called once when the link has ended, for whatever reason."""
        ...


# --- links on which the client receives -----------------------------------------------------------------------------


@dataclass(slots=True)
class Settlement:
    """The state in which a client leaves a delivery."""

    tag: bytes
    outcome: Outcome
    # The client waits for the answer if it has not settled the delivery itself.
    is_settled: bool
    transaction: bytes | None = None
    # The node's own word about the delivery, as it was given to `OutgoingLink.send`.
    mark: Any = None


class OutgoingLink(Protocol):
    """The engine's side of a link on which the client receives."""

    # How many deliveries the client still takes.
    credit: int
    # The client wants to have what is there now, and then no credit left.
    is_draining: bool
    is_closed: bool

    def send(self, payload: bytes, *, tag: bytes, is_settled: bool, mark: Any = None, keeps_state: bool = True) -> None:
        """Send a message, which takes one of the credit: the caller has looked that there is some.

        An unsettled delivery is remembered until it is settled, unless `keeps_state` is False: then settlements of it
        are ignored. Bytes leave at the end of the turn of the event loop.
        """
        ...

    async def writable(self) -> None:
        """Return when the client has taken enough of what was sent to be sent more."""
        ...

    def drained(self) -> None:
        """Give the rest of the credit back: the client asked for what is there, and has it all."""
        ...

    def detach(self, error: AmqpError | None) -> None:
        """End the link from this side."""
        ...


class Outlet(Protocol):
    """A node's side of a link on which the client receives. It sends by a task of its own."""

    @property
    def reply(self) -> AttachReply: ...

    def start(self) -> None:
        """Called when the client has the answer to its attach; deliveries may be sent from now on."""
        ...

    def credit_changed(self) -> None:
        """Called after the client has changed `credit` or `is_draining` of the link."""
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Outcome]:
        """Carry the outcomes out, durably, and return what the client is told of each: the same outcome, or
        `Rejected` with an error. (A dead letter's rejection is answered without an error.)

        An error that is raised is the answer to all of them. Settlements that came before a detach still reach the
        node before `closed` does."""
        ...

    def closed(self) -> None:
        """Called once when the link has ended, for whatever reason."""
        ...


# --- requests and answers -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class NodeRequest:
    """A message to a node that answers requests, such as `$management`."""

    peer: Peer
    # As for `Attach`.
    address: str
    message: Message


@dataclass(slots=True)
class NodeReply:
    """The answer: application properties and a body, of the types that the encoder of values knows."""

    properties: Mapping[str, Any]
    body: Any = None


class NodeHost(Protocol):
    """Everything that clients of one server can attach to: made by the door, called by the engine.

    The engine serves `$cbs` by itself, and hands every other node that answers requests to `answer`.
    """

    def namespace_of(self, hostname: str | None) -> str:
        """Return the namespace that a connection is about, by the host name of its `open` or its TLS."""
        ...

    async def open_intake(self, attach: Attach) -> Intake:
        """Return the node's side of a link on which the client sends; AmqpError refuses the link."""
        ...

    async def open_coordinator(self, attach: Attach) -> Intake:
        """The same for the coordinator of transactions: a target without an address."""
        ...

    async def open_outlet(self, attach: Attach, link: OutgoingLink) -> Outlet:
        """Return the node's side of a link on which the client receives; AmqpError refuses the link. May take as long
        as the client waits; it is canceled when the client goes."""
        ...

    def answers_requests(self, address: str) -> bool:
        """Return whether the address is of a node that answers requests (`$management`, `queue/$management`)."""
        ...

    def answer(self, request: NodeRequest) -> Awaitable[NodeReply]:
        """Answer a request. Every failure is a reply with its status."""
        ...

    def takes_directory_tokens(self, namespace: str) -> bool:
        """Return whether a namespace takes tokens of a directory service, whose signature cannot be checked here."""
        ...

    async def check_audience(self, namespace: str, path: str) -> bool:
        """Return whether the entity of a token's audience exists (a missing one is reported by `$cbs` with 404). The
        path is in lower case."""
        ...

    async def keys_for(self, namespace: str, path: str) -> Mapping[str, tuple[Sequence[str], frozenset[Right]]]:
        """Return the shared access rules that apply to a path, those of the namespace included: name to the texts of
        its keys, and its rights.

        The path is the resource that a token signs, in lower case, "" for the namespace; it may be of no entity."""
        ...
