"""Lines to stand in, one for each place, there only while somebody stands in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from asterism.errors import TooMuchContention


@dataclass(slots=True)
class _Line:
    places: asyncio.Semaphore
    users: int = 0


class Lines:
    """A place is whatever tells what is waited for; `at_once` of those who want it have it together."""

    def __init__(self, *, at_once: int = 1) -> None:
        self._at_once = at_once
        self._lines: dict[Hashable, _Line] = {}

    def __contains__(self, place: Hashable) -> bool:
        """Whether somebody waits for it or has it."""
        return place in self._lines

    @asynccontextmanager
    async def turn(self, place: Hashable, *, seconds_max: float | None = None) -> AsyncIterator[None]:
        """TooMuchContention for who has not come to the front by then."""
        line = self._lines.get(place)
        if line is None:
            line = self._lines[place] = _Line(asyncio.Semaphore(self._at_once))
        line.users += 1
        try:
            try:
                async with asyncio.timeout(seconds_max):
                    await line.places.acquire()
            except TimeoutError:
                raise TooMuchContention from None
            try:
                yield
            finally:
                line.places.release()
        finally:
            line.users -= 1
            if not line.users:
                del self._lines[place]
