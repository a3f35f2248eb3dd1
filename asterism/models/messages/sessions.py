"""Sessions of a channel: which are held, the messages of a session in order, and the next session that is free.

A session is held by one receiver at a time. Alone, the memory of the process says which are; otherwise a stored lock
does, which every settlement in the session expects. Its messages are locked in memory in both cases: only the holder
gets them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from asterism.errors import AsterismError
from asterism.keyspaces.routing.families import after_prefix
from asterism.models.messages.cursor import Cursor
from asterism.models.messages.fragment import Fragment
from asterism.models.messages.layout import (
    NUMBER_BYTES,
    READY,
    SESSION_MESSAGES,
    SESSIONS,
    session_of,
    session_part,
)
from asterism.models.messages.locks import Lock
from asterism.models.messages.messages import UNLOCK, Abandon, Action, Failure, MessagingRefused, Received
from asterism.models.messages.reading import FragmentReader
from asterism.models.messages.records import StoredMessage, unpack_session
from asterism.models.messages.session_operations import EndSession, LockSession, SetSessionState
from asterism.models.messages.waiters import Waiters
from asterism.storage.contract import Span

if TYPE_CHECKING:
    from asterism.models.messages.channel import Channel

_TOKEN_BYTES: Final = 8
# Messages are read one by one through the index of their session.
_PAGE_MESSAGES_MAX: Final = 64
_LATE_SECONDS: Final = 0.001
_ABANDON: Final = Abandon()

_LOST: Final = "The lock of the session was lost."


class SessionPages:
    """The messages of one session as a cursor reads them (`Pages`)."""

    __slots__ = ("_part", "_reader")

    def __init__(self, reader: FragmentReader, session_id: str) -> None:
        self._reader = reader
        self._part = session_part(session_id)

    async def page(
        self,
        channel: bytes,
        start: int,
        *,
        limit: int,
        bytes_max: int,  # noqa: ARG002 - as `FragmentReader` has it
    ) -> tuple[list[StoredMessage], int | None]:
        prefix = channel + READY + self._part
        numbers, rest = await self._reader.numbers(
            SESSION_MESSAGES, prefix, start, limit=min(limit, _PAGE_MESSAGES_MAX)
        )
        found = await self._reader.messages(channel, numbers)
        return [message for message in found if message is not None], rest

    async def messages(self, channel: bytes, numbers: Sequence[int]) -> list[StoredMessage | None]:
        return await self._reader.messages(channel, numbers)

    async def fill_bodies(self, messages: Sequence[StoredMessage]) -> None:
        await self._reader.fill_bodies(messages)


class SessionHold:
    """A session in the hands of one receiver, until it is released or its lock ends."""

    def __init__(self, channel: Channel, fragment: Fragment, session_id: str, token: bytes, until_ms: int) -> None:
        self.session_id = session_id
        self.token = token
        self.locked_until_ms = until_ms
        # Called once, with no arguments, when the hold is lost; not when it is released.
        self.on_lost: Callable[[], object] = _ignore
        self._renews_itself = False
        self.is_over = False
        self.fragment = fragment
        self.locks: set[Lock] = set()
        self._channel = channel
        self._cursor = Cursor(
            SessionPages(fragment.reader, session_id), channel.channel, is_shared=lambda: channel.is_shared
        )
        self.waiters = Waiters()
        # Removed for a receiver that was canceled before it got them.
        self._left_over: list[Received] = []
        self._timer: asyncio.TimerHandle | None = None
        self._set_timer()

    @property
    def renews_itself(self) -> bool:
        """Return whether the session is not lost by time: so for a receiver that takes messages without locks."""
        return self._renews_itself

    @renews_itself.setter
    def renews_itself(self, value: bool) -> None:
        self._renews_itself = value
        if self._timer is not None:
            self._timer.cancel()
        if not self.is_over:
            self._set_timer()

    # --- messages ---------------------------------------------------------------------------------------------------

    async def receive(self, count: int, *, lock: bool, wait: bool) -> list[Received]:
        """Return the next messages of the session, as `Channel.receive` does."""
        while True:
            self.check_held()
            received = await self._take(count, lock=lock)
            if received or not wait:
                return received
            if self._cursor.is_spent and not self.is_over:
                self._channel.touch()
                self._channel.poller.start()
                await self.waiters.wait()
                self._channel.check_enabled()

    async def _take(self, count: int, *, lock: bool) -> list[Received]:
        if self._left_over and not lock:
            taken, self._left_over = self._left_over[:count], self._left_over[count:]
            return taken
        channel, fragment, cursor = self._channel, self.fragment, self._cursor
        while not cursor.is_spent:
            if not cursor.has_loaded:
                await cursor.load()
                self.check_held()
            messages, has_expired = cursor.pop(count, channel.now_ms())
            if has_expired:
                channel.entity.services.due.schedule(channel.entity, fragment.number, 0)
            locked = channel.locks.claim_in_session(fragment, messages, self)
            if not locked:
                continue
            received = [channel.received(fragment.number, *each) for each in locked]
            if not lock:
                await channel.locks.remove(fragment, [each for _, each in locked], received, self._keep)
            return received
        return []

    def _keep(self, received: list[Received]) -> None:
        self._left_over += received
        self.waiters.wake_all()

    def check_held(self) -> None:
        if self.is_over or self.locked_until_ms <= self._channel.now_ms():
            raise MessagingRefused(Failure.SESSION_LOCK_LOST, _LOST)

    def grew(self) -> None:
        self._cursor.grew()
        self.waiters.wake_all()

    def returned(self, number: int) -> None:
        self._cursor.returned(number)
        self.waiters.wake_all()

    def forget(self) -> None:
        self._cursor.forget()
        self.locks.clear()
        self.waiters.wake_all()

    # --- the lock of the session ------------------------------------------------------------------------------------

    async def renew(self) -> int:
        self.check_held()
        channel = self._channel
        until_ms = channel.now_ms() + channel.lock_ms
        if channel.is_shared:
            renewal = LockSession(channel.channel, self.session_id, self.token, until_ms, is_renewal=True)
            if not await self.fragment.writer.submit(renewal):
                self._lose()
                raise MessagingRefused(Failure.SESSION_LOCK_LOST, _LOST)
        self.locked_until_ms = until_ms
        return until_ms

    async def release(self) -> None:
        """Free the session; messages that were not settled are available again, uncounted."""
        if not self.is_over:
            await self._end(UNLOCK)

    async def _end(self, action: Action) -> None:
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self.waiters.wake_all()
        channel = self._channel
        try:
            # Behind all settlements that are on their way: until they are through, the next receiver would get their
            # messages once more.
            await asyncio.shield(self.fragment.writer.submit(EndSession(channel.channel, self, action)))
        except asyncio.CancelledError:
            channel.session_book.forget_later(self)
            raise
        except AsterismError:
            # The messages are available all the same: no lock of theirs is stored.
            pass
        channel.session_book.ended(self)

    def _lose(self) -> None:
        if not self.is_over:
            self._channel.entity.services.spawn(self._end(_ABANDON))
            self.on_lost()

    def _set_timer(self) -> None:
        rest_seconds = max(0.0, (self.locked_until_ms - self._channel.now_ms()) / 1000)
        delay_seconds = rest_seconds / 2 if self._renews_itself else rest_seconds + _LATE_SECONDS
        self._timer = asyncio.get_running_loop().call_later(delay_seconds, self._check_end)

    def _check_end(self) -> None:
        if self.is_over:
            return
        if self._channel.entity.is_gone or self._channel.entity.services.is_stopped:
            self.is_over = True
            self.waiters.wake_all()
        elif self._renews_itself:
            self._channel.entity.services.spawn(self._renew_by_itself())
        elif self.locked_until_ms > self._channel.now_ms():
            self._set_timer()
        else:
            self._lose()

    async def _renew_by_itself(self) -> None:
        try:
            await self.renew()
        except AsterismError:
            if self.locked_until_ms <= self._channel.now_ms():
                self._lose()
                return
        if not self.is_over:
            self._set_timer()


def _ignore(*_: object) -> None:
    """Do nothing."""


class SessionBook:
    """The sessions of a channel that are held in this process, and callers that wait for the next that is free."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.holds: dict[str, SessionHold] = {}
        self._waiters = Waiters()
        # Sessions on the way to a hold: they are not given out twice.
        self._taking: set[str] = set()
        # Fragment -> the part of the session after which the next search begins, so that every session has its turn.
        self._resume: dict[int, bytes] = {}
        self._next_fragment = 0

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiters) or any(hold.waiters for hold in self.holds.values())

    # --- accepting --------------------------------------------------------------------------------------------------

    async def accept(self, session_id: str) -> SessionHold:
        fragment = self._channel.entity.fragment_of_key(session_id)
        hold = await self._acquire(fragment, session_id)
        if hold is None:
            raise MessagingRefused(Failure.SESSION_CANNOT_BE_LOCKED, "Another receiver holds the session.")
        return hold

    async def accept_next(self, wait_seconds: float) -> SessionHold:
        channel = self._channel
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_seconds
        has_waited = False
        while True:
            try:
                hold = await self._next_free()
            except BaseException:
                # The session that this caller was woken for may still be free.
                self._waiters.wake(1)
                raise
            if hold is not None:
                return hold
            rest_seconds = deadline - loop.time()
            if rest_seconds <= 0:
                raise MessagingRefused(Failure.TIMED_OUT, "No session had a message in time.")
            channel.touch()
            channel.entity.pin(channel)
            channel.poller.start()
            try:
                await self._waiters.wait(at_front=has_waited, seconds_max=rest_seconds)
            finally:
                channel.unpin_if_idle()
            has_waited = True
            channel.check_enabled()

    async def _next_free(self) -> SessionHold | None:
        fragments = self._channel.entity.all_fragments
        first = self._next_fragment
        for step in range(len(fragments)):
            fragment = fragments[(first + step) % len(fragments)]
            if not fragment.is_up:
                continue
            hold = await self._next_free_in(fragment)
            if hold is not None:
                self._next_fragment = (fragment.number + 1) % len(fragments)
                return hold
        return None

    async def _next_free_in(self, fragment: Fragment) -> SessionHold | None:
        """Return the hold of the first free session with a message, from where the last search ended, and around."""
        prefix = SESSION_MESSAGES + fragment.point + self._channel.channel + READY
        resume = self._resume.get(fragment.number, b"")
        end = after_prefix(prefix)
        for span in (Span(prefix + resume, end), Span(prefix, prefix + resume)):
            rest: Span | None = span
            while rest is not None and (rest.end is None or rest.start < rest.end):
                page = await fragment.reader.scan(rest, limit=1)
                if not page.entries:
                    break
                key, value = page.entries[0]
                part = key[len(prefix) : -NUMBER_BYTES]
                behind = after_prefix(prefix + part)
                session_id = session_of(part, value)
                if session_id not in self.holds and session_id not in self._taking:
                    hold = await self._acquire(fragment, session_id)
                    if hold is not None:
                        self._resume[fragment.number] = (behind or prefix)[len(prefix) :]
                        return hold
                rest = Span(behind, rest.end) if behind is not None else None
        return None

    async def _acquire(self, fragment: Fragment, session_id: str) -> SessionHold | None:
        if session_id in self.holds or session_id in self._taking:
            return None
        channel = self._channel
        token = channel.entity.services.random_bytes(_TOKEN_BYTES)
        until_ms = channel.now_ms() + channel.lock_ms
        if channel.is_shared:
            operation = LockSession(channel.channel, session_id, token, until_ms, is_renewal=False)
            self._taking.add(session_id)
            future = fragment.writer.submit(operation)
            try:
                is_locked = await asyncio.shield(future)
            except asyncio.CancelledError:
                # A lock that comes too late is given back as soon as it is there.
                operation.future.add_done_callback(
                    lambda done: self._release_late(fragment, session_id, token, until_ms, done)
                )
                raise
            finally:
                self._taking.discard(session_id)
            if not is_locked:
                return None
        hold = self.holds[session_id] = SessionHold(channel, fragment, session_id, token, until_ms)
        channel.entity.pin(channel)
        return hold

    def _release_late(
        self, fragment: Fragment, session_id: str, token: bytes, until_ms: int, done: asyncio.Future[bool]
    ) -> None:
        if not done.cancelled() and done.exception() is None and done.result() and session_id not in self.holds:
            hold = self.holds[session_id] = SessionHold(self._channel, fragment, session_id, token, until_ms)
            self._channel.entity.services.spawn(hold.release())

    # --- held sessions ----------------------------------------------------------------------------------------------

    def hold_of(self, session_id: str | None) -> SessionHold:
        hold = self.holds.get(session_id or "") if session_id is not None else None
        if hold is None:
            raise MessagingRefused(Failure.SESSION_LOCK_LOST, _LOST)
        hold.check_held()
        return hold

    async def renew(self, session_id: str) -> int:
        return await self.hold_of(session_id).renew()

    async def state(self, session_id: str) -> bytes | None:
        channel = self._channel
        fragment = channel.entity.fragment_of_key(session_id)
        key = SESSIONS + fragment.point + channel.channel + session_part(session_id)
        (stored,) = await fragment.reader.read([key])
        return None if stored is None else unpack_session(stored).state

    async def set_state(self, session_id: str, state: bytes | None) -> None:
        channel = self._channel
        if not channel.requires_session:
            raise MessagingRefused(Failure.NOT_ALLOWED, "The entity does not have sessions.")
        if not channel.is_shared:
            self.hold_of(session_id)
        fragment = channel.entity.fragment_of_key(session_id)
        await asyncio.shield(fragment.writer.submit(SetSessionState(channel.channel, session_id, state)))

    def ended(self, hold: SessionHold) -> None:
        """Forget a hold whose end is through: the session is free."""
        if self.holds.get(hold.session_id) is not hold:
            return
        del self.holds[hold.session_id]
        self._channel.locks.forget_locks(hold.fragment.number, hold.locks)
        hold.locks.clear()
        self._waiters.wake(1)
        self._channel.unpin_if_idle()

    def forget_later(self, hold: SessionHold) -> None:
        """Forget a hold when the end that its caller no longer awaits is through."""

        async def finish() -> None:
            await hold.fragment.writer.idle()
            self.ended(hold)

        self._channel.entity.services.spawn(finish())

    # --- announcements ----------------------------------------------------------------------------------------------

    def grew(self, sessions: Iterable[str]) -> None:
        for session_id in sessions:
            hold = self.holds.get(session_id)
            if hold is not None and not hold.is_over:
                hold.grew()
            else:
                self._waiters.wake(1)

    def returned(self, session_id: str, number: int) -> None:
        hold = self.holds.get(session_id)
        if hold is not None and not hold.is_over:
            hold.returned(number)
        else:
            self._waiters.wake(1)

    def forget(self, fragment: int) -> None:
        for hold in self.holds.values():
            if hold.fragment.number == fragment:
                hold.forget()

    def wake(self) -> None:
        """Let all callers look again."""
        self._waiters.wake_all()
        for hold in self.holds.values():
            hold.grew()
