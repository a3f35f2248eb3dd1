"""The receivers of a channel without sessions: cursors in its fragments, and the callers that wait for messages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from asterism.errors import StorageUnavailable
from asterism.models.messages.cursor import Cursor
from asterism.models.messages.fragment import DOWN_SECONDS, Fragment
from asterism.models.messages.messages import Received
from asterism.models.messages.waiters import Waiters

if TYPE_CHECKING:
    from asterism.models.messages.channel import Channel


class Receivers:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._entity = channel.entity
        self.cursors: dict[int, Cursor] = {}
        self.waiters = Waiters()
        # Removed for receivers that were canceled before they got them: for the next that takes without locks.
        self.left_over: list[Received] = []
        self._next_fragment = 0

    async def receive(self, count: int, *, lock: bool, wait: bool) -> list[Received]:
        """Return up to `count` messages; waits for at least one if `wait`, behind those that wait already."""
        is_waiting = wait and bool(self.waiters) and (lock or not self.left_over)
        has_waited = False
        while True:
            if is_waiting:
                await self._wait(at_front=has_waited)
                has_waited = True
                self._channel.check_enabled()
            try:
                received = await self._take(count, lock=lock)
            except BaseException:
                # The messages that this caller was woken for are still there.
                self.waiters.wake(1)
                raise
            if received or not wait:
                return received
            # Messages may have come to a fragment that was looked at first.
            is_waiting = all(cursor.is_spent for cursor in self._cursors_up())

    async def _wait(self, *, at_front: bool) -> None:
        channel = self._channel
        self._entity.touch(channel.subscription)
        self._entity.pin(channel)
        channel.poller.start()
        try:
            await self.waiters.wait(at_front=at_front)
        finally:
            channel.unpin_if_idle()

    def _cursors_up(self) -> list[Cursor]:
        return [self.cursor(fragment) for fragment in self._entity.all_fragments if fragment.is_up]

    def cursor(self, fragment: Fragment) -> Cursor:
        cursor = self.cursors.get(fragment.number)
        if cursor is None:
            channel = self._channel
            cursor = Cursor(fragment.reader, channel.channel, is_shared=lambda: channel.is_shared)
            self.cursors[fragment.number] = cursor
        return cursor

    async def _take(self, count: int, *, lock: bool) -> list[Received]:
        if self.left_over and not lock:
            taken, self.left_over = self.left_over[:count], self.left_over[count:]
            return taken
        fragments = self._entity.all_fragments
        first = self._next_fragment
        for step in range(len(fragments)):
            fragment = fragments[(first + step) % len(fragments)]
            if not fragment.is_up:
                continue
            cursor = self.cursor(fragment)
            while not cursor.is_spent:
                try:
                    received = await self._take_from(fragment, cursor, count, lock=lock)
                except StorageUnavailable:
                    if len(fragments) == 1:
                        raise
                    fragment.mark_down()
                    break
                if received:
                    # The next receiver begins with the next fragment.
                    self._next_fragment = (fragment.number + 1) % len(fragments)
                    return received
        return []

    async def _take_from(self, fragment: Fragment, cursor: Cursor, count: int, *, lock: bool) -> list[Received]:
        channel = self._channel
        if not cursor.has_loaded:
            await cursor.load()
        version = cursor.version
        messages, has_expired = cursor.pop(count, channel.now_ms())
        if has_expired:
            channel.entity.services.due.schedule(channel.entity, fragment.number, 0)
        if not messages:
            return []
        try:
            locked = await channel.locks.claim(fragment, messages)
        except BaseException:
            cursor.put_back(messages, version)
            raise
        if len(locked) < len(messages):
            # Other processes are at the same messages: what was read is out of date.
            cursor.refresh()
        received = [channel.received(fragment.number, *each) for each in locked]
        if received and not lock:
            await channel.locks.remove(fragment, [each for _, each in locked], received, self._keep)
        return received

    def _keep(self, received: list[Received]) -> None:
        self.left_over += received
        # Only callers that take without locks can have them.
        self.waiters.wake_all()

    # --- announcements ----------------------------------------------------------------------------------------------

    def grew(self, fragment: int, messages: int) -> None:
        cursor = self.cursors.get(fragment)
        if cursor is not None:
            cursor.grew()
        self.waiters.wake(messages)

    def returned(self, fragment: int, number: int) -> None:
        cursor = self.cursors.get(fragment)
        if cursor is not None:
            cursor.returned(number)
        self.waiters.wake(1)

    def forget(self, fragment: int) -> None:
        cursor = self.cursors.get(fragment)
        if cursor is not None:
            cursor.forget()
        self.waiters.wake_all()

    def look_again_later(self, fragment: int) -> None:
        """Look at a fragment again after a time: it did not answer."""
        # A moment later, when it is no longer taken to be down.
        delay_seconds = DOWN_SECONDS + 0.01
        asyncio.get_running_loop().call_later(delay_seconds, self.grew, fragment, len(self.waiters) + 1)
