"""How many batches of one container are worked on at once.

More would not be written sooner, because one batch fills a commit; they would only lie about, a few thousand objects
each, out of the processor's caches by the time their turn comes. With 32 clients that was a fifth of the throughput.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

# One is being synced, one is being written, and one or two are being made.
BATCHES_AT_ONCE_MAX = 4


@dataclass(slots=True)
class _Gate:
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(BATCHES_AT_ONCE_MAX))
    users: int = 0


class BatchTurns:
    """A gate for each container: one whose partition has to be split first must not hold up the others."""

    def __init__(self) -> None:
        self._gates: dict[bytes, _Gate] = {}

    @asynccontextmanager
    async def turn(self, container_rid: bytes) -> AsyncIterator[None]:
        gate = self._gates.get(container_rid)
        if gate is None:
            gate = self._gates[container_rid] = _Gate()
        gate.users += 1
        try:
            async with gate.places:
                yield
        finally:
            gate.users -= 1
            if not gate.users:
                del self._gates[container_rid]
