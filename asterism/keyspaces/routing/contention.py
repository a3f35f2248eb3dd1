"""Queues for writers of one key, made when they overtake each other and gone when the last has written.

Writes are decided on what was read, and decided again when another writer was faster. Of many that change one item all
the time, each commit lets one through, and an unlucky one could lose for ever. A writer that was overtaken once
therefore waits in the queue of its key, and so does a writer that comes while there is a queue. Queues are those of
this process: writers of other processes are few, and met as before.

A script takes longer than a plain write, and would lose against a few busy ones each time. One that was overtaken locks
plain writes out of its logical partition while it tries again, though never for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from asterism.keyspaces.routing.in_flight import InFlight
from asterism.keyspaces.routing.keyed_semaphore import KeyedSemaphore
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.storage.contract import ExpectationFailed

# The first writer of a queue is overtaken by other processes only, at most once per commit; this many attempts are some
# tenths of a second.
ATTEMPTS_MAX: Final = 100
# A script of milliseconds has ended by then; one of seconds must not hold up all other writes.
LOCK_OUT_SECONDS_MAX: Final = 1.0

_QueueKey = tuple[bytes, bytes]


class WriterQueues:
    """The queues of a process, by keyspace and key, and the logical partitions that plain writes are locked out of."""

    def __init__(self) -> None:
        self.semaphores = KeyedSemaphore()
        # Keyspace and point -> set when plain writes are let in again.
        self._lock_outs: dict[_QueueKey, asyncio.Event] = {}

    def attempts(self, keyspace: Keyspace, point: bytes, key: bytes | None = None) -> Attempts:
        """The attempts of a write to `key`, or to several keys of the logical partition at `point` (None)."""
        return Attempts(self, keyspace, point, key)

    @contextmanager
    def lock_out(self, keyspace: Keyspace, point: bytes) -> Iterator[None]:
        """Keep plain writes out of a logical partition; callers see to it that there is one at a time."""
        key = keyspace.record.rid, point
        if key in self._lock_outs:
            yield
            return
        is_over = self._lock_outs[key] = asyncio.Event()
        try:
            yield
        finally:
            del self._lock_outs[key]
            is_over.set()

    @property
    def has_lock_outs(self) -> bool:
        """Return whether there is any: every write asks, and nearly always there is not."""
        return bool(self._lock_outs)

    async def wait_for_entry(self, keyspace: Keyspace, point: bytes) -> None:
        """Return when plain writes are let into the logical partition, or after a moment."""
        is_over = self._lock_outs.get((keyspace.record.rid, point))
        if is_over is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOCK_OUT_SECONDS_MAX):
                    await is_over.wait()


class Attempts:
    """The attempts of one write, each on fresh data. Each is entered, and holds `keyspace.in_flight` for as long:

        async for attempt in queues.attempts(keyspace, point, key):
            with attempt:
                ... read, plan, commit ...
                return answer
        raise TooMuchContention

    An attempt that ends with ExpectationFailed is followed by the next, in the queue of the key; every other end of an
    attempt is the end of all, and must leave the loop.
    """

    __slots__ = ("_failed", "_in_flight", "_is_queued", "_keyspace", "_point", "_queue_key", "_writers")

    def __init__(self, writers: WriterQueues, keyspace: Keyspace, point: bytes, key: bytes | None) -> None:
        self._writers = writers
        self._keyspace = keyspace
        self._point = point
        self._queue_key = keyspace.record.rid, point if key is None else key
        self._is_queued = False
        self._failed = 0
        self._in_flight: InFlight | None = None

    def __aiter__(self) -> Attempts:
        return self

    async def __anext__(self) -> Attempts:
        writers = self._writers
        # Nearly every write meets neither of them.
        if self._failed or self._queue_key in writers.semaphores:
            await self._wait_in_queue()
        if writers.has_lock_outs:
            try:
                await writers.wait_for_entry(self._keyspace, self._point)
            except BaseException:
                self._leave_queue()
                raise
        return self

    async def _wait_in_queue(self) -> None:
        if not self._is_queued:
            await self._writers.semaphores.acquire(self._queue_key)
            self._is_queued, self._failed = True, 0
            return
        try:
            if self._failed == ATTEMPTS_MAX:
                raise StopAsyncIteration
            await asyncio.sleep(0 if self._failed <= ATTEMPTS_MAX // 2 else 0.001)
        except BaseException:
            self._leave_queue()
            raise

    def _leave_queue(self) -> None:
        if self._is_queued:
            self._is_queued = False
            self._writers.semaphores.release(self._queue_key)

    def __enter__(self) -> None:
        # Everything from the first read to the commit goes by the settings that are in force now.
        self._in_flight = in_flight = self._keyspace.in_flight
        in_flight.__enter__()

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> bool:
        assert self._in_flight is not None, "an attempt is left that was not entered"
        self._in_flight.__exit__()
        if error_type is not None and issubclass(error_type, ExpectationFailed):
            self._failed += 1
            return True
        self._leave_queue()
        return False
