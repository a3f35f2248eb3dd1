"""The two books of message locks behind one promise: in memory, for a process alone, and stored, for several."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from asterism.models.messages.fragment import Fragment
from asterism.models.messages.layout import LOCKS, pack_number, place_of_token, token_of, tokens_of
from asterism.models.messages.locks import Lock, LockTable
from asterism.models.messages.messages import Failure, MessageState
from asterism.models.messages.operations import Candidate, Claim, RenewStored
from asterism.models.messages.records import StoredMessage, unpack_lock

_TOKEN_RANDOM_BYTES: Final = 8

Locked = tuple[StoredMessage, Lock]


class LockBook(Protocol):
    """Locks of the messages of one channel; a message has one at a time. Locks of sessions are not in it."""

    async def claim(
        self, fragment: Fragment, messages: Sequence[StoredMessage], until_ms: int, state: MessageState
    ) -> list[Locked]:
        """Lock the messages that are still there, in a state and without a lock; return those. A claim that is
        canceled or fails leaves no lock behind."""
        ...

    async def find(self, tokens: Sequence[bytes], now_ms: int) -> list[Lock | None]:
        """Return the locks of tokens that have not ended and are not being settled."""
        ...

    async def renew(self, fragment: Fragment, locks: Sequence[Lock], until_ms: int) -> list[Failure | None]:
        """Move the ends of locks that were found; return the failures of those that were lost meanwhile."""
        ...


class MemoryLockBook:
    """Locks of a process that is alone: nothing is written, and nothing has to be awaited."""

    def __init__(self, table: Callable[[int], LockTable], random_bytes: Callable[[int], bytes]) -> None:
        """`table` returns the table of a fragment."""
        self._table = table
        self._random_bytes = random_bytes

    async def claim(
        self,
        fragment: Fragment,
        messages: Sequence[StoredMessage],
        until_ms: int,
        state: MessageState,  # noqa: ARG002 - read just now, and changed by no other process
    ) -> list[Locked]:
        table = self._table(fragment.number)
        held = table.locks
        free = [message for message in messages if message.facts.number not in held]
        # One call of the system for all of them.
        randoms = self._random_bytes(_TOKEN_RANDOM_BYTES * len(free))
        tokens = tokens_of(fragment.number, [message.facts.number for message in free], randoms)
        locks = [Lock(message.facts, token, until_ms) for message, token in zip(free, tokens, strict=True)]
        table.add_all(locks, until_ms)
        return list(zip(free, locks, strict=True))

    async def find(self, tokens: Sequence[bytes], now_ms: int) -> list[Lock | None]:
        found: list[Lock | None] = []
        fragment_part, find = b"", None
        for token in tokens:
            # Most calls are about one fragment.
            if find is None or token[:2] != fragment_part:
                fragment_part = token[:2]
                find = self._table(int.from_bytes(fragment_part, "big")).find
            found.append(find(int.from_bytes(token[2:8], "big"), token, now_ms))
        return found

    async def renew(self, fragment: Fragment, locks: Sequence[Lock], until_ms: int) -> list[Failure | None]:
        table = self._table(fragment.number)
        for lock in locks:
            table.renew(lock, until_ms)
        return [None] * len(locks)


class StoredLockBook:
    """Locks that other processes see: each is a record, and every change expects it (M6)."""

    def __init__(
        self,
        channel: bytes,
        table: Callable[[int], LockTable],
        random_bytes: Callable[[int], bytes],
        *,
        now_ms: Callable[[], int],
        fragment: Callable[[int], Fragment | None],
        release: Callable[[Fragment, Sequence[Lock]], object],
    ) -> None:
        """`release` makes messages available again whose locks are not wanted."""
        self._channel = channel
        self._table = table
        self._random_bytes = random_bytes
        self._now_ms = now_ms
        self._fragment = fragment
        self._release = release

    async def claim(
        self, fragment: Fragment, messages: Sequence[StoredMessage], until_ms: int, state: MessageState
    ) -> list[Locked]:
        stored = await self._stored(fragment, [message.facts.number for message in messages])
        now_ms, randoms = self._now_ms(), self._random_bytes
        candidates = [
            Candidate(message, lock, token_of(fragment.number, message.facts.number, randoms(_TOKEN_RANDOM_BYTES)))
            for message, lock in zip(messages, stored, strict=True)
            if lock is None or unpack_lock(lock)[1] <= now_ms
        ]
        if not candidates:
            return []
        claim = Claim(self._channel, candidates, until_ms, state)
        try:
            claimed: list[Candidate] = await asyncio.shield(fragment.writer.submit(claim))
        except asyncio.CancelledError:
            if not fragment.writer.withdraw(claim):
                # The locks are released as soon as they are there.
                claim.future.add_done_callback(lambda done: self._release_late(fragment, done, until_ms))
            raise
        return self._added(fragment, claimed, until_ms)

    def _added(self, fragment: Fragment, claimed: Iterable[Candidate], until_ms: int) -> list[Locked]:
        table = self._table(fragment.number)
        locked: list[Locked] = []
        for candidate in claimed:
            candidate.message.facts.state = candidate.state
            lock = Lock(candidate.message.facts, candidate.token, until_ms)
            table.add(lock)
            locked.append((candidate.message, lock))
        return locked

    def _release_late(self, fragment: Fragment, claim: asyncio.Future[list[Candidate]], until_ms: int) -> None:
        if claim.cancelled() or claim.exception() is not None:
            return
        locked = self._added(fragment, claim.result(), until_ms)
        if locked:
            self._release(fragment, [lock for _, lock in locked])

    async def find(self, tokens: Sequence[bytes], now_ms: int) -> list[Lock | None]:
        found: list[Lock | None] = []
        for token in tokens:
            number_of_fragment, number = place_of_token(token)
            lock = self._table(number_of_fragment).locks.get(number)
            if lock is not None and lock.token == token:
                found.append(None if lock.is_settling or lock.ends_ms <= now_ms else lock)
            else:
                found.append(await self._adopted(number_of_fragment, number, token))
        return found

    async def _adopted(self, number_of_fragment: int, number: int, token: bytes) -> Lock | None:
        """Take a lock over into the table that another process has taken."""
        fragment = self._fragment(number_of_fragment)
        if fragment is None:
            return None
        (stored,) = await self._stored(fragment, [number])
        if stored is None:
            return None
        stored_token, until_ms = unpack_lock(stored)
        if stored_token != token or until_ms <= self._now_ms():
            return None
        (message,) = await fragment.reader.messages(self._channel, [number])
        if message is None:
            return None
        lock = Lock(message.facts, token, until_ms)
        self._table(number_of_fragment).add(lock)
        return lock

    async def renew(self, fragment: Fragment, locks: Sequence[Lock], until_ms: int) -> list[Failure | None]:
        failures: list[Failure | None] = await fragment.writer.submit(RenewStored(locks, until_ms))
        table = self._table(fragment.number)
        for lock, failure in zip(locks, failures, strict=True):
            if failure is None and table.locks.get(lock.facts.number) is lock:
                table.renew(lock, until_ms)
        return failures

    async def _stored(self, fragment: Fragment, numbers: Sequence[int]) -> list[bytes | None]:
        prefix = LOCKS + fragment.point + self._channel
        return await fragment.reader.read([prefix + pack_number(number) for number in numbers])
