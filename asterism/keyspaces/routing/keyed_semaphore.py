"""Semaphores by key, each kept only while it is held or waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from asterism.errors import TooMuchContention


@dataclass(slots=True)
class _Queue:
    semaphore: asyncio.Semaphore
    users: int = 0


class KeyedSemaphore:
    """At most `at_once` holders for each key; others wait in the order in which they came."""

    def __init__(self, *, at_once: int = 1) -> None:
        self._at_once = at_once
        self._queues: dict[Hashable, _Queue] = {}

    def __contains__(self, key: Hashable) -> bool:
        """Return whether the semaphore of a key is held or waited for."""
        return key in self._queues

    def __len__(self) -> int:
        """Return how many keys are held or waited for."""
        return len(self._queues)

    async def acquire(self, key: Hashable, *, seconds_max: float | None = None) -> None:
        """Wait for the semaphore of a key, which the caller must `release`; TooMuchContention after `seconds_max`."""
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue(asyncio.Semaphore(self._at_once))
        queue.users += 1
        try:
            async with asyncio.timeout(seconds_max):
                await queue.semaphore.acquire()
        except TimeoutError:
            self._leave(key, queue)
            raise TooMuchContention from None
        except BaseException:
            self._leave(key, queue)
            raise

    def release(self, key: Hashable) -> None:
        queue = self._queues[key]
        queue.semaphore.release()
        self._leave(key, queue)

    def _leave(self, key: Hashable, queue: _Queue) -> None:
        queue.users -= 1
        if not queue.users:
            del self._queues[key]

    @asynccontextmanager
    async def turn(self, key: Hashable, *, seconds_max: float | None = None) -> AsyncIterator[None]:
        """Hold the semaphore of a key; TooMuchContention if it cannot be had within `seconds_max`."""
        await self.acquire(key, seconds_max=seconds_max)
        try:
            yield
        finally:
            self.release(key)
