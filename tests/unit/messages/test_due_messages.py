"""Messages that are scheduled, expire or are remembered, and entities that are idle."""

from __future__ import annotations

import asyncio

from asterism.models.messages.messages import COMPLETE, UNLOCK, Abandon, Failure, MessageState, SubQueue
from asterism.storage.memory import MemoryStore
from tests.support.messages import (
    MINUTE,
    NAMESPACE,
    SECOND,
    drain,
    failure_of,
    new,
    open_bus,
    reopened,
    texts,
    tokens,
)
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_a_scheduled_message_becomes_active_at_its_moment_with_its_number() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        due_ms = channel.now_ms() + 30 * SECOND
        (number,) = await queue.send([new("later", scheduled_ms=due_ms)])
        await queue.send([new("now")])
        assert texts(await channel.receive(5, lock=False)) == ["now"]
        assert (await queue.counts())[0, SubQueue.MAIN].scheduled == 1
        (received,) = await channel.receive(5, lock=True)
        assert due_ms <= channel.now_ms() <= due_ms + SECOND
        assert (received.sequence_number, received.enqueued_ms, received.scheduled_ms) == (number, due_ms, due_ms)
        assert received.state is MessageState.ACTIVE
        await bus.check_entries(queue)


@in_virtual_time
async def test_scheduled_messages_can_be_canceled_all_or_none() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        moment_ms = channel.now_ms() + MINUTE
        numbers = await queue.send([new(name, scheduled_ms=moment_ms) for name in "ab"])
        assert await failure_of(queue.cancel_scheduled([numbers[0], 77])) is Failure.MESSAGE_NOT_FOUND
        await queue.cancel_scheduled(numbers[:1])
        assert await failure_of(queue.cancel_scheduled(numbers[:1])) is Failure.MESSAGE_NOT_FOUND
        await asyncio.sleep(61)
        assert texts(await drain(channel)) == ["b"]
        await bus.check_entries(queue)


@in_virtual_time
async def test_expired_messages_are_dropped_or_dead_lettered() -> None:
    async with open_bus() as bus:
        drops = await bus.queue("drops", default_ttl_ms=10 * SECOND)
        keeps = await bus.queue("keeps", dead_letters_expired=True)
        for queue in (drops, keeps):
            await queue.send([new("a", ttl_ms=20 * SECOND), new("b", ttl_ms=5 * SECOND)])
        (first, _) = await bus.channel(drops).peek(0, 5)
        assert first.expires_ms == first.enqueued_ms + 10 * SECOND
        await asyncio.sleep(6)
        assert texts(await bus.channel(drops).peek(0, 5)) == ["a"]
        letters = await drain(bus.dead_letters(keeps))
        assert [dict(letter.overlay)["DeadLetterReason"] for letter in letters] == ["TTLExpiredException"]
        assert letters[0].expires_ms is None
        await asyncio.sleep(60)
        assert await drops.counts() == {}
        assert texts(await drain(bus.dead_letters(keeps))) == ["a"]
        for queue in (drops, keeps):
            await bus.check_entries(queue)


@in_virtual_time
async def test_a_message_under_lock_expires_when_its_lock_ends() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(lock_ms=30 * SECOND, dead_letters_expired=True)
        channel = bus.channel(queue)
        await queue.send([new(name, ttl_ms=10 * SECOND) for name in "abc"])
        received = await channel.receive(3, lock=True)
        await asyncio.sleep(20)
        assert await channel.settle(tokens(received[:1]), COMPLETE) == [None]
        assert await channel.settle(tokens(received[1:2]), UNLOCK) == [None]
        assert await channel.receive(5, lock=True, wait=False) == []
        await asyncio.sleep(20)
        assert sorted(texts(await drain(bus.dead_letters(queue)))) == ["b", "c"]
        await bus.check_entries(queue)


@in_virtual_time
async def test_duplicates_inside_the_window_are_accepted_and_dropped() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(requires_duplicate_detection=True, duplicate_window_ms=20 * SECOND)
        channel = bus.channel(queue)
        assert await queue.send([new("a", message_id="1"), new("b", message_id="1"), new("c", message_id="2")]) == [
            1,
            1,
            2,
        ]
        assert await queue.send([new("d", message_id="2"), new("e")]) == [2, 3]
        assert texts(await drain(channel)) == ["a", "c", "e"]
        await asyncio.sleep(21)
        assert await queue.send([new("f", message_id="1")]) == [4]
        await bus.check_entries(queue)
        await asyncio.sleep(21)
        await bus.upkeep.tidy()
        await drain(channel)
        await bus.check_entries(queue)
        assert await queue.send([new("g", message_id="1")]) == [5]


@in_virtual_time
async def test_the_upkeep_finds_what_no_timer_knows_of() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        await queue.send([new("a", scheduled_ms=channel.now_ms() + SECOND), new("b", ttl_ms=SECOND)])
        bus.store.services.due.stop()
        await asyncio.sleep(5)
        assert texts(await drain(channel)) == []
        await bus.upkeep.tidy()
        assert texts(await drain(channel)) == ["a"]
        await bus.check_entries(queue)


@in_virtual_time
async def test_an_idle_queue_deletes_itself_and_one_in_use_does_not() -> None:
    async with open_bus() as bus:
        await bus.upkeep.start()
        await bus.queue("idle", auto_delete_ms=5 * MINUTE)
        used = await bus.queue("used", auto_delete_ms=5 * MINUTE)
        topic = await bus.topic()
        await bus.subscribe(topic, "idle", auto_delete_ms=5 * MINUTE)
        await bus.subscribe(topic, "stays")
        waiting = asyncio.create_task(bus.channel(used).receive(1, lock=True))
        await asyncio.sleep(10 * 60)
        assert bus.store.find(NAMESPACE, "idle") is None
        assert bus.store.find(NAMESPACE, "used") is used
        assert list(topic.topic.subscriptions) == ["stays"]
        waiting.cancel()
        await asyncio.sleep(10 * 60)
        assert bus.store.find(NAMESPACE, "used") is None
        await bus.upkeep.stop()


@in_virtual_time
async def test_a_restart_keeps_messages_counts_and_schedules_and_frees_locks_in_time() -> None:
    memory = MemoryStore()
    async with reopened(memory) as bus:
        queue = await bus.queue(lock_ms=10 * SECOND)
        channel = bus.channel(queue)
        await queue.send([new("a"), new("b"), new("c", scheduled_ms=channel.now_ms() + 30 * SECOND)])
        received = await channel.receive(2, lock=True)
        await channel.settle(tokens(received[:1]), Abandon())
        await channel.receive(1, lock=True)
    await asyncio.sleep(60)
    async with reopened(memory) as bus:
        queue = bus.find()
        channel = bus.channel(queue)
        assert await channel.settle(tokens(received), COMPLETE) == [Failure.LOCK_LOST] * 2
        waiting = asyncio.create_task(channel.receive(5, lock=True))
        await bus.upkeep.tidy()
        found = await waiting
        while len(found) < 3:
            found += await channel.receive(5, lock=True)
        assert sorted((text, message.delivery_count) for text, message in zip(texts(found), found, strict=True)) == [
            ("a", 2),
            ("b", 1),
            ("c", 0),
        ]
        await channel.settle(tokens(found), COMPLETE)
        await bus.check_entries(queue)
