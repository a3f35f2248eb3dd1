"""Slots and queues for scripts.

Units of work hold a snapshot of the store, so only as many begin as can run at once. Where scripts overtake each other
in one logical partition, they queue there until the queue is empty.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from asterism.apis.nosql.errors import Refusal
from asterism.keyspaces.routing.keyed_semaphore import KeyedSemaphore
from asterism.scripts.limits import DEFAULT_SCRIPT_LIMITS, ScriptLimits

# Two runs of the longest kind may come before; a client waits longer than that for an answer anyway.
TURN_WAIT_SECONDS_MAX = 12.0


class ScriptTurns:
    def __init__(self, limits: ScriptLimits = DEFAULT_SCRIPT_LIMITS) -> None:
        self._slots = asyncio.Semaphore(limits.hosts_max)
        self._slot_wait_seconds = limits.host_wait_seconds
        self._lines = KeyedSemaphore()

    @asynccontextmanager
    async def turn(self, place: bytes, *, overtaken: bool) -> AsyncIterator[None]:
        """Wait for a slot. `place` is a logical partition; `overtaken` says that the script has lost a race there."""
        if overtaken or place in self._lines:
            async with self._lines.turn(place, seconds_max=TURN_WAIT_SECONDS_MAX), self._slot():
                yield
        else:
            async with self._slot():
                yield

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
