"""Many receivers at once, in one process and in several, over a store that answers at random moments: they are
canceled, let locks end, release and abandon. No message is lost, none is completed twice, and none is left lying."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from asterism.models.messages.channel import Channel
from asterism.models.messages.entity import Entity
from asterism.models.messages.messages import COMPLETE, UNLOCK, Abandon, Action, MessagingRefused, Received
from tests.support.messages import SECOND, BusWorld, new, open_bus, open_processes, tokens
from tests.support.virtual_time import run_virtual

# A receiver that settles nothing leaves its locks to their end.
CHOICES: list[Action | None] = [COMPLETE, COMPLETE, COMPLETE, UNLOCK, Abandon(), None]
RECEIVERS = 4


@asynccontextmanager
async def open_buses(processes: int) -> AsyncIterator[list[BusWorld]]:
    """Open a process that is alone for 0, or several on one store."""
    if processes:
        async with open_processes(processes) as buses:
            yield buses
    else:
        async with open_bus() as bus:
            yield [bus]


class Crowd:
    """Senders and receivers of one queue."""

    def __init__(self, buses: list[BusWorld], entities: list[Entity], seed: int) -> None:
        self.random = random.Random(seed)
        self.buses = buses
        self.entities = entities
        self.channels = [bus.channel(entity) for bus, entity in zip(buses, entities, strict=True)]
        self.sent: set[int] = set()
        self.done: Counter[int] = Counter()
        self.is_over = False
        for bus in buses:
            for name in ("apply", "read", "scan"):
                setattr(bus.world.router, name, self._late(getattr(bus.world.router, name)))

    def _late(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def called(*args: Any, **options: Any) -> Any:
            await asyncio.sleep(self.random.random() * 0.01)
            result = await call(*args, **options)
            await asyncio.sleep(self.random.random() * 0.01)
            return result

        return called

    async def send(self, entity: Entity) -> None:
        for number in range(30):
            session = f"s{number % 7}"
            count = self.random.randint(1, 5)
            self.sent.update(await entity.send([new("x", session_id=session) for _ in range(count)]))
            await asyncio.sleep(self.random.random() * 0.1)

    async def _impatient(self, call: Awaitable[list[Received]]) -> list[Received]:
        """Return what a call returns in a short time; it is canceled then."""
        task = asyncio.ensure_future(call)
        await asyncio.wait([task], timeout=self.random.random() * 0.2)
        task.cancel()
        with suppress(asyncio.CancelledError):
            return await task
        return []

    async def _settle(self, channel: Channel, received: list[Received]) -> None:
        self.done.update(message.sequence_number for message in received if message.lock_token is None)
        held = [message for message in received if message.lock_token is not None]
        action = self.random.choice(CHOICES)
        if not held or action is None:
            return
        failures = await channel.settle(tokens(held), action)
        settled = [message for message, failure in zip(held, failures, strict=True) if failure is None]
        self.done.update(message.sequence_number for message in settled if action is COMPLETE)

    async def receive(self, channel: Channel) -> None:
        while not self.is_over:
            lock = self.random.random() < 0.7
            received = await self._impatient(channel.receive(self.random.randint(1, 10), lock=lock))
            # A lock is settled in any process.
            await self._settle(self.random.choice(self.channels), received)

    async def receive_sessions(self, channel: Channel) -> None:
        while not self.is_over:
            with suppress(MessagingRefused):
                hold = await channel.accept_session(None, wait_seconds=1)
                for _ in range(self.random.randint(0, 3)):
                    call = channel.receive(self.random.randint(1, 5), lock=True, session=hold)
                    await self._settle(channel, await self._impatient(call))
                    await asyncio.sleep(self.random.choice([0, 0, 0, 6]))
                await hold.release()

    async def play(self, receive: Callable[[Channel], Awaitable[None]]) -> None:
        tasks = [asyncio.ensure_future(receive(channel)) for channel in self.channels for _ in range(RECEIVERS)]
        await asyncio.gather(*[self.send(entity) for entity in self.entities for _ in range(2)])
        deadline = asyncio.get_running_loop().time() + 600
        while self.done.keys() != self.sent and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(1)
        self.is_over = True
        await asyncio.gather(*tasks)
        assert self.done == Counter(self.sent)
        await self.buses[0].check_entries(self.entities[0])


async def crowd(processes: int, seed: int, **settings: Any) -> None:
    async with open_buses(processes) as buses:
        await buses[0].queue(lock_ms=5 * SECOND, max_delivery_count=1000, **settings)
        for bus in buses[1:]:
            await bus.store.namespaces.catch_up()
        players = Crowd(buses, [bus.find() for bus in buses], seed)
        await players.play(players.receive_sessions if settings else players.receive)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("processes", [0, 2, 3])
def test_every_message_is_completed_once(processes: int, seed: int) -> None:
    run_virtual(crowd(processes, seed))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("processes", [0, 2, 3])
def test_every_message_of_a_session_is_completed_once(processes: int, seed: int) -> None:
    run_virtual(crowd(processes, seed, requires_session=True))
