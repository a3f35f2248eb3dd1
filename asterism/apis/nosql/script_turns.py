"""Who may run a script when. Units of work hold a snapshot of the store, so only as many begin as can run at once; and
where scripts overtake each other in one logical partition, they take turns there until nobody waits any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from asterism.apis.nosql.errors import Refusal
from asterism.errors import TooMuchContention
from asterism.scripts.limits import DEFAULT_SCRIPT_LIMITS, ScriptLimits

# Two runs of the longest kind may come before; a client waits longer than that for an answer anyway.
TURN_WAIT_SECONDS_MAX = 12.0


@dataclass(slots=True)
class _Queue:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class ScriptTurns:
    def __init__(self, limits: ScriptLimits = DEFAULT_SCRIPT_LIMITS) -> None:
        self._slots = asyncio.Semaphore(limits.hosts_max)
        self._slot_wait_seconds = limits.host_wait_seconds
        self._queues: dict[bytes, _Queue] = {}

    @asynccontextmanager
    async def turn(self, place: bytes, *, overtaken: bool) -> AsyncIterator[None]:
        """`place` is a logical partition; `overtaken` says that this script has lost against another one there."""
        if overtaken or place in self._queues:
            async with self._queued(place), self._slot():
                yield
        else:
            async with self._slot():
                yield

    @asynccontextmanager
    async def _queued(self, place: bytes) -> AsyncIterator[None]:
        queue = self._queues.setdefault(place, _Queue())
        queue.users += 1
        try:
            try:
                async with asyncio.timeout(TURN_WAIT_SECONDS_MAX):
                    await queue.lock.acquire()
            except TimeoutError:
                raise TooMuchContention from None
            try:
                yield
            finally:
                queue.lock.release()
        finally:
            queue.users -= 1
            if not queue.users:
                del self._queues[place]

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._slot_wait_seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise Refusal(503, "ServiceUnavailable", "Too many scripts are running; please retry.") from None
        try:
            yield
        finally:
            self._slots.release()
