"""The cursor of a channel in one fragment: the messages that were not handed out yet, each read once.

New messages have higher numbers than all before, so they are found by reading on from the last. A message that becomes
available again, or comes with an old number (released, activated, a dead letter), is announced by its number and kept
in a heap. Nothing is read from the start again, however much waits (M5).
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from asterism.limits import MIB
from asterism.models.messages.messages import MessageState
from asterism.models.messages.reading import trim_bodies
from asterism.models.messages.records import StoredMessage

# A page of small messages is read and decoded in about a millisecond.
_PAGE_MESSAGES_MAX: Final = 500
_PAGE_BYTES_MAX: Final = MIB
# If other processes take messages too, those that were read long ago are gone when they are wanted.
_SHARED_PAGE_MESSAGES_MAX: Final = 64


class Pages(Protocol):
    """The reads of a cursor, as `FragmentReader` has them."""

    async def page(
        self, channel: bytes, start: int, *, limit: int, bytes_max: int
    ) -> tuple[list[StoredMessage], int | None]: ...

    async def messages(self, channel: bytes, numbers: Sequence[int]) -> list[StoredMessage | None]: ...

    async def fill_bodies(self, messages: Sequence[StoredMessage]) -> None: ...


class Cursor:
    __slots__ = (
        "_at_end",
        "_channel",
        "_during_load",
        "_loading",
        "_next",
        "_page",
        "_page_start",
        "_reader",
        "_returned",
        "_returned_numbers",
        "is_shared",
        "version",
    )

    def __init__(self, reader: Pages, channel: bytes, *, is_shared: Callable[[], bool]) -> None:
        self._reader = reader
        self._channel = channel
        self.is_shared = is_shared
        # Rises when everything known is forgotten.
        self.version = 0
        # Everything below was read or announced.
        self._next = 0
        # The number from which the last page was read: messages below it were announced.
        self._page_start = 0
        self._at_end = False
        # In the order of their numbers.
        self._page: deque[StoredMessage] = deque()
        self._returned: list[int] = []
        self._returned_numbers: set[int] = set()
        # Numbers that were announced while a page was being read; None while none is.
        self._during_load: list[int] | None = None
        self._loading = asyncio.Lock()

    @property
    def is_spent(self) -> bool:
        """Return whether there is nothing to hand out, as far as is known, and nothing is being read: a caller that is
        woken for messages that another one reads must wait for that, or it would sleep again beside them."""
        return self._at_end and not self._page and not self._returned and self._during_load is None

    @property
    def has_loaded(self) -> bool:
        """Return whether the next message can be handed out without a read."""
        if not self._page:
            return False
        return not self._returned or self._page[0].facts.number < self._returned[0]

    def pop(self, count: int, now_ms: int) -> tuple[list[StoredMessage], bool]:
        """Take messages that were loaded, and return True with them if some had expired and were passed over."""
        page = self._page
        found: list[StoredMessage] = []
        limit = self._returned[0] if self._returned else None
        has_expired = False
        while page and len(found) < count:
            message = page[0]
            if limit is not None and message.facts.number > limit:
                break
            page.popleft()
            if message.facts.expires_ms > now_ms:
                found.append(message)
            else:
                has_expired = True
        return found, has_expired

    def put_back(self, messages: Iterable[StoredMessage], version: int) -> None:
        """Take messages back that were popped in a version, and not handed out after all."""
        if version == self.version:
            loaded = {message.facts.number for message in self._page}
            self._put_in_order(message for message in messages if message.facts.number not in loaded)

    def _put_in_order(self, messages: Iterable[StoredMessage]) -> None:
        # A message can be here twice, where other processes are met: the newer reading counts.
        loaded = {message.facts.number: message for message in self._page}
        loaded.update((message.facts.number, message) for message in messages)
        self._page = deque(sorted(loaded.values(), key=_number_of))

    # --- announcements ----------------------------------------------------------------------------------------------

    def grew(self) -> None:
        """Note that there may be new messages."""
        self._at_end = False

    def returned(self, number: int) -> None:
        """Note that a message is available whose number may lie below those that were read."""
        if self._during_load is not None:
            self._during_load.append(number)
        elif number < self._next:
            self._add_returned(number)
        else:
            self._at_end = False

    def _add_returned(self, number: int) -> None:
        if number not in self._returned_numbers:
            self._returned_numbers.add(number)
            heapq.heappush(self._returned, number)

    def holds(self, number: int) -> bool:
        """Return whether a number is yet to be handed out."""
        return (
            number >= self._next
            or number in self._returned_numbers
            or any(message.facts.number == number for message in self._page)
        )

    def forget(self) -> None:
        """Begin again: what is known may be wrong."""
        self.version += 1
        self._next = 0
        self._at_end = False
        self._page.clear()
        self._returned.clear()
        self._returned_numbers.clear()
        if self._during_load is not None:
            # The page that is being read is not to be used.
            self._during_load = None

    def refresh(self) -> None:
        """Read again what was loaded and not handed out."""
        for message in self._page:
            if message.facts.number < self._page_start:
                self._add_returned(message.facts.number)
            else:
                self._next = message.facts.number
                self._at_end = False
                break
        self._page.clear()

    async def has_more(self) -> bool:
        """Return whether another process has added messages behind those that were read."""
        if not self.is_spent:
            return True
        found, _ = await self._reader.page(self._channel, self._next, limit=1, bytes_max=1)
        return bool(found)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Read the next messages, unless another caller has done so meanwhile."""
        async with self._loading:
            # No read is under way here.
            if self.has_loaded or self.is_spent:
                return
            self._during_load = []
            try:
                if self._returned:
                    await self._load_returned()
                else:
                    await self._load_page()
            finally:
                announced, self._during_load = self._during_load, None
                loaded = {message.facts.number for message in self._page}
                for number in announced or ():
                    if number >= self._next:
                        self._at_end = False
                    elif number not in loaded:
                        self._add_returned(number)

    async def _load_page(self) -> None:
        start = self._next
        # A batch that is applied while the page is being read may not be in it.
        self._at_end = True
        try:
            limit = _SHARED_PAGE_MESSAGES_MAX if self.is_shared() else _PAGE_MESSAGES_MAX
            found, rest = await self._reader.page(self._channel, start, limit=limit, bytes_max=_PAGE_BYTES_MAX)
            active = [message for message in found if message.facts.state.state is MessageState.ACTIVE]
            kept = trim_bodies(active)
            if kept < len(active):
                rest = active[kept].facts.number
                active = active[:kept]
            await self._reader.fill_bodies(active)
        except BaseException:
            self._at_end = False
            raise
        if self._during_load is None:
            return
        self._page_start = start
        if found:
            self._next = rest if rest is not None else found[-1].facts.number + 1
        if rest is not None:
            self._at_end = False
        if self._page:
            # Another caller has put messages back meanwhile.
            self._put_in_order(active)
        else:
            self._page.extend(active)

    async def _load_returned(self) -> None:
        # Those before the next loaded message, as many as fit in a page.
        limit = self._page[0].facts.number if self._page else None
        numbers: list[int] = []
        while self._returned and len(numbers) < _SHARED_PAGE_MESSAGES_MAX:
            if limit is not None and self._returned[0] > limit:
                break
            numbers.append(heapq.heappop(self._returned))
        self._returned_numbers.difference_update(numbers)
        try:
            found = await self._reader.messages(self._channel, numbers)
        except BaseException:
            if self._during_load is not None:
                self._during_load += numbers
            raise
        if self._during_load is None:
            return
        self._put_in_order(
            message for message in found if message is not None and message.facts.state.state is MessageState.ACTIVE
        )


def _number_of(message: StoredMessage) -> int:
    return message.facts.number
