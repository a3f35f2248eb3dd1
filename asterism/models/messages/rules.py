"""The promise of the language of rules to topics: compiled rules select the copies that enter a subscription."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from asterism.errors import AsterismError, Category
from asterism.models.messages.descriptions import RuleDescription
from asterism.models.messages.messages import MessageState
from asterism.values.amqp.message import Message


@dataclass(slots=True)
class Envelope:
    """The properties of a message that are not in the message itself. Times are milliseconds since 1970."""

    sequence_number: int
    enqueued_ms: int
    expires_ms: int | None = None
    scheduled_ms: int | None = None
    locked_until_ms: int | None = None
    delivery_count: int = 0
    message_id: str = ""
    session_id: str | None = None
    partition_key: str | None = None
    enqueued_sequence_number: int | None = None
    dead_letter_source: str | None = None
    ttl_ms: int | None = None
    state: MessageState = MessageState.ACTIVE


@dataclass(eq=False)
class FilterFailed(AsterismError):
    """A rule cannot be evaluated for a message; `reason` is a sentence for the dead letter."""

    category: ClassVar[Category] = Category.REFUSED
    text: ClassVar[str] = "A rule could not be evaluated for the message."
    reason: str


class CompiledRules(Protocol):
    def select(self, message: Message, envelope: Envelope) -> list[bytes | None]:
        """Return an entry for each copy that enters the subscription: None is the message as it is, bytes are the
        sections that an action has made of it. No rule matches: an empty list.

        Raises FilterFailed if a rule cannot be evaluated.
        """
        ...


# Raises MalformedRequest for an expression that has no meaning.
CompileRules = Callable[[Sequence[RuleDescription]], CompiledRules]
