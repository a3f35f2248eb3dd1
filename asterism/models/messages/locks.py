"""Locks of messages as a process knows them.

Alone, this is all there is of a lock: delivering writes nothing, and after a crash everything is unlocked. Where other
processes serve the entity, a lock is a stored record as well, which decides (`LOCKS`), and the table has those that
were taken here, so that they are settled without reading them again: as long as the record has their token, nothing
else has changed their messages (M6).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from asterism.models.messages.records import Facts

if TYPE_CHECKING:
    from asterism.models.messages.sessions import SessionHold

# Ends of locks that are over, beyond as many as there are locks twice over, are dropped together.
_PASSED_OVER_MAX: Final = 4096


@dataclass(slots=True, eq=False)
class Lock:
    facts: Facts
    token: bytes
    # Of a lock in a session, whose end is that of the session: 0.
    until_ms: int
    hold: SessionHold | None = None
    # An operation with it is on its way: it does not end before.
    is_settling: bool = False

    @property
    def ends_ms(self) -> int:
        return self.until_ms if self.hold is None else self.hold.locked_until_ms


class LockTable:
    """The locks that were taken in this process, of a channel and a fragment, by sequence number."""

    __slots__ = ("_ends", "_last_end_ms", "locks")

    def __init__(self) -> None:
        self.locks: dict[int, Lock] = {}
        # Heap of ends and numbers; those of locks that were renewed or settled are passed over.
        self._ends: list[tuple[int, int]] = []
        # No end in the heap is later.
        self._last_end_ms = 0

    def add(self, lock: Lock) -> None:
        number = lock.facts.number
        self.locks[number] = lock
        if lock.hold is None:
            self._push(lock.until_ms, number)

    def add_all(self, locks: Sequence[Lock], until_ms: int) -> None:
        """Add locks without a session, which have one end."""
        numbers = [lock.facts.number for lock in locks]
        self.locks.update(zip(numbers, locks, strict=True))
        if until_ms < self._last_end_ms:
            for number in numbers:
                self._push(until_ms, number)
        else:
            # Behind all others, which is a place in the heap.
            self._last_end_ms = until_ms
            self._ends += [(until_ms, number) for number in numbers]

    def _push(self, until_ms: int, number: int) -> None:
        heapq.heappush(self._ends, (until_ms, number))
        self._last_end_ms = max(self._last_end_ms, until_ms)

    def renew(self, lock: Lock, until_ms: int) -> None:
        lock.until_ms = until_ms
        self._push(until_ms, lock.facts.number)

    def remove(self, locks: Iterable[Lock]) -> None:
        held = self.locks
        for lock in locks:
            number = lock.facts.number
            if held.get(number) is lock:
                del held[number]
        if not held:
            self._ends.clear()
        elif len(self._ends) > 2 * len(held) + _PASSED_OVER_MAX:
            # Receivers that always hold some locks would leave the ends of all that they settle.
            self._ends = sorted((lock.until_ms, number) for number, lock in held.items() if lock.hold is None)

    def find(self, number: int, token: bytes, now_ms: int) -> Lock | None:
        """Return the lock of a token, if it has not ended and is not being settled."""
        lock = self.locks.get(number)
        if lock is None or lock.token != token or lock.is_settling or lock.ends_ms <= now_ms:
            return None
        return lock

    def earliest_end(self) -> int | None:
        """Return the earliest end of a lock, or a moment before it."""
        while self._ends:
            until_ms, number = self._ends[0]
            lock = self.locks.get(number)
            if lock is not None and lock.until_ms == until_ms:
                return until_ms
            heapq.heappop(self._ends)
        return None

    def pop_ended(self, now_ms: int, limit: int) -> list[Lock]:
        """Return locks that have ended and are not being settled, reserved for the settlement that counts them; they
        stay in the table until they are removed."""
        ended: list[Lock] = []
        while self._ends and len(ended) < limit and self._ends[0][0] <= now_ms:
            until_ms, number = heapq.heappop(self._ends)
            lock = self.locks.get(number)
            if lock is not None and lock.until_ms == until_ms and not lock.is_settling:
                # The heap may have the same end twice: of a lock that was taken again in the same millisecond.
                lock.is_settling = True
                ended.append(lock)
        return ended
