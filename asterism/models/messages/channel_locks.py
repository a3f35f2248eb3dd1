"""The locks of a channel: taken, found, renewed, settled, and counted as failed when they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from asterism.models.messages.fragment import Fragment
from asterism.models.messages.layout import place_of_token, token_of
from asterism.models.messages.lock_books import LockBook, Locked, MemoryLockBook, StoredLockBook
from asterism.models.messages.locks import Lock, LockTable
from asterism.models.messages.messages import COMPLETE, UNLOCK, Abandon, Action, Failure, MessageState, Received
from asterism.models.messages.operations import Settle
from asterism.models.messages.records import StoredMessage

if TYPE_CHECKING:
    from asterism.models.messages.channel import Channel
    from asterism.models.messages.sessions import SessionHold

# Locks that end together are counted as failed in operations of this many.
_ENDED_AT_ONCE: Final = 1000
# A timer that is late by this much finds the end of its lock in the past.
_LATE_SECONDS: Final = 0.001
# The end of a lock that could not be written is written again after this time.
_AGAIN_MS: Final = 1000
_ABANDON: Final = Abandon()


class ChannelLocks:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._entity = channel.entity
        self._services = channel.entity.services
        self._tables: dict[int, LockTable] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        randoms = self._services.random_bytes
        self._in_memory = MemoryLockBook(self._table, randoms)
        self._stored = StoredLockBook(
            channel.channel,
            self._table,
            randoms,
            now_ms=channel.now_ms,
            fragment=self._entity.find_fragment,
            release=self.release,
        )

    @property
    def _book(self) -> LockBook:
        return self._stored if self._channel.is_shared else self._in_memory

    def _table(self, fragment: int) -> LockTable:
        table = self._tables.get(fragment)
        if table is None:
            table = self._tables[fragment] = LockTable()
        return table

    @property
    def is_empty(self) -> bool:
        return not any(table.locks for table in self._tables.values())

    def is_locked_here(self, fragment: int, number: int) -> bool:
        table = self._tables.get(fragment)
        return table is not None and number in table.locks

    def forget(self, fragment: int) -> None:
        self._tables.pop(fragment, None)

    def forget_locks(self, fragment: int, locks: Iterable[Lock]) -> None:
        table = self._tables.get(fragment)
        if table is not None:
            table.remove(locks)

    # --- taking -----------------------------------------------------------------------------------------------------

    async def claim(
        self, fragment: Fragment, messages: Sequence[StoredMessage], state: MessageState = MessageState.ACTIVE
    ) -> list[Locked]:
        until_ms = self._channel.now_ms() + self._channel.terms.lock_ms
        locked = await self._book.claim(fragment, messages, until_ms, state)
        if locked:
            self._entity.pin(self._channel)
            self._watch(until_ms)
        return locked

    def claim_in_session(
        self, fragment: Fragment, messages: Sequence[StoredMessage], hold: SessionHold
    ) -> list[Locked]:
        """Lock messages of a session, which has no other receiver: they end with the hold."""
        table = self._table(fragment.number)
        randoms = self._services.random_bytes
        locked: list[Locked] = []
        for message in messages:
            number = message.facts.number
            if number in table.locks:
                continue
            lock = Lock(message.facts, token_of(fragment.number, number, randoms(8)), 0, hold)
            table.add(lock)
            hold.locks.add(lock)
            locked.append((message, lock))
        return locked

    # --- settlement -------------------------------------------------------------------------------------------------

    async def find(self, tokens: Sequence[bytes]) -> list[Lock | None]:
        now_ms = self._channel.now_ms()
        if self._channel.requires_session:
            return await self._in_memory.find(tokens, now_ms)
        found = await self._book.find(tokens, now_ms)
        ends = [lock.until_ms for lock in found if lock is not None]
        if ends:
            self._watch(min(ends))
        return found

    @property
    def lost(self) -> Failure:
        return Failure.SESSION_LOCK_LOST if self._channel.requires_session else Failure.LOCK_LOST

    async def reserve(
        self, tokens: Sequence[bytes], session_id: str | None
    ) -> tuple[dict[int, list[Lock]], list[Lock | None]]:
        """Return the locks that are now reserved for settlement, by their fragments, and the lock of each token."""
        found = await self.find(tokens)
        by_fragment: dict[int, list[Lock]] = {}
        for place, lock in enumerate(found):
            # A token that is named twice is settled once.
            if lock is None or lock.is_settling or (session_id is not None and not _is_of_session(lock, session_id)):
                found[place] = None
                continue
            lock.is_settling = True
            by_fragment.setdefault(int.from_bytes(lock.token[:2], "big"), []).append(lock)
        return by_fragment, found

    async def settle(self, tokens: Sequence[bytes], action: Action, session_id: str | None) -> list[Failure | None]:
        by_fragment, found = await self.reserve(tokens, session_id)
        operations = [
            self.submit(self._entity.all_fragments[number], locks, action) for number, locks in by_fragment.items()
        ]
        if len(operations) == 1 and len(operations[0].locks) == len(tokens):
            # All are there, and in the order of their tokens.
            failures: list[Failure | None] = await operations[0].future
            return failures
        failed: dict[Lock, Failure | None] = {}
        for operation in operations:
            failed.update(zip(operation.locks, await operation.future, strict=True))
        lost = self.lost
        return [lost if lock is None else failed[lock] for lock in found]

    def new_settlement(self, locks: Sequence[Lock], action: Action, *, is_end: bool = False) -> Settle:
        return Settle(self._channel.channel, locks, action, self, is_end=is_end)

    def submit(self, fragment: Fragment, locks: Sequence[Lock], action: Action) -> Settle:
        operation = self.new_settlement(locks, action)
        fragment.writer.submit(operation)
        return operation

    def release(self, fragment: Fragment, locks: Sequence[Lock]) -> None:
        self.submit(fragment, locks, UNLOCK)

    def kept(self, locks: Sequence[Lock]) -> None:
        """Let locks end whose settlement has failed."""
        for lock in locks:
            table = self._tables.get(place_of_token(lock.token)[0])
            if lock.hold is None and table is not None and table.locks.get(lock.facts.number) is lock:
                table.renew(lock, lock.until_ms)
                # If it has ended already: its end could not be written just now.
                self._watch(max(lock.until_ms, self._channel.now_ms() + _AGAIN_MS))

    def over(self, locks: Sequence[Lock]) -> None:
        """Forget locks that have been settled, or were lost."""
        if not locks:
            return
        table = self._tables.get(place_of_token(locks[0].token)[0])
        if table is not None:
            table.remove(locks)
        for lock in locks:
            if lock.hold is not None:
                lock.hold.locks.discard(lock)
        if table is None or not table.locks:
            self._channel.unpin_if_idle()

    async def remove(
        self,
        fragment: Fragment,
        locks: Sequence[Lock],
        received: list[Received],
        keep: Callable[[list[Received]], None],
    ) -> None:
        """Remove messages that are delivered without locks. If the caller is canceled when it is too late, `keep` gets
        them for the next."""
        removal = self.submit(fragment, locks, COMPLETE)
        try:
            failures = await asyncio.shield(removal.future)
        except asyncio.CancelledError:
            if fragment.writer.withdraw(removal):
                self.release(fragment, locks)
            else:
                removal.future.add_done_callback(lambda done: _keep_removed(done, received, keep))
            raise
        _leave_removed(received, failures)

    # --- renewal and end --------------------------------------------------------------------------------------------

    async def renew(self, tokens: Sequence[bytes]) -> list[int | Failure]:
        locks = await self.find(tokens)
        until_ms = self._channel.now_ms() + self._channel.terms.lock_ms
        results: dict[Lock, int | Failure] = {}
        by_fragment: dict[int, list[Lock]] = {}
        for lock in locks:
            if lock is not None and lock.hold is not None:
                results[lock] = lock.ends_ms
            elif lock is not None:
                by_fragment.setdefault(place_of_token(lock.token)[0], []).append(lock)
        for number, wanted in by_fragment.items():
            failures = await self._book.renew(self._entity.all_fragments[number], wanted, until_ms)
            for lock, failure in zip(wanted, failures, strict=True):
                results[lock] = until_ms if failure is None else failure
        lost = self.lost
        return [lost if lock is None else results[lock] for lock in locks]

    def _watch(self, until_ms: int) -> None:
        if self._timer is None:
            self._set_timer(until_ms)
        elif until_ms < self._timer_ms:
            self._timer.cancel()
            self._set_timer(until_ms)

    def _set_timer(self, until_ms: int) -> None:
        delay_seconds = max(0.0, (until_ms - self._channel.now_ms()) / 1000) + _LATE_SECONDS
        self._timer_ms = until_ms
        self._timer = asyncio.get_running_loop().call_later(delay_seconds, self._count_ended)

    def _count_ended(self) -> None:
        """Count deliveries whose locks have ended as failed, and set the timer for the next end."""
        self._timer = None
        if self._entity.is_gone or self._services.is_stopped:
            return
        now_ms = self._channel.now_ms()
        ends: list[int] = []
        for number, table in self._tables.items():
            ended = table.pop_ended(now_ms, _ENDED_AT_ONCE)
            if ended:
                settlement = self.new_settlement(ended, _ABANDON, is_end=True)
                self._entity.all_fragments[number].writer.submit(settlement)
            end = table.earliest_end()
            if end is not None:
                ends.append(end)
        if ends:
            self._set_timer(min(ends))


def _is_of_session(lock: Lock, session_id: str) -> bool:
    return lock.hold is None or lock.hold.session_id == session_id


def _leave_removed(received: list[Received], failures: Sequence[Failure | None]) -> None:
    """Leave the messages that were removed for their receiver; the others had lost their locks."""
    received[:] = [message for message, failure in zip(received, failures, strict=True) if failure is None]
    for message in received:
        message.lock_token = message.locked_until_ms = None


def _keep_removed(
    removal: asyncio.Future[list[Failure | None]], received: list[Received], keep: Callable[[list[Received]], None]
) -> None:
    if not removal.cancelled() and removal.exception() is None:
        _leave_removed(received, removal.result())
        keep(received)
