"""Reads and writes in flight, by the settings that they use: data is changed to fit new settings only after those that
use older settings have finished (K8)."""

from __future__ import annotations

import asyncio
from typing import Any


class InFlight:
    """The reads and writes in flight that began under the same version of the settings."""

    __slots__ = ("_count", "_idle", "settings")

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self._count = 0
        self._idle: asyncio.Future[None] | None = None

    @property
    def is_idle(self) -> bool:
        return self._count == 0

    def __enter__(self) -> None:
        self._count += 1

    def __exit__(self, *_: object) -> None:
        self._count -= 1
        if self._count == 0 and self._idle is not None:
            self._idle.set_result(None)
            self._idle = None

    async def idle(self) -> None:
        """Return when none is in flight."""
        while self._count:
            if self._idle is None:
                self._idle = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._idle)
