"""A queue does what a plain list of messages would do, whatever the calls and their order, with locks in memory and
with stored ones: none is lost, none is with two receivers, and the lowest number comes first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.models.messages.channel import Channel
from asterism.models.messages.messages import (
    COMPLETE,
    UNLOCK,
    Abandon,
    Action,
    DeadLetter,
    Defer,
    Failure,
    MessageState,
    Received,
)
from tests.support.messages import SECOND, BusWorld, failure_of, new, open_bus, open_processes, text_of
from tests.support.virtual_time import run_virtual

THOROUGH = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
LOCK_SECONDS = 10
DELIVERIES_MAX = 3
ACTIONS: list[Action] = [COMPLETE, Abandon(), Defer(), DeadLetter("bad"), UNLOCK]

Open = Callable[[], AbstractAsyncContextManager[BusWorld]]


@asynccontextmanager
async def open_with_stored_locks() -> AsyncIterator[BusWorld]:
    async with open_processes(1) as (bus,):
        yield bus


@dataclass
class Expected:
    """A message as it should be."""

    number: int
    text: str
    state: MessageState = MessageState.ACTIVE
    count: int = 0
    token: bytes | None = None
    locked_until_ms: int = 0


@dataclass
class Model:
    messages: dict[int, Expected] = field(default_factory=dict)
    letters: list[int] = field(default_factory=list)

    def advance(self, now_ms: int) -> None:
        """Let locks end."""
        for message in list(self.messages.values()):
            if message.token is not None and message.locked_until_ms <= now_ms:
                self.settle(message, Abandon())

    def settle(self, message: Expected, action: Action) -> None:
        message.token = None
        match action:
            case Abandon():
                message.count += 1
                if message.count >= DELIVERIES_MAX:
                    self._to_letters(message)
            case Defer():
                message.state = MessageState.DEFERRED
            case DeadLetter():
                self._to_letters(message)
            case _ if action is COMPLETE:
                del self.messages[message.number]

    def _to_letters(self, message: Expected) -> None:
        del self.messages[message.number]
        self.letters.append(message.number)

    def available(self, state: MessageState) -> list[Expected]:
        found = [each for each in self.messages.values() if each.state is state and each.token is None]
        return sorted(found, key=lambda message: message.number)


class Player:
    """Does each step both ways and compares."""

    def __init__(self, bus: BusWorld, channel: Channel) -> None:
        self.bus = bus
        self.channel = channel
        self.model = Model()
        self.tokens: list[tuple[int, bytes]] = []
        self.sent = 0

    async def play(self, step: tuple[str, int, int]) -> None:
        name, first, second = step
        await getattr(self, name)(first, second)
        # Let what was begun by timers end.
        await asyncio.sleep(0.01)
        self.model.advance(self.channel.now_ms())

    async def send(self, count: int, _: int) -> None:
        names = [str(self.sent + place) for place in range(count + 1)]
        self.sent += count + 1
        numbers = await self.channel.entity.send([new(name) for name in names])
        for number, name in zip(numbers, names, strict=True):
            self.model.messages[number] = Expected(number, name)

    async def receive(self, count: int, _: int) -> None:
        expected = self.model.available(MessageState.ACTIVE)[: count + 1]
        received = await self.channel.receive(count + 1, lock=True, wait=False)
        self._compare(received, expected)
        self._note(received)

    async def take(self, count: int, _: int) -> None:
        expected = self.model.available(MessageState.ACTIVE)[: count + 1]
        received = await self.channel.receive(count + 1, lock=False, wait=False)
        self._compare(received, expected)
        for message in received:
            del self.model.messages[message.sequence_number]

    def _compare(self, received: list[Received], expected: list[Expected]) -> None:
        # Fewer than asked for, perhaps, but some if there are any.
        assert bool(received) == bool(expected)
        assert [(message.sequence_number, text_of(message), message.delivery_count) for message in received] == [
            (message.number, message.text, message.count) for message in expected[: len(received)]
        ]

    def _note(self, received: list[Received]) -> None:
        for message in received:
            assert message.lock_token is not None
            assert message.locked_until_ms is not None
            expected = self.model.messages[message.sequence_number]
            expected.token, expected.locked_until_ms = message.lock_token, message.locked_until_ms
            self.tokens.append((message.sequence_number, message.lock_token))

    async def settle(self, chosen: int, action: int) -> None:
        await self._settle([chosen], ACTIONS[action % len(ACTIONS)])

    async def settle_many(self, chosen: int, action: int) -> None:
        await self._settle([chosen, chosen + 1, chosen + 2, chosen], ACTIONS[action % len(ACTIONS)])

    async def _settle(self, chosen: list[int], action: Action) -> None:
        named = [self.tokens[each % len(self.tokens)] for each in chosen if self.tokens]
        failures = await self.channel.settle([token for _, token in named], action)
        for (number, token), failure in zip(named, failures, strict=True):
            message = self.model.messages.get(number)
            if message is not None and message.token == token:
                assert failure is None
                self.model.settle(message, action)
            else:
                assert failure is Failure.LOCK_LOST

    async def renew(self, chosen: int, _: int) -> None:
        for number, token in [self.tokens[chosen % len(self.tokens)]] if self.tokens else []:
            (result,) = await self.channel.renew([token])
            message = self.model.messages.get(number)
            if message is not None and message.token == token:
                assert not isinstance(result, Failure)
                message.locked_until_ms = result
            else:
                assert result is Failure.LOCK_LOST

    async def receive_deferred(self, chosen: int, _: int) -> None:
        expected = {message.number: message for message in self.model.available(MessageState.DEFERRED)}
        number = chosen % (self.sent + 1)
        if number not in expected:
            assert await failure_of(self.channel.receive_deferred([number], lock=True)) is Failure.MESSAGE_NOT_FOUND
            return
        received = await self.channel.receive_deferred([number], lock=True)
        assert [(message.sequence_number, message.delivery_count) for message in received] == [
            (number, expected[number].count)
        ]
        self._note(received)

    async def wait(self, seconds: int, _: int) -> None:
        await asyncio.sleep(seconds)

    async def check(self) -> None:
        peeked = await self.channel.peek(0, 1000)
        expected = sorted(self.model.messages.values(), key=lambda message: message.number)
        assert [(message.sequence_number, message.state, message.delivery_count) for message in peeked] == [
            (message.number, message.state, message.count) for message in expected
        ]
        letters = await self.bus.dead_letters(self.channel.entity).peek(0, 1000)
        assert [letter.sequence_number for letter in letters] == sorted(self.model.letters)
        await self.bus.check_entries(self.channel.entity)


STEPS = st.tuples(
    st.sampled_from(
        ["send", "receive", "receive", "take", "settle", "settle", "settle_many", "renew", "receive_deferred", "wait"]
    ),
    st.integers(0, 12),
    st.integers(0, 4),
)


@pytest.mark.parametrize("open_world", [open_bus, open_with_stored_locks])
@THOROUGH
@given(steps=st.lists(STEPS, max_size=40))
def test_a_queue_is_a_list_of_messages(open_world: Open, steps: list[tuple[str, int, int]]) -> None:
    async def play() -> None:
        async with open_world() as bus:
            queue = await bus.queue(lock_ms=LOCK_SECONDS * SECOND, max_delivery_count=DELIVERIES_MAX)
            player = Player(bus, bus.channel(queue))
            for step in steps:
                await player.play(step)
            await player.check()

    run_virtual(play())
