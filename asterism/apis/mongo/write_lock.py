"""The lock of `fsync`: it holds up the writes of this door, for copies of the data from outside."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from asterism.apis.mongo.commands import Access

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# Between two looks at the time that a client allows.
_LOOK_SECONDS: Final = 0.5


@dataclass(slots=True)
class WriteLock:
    """Locks that were taken and not released. They belong to no connection."""

    count: int = 0
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self) -> int:
        self.count += 1
        self._released.clear()
        return self.count

    def release(self) -> int:
        self.count -= 1
        if not self.count:
            self._released.set()
        return self.count

    async def wait(self, call: Call) -> None:
        """Hold up a command that writes while there is a lock, as long as its client allows."""
        command = call.command
        if not (command.is_write or command.access is Access.DATABASE_ADMIN):
            return
        while self.count:
            call.check_time()
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._released.wait()
            except TimeoutError:
                continue
