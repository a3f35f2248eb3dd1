"""Reads of one fragment: pages of messages with their states, messages by number, bodies, and plain scans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from asterism.keyspaces.routing.families import after_prefix
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.limits import MIB
from asterism.models.messages.layout import BODIES, MESSAGES, NUMBER_BYTES, STATES, number_in, pack_number
from asterism.models.messages.records import BodyPlace, StoredMessage, stored_message
from asterism.storage.contract import ScanPage, Span

Entry = tuple[bytes, bytes]

# Bodies that are read for one page, together.
BODIES_BYTES_MAX: Final = MIB


class FragmentReader:
    """Reads what is stored in a fragment. Every read is of one moment, several of them are not."""

    __slots__ = ("fragment", "keyspace", "point", "router")

    def __init__(self, router: PartitionRouter, keyspace: Keyspace, fragment: int, point: bytes) -> None:
        self.router = router
        self.keyspace = keyspace
        self.fragment = fragment
        self.point = point

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if not keys:
            return []
        _, _, values = await self.router.read(self.keyspace, self.point, keys)
        return values

    async def scan(self, span: Span, *, limit: int, bytes_max: int = MIB) -> ScanPage:
        keyspace = self.keyspace
        while True:
            record = keyspace.record
            page = await self.router.scan(
                keyspace, record, record.map.find(self.point), span, limit=limit, bytes_max=bytes_max
            )
            if page is not None:
                return page

    def span(self, family: bytes, prefix: bytes, start: bytes = b"") -> Span:
        """Return the span of a family's keys that begin with the point and a prefix, from the suffix `start` on."""
        whole = family + self.point + prefix
        return Span(whole + start, after_prefix(whole))

    async def first(self, family: bytes, prefix: bytes) -> Entry | None:
        page = await self.scan(self.span(family, prefix), limit=1)
        return page.entries[0] if page.entries else None

    # --- messages ---------------------------------------------------------------------------------------------------

    async def page(
        self, channel: bytes, start: int, *, limit: int, bytes_max: int = MIB
    ) -> tuple[list[StoredMessage], int | None]:
        """Return messages in all states from a number on, without bodies that are elsewhere, and the number at which
        the next page begins; None if this is the last."""
        span = self.span(MESSAGES, channel, pack_number(start))
        page = await self.scan(span, limit=limit, bytes_max=bytes_max)
        if not page.entries:
            return [], None
        last = number_in(page.entries[-1][0])
        state_of = (await self._states(channel, start, last)).get
        found = [
            stored_message(channel, number := int.from_bytes(key[-NUMBER_BYTES:], "big"), value, state_of(number))
            for key, value in page.entries
        ]
        return found, last + 1 if page.more else None

    async def _states(self, channel: bytes, first: int, last: int) -> dict[int, bytes]:
        prefix = STATES + self.point + channel
        rest: Span | None = Span(prefix + pack_number(first), prefix + pack_number(last + 1))
        states: dict[int, bytes] = {}
        while rest is not None:
            page = await self.scan(rest, limit=1000)
            states.update((number_in(key), value) for key, value in page.entries)
            rest = page.rest(rest)
        return states

    async def messages(self, channel: bytes, numbers: Sequence[int]) -> list[StoredMessage | None]:
        """Return messages by their numbers, with their bodies."""
        keys = [
            family + self.point + channel + pack_number(number) for number in numbers for family in (MESSAGES, STATES)
        ]
        values = await self.read(keys)
        found = [
            None if value is None else stored_message(channel, number, value, state)
            for number, value, state in zip(numbers, values[::2], values[1::2], strict=True)
        ]
        await self.fill_bodies([message for message in found if message is not None])
        return found

    async def fill_bodies(self, messages: Sequence[StoredMessage]) -> None:
        """Read the bodies that lie elsewhere. A message that was removed meanwhile may stay without."""
        lacking = [message for message in messages if message.record.body is not None and not message.record.content]
        if not lacking:
            return
        bodies: list[BodyPlace] = [message.facts.body for message in lacking if message.facts.body is not None]
        contents = await self.read([BODIES + self.point + pack_number(body.number) for body in bodies])
        for message, content in zip(lacking, contents, strict=True):
            if content is not None:
                message.record = message.record._replace(content=content)

    async def numbers(self, family: bytes, prefix: bytes, start: int, *, limit: int) -> tuple[list[int], int | None]:
        """Return the numbers that keys of a family end with, from `start` on, and where the next page begins."""
        page = await self.scan(self.span(family, prefix, pack_number(start)), limit=limit)
        found = [number_in(key) for key, _ in page.entries if len(key) >= NUMBER_BYTES]
        return found, found[-1] + 1 if page.more else None


def trim_bodies(messages: list[StoredMessage]) -> int:
    """Return how many of the messages have bodies elsewhere that may be read together; at least the first."""
    size = 0
    for place, message in enumerate(messages):
        if message.facts.body is not None:
            size += message.facts.body.length
            if size > BODIES_BYTES_MAX and place:
                return place
    return len(messages)
