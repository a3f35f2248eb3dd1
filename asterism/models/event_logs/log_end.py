"""The end of a log as this process knows it, and the news of it to readers that wait there.

A process that has the store to itself makes all appends, so it knows the end after the first look. With others, the end
is looked up again while readers wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from asterism.errors import AsterismError, ResourceNotFound
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.event_logs.layout import Tail, tail_key, unpack_tail
from asterism.models.event_logs.services import EventLogServices, of_hub
from asterism.partitioning.partition_key import numbered_point

# The time between two looks at a log to which another process may append: first, and when nothing comes.
POLL_SECONDS_MIN: Final = 0.02
POLL_SECONDS_MAX: Final = 0.5
_POLL_GROWTH: Final = 1.5

_log = logging.getLogger(__name__)

News = Callable[[], None]


class LogEnd:
    """The known end of one partition."""

    def __init__(self, hub_name: str, keyspace: Keyspace, partition: int, services: EventLogServices) -> None:
        self._hub_name = hub_name
        self._keyspace = keyspace
        self._point = numbered_point(partition)
        self._key = tail_key(partition)
        self._services = services
        # None: not known, because nothing was read yet, or because the outcome of an append is not.
        self.known: Tail | None = None
        self._waiting: set[News] = set()
        self._poll: asyncio.Task[None] | None = None

    async def now(self) -> Tail:
        """Return the end of the log; it includes every append that was acknowledged before the call."""
        known = self.known
        if known is not None and not self._services.router.has_others:
            return known
        return await self.look()

    async def look(self) -> Tail:
        """Read the end from the store."""
        with of_hub(self._hub_name, self._keyspace):
            _, _, (stored,) = await self._services.router.read(self._keyspace, self._point, [self._key])
        tail = unpack_tail(stored)
        self.found(tail)
        return tail

    def found(self, tail: Tail) -> None:
        """Take over an end that was read or written; an older one than the known changes nothing."""
        if self.known is not None and self.known.next_sequence >= tail.next_sequence:
            return
        self.known = tail
        if self._waiting:
            waiting, self._waiting = self._waiting, set()
            for news in waiting:
                news()

    def forget(self) -> None:
        """Forget the end after an append of unknown outcome: the next caller reads it."""
        self.known = None
        if self._waiting:
            # The append may have happened, and others wait for its events.
            self._begin_poll()

    def has(self, sequence: int) -> bool:
        """Return whether an event of this number is known to have been appended."""
        return self.known is not None and sequence < self.known.next_sequence

    # --- readers that wait --------------------------------------------------------------------------------------------

    def call_on_news(self, sequence: int, news: News) -> None:
        """Call back, once, when there is an event of this number, perhaps at once; or after `cancel`, never."""
        if self.has(sequence):
            news()
            return
        self._waiting.add(news)
        if self.known is None or self._services.router.has_others:
            self._begin_poll()

    def cancel(self, news: News) -> None:
        self._waiting.discard(news)

    def _begin_poll(self) -> None:
        if self._poll is None or self._poll.done():
            self._poll = asyncio.get_running_loop().create_task(self._keep_looking())

    async def _keep_looking(self) -> None:
        nap_seconds = POLL_SECONDS_MIN
        while self._waiting and (self.known is None or self._services.router.has_others):
            await asyncio.sleep(nap_seconds)
            nap_seconds = min(nap_seconds * _POLL_GROWTH, POLL_SECONDS_MAX)
            before = self.known
            try:
                if await self.look() != before:
                    nap_seconds = POLL_SECONDS_MIN
            except ResourceNotFound:
                # The links of a deleted hub are ended by other means.
                return
            except AsterismError as problem:
                _log.debug("the end of a log is looked up again later: %s", problem)

    def stop(self) -> None:
        self._waiting.clear()
        if self._poll is not None:
            self._poll.cancel()
