"""Writers that overtake each other at one place take turns there, until nobody waits any more.

Writes are decided on what was read, and decided again when somebody was faster. Of many that change one item all the
time, each commit lets one through, and an unlucky one could lose for ever; so who has lost once stands in line, and so
does who comes while there is one. Only this process's writers: others are few, and met as before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Line:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class WriteTurns:
    """Lines by place: whatever tells what is fought for."""

    def __init__(self) -> None:
        self._lines: dict[Hashable, _Line] = {}

    def has_line(self, place: Hashable) -> bool:
        return place in self._lines

    @asynccontextmanager
    async def turn(self, place: Hashable) -> AsyncIterator[None]:
        line = self._lines.setdefault(place, _Line())
        line.users += 1
        try:
            async with line.lock:
                yield
        finally:
            line.users -= 1
            if not line.users:
                del self._lines[place]
