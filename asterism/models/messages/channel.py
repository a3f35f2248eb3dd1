"""A channel: the messages of a queue or subscription, or of one of its sub-queues, as its receivers get them.

There is one for each channel in a process, and all links share it. It is kept as long as it has locks or callers; what
else it knows (where to read on) is found again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from asterism.errors import ResourceNotFound
from asterism.models.messages import browse, deferred
from asterism.models.messages.channel_locks import ChannelLocks
from asterism.models.messages.layout import NEVER, parts_of_channel, shown_number
from asterism.models.messages.locks import Lock
from asterism.models.messages.messages import (
    NO_PROPERTIES,
    Action,
    Failure,
    MessagingRefused,
    Received,
    SubQueue,
)
from asterism.models.messages.polling import ChannelPoller
from asterism.models.messages.receivers import Receivers
from asterism.models.messages.records import StoredMessage, unpack_overlay
from asterism.models.messages.sessions import SessionBook, SessionHold
from asterism.models.messages.terms import ChannelTerms

if TYPE_CHECKING:
    from asterism.models.messages.entity import Entity


class Channel:
    """See the module. Every call raises ResourceNotFound if the queue or subscription is gone."""

    def __init__(self, entity: Entity, channel: bytes, path: str) -> None:
        self.entity = entity
        self.channel = channel
        # As clients name it: `queue`, `topic/Subscriptions/name`, and either with `/$DeadLetterQueue`.
        self.path = path
        self.subscription, sub_queue = parts_of_channel(channel)
        self.sub_queue = SubQueue(sub_queue)
        self.locks = ChannelLocks(self)
        self.receivers = Receivers(self)
        self.session_book = SessionBook(self)
        self.poller = ChannelPoller(self)
        self.deferred_lock = asyncio.Lock()

    # --- terms ------------------------------------------------------------------------------------------------------

    @property
    def terms(self) -> ChannelTerms:
        terms = None if self.entity.is_gone else self.entity.terms.channel(self.channel)
        if terms is None:
            raise ResourceNotFound(kind="entity", name=self.path)
        return terms

    @property
    def requires_session(self) -> bool:
        return self.terms.requires_session

    @property
    def lock_ms(self) -> int:
        return self.terms.lock_ms

    @property
    def is_shared(self) -> bool:
        """Return whether other processes may receive from the channel."""
        return self.entity.services.router.has_others

    def now_ms(self) -> int:
        return self.entity.services.now_ms()

    def check_enabled(self) -> ChannelTerms:
        terms = self.terms
        if not terms.may_receive:
            raise MessagingRefused(Failure.ENTITY_DISABLED, "The entity does not deliver messages.")
        return terms

    def check_receivable(self) -> ChannelTerms:
        """Return the terms; raises the refusal of a receiver, if they do not permit any."""
        terms = self.check_enabled()
        if terms.forward_to is not None:
            raise MessagingRefused(Failure.NOT_ALLOWED, "The messages of the entity are forwarded to another one.")
        return terms

    # --- receiving --------------------------------------------------------------------------------------------------

    async def receive(
        self, count: int, *, lock: bool, session: SessionHold | None = None, wait: bool = True
    ) -> list[Received]:
        """Return up to `count` messages, in order; waits for at least one if `wait`. Without `lock` they are removed,
        durably, before this returns.

        May be canceled at any time: messages that the caller does not get are available again.
        """
        terms = self.check_receivable()
        if terms.requires_session != (session is not None):
            reason = "requires sessions" if terms.requires_session else "does not have sessions"
            raise MessagingRefused(Failure.NOT_ALLOWED, f"The entity {reason}.")
        if session is not None:
            return await session.receive(count, lock=lock, wait=wait)
        return await self.receivers.receive(count, lock=lock, wait=wait)

    async def receive_deferred(
        self, sequence_numbers: Sequence[int], *, lock: bool, session_id: str | None = None
    ) -> list[Received]:
        """Return deferred messages by their numbers, all of them in one fragment; MESSAGE_NOT_FOUND if one is missing
        or under lock."""
        return await deferred.receive(self, sequence_numbers, lock=lock, session_id=session_id)

    async def peek(
        self,
        from_sequence: int,
        count: int,
        *,
        session_id: str | None = None,
        bytes_max: int = browse.PEEKED_BYTES_MAX,
    ) -> list[Received]:
        """Return messages in all states from a number on, in order, fragment by fragment; nothing is locked."""
        return await browse.peek(self, from_sequence, count, session_id=session_id, bytes_max=bytes_max)

    def received(self, fragment: int, message: StoredMessage, lock: Lock | None) -> Received:
        """Return a message as a receiver gets it."""
        facts = message.facts
        # Taken apart at once: every message that is delivered comes by here.
        enqueued_ms, _, scheduled_ms, original, hops, message_id, session_id, partition_key, source, content, _ = (
            message.record
        )
        state, delivery_count, overlay = facts.state
        return Received(
            shown_number(fragment, facts.number, is_partitioned=self.entity.fragment_count > 1),
            enqueued_ms,
            None if facts.expires_ms == NEVER else facts.expires_ms,
            None if lock is None else lock.ends_ms,
            delivery_count,
            state,
            message_id,
            session_id,
            partition_key,
            fragment,
            original or None,
            source,
            scheduled_ms or None,
            None if lock is None else lock.token,
            content,
            unpack_overlay(overlay) if overlay else NO_PROPERTIES,
            hops,
        )

    # --- locks ------------------------------------------------------------------------------------------------------

    async def settle(
        self, tokens: Sequence[bytes], action: Action, *, session_id: str | None = None
    ) -> list[Failure | None]:
        """Carry an action out on messages under lock, durably; return the failure of each, in the order of the
        tokens."""
        return await self.locks.settle(tokens, action, session_id)

    async def renew(self, tokens: Sequence[bytes]) -> list[int | Failure]:
        """Move the ends of locks; return the new end of each, or the failure."""
        return await self.locks.renew(tokens)

    # --- sessions ---------------------------------------------------------------------------------------------------

    async def accept_session(self, session_id: str | None, *, wait_seconds: float) -> SessionHold:
        """Return the hold of a session; None is the next that has a message and is free, which is awaited."""
        if not self.check_receivable().requires_session:
            raise MessagingRefused(Failure.NOT_ALLOWED, "The entity does not have sessions.")
        if session_id is None:
            return await self.session_book.accept_next(wait_seconds)
        return await self.session_book.accept(session_id)

    async def renew_session(self, session_id: str) -> int:
        """Move the end of a session's lock, and return it."""
        return await self.session_book.renew(session_id)

    async def session_state(self, session_id: str) -> bytes | None:
        return await self.session_book.state(session_id)

    async def set_session_state(self, session_id: str, state: bytes | None) -> None:
        """Store the state of a session that is held; None clears it."""
        await self.session_book.set_state(session_id, state)

    async def sessions(self, updated_since_ms: int | None, skip: int, top: int) -> list[str]:
        """Return ids of sessions in order: those whose state was changed after a moment, or, for None, those with
        messages or a state."""
        return await browse.list_sessions(self, updated_since_ms, skip, top)

    # --- the whole channel ------------------------------------------------------------------------------------------

    async def purge(self) -> int:
        """Remove all messages that are not under lock; return how many."""
        return await browse.purge(self)

    def touch(self) -> None:
        """Note that the channel is in use: entities that are idle may be deleted."""
        self.entity.touch(self.subscription)

    def grew(self, fragment: int, sessions: Sequence[str | None]) -> None:
        """Note that messages were added; `sessions` are theirs, None where there are none."""
        if sessions[0] is None:
            self.receivers.grew(fragment, len(sessions))
        else:
            self.session_book.grew({session for session in sessions if session is not None})

    def returned(self, fragment: int, number: int, session_id: str | None) -> None:
        """Note that a message is available that is not new."""
        if session_id is None:
            self.receivers.returned(fragment, number)
        else:
            self.session_book.returned(session_id, number)

    def forget(self, fragment: int) -> None:
        """Forget everything about a fragment: it is not known if its last batch was applied (M8)."""
        self.locks.forget(fragment)
        self.receivers.forget(fragment)
        self.session_book.forget(fragment)

    def went_down(self, fragment: int) -> None:
        self.receivers.look_again_later(fragment)

    def changed(self) -> None:
        """Wake all callers: the entity is gone, or its terms have changed."""
        self.receivers.waiters.wake_all()
        self.session_book.wake()

    @property
    def is_waiting(self) -> bool:
        return bool(self.receivers.waiters) or self.session_book.is_waiting

    def unpin_if_idle(self) -> None:
        """Let the channel go, with what it knows, if neither locks nor callers need it."""
        if not (self.is_waiting or self.session_book.holds or self.receivers.left_over) and self.locks.is_empty:
            self.entity.unpin(self)
