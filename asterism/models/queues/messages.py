"""Messages as callers get them, and the reasons for which a call on a message is refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NamedTuple

from asterism.errors import AsterismError, Category
from asterism.models.queues.layout import NEVER, MessageState
from asterism.models.queues.receipts import message_id_text, receipt_text


class Message(NamedTuple):
    """A message in one of its states. Moments are ticks of 100 ns since 1970."""

    message_id: bytes
    generation: bytes
    visible_at: int
    state: MessageState
    text: bytes

    @property
    def id_text(self) -> str:
        return message_id_text(self.message_id)

    @property
    def receipt(self) -> str:
        return receipt_text(self.generation, self.visible_at)

    @property
    def expires_at(self) -> int | None:
        return None if self.state.expires_at == NEVER else self.state.expires_at


class MessageFailure(StrEnum):
    NOT_FOUND = "not found"
    # The message was taken or updated since the receipt was given.
    RECEIPT_OUTDATED = "receipt outdated"
    # The message would become visible only after it has expired.
    VISIBLE_AFTER_EXPIRY = "visible after expiry"


@dataclass(eq=False)
class MessageRefused(AsterismError):
    category: ClassVar[Category] = Category.REFUSED
    text: ClassVar[str] = "The message does not permit the operation."
    failure: MessageFailure


class Created(StrEnum):
    """The outcome of creating a queue."""

    NEW = "new"
    # It exists with the same metadata, and with other metadata.
    SAME = "same"
    DIFFERENT = "different"
