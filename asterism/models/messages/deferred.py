"""Receiving deferred messages by their sequence numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from asterism.models.messages.layout import place_of_number
from asterism.models.messages.messages import Failure, MessageState, MessagingRefused, Received

if TYPE_CHECKING:
    from asterism.models.messages.channel import Channel


async def receive(
    channel: Channel, sequence_numbers: Sequence[int], *, lock: bool, session_id: str | None
) -> list[Received]:
    """See `Channel.receive_deferred`."""
    terms = channel.check_receivable()
    if not sequence_numbers:
        return []
    hold = channel.session_book.hold_of(session_id) if terms.requires_session else None
    fragment = channel.entity.fragment_of_number(sequence_numbers)
    numbers = [place_of_number(shown)[1] for shown in dict.fromkeys(sequence_numbers)]
    not_found = MessagingRefused(Failure.MESSAGE_NOT_FOUND, "There is no deferred message of this sequence number.")
    # One caller at a time: a message that is not under lock now is changed by nothing else until it is locked.
    async with channel.deferred_lock:
        if any(channel.locks.is_locked_here(fragment.number, number) for number in numbers):
            raise not_found
        found = await fragment.reader.messages(channel.channel, numbers)
        now_ms = channel.now_ms()
        messages = [
            message
            for message in found
            if message is not None
            and message.facts.state.state is MessageState.DEFERRED
            and message.facts.expires_ms > now_ms
            and (hold is None or message.facts.session_id == hold.session_id)
        ]
        if len(messages) < len(numbers):
            raise not_found
        if hold is not None:
            hold.check_held()
            locked = channel.locks.claim_in_session(fragment, messages, hold)
        else:
            locked = await channel.locks.claim(fragment, messages, MessageState.DEFERRED)
    locks = [each for _, each in locked]
    if len(locked) < len(messages):
        if locks:
            channel.locks.release(fragment, locks)
        raise not_found
    received = [channel.received(fragment.number, *each) for each in locked]
    if not lock:
        await channel.locks.remove(fragment, locks, received, lambda _: None)
    return received
