"""A transaction: sends to one fragment of an entity, and settlements of its messages, applied as one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from asterism.models.messages.fragment import Fragment
from asterism.models.messages.layout import place_of_token
from asterism.models.messages.locks import Lock
from asterism.models.messages.messages import Action, Failure, MessagingRefused, NewMessage
from asterism.models.messages.operations import Composite, Operation
from asterism.models.messages.sending import Send

if TYPE_CHECKING:
    from asterism.models.messages.channel import Channel
    from asterism.models.messages.entity import Entity

# The service's limit (contract H, S3).
MESSAGES_MAX: Final = 100


class Transaction:
    """Collected in memory until it is committed. Locks that it settles stay with it until then."""

    def __init__(self, entity: Entity) -> None:
        self._entity = entity
        self._fragment: Fragment | None = None
        self._operations: list[Operation] = []
        self._messages = 0
        self._is_over = False

    def send(self, messages: Sequence[NewMessage], *, key: str | None = None) -> None:
        """Add messages. Raises NOT_ALLOWED unless they belong to the fragment of the transaction."""
        entity = self._entity
        fragment = entity.fragment_for(messages, key)
        if fragment is None:
            raise MessagingRefused(
                Failure.NOT_ALLOWED, "A message without a key cannot be sent to a partitioned entity in a transaction."
            )
        self._join(fragment, len(messages))
        self._operations.append(Send(messages))

    async def settle(
        self, channel: Channel, tokens: Sequence[bytes], action: Action, *, session_id: str | None = None
    ) -> list[Failure | None]:
        """Add the settlement of messages under lock; return the failures of those whose locks are lost already."""
        if channel.entity is not self._entity:
            raise MessagingRefused(Failure.NOT_ALLOWED, "A transaction cannot be about several entities.")
        fragments = {place_of_token(token)[0] for token in tokens}
        found = [self._entity.find_fragment(number) for number in fragments]
        if len(found) != 1 or found[0] is None:
            raise MessagingRefused(Failure.NOT_ALLOWED, "A transaction cannot be about several fragments.")
        self._join(found[0], len(tokens))
        by_fragment, locks = await channel.locks.reserve(tokens, session_id)
        if self._is_over:
            _free([lock for part in by_fragment.values() for lock in part])
            raise _unknown()
        for part in by_fragment.values():
            self._operations.append(channel.locks.new_settlement(part, action))
        return [channel.locks.lost if lock is None else None for lock in locks]

    def _join(self, fragment: Fragment, messages: int) -> None:
        if self._is_over:
            raise _unknown()
        if self._fragment is not None and self._fragment is not fragment:
            raise MessagingRefused(Failure.NOT_ALLOWED, "A transaction cannot be about several fragments.")
        if self._messages + messages > MESSAGES_MAX:
            raise MessagingRefused(Failure.NOT_ALLOWED, f"A transaction has at most {MESSAGES_MAX} messages.")
        self._fragment = fragment
        self._messages += messages

    async def commit(self) -> None:
        """Apply everything, durably, or nothing: then the refusal is raised."""
        if self._is_over:
            raise _unknown()
        self._is_over = True
        if self._fragment is None or not self._operations:
            return
        if not self._fragment.is_up:
            self._end()
            raise MessagingRefused(Failure.FRAGMENT_DOWN, "The fragment does not answer at present.")
        await self._fragment.writer.submit(Composite(self._operations))

    def rollback(self) -> None:
        """Give everything up; messages under lock stay under lock."""
        if not self._is_over:
            self._is_over = True
            self._end()

    def _end(self) -> None:
        for operation in self._operations:
            operation.ended()


def _free(locks: Sequence[Lock]) -> None:
    for lock in locks:
        lock.is_settling = False


def _unknown() -> MessagingRefused:
    return MessagingRefused(Failure.TRANSACTION_UNKNOWN, "The transaction is over.")
