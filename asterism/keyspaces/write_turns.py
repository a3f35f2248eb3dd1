"""Writers that overtake each other at one place take turns there, until nobody waits any more.

Writes are decided on what was read, and decided again when somebody was faster. Of many that change one item all the
time, each commit lets one through, and an unlucky one could lose for ever; so who has lost once stands in line, and so
does who comes while there is one. Only this process's writers: others are few, and met as before.

A script takes longer than a plain write, and would lose against a few busy ones each time. One that was overtaken
closes the gate of its logical partition while it tries again: plain writes wait outside, though never for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from asterism.errors import TooMuchContention
from asterism.keyspaces.lines import Lines
from asterism.storage.contract import ExpectationFailed

# Who stands first in line is overtaken by other processes only, at most once per commit; this many attempts are some
# tenths of a second.
ATTEMPTS_MAX: Final = 100
# A script of milliseconds is over by then; one of seconds must not hold up everybody else.
GATE_WAIT_SECONDS_MAX: Final = 1.0

_Answer = TypeVar("_Answer")


class WriteTurns:
    """Lines and gates by place: whatever tells what is fought for."""

    def __init__(self) -> None:
        self._lines = Lines()
        # Set when the gate is open again.
        self._gates: dict[Hashable, asyncio.Event] = {}

    @property
    def has_gates(self) -> bool:
        """Whether any is closed: every write asks, and nearly always none is."""
        return bool(self._gates)

    async def until_settled(self, place: Hashable, attempt: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Repeats a decision that was overtaken, on fresh data each time; those who decide about the same place then
        take turns."""
        if place not in self._lines:
            with suppress(ExpectationFailed):
                return await attempt()
        async with self._lines.turn(place):
            for number in range(ATTEMPTS_MAX):
                with suppress(ExpectationFailed):
                    return await attempt()
                await asyncio.sleep(0 if number < ATTEMPTS_MAX // 2 else 0.001)
        raise TooMuchContention

    @contextmanager
    def closed(self, place: Hashable) -> Iterator[None]:
        """Keeps plain writes out; for one at a time, which whoever asks for it sees to."""
        if place in self._gates:
            yield
            return
        gate = self._gates[place] = asyncio.Event()
        try:
            yield
        finally:
            del self._gates[place]
            gate.set()

    async def enter(self, place: Hashable) -> None:
        """Returns when the gate is open, or after a moment."""
        gate = self._gates.get(place)
        if gate is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(GATE_WAIT_SECONDS_MAX):
                    await gate.wait()
