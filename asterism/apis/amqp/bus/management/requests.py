"""Requests to the `$management` node of an entity: their fields, and the form of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.bus.addresses import BusAddress
from asterism.apis.amqp.bus.incoming import MessageReader
from asterism.apis.amqp.bus.limits import BusLimits
from asterism.apis.amqp.errors import ARGUMENT_ERROR, status_of
from asterism.apis.amqp.nodes import NOT_ALLOWED, AmqpError, NodeReply
from asterism.values.amqp.message import text_of
from asterism.values.amqp.types import Int, Symbol

if TYPE_CHECKING:
    from asterism.models.messages.channel import Channel
    from asterism.models.messages.entity import Entity
    from asterism.models.messages.store import MessageStore

_OK: Final = 200
_NO_CONTENT: Final = 204


@dataclass(frozen=True, slots=True)
class Managed:
    """The entity that a request is about, and the tools that operations need."""

    store: MessageStore
    reader: MessageReader
    limits: BusLimits
    entity: Entity
    # None for a topic, which has nothing to receive.
    received_from: Channel | None
    address: BusAddress

    @property
    def channel(self) -> Channel:
        if self.received_from is None:
            raise AmqpError(NOT_ALLOWED, f"{self.entity.name} is a topic: receive from its subscriptions.")
        return self.received_from


class Fields:
    """The map in the body of a request; a missing or malformed field refuses the request."""

    __slots__ = ("_fields",)

    def __init__(self, body: Any) -> None:
        if body is not None and not isinstance(body, Mapping):
            raise AmqpError(ARGUMENT_ERROR, "The body of the request is not a map.")
        self._fields: dict[str, Any] = {text_of(name) or "": value for name, value in (body or {}).items()}

    def get(self, name: str) -> Any:
        return self._fields.get(name)

    def text(self, name: str) -> str | None:
        value = self._fields.get(name)
        if value is None:
            return None
        text = text_of(value)
        if text is None:
            raise _malformed(name, "a text")
        return text

    def required_text(self, name: str) -> str:
        text = self.text(name)
        if text is None:
            raise _malformed(name, "a text")
        return text

    def number(self, name: str, default: int | None = None) -> int:
        value = self._fields.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise _malformed(name, "a number")
        return int(value)

    def numbers(self, name: str) -> list[int]:
        values = self.items(name)
        if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            raise _malformed(name, "an array of numbers")
        return [int(value) for value in values]

    def tokens(self, name: str) -> list[bytes]:
        """Return lock tokens in the order of RFC 4122."""
        values = self.items(name)
        if not all(isinstance(value, bytes) and len(value) == 16 for value in values):
            raise _malformed(name, "an array of lock tokens")
        return [bytes(value) for value in values]

    def mapping(self, name: str) -> Mapping[Any, Any] | None:
        value = self._fields.get(name)
        if value is not None and not isinstance(value, Mapping):
            raise _malformed(name, "a map")
        return value

    def items(self, name: str) -> list[Any]:
        value = self._fields.get(name)
        if not isinstance(value, list):
            raise _malformed(name, "an array")
        return value


def _malformed(name: str, kind: str) -> AmqpError:
    return AmqpError(ARGUMENT_ERROR, f"The field {name!r} of the request is not {kind}.")


def done(body: Mapping[str, Any] | None = None) -> NodeReply:
    """Return the answer of an operation that has been carried out."""
    return NodeReply({"statusCode": Int(_OK), "statusDescription": "OK"}, {} if body is None else dict(body))


def nothing(condition: str) -> NodeReply:
    """Return the answer of an operation that has found nothing."""
    properties = {
        "statusCode": Int(_NO_CONTENT),
        "statusDescription": "No content",
        "errorCondition": Symbol(condition),
    }
    return NodeReply(properties, {})


def refusal_reply(error: AmqpError) -> NodeReply:
    """Return the answer of an operation that is refused."""
    properties = {
        "statusCode": Int(status_of(error.condition)),
        "statusDescription": error.description,
        "errorCondition": Symbol(error.condition),
    }
    return NodeReply(properties)
