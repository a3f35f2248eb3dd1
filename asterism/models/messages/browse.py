"""Looking at a channel without receiving from it: peeking, the list of its sessions; and emptying it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from asterism.keyspaces.routing.families import after_prefix
from asterism.models.messages.fragment import Fragment
from asterism.models.messages.layout import (
    ASIDE,
    NUMBER_BYTES,
    READY,
    SESSION_MESSAGES,
    SESSIONS,
    place_of_number,
    session_of,
    session_part,
)
from asterism.models.messages.messages import COMPLETE, MessageState, MessagingRefused, Received
from asterism.models.messages.reading import trim_bodies
from asterism.models.messages.records import StoredMessage, unpack_session
from asterism.storage.contract import Span

if TYPE_CHECKING:
    from asterism.models.messages.channel import Channel

PEEKED_BYTES_MAX: Final = 256 * 1024
_PAGE_MESSAGES: Final = 256
_PURGED_AT_ONCE: Final = 500
_SESSIONS_AT_ONCE: Final = 500


async def peek(
    channel: Channel, from_sequence: int, count: int, *, session_id: str | None, bytes_max: int
) -> list[Received]:
    """See `Channel.peek`."""
    entity = channel.entity
    first, start = place_of_number(max(from_sequence, 0)) if entity.is_partitioned else (0, max(from_sequence, 0))
    fragments = entity.all_fragments[first:]
    if session_id is not None and channel.requires_session:
        fragments = [each for each in fragments if each is entity.fragment_of_key(session_id)]
    found: list[Received] = []
    size = 0
    for fragment in fragments:
        if not fragment.is_up and entity.is_partitioned:
            continue
        next_number: int | None = start if fragment.number == first else 0
        while next_number is not None:
            messages, next_number = await _page(channel, fragment, next_number, count - len(found), session_id)
            now_ms = channel.now_ms()
            for message in messages:
                if message.facts.expires_ms <= now_ms and not _is_locked(channel, fragment, message):
                    continue
                size += len(message.record.content)
                if found and size > bytes_max:
                    return found
                found.append(channel.received(fragment.number, message, None))
                if len(found) >= count:
                    return found
            await asyncio.sleep(0)
    return found


def _is_locked(channel: Channel, fragment: Fragment, message: StoredMessage) -> bool:
    return channel.locks.is_locked_here(fragment.number, message.facts.number)


async def _page(
    channel: Channel, fragment: Fragment, start: int, count: int, session_id: str | None
) -> tuple[list[StoredMessage], int | None]:
    """Return messages of a session, or of the channel, with their bodies, and where the next page begins."""
    reader = fragment.reader
    if session_id is not None and channel.requires_session:
        return await _session_page(channel, fragment, start, session_id)
    limit = _PAGE_MESSAGES if session_id is not None else min(count, _PAGE_MESSAGES)
    messages, rest = await reader.page(channel.channel, start, limit=limit, bytes_max=PEEKED_BYTES_MAX)
    if session_id is not None:
        messages = [message for message in messages if message.facts.session_id == session_id]
    kept = trim_bodies(messages)
    if kept < len(messages):
        rest = messages[kept].facts.number
        messages = messages[:kept]
    await reader.fill_bodies(messages)
    return messages, rest


async def _session_page(
    channel: Channel, fragment: Fragment, start: int, session_id: str
) -> tuple[list[StoredMessage], int | None]:
    reader = fragment.reader
    part = session_part(session_id)
    limit = 64
    numbers: list[int] = []
    rests: list[int] = []
    for group in (READY, ASIDE):
        found, rest = await reader.numbers(SESSION_MESSAGES, channel.channel + group + part, start, limit=limit)
        numbers += found
        if rest is not None:
            rests.append(rest)
    # Both groups are known only up to the end of the shorter page.
    behind = min(rests) if rests else None
    wanted = sorted(number for number in numbers if behind is None or number < behind)
    messages = await reader.messages(channel.channel, wanted)
    return [message for message in messages if message is not None], behind


# --- sessions -------------------------------------------------------------------------------------------------------


async def list_sessions(channel: Channel, updated_since_ms: int | None, skip: int, top: int) -> list[str]:
    """See `Channel.sessions`."""
    found: set[str] = set()
    for fragment in channel.entity.all_fragments:
        if fragment.is_up:
            if updated_since_ms is None:
                found.update(await _with_messages(channel, fragment))
            found.update(await _with_state(channel, fragment, updated_since_ms))
    return sorted(found)[skip : skip + top]


async def _with_messages(channel: Channel, fragment: Fragment, group: bytes = READY) -> Iterable[str]:
    """Return the sessions that have messages of a group: one read for each, whatever the number of messages."""
    prefix = SESSION_MESSAGES + fragment.point + channel.channel + group
    end = after_prefix(prefix)
    found: list[str] = []
    start: bytes | None = prefix
    while start is not None:
        page = await fragment.reader.scan(Span(start, end), limit=1)
        if not page.entries:
            break
        key, value = page.entries[0]
        part = key[len(prefix) : -NUMBER_BYTES]
        found.append(session_of(part, value))
        start = after_prefix(prefix + part)
        await asyncio.sleep(0)
    return found


async def _with_state(channel: Channel, fragment: Fragment, updated_since_ms: int | None) -> Iterable[str]:
    rest: Span | None = fragment.reader.span(SESSIONS, channel.channel)
    found: list[str] = []
    while rest is not None:
        page = await fragment.reader.scan(rest, limit=_SESSIONS_AT_ONCE)
        records = [unpack_session(value) for _, value in page.entries]
        found += [
            record.session_id
            for record in records
            if record.state is not None and (updated_since_ms is None or record.changed_ms > updated_since_ms)
        ]
        rest = page.rest(rest)
        await asyncio.sleep(0)
    return found


# --- emptying -------------------------------------------------------------------------------------------------------


async def purge(channel: Channel) -> int:
    """See `Channel.purge`. Messages are taken as a receiver takes them, so that none is with another receiver."""
    if channel.requires_session:
        return await _purge_sessions(channel)
    removed = 0
    for fragment in channel.entity.all_fragments:
        start: int | None = 0
        while start is not None and fragment.is_up:
            messages, start = await fragment.reader.page(channel.channel, start, limit=_PURGED_AT_ONCE)
            for state in MessageState:
                wanted = [message for message in messages if message.facts.state.state is state]
                locked = await channel.locks.claim(fragment, wanted, state) if wanted else []
                # Messages that were read ahead are about to be gone.
                channel.receivers.cursor(fragment).forget()
                if locked:
                    settlement = channel.locks.submit(fragment, [lock for _, lock in locked], COMPLETE)
                    removed += (await settlement.future).count(None)
    return removed


async def _purge_sessions(channel: Channel) -> int:
    removed = 0
    for fragment in channel.entity.all_fragments:
        sessions = {
            *await _with_messages(channel, fragment, READY),
            *await _with_messages(channel, fragment, ASIDE),
        }
        for session_id in sorted(sessions):
            try:
                hold = await channel.session_book.accept(session_id)
            except MessagingRefused:
                # Its messages are with a receiver.
                continue
            try:
                start: int | None = 0
                while start is not None:
                    messages, start = await _session_page(channel, fragment, start, session_id)
                    locked = channel.locks.claim_in_session(fragment, messages, hold)
                    if locked:
                        settlement = channel.locks.submit(fragment, [lock for _, lock in locked], COMPLETE)
                        removed += (await settlement.future).count(None)
            finally:
                await hold.release()
    return removed
