"""The use of forwarding rules: how many requests were forwarded, and when the last was.

Operators end a rule when clients no longer need it. Each process counts for itself and adds its counts to a record of
the catalog now and then, so that all processes together are seen.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from functools import partial

from asterism.clock import Clock
from asterism.errors import AsterismError
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.storage.contract import StorageRefusal
from asterism.values.records import StoredRecord

_log = logging.getLogger(__name__)

# A count is shared so late at most, and a crash loses no more.
_SHARE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RuleUse(StoredRecord):
    requests: int = 0
    last_at_wall_seconds: int = 0

    def plus(self, requests: int, last_at: int) -> RuleUse:
        return RuleUse(self.requests + requests, max(self.last_at_wall_seconds, last_at))


class ForwardingUse:
    """The counts of a process that are not shared yet, and those that all have shared."""

    def __init__(self, catalog: Catalog, clock: Clock) -> None:
        self._catalog = catalog
        self._clock = clock
        self._counts: Counter[int] = Counter()
        self._last_at: dict[int, int] = {}
        self._sharing: asyncio.Task[None] | None = None

    def note(self, number: int) -> None:
        """Count a request that the rule of a job forwards."""
        self._counts[number] += 1
        self._last_at[number] = self._clock.stored_seconds()
        if self._sharing is None or self._sharing.done():
            self._sharing = asyncio.create_task(self._share_soon())

    def of(self, number: int) -> RuleUse:
        shared = _unpack(self._catalog.work.forwarded.get(number))
        return shared.plus(self._counts[number], self._last_at.get(number, 0))

    async def _share_soon(self) -> None:
        while self._counts:
            await asyncio.sleep(_SHARE_SECONDS)
            try:
                await self._share()
            except (AsterismError, StorageRefusal) as problem:
                _log.warning("the use of forwarding rules cannot be recorded: %s", problem)

    async def _share(self) -> None:
        for number, requests in list(self._counts.items()):
            add = partial(_added, requests=requests, last_at=self._last_at[number])
            await self._catalog.work.change_forwarded(number, add)
            # Not before: until the catalog shows them, only these counts do.
            self._counts[number] -= requests
            if not self._counts[number]:
                del self._counts[number]


def _added(stored: bytes | None, *, requests: int, last_at: int) -> bytes:
    return _unpack(stored).plus(requests, last_at).to_bytes()


def _unpack(stored: bytes | None) -> RuleUse:
    return RuleUse() if stored is None else RuleUse.from_bytes(stored)
