"""The removal of what a deleted subscription leaves behind, page by page, and of marks that crashes have left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from asterism.keyspaces.routing.families import after_prefix
from asterism.models.messages.draft import PRESENT, Draft
from asterism.models.messages.fragment import Fragment
from asterism.models.messages.layout import (
    CHANNEL_FAMILIES,
    COUNTERS,
    FORWARDED,
    MESSAGES,
    STATES,
    channel_of,
    pack_number,
    unpack_number,
    unpack_source,
)
from asterism.models.messages.messages import SubQueue
from asterism.models.messages.operations import Operation, Value
from asterism.models.messages.records import StoredMessage, stored_message
from asterism.models.messages.sending import DropMarks
from asterism.models.messages.terms import ChannelTerms
from asterism.storage.contract import Span

if TYPE_CHECKING:
    from asterism.models.messages.entity import Entity

_PAGE_MESSAGES: Final = 500
# A mark is needed until the lock of the source has ended in every process; locks last five minutes at most.
MARK_AGE_MS: Final = 10 * 60_000


class RemoveMessages(Operation):
    """Removes messages of a channel that is gone: nothing else changes them."""

    def __init__(self, channel: bytes, messages: Sequence[StoredMessage]) -> None:
        super().__init__(messages=len(messages))
        self._channel = channel
        self._messages = messages

    def keys(self, draft: Draft) -> Sequence[bytes]:
        keys: list[bytes] = []
        for message in self._messages:
            place = draft.point + self._channel + pack_number(message.facts.number)
            keys += [MESSAGES + place, STATES + place]
            if message.facts.body is not None:
                keys.append(draft.references_key(message.facts.body))
        return keys

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        rest = iter(values)
        terms = _terms_of_gone(self._channel)
        for message in self._messages:
            draft.touch(self._channel, message.facts.number)
        for before in self._messages:
            value, state = next(rest), next(rest)
            if before.facts.body is not None:
                draft.know_references(before.facts.body, next(rest))
            if value is None:
                continue
            message = stored_message(self._channel, before.facts.number, value, state)
            place = draft.point + self._channel + pack_number(message.facts.number)
            draft.expect(MESSAGES + place, PRESENT)
            draft.remove(terms, message.facts)


class ClearChannel(Operation):
    """Removes the rest of a channel that is gone, after its messages."""

    def __init__(self, channel: bytes) -> None:
        super().__init__()
        self._channel = channel

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:  # noqa: ARG002 - the promise of `Operation`
        for family in CHANNEL_FAMILIES:
            if family != COUNTERS:
                prefix = family + draft.point + self._channel
                draft.batch.range_deletes.append(Span(prefix, after_prefix(prefix)))


def _terms_of_gone(channel: bytes) -> ChannelTerms:
    return ChannelTerms(
        channel=channel,
        dead_letters=channel,
        transfer_dead_letters=channel,
        lock_ms=0,
        requires_session=False,
        default_ttl_ms=None,
        dead_letters_expired=False,
        max_delivery_count=None,
        may_receive=False,
        forward_to=None,
    )


async def remove_subscription(entity: Entity, number: int) -> int:
    """Remove everything of a deleted subscription in all fragments; return how many messages there were."""
    removed = 0
    for fragment in entity.all_fragments:
        for sub_queue in SubQueue:
            channel = channel_of(number, sub_queue)
            start: int | None = 0
            while start is not None:
                messages, start = await fragment.reader.page(channel, start, limit=_PAGE_MESSAGES)
                if messages:
                    await fragment.writer.submit(RemoveMessages(channel, messages))
                    removed += len(messages)
                await asyncio.sleep(0)
            await fragment.writer.submit(ClearChannel(channel))
    return removed


async def remove_old_marks(fragment: Fragment, find_source: Callable[[bytes], Entity | None], *, before_ms: int) -> int:
    """Remove the marks of forwarded messages that are older than a moment and whose sources are gone."""
    reader = fragment.reader
    rest: Span | None = reader.span(FORWARDED, b"")
    removed = 0
    while rest is not None:
        page = await reader.scan(rest, limit=_PAGE_MESSAGES)
        old = [key[3:] for key, value in page.entries if unpack_number(value) < before_ms]
        gone = [mark for mark in old if not await _has_source(mark, find_source)]
        if gone:
            await fragment.writer.submit(DropMarks(gone))
            removed += len(gone)
        rest = page.rest(rest)
        await asyncio.sleep(0)
    return removed


async def _has_source(mark: bytes, find_source: Callable[[bytes], Entity | None]) -> bool:
    rid, number_of_fragment, channel, number = unpack_source(mark)
    entity = find_source(rid)
    fragment = None if entity is None else entity.find_fragment(number_of_fragment)
    if fragment is None:
        return False
    (stored,) = await fragment.reader.read([MESSAGES + fragment.point + channel + pack_number(number)])
    return stored is not None
