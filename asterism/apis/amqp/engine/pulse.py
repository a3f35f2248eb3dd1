"""One timer for all connections of a process: empty frames on quiet ones, and what is due with time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

# How often a connection is looked at in the time after which it counts as quiet.
TICKS_PER_HEARTBEAT: Final = 5


class Ticked(Protocol):
    def on_tick(self, now_monotonic_seconds: float) -> None:
        """Do what is due. Raises nothing, and takes next to no time where nothing is due."""
        ...


class Pulse:
    """Calls every connection a few times in a heartbeat, while there are connections."""

    def __init__(self, *, heartbeat_seconds: float, monotonic_seconds: Callable[[], float]) -> None:
        self.tick_seconds = heartbeat_seconds / TICKS_PER_HEARTBEAT
        self._monotonic_seconds = monotonic_seconds
        self._connections: dict[Ticked, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: Ticked) -> None:
        self._connections[connection] = None
        if self._timer is None:
            self._schedule()

    def remove(self, connection: Ticked) -> None:
        self._connections.pop(connection, None)
        if not self._connections and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def is_resting(self) -> bool:
        return self._timer is None

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.tick_seconds, self._tick)

    def _tick(self) -> None:
        now = self._monotonic_seconds()
        for connection in list(self._connections):
            connection.on_tick(now)
        self._timer = None
        if self._connections:
            self._schedule()
