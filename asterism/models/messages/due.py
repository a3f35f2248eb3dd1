"""Moments at which something becomes due: scheduled messages become active, and others expire.

The entries lie in the fragments. A process remembers the next moment of each fragment that it has written such an
entry to, with one timer for the earliest; the leader looks at all entities from time to time (`upkeep.py`). Any process
may do the work: its batches expect what they were decided on.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from asterism.errors import AsterismError
from asterism.models.messages.draft import Draft
from asterism.models.messages.fragment import Fragment
from asterism.models.messages.layout import (
    ACTIVATION,
    DUE,
    DUPLICATES,
    DUPLICATES_DUE,
    EXPIRY,
    LOCKS,
    MESSAGES,
    NEVER,
    STATES,
    due_key,
    pack_number,
    unpack_due,
    unpack_number,
)
from asterism.models.messages.operations import Operation, Value, expire, session_lock_key
from asterism.models.messages.records import (
    StoredMessage,
    stored_message,
    unpack_duplicate,
    unpack_lock,
    unpack_session_lock,
)
from asterism.models.messages.sending import Activate
from asterism.storage.contract import Span

if TYPE_CHECKING:
    from asterism.models.messages.entity import Entity
    from asterism.models.messages.services import MessageServices

_log = logging.getLogger(__name__)

# Entries that are carried out by one operation.
_DUE_AT_ONCE: Final = 500
_DUE_BYTES: Final = 256 * 1024
# A fragment whose entries could not be carried out is looked at again after this time.
_AGAIN_MS: Final = 5_000
# The longest sleep of the timer: the wall clock may be set.
_SLEEP_SECONDS_MAX: Final = 60.0
_LATE_SECONDS: Final = 0.001

DueEntry = tuple[int, int, bytes, int]


class DueTimer:
    """The next due moments of the fragments that this process has written to."""

    def __init__(self, services: MessageServices) -> None:
        self._services = services
        # Fragments by their next moment, and the moment that holds for each.
        self._heap: list[tuple[int, int, Entity, int]] = []
        self._next_ms: dict[tuple[Entity, int], int] = {}
        self._serial = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = NEVER
        self._is_stopped = False

    def schedule(self, entity: Entity, fragment: int, moment_ms: int) -> None:
        """Look at a fragment at a moment, or before."""
        place = entity, fragment
        if moment_ms >= self._next_ms.get(place, NEVER) or self._is_stopped:
            return
        self._next_ms[place] = moment_ms
        self._serial += 1
        heapq.heappush(self._heap, (moment_ms, self._serial, entity, fragment))
        if moment_ms < self._timer_ms:
            self._set_timer(moment_ms)

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self, moment_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = moment_ms
        rest_seconds = max(0.0, (moment_ms - self._services.now_ms()) / 1000) + _LATE_SECONDS
        self._timer = asyncio.get_running_loop().call_later(min(rest_seconds, _SLEEP_SECONDS_MAX), self._fire)

    def _fire(self) -> None:
        self._timer, self._timer_ms = None, NEVER
        now_ms = self._services.now_ms()
        while self._heap and self._heap[0][0] <= now_ms:
            moment_ms, _, entity, fragment = heapq.heappop(self._heap)
            if self._next_ms.get((entity, fragment)) == moment_ms:
                del self._next_ms[entity, fragment]
                self._services.spawn(self._look(entity, fragment))
        if self._heap:
            self._set_timer(self._heap[0][0])

    async def _look(self, entity: Entity, number: int) -> None:
        if entity.is_gone:
            return
        try:
            next_ms = await carry_out_due(entity, entity.all_fragments[number])
        except AsterismError as problem:
            if entity.is_gone:
                return
            _log.warning("messages become due later: %s", problem)
            next_ms = self._services.now_ms() + _AGAIN_MS
        self.schedule(entity, number, next_ms)


async def carry_out_due(entity: Entity, fragment: Fragment) -> int:
    """Carry out everything that is due in a fragment; return the moment at which to look again."""
    services = entity.services
    reader = fragment.reader
    whole = reader.span(DUE, b"")
    rest: Span | None = whole
    is_held_up = False
    while rest is not None:
        page = await reader.scan(rest, limit=_DUE_AT_ONCE, bytes_max=_DUE_BYTES)
        entries = [unpack_due(key) for key, _ in page.entries]
        now_ms = services.now_ms()
        due = [entry for entry in entries if entry[0] <= now_ms]
        if due:
            is_held_up = await _carry_out(entity, fragment, due) or is_held_up
        if len(due) < len(entries):
            # The first that is not due yet.
            next_ms = entries[len(due)][0]
            return min(next_ms, now_ms + _AGAIN_MS) if is_held_up else next_ms
        rest = page.rest(rest)
    return services.now_ms() + _AGAIN_MS if is_held_up else NEVER


async def _carry_out(entity: Entity, fragment: Fragment, due: Sequence[DueEntry]) -> bool:
    """Return whether entries are left: their messages are under lock."""
    activations = [(moment, number) for moment, kind, _, number in due if kind == ACTIVATION]
    expiries = [entry for entry in due if entry[1] == EXPIRY]
    if activations:
        await fragment.writer.submit(Activate(activations))
    if not expiries:
        return False
    found: list[StoredMessage | None] = []
    keys = [
        family + fragment.point + channel + pack_number(number)
        for _, _, channel, number in expiries
        for family in (MESSAGES, STATES)
    ]
    values = await fragment.reader.read(keys)
    for (_, _, channel, number), value, state in zip(expiries, values[::2], values[1::2], strict=True):
        found.append(None if value is None else stored_message(channel, number, value, state))
    left: bool = await fragment.writer.submit(
        Expire(list(zip(expiries, found, strict=True)), lambda *place: entity.is_locked_here(*place))
    )
    return left


class Expire(Operation):
    """Drops messages that have expired, or moves them to the dead letters. A message under lock is left until the lock
    ends; the result is True if there are such ones."""

    def __init__(
        self,
        entries: Sequence[tuple[DueEntry, StoredMessage | None]],
        is_locked_here: Callable[[bytes, int, int], bool],
    ) -> None:
        """`entries` have the messages as they were a moment ago; they are read again."""
        super().__init__(messages=len(entries))
        self._entries = entries
        self._is_locked_here = is_locked_here
        self._is_held_up = False

    def keys(self, draft: Draft) -> Sequence[bytes]:
        keys: list[bytes] = []
        for (_, _, channel, number), message in self._entries:
            place = draft.point + channel + pack_number(number)
            keys += [MESSAGES + place, STATES + place, LOCKS + place]
            if message is not None and message.facts.body is not None:
                keys.append(draft.references_key(message.facts.body))
            if message is not None and message.facts.session_id is not None:
                keys.append(session_lock_key(draft.point, channel, message.facts.session_id))
        return keys

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        rest = iter(values)
        for (_, _, channel, number), _ in self._entries:
            draft.touch(channel, number)
        self._is_held_up = False
        for (moment_ms, _, channel, number), before in self._entries:
            value, state, lock = next(rest), next(rest), next(rest)
            body = before.facts.body if before is not None else None
            if body is not None:
                draft.know_references(body, next(rest))
            session_id = before.facts.session_id if before is not None else None
            session_lock = next(rest) if session_id is not None else None
            terms = draft.terms.channel(channel)
            if value is None or terms is None:
                # The message is gone, or its subscription is.
                draft.batch.deletes.append(due_key(draft.point, moment_ms, EXPIRY, channel, number))
                continue
            message = stored_message(channel, number, value, state)
            if before is None or self._is_locked(draft, message, lock, session_lock):
                self._is_held_up = True
                continue
            place = draft.point + channel + pack_number(number)
            draft.expect(MESSAGES + place, b"")
            draft.expect(STATES + place, state)
            draft.expect(LOCKS + place, lock)
            if session_id is not None:
                draft.expect(session_lock_key(draft.point, channel, session_id), session_lock)
            expire(draft, terms, message.facts, value)

    def _is_locked(self, draft: Draft, message: StoredMessage, lock: Value, session_lock: Value) -> bool:
        facts = message.facts
        if self._is_locked_here(facts.channel, draft.fragment, facts.number):
            return True
        if lock is not None and unpack_lock(lock)[1] > draft.now_ms:
            return True
        return session_lock is not None and unpack_session_lock(session_lock)[1] > draft.now_ms

    def result(self) -> bool:
        return self._is_held_up


class ForgetDuplicates(Operation):
    """Removes what is remembered of message ids whose window has passed."""

    def __init__(self, entries: Sequence[tuple[int, bytes]]) -> None:
        """`entries` are moments and digests."""
        super().__init__(messages=len(entries))
        self._entries = entries

    def keys(self, draft: Draft) -> Sequence[bytes]:
        return [DUPLICATES + draft.point + digest for _, digest in self._entries]

    def plan(self, draft: Draft, values: Sequence[Value]) -> None:
        for (until_ms, digest), stored in zip(self._entries, values, strict=True):
            if digest in draft.seen_digests:
                # A message of this batch has the id, and removes the entry.
                continue
            draft.forgotten_digests.add(digest)
            draft.batch.deletes.append(DUPLICATES_DUE + draft.point + pack_number(until_ms) + digest)
            if stored is not None and unpack_duplicate(stored)[0] == until_ms:
                draft.expect(DUPLICATES + draft.point + digest, stored)
                draft.batch.deletes.append(DUPLICATES + draft.point + digest)


async def forget_duplicates(entity: Entity, fragment: Fragment) -> None:
    """Remove what is remembered of message ids whose window has passed."""
    reader = fragment.reader
    while True:
        prefix = DUPLICATES_DUE + fragment.point
        span = Span(prefix, prefix + pack_number(entity.services.now_ms() + 1))
        page = await reader.scan(span, limit=_DUE_AT_ONCE)
        entries = [(unpack_number(key[len(prefix) :]), key[len(prefix) + 8 :]) for key, _ in page.entries]
        if entries:
            await fragment.writer.submit(ForgetDuplicates(entries))
        if not page.more:
            return
