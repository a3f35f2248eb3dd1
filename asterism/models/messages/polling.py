"""The poller of a channel: finds what other processes have written, while callers wait.

Writes of this process are announced. Those of others are looked for from the cursor on, which costs one small read of
each fragment; what became available again behind the cursor, about once a second.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from asterism.errors import AsterismError
from asterism.models.messages.fragment import Fragment
from asterism.models.messages.layout import LOCKS, RETURNED, number_in
from asterism.models.messages.records import unpack_lock

if TYPE_CHECKING:
    from asterism.models.messages.channel import Channel

_log = logging.getLogger(__name__)

_NAP_SECONDS_MIN: Final = 0.02
_NAP_SECONDS_MAX: Final = 0.5
_RETURNED_SECONDS: Final = 1.0
# Entries of one look: the others are found by the next.
_RETURNED_MAX: Final = 1000


class ChannelPoller:
    __slots__ = ("_channel", "_is_running", "_looked_at")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._is_running = False
        self._looked_at = float("-inf")

    def start(self) -> None:
        """Poll as long as callers wait, if there are other processes."""
        if self._channel.is_shared and not self._is_running:
            self._is_running = True
            self._channel.entity.services.spawn(self._run())

    async def _run(self) -> None:
        channel = self._channel
        nap_seconds = _NAP_SECONDS_MIN
        try:
            while True:
                await asyncio.sleep(nap_seconds)
                if not channel.is_waiting or channel.entity.is_gone:
                    return
                channel.touch()
                try:
                    found = await self.look()
                except AsterismError as problem:
                    _log.warning("waiting for messages goes on later: %s", problem)
                    found = False
                nap_seconds = _NAP_SECONDS_MIN if found else min(2 * nap_seconds, _NAP_SECONDS_MAX)
        finally:
            self._is_running = False

    async def look(self) -> bool:
        """Announce what other processes have written or left; return whether there was something."""
        channel = self._channel
        if channel.requires_session:
            # Sessions are looked for through their index, one read for each caller.
            channel.session_book.wake()
            return False
        clock = channel.entity.services.clock
        is_time = clock.monotonic_seconds() - self._looked_at >= _RETURNED_SECONDS
        if is_time:
            self._looked_at = clock.monotonic_seconds()
        found = False
        for fragment in channel.entity.all_fragments:
            if not fragment.is_up:
                continue
            if is_time:
                found = await self._look_back(fragment) or found
            found = await self._look_ahead(fragment) or found
        return found

    async def _look_ahead(self, fragment: Fragment) -> bool:
        cursor = self._channel.receivers.cursor(fragment)
        if not await cursor.has_more():
            return False
        # How many there are is not known: every caller looks.
        self._channel.receivers.grew(fragment.number, len(self._channel.receivers.waiters))
        return True

    async def _look_back(self, fragment: Fragment) -> bool:
        """Announce messages that other processes have made available again, and those whose locks have ended."""
        channel = self._channel
        reader = fragment.reader
        page = await reader.scan(reader.span(RETURNED, channel.channel), limit=_RETURNED_MAX)
        numbers = [number_in(key) for key, _ in page.entries]
        now_ms = channel.now_ms()
        locks = await reader.scan(reader.span(LOCKS, channel.channel), limit=_RETURNED_MAX)
        numbers += [number_in(key) for key, value in locks.entries if unpack_lock(value)[1] <= now_ms]
        cursor = channel.receivers.cursor(fragment)
        wanted = [
            number
            for number in numbers
            if not cursor.holds(number) and not channel.locks.is_locked_here(fragment.number, number)
        ]
        for number in wanted:
            channel.receivers.returned(fragment.number, number)
        return bool(wanted)
