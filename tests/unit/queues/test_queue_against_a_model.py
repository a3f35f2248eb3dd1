"""A queue does what a plain list of messages would do, at every moment, whatever the calls and their order."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.models.queues.messages import Message, MessageFailure, MessageRefused
from asterism.models.queues.queue import Queue
from asterism.models.queues.receipts import Receipt
from tests.support.queues import QueueWorld, open_queues

WEAK = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
FOR_EVER = 10**9


@dataclass
class Expected:
    """A message as it should be."""

    message_id: bytes
    visible_at: int
    expires_at: int
    dequeue_count: int
    text: bytes

    def as_seen(self) -> tuple[bytes, int, int, bytes]:
        return self.message_id, self.visible_at, self.dequeue_count, self.text


@dataclass
class Model:
    messages: list[Expected] = field(default_factory=list)
    # Every receipt that was ever given, with its message.
    receipts: list[tuple[bytes, Receipt]] = field(default_factory=list)

    def visible(self, now: int, count: int) -> list[Expected]:
        seen = [message for message in self.messages if message.visible_at <= now < message.expires_at]
        return sorted(seen, key=lambda message: (message.visible_at, message.message_id))[:count]

    def failure(self, message_id: bytes, receipt: Receipt, now: int, until: int) -> tuple[int, MessageFailure | None]:
        for index, message in enumerate(self.messages):
            if message.message_id == message_id:
                if message.visible_at != receipt.visible_at:
                    return index, MessageFailure.RECEIPT_OUTDATED
                if message.expires_at <= now:
                    return index, MessageFailure.NOT_FOUND
                return index, MessageFailure.VISIBLE_AFTER_EXPIRY if until >= message.expires_at else None
        return -1, MessageFailure.NOT_FOUND


class Player:
    """Does each step both ways and compares."""

    def __init__(self, world: QueueWorld, queue: Queue) -> None:
        self.world = world
        self.queue = queue
        self.model = Model()
        self.texts = 0

    @property
    def now(self) -> int:
        return self.world.moment.ticks

    def _note(self, message: Message) -> None:
        self.model.receipts.append((message.message_id, Receipt(message.generation, message.visible_at)))

    async def wait(self, ticks: int) -> None:
        self.world.moment.ticks += ticks

    async def put(self, delay: int, live: int | None) -> None:
        self.texts += 1
        text = b"text %d" % self.texts
        message = await self.queue.put(text, delay_ticks=delay, live_ticks=live)
        expires_at = FOR_EVER * self.now if live is None else self.now + live
        self.model.messages.append(Expected(message.message_id, self.now + delay, expires_at, 0, text))
        self._note(message)

    async def get(self, count: int, invisible: int) -> None:
        expected = self.model.visible(self.now, count)
        for position, message in enumerate(expected):
            message.visible_at = self.now + invisible + position
            message.dequeue_count += 1
        taken = await self.queue.get(count, invisible_ticks=invisible)
        assert [_as_seen(message) for message in taken] == [message.as_seen() for message in expected]
        for message in taken:
            self._note(message)

    async def peek(self, count: int) -> None:
        peeked = await self.queue.peek(count)
        expected = [message.as_seen() for message in self.model.visible(self.now, count)]
        assert [_as_seen(message) for message in peeked] == expected

    async def update(self, chosen: int, invisible: int, text: bytes | None) -> None:
        if not self.model.receipts:
            return
        message_id, receipt = self.model.receipts[chosen % len(self.model.receipts)]
        until = self.now + invisible
        index, failure = self.model.failure(message_id, receipt, self.now, until)
        try:
            renewed = await self.queue.update(message_id, receipt, invisible_ticks=invisible, text=text)
        except MessageRefused as refused:
            self._compare_refusal(index, failure, refused.failure)
        else:
            assert failure is None
            message = self.model.messages[index]
            message.visible_at = until + (until == message.visible_at)
            message.text = message.text if text is None else text
            assert renewed.visible_at == message.visible_at
            self.model.receipts.append((message_id, renewed))

    async def delete(self, chosen: int) -> None:
        if not self.model.receipts:
            return
        message_id, receipt = self.model.receipts[chosen % len(self.model.receipts)]
        index, failure = self.model.failure(message_id, receipt, self.now, self.now - FOR_EVER)
        try:
            await self.queue.delete(message_id, receipt)
        except MessageRefused as refused:
            self._compare_refusal(index, failure, refused.failure)
        else:
            assert failure is None
            del self.model.messages[index]

    def _compare_refusal(self, index: int, expected: MessageFailure | None, given: MessageFailure) -> None:
        # An expired message is gone sooner or later.
        is_gone = index >= 0 and self.model.messages[index].expires_at <= self.now
        assert given in ({expected, MessageFailure.NOT_FOUND} if is_gone else {expected})

    async def clear(self) -> None:
        await self.queue.clear()
        self.model.messages = []

    async def count(self) -> None:
        await self.world.tidy()
        self.model.messages = [message for message in self.model.messages if message.expires_at > self.now]
        assert await self.queue.count() == len(self.model.messages)
        await self.world.check_entries()

    async def forget(self) -> None:
        """Go on as another request, perhaps of another process, that knows nothing of the queue."""
        services = replace(self.world.queues.services, heads=type(self.world.queues.services.heads)())
        found = await self.world.queues.find_queue("acct", "jobs")
        assert found is not None
        self.queue = Queue("acct", "jobs", found.keyspace, found.record, services)


def _as_seen(message: Message) -> tuple[bytes, int, int, bytes]:
    return message.message_id, message.visible_at, message.state.dequeue_count, message.text


ticks = st.integers(0, 12)
steps = st.one_of(
    st.tuples(st.just("put"), ticks, st.one_of(st.none(), st.integers(13, 30))),
    st.tuples(st.just("put"), st.just(0), st.none()),
    st.tuples(st.just("get"), st.integers(1, 4), st.integers(1, 12)),
    st.tuples(st.just("peek"), st.integers(1, 32)),
    st.tuples(st.just("update"), st.integers(0, 100), ticks, st.one_of(st.none(), st.binary(max_size=5))),
    st.tuples(st.just("delete"), st.integers(0, 100)),
    st.tuples(st.just("wait"), st.integers(0, 8)),
    st.just(("clear",)),
    st.just(("count",)),
    st.just(("forget",)),
)


@WEAK
@given(st.lists(steps, max_size=40), st.booleans())
def test_a_queue_does_what_a_list_of_messages_would(calls: list[tuple[object, ...]], is_stored: bool) -> None:
    async def play(directory: Path | None) -> None:
        async with open_queues(directory) as world:
            player = Player(world, await world.new_queue())
            for name, *arguments in [*calls, ("count",), ("wait", 100), ("count",)]:
                await getattr(player, str(name))(*arguments)

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(play(Path(directory) if is_stored else None))
