"""The queues that this process is emptying."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from asterism.models.messages.channel import Channel


@dataclass(eq=False, slots=True)
class Purge:
    channel: Channel
    # Messages when it began.
    total: int
    # In answers so far.
    announced: int = 0
    # In all, when it is over.
    removed: int = 0
    task: asyncio.Task[None] = field(init=False)

    async def run(self) -> None:
        self.removed = await self.channel.purge()


class Purges:
    """The purges under way, at most one for each channel."""

    def __init__(self) -> None:
        self._under_way: dict[tuple[bytes, bytes], Purge] = {}

    def find(self, channel: Channel) -> Purge | None:
        return self._under_way.get(_place_of(channel))

    def begin(self, channel: Channel, total: int) -> Purge:
        """Begin to empty a channel; the work ends with the program at the latest."""
        purge = self._under_way[_place_of(channel)] = Purge(channel, total)
        purge.task = channel.entity.services.spawn(purge.run())
        return purge

    def end(self, purge: Purge) -> None:
        place = _place_of(purge.channel)
        if self._under_way.get(place) is purge:
            del self._under_way[place]


def _place_of(channel: Channel) -> tuple[bytes, bytes]:
    return channel.entity.keyspace.record.rid, channel.channel
