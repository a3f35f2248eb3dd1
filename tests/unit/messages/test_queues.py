"""A queue: sending, receiving under lock and without, settlement, dead letters."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from asterism.models.messages.messages import (
    COMPLETE,
    UNLOCK,
    Abandon,
    DeadLetter,
    Defer,
    Failure,
    MessageState,
)
from tests.support.messages import (
    MINUTE,
    SECOND,
    drain,
    failure_of,
    new,
    open_bus,
    text_of,
    texts,
    tokens,
)
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_messages_come_in_the_order_in_which_they_were_sent() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        numbers = await queue.send([new("a"), new("b")])
        numbers += await queue.send([new("c")])
        assert numbers == [1, 2, 3]
        received = await bus.channel(queue).receive(10, lock=True)
        assert texts(received) == ["a", "b", "c"]
        assert [message.sequence_number for message in received] == numbers
        assert [message.delivery_count for message in received] == [0, 0, 0]
        await bus.check_entries(queue)


@in_virtual_time
async def test_a_completed_message_is_gone_and_a_second_completion_finds_no_lock() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        await queue.send([new("a")])
        received = await channel.receive(1, lock=True)
        assert await channel.settle(tokens(received), COMPLETE) == [None]
        assert await channel.settle(tokens(received), COMPLETE) == [Failure.LOCK_LOST]
        assert await channel.peek(0, 10) == []
        assert await queue.counts() == {}
        await bus.check_entries(queue)


@in_virtual_time
async def test_a_message_under_lock_is_not_received_again_until_it_is_abandoned() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        await queue.send([new("a"), new("b")])
        (first,) = await channel.receive(1, lock=True)
        (second,) = await channel.receive(5, lock=True)
        assert (text_of(first), text_of(second)) == ("a", "b")
        assert await channel.receive(5, lock=True, wait=False) == []
        await channel.settle(tokens([first]), Abandon({"why": "tired"}))
        (again,) = await channel.receive(5, lock=True)
        assert (text_of(again), again.delivery_count, dict(again.overlay)) == ("a", 1, {"why": "tired"})
        await channel.settle(tokens([again, second]), COMPLETE)
        await bus.check_entries(queue)


@in_virtual_time
async def test_an_unlocked_message_comes_again_uncounted() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        await queue.send([new("a")])
        received = await channel.receive(1, lock=True)
        assert await channel.settle(tokens(received), UNLOCK) == [None]
        (again,) = await channel.receive(1, lock=True)
        assert again.delivery_count == 0
        assert again.lock_token != received[0].lock_token


@in_virtual_time
async def test_messages_received_without_lock_are_removed() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        await queue.send([new("a"), new("b")])
        received = await channel.receive(5, lock=False)
        assert texts(received) == ["a", "b"]
        assert [(message.lock_token, message.locked_until_ms) for message in received] == [(None, None)] * 2
        await bus.check_entries(queue)
        assert await queue.counts() == {}


@in_virtual_time
async def test_a_lock_that_ends_counts_the_delivery_and_frees_the_message() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(lock_ms=5 * SECOND)
        channel = bus.channel(queue)
        await queue.send([new("a")])
        received = await channel.receive(1, lock=True)
        (again,) = await channel.receive(1, lock=True)
        assert again.delivery_count == 1
        assert await channel.settle(tokens(received), COMPLETE) == [Failure.LOCK_LOST]
        assert await channel.settle(tokens([again]), COMPLETE) == [None]


@in_virtual_time
async def test_a_renewed_lock_holds_longer() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(lock_ms=5 * SECOND)
        channel = bus.channel(queue)
        await queue.send([new("a")])
        received = await channel.receive(1, lock=True)
        await asyncio.sleep(4)
        (until_ms,) = await channel.renew(tokens(received))
        assert until_ms == channel.now_ms() + 5 * SECOND
        await asyncio.sleep(4)
        assert await channel.settle(tokens(received), COMPLETE) == [None]
        assert await channel.renew(tokens(received)) == [Failure.LOCK_LOST]


@in_virtual_time
async def test_a_message_that_fails_too_often_goes_to_the_dead_letters() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(max_delivery_count=2)
        channel = bus.channel(queue)
        await queue.send([new("a")])
        for count in range(2):
            received = await channel.receive(1, lock=True)
            assert received[0].delivery_count == count
            await channel.settle(tokens(received), Abandon())
        assert await channel.receive(1, lock=True, wait=False) == []
        (letter,) = await bus.dead_letters(queue).receive(1, lock=True)
        assert letter.sequence_number == 1
        assert letter.overlay["DeadLetterReason"] == "MaxDeliveryCountExceeded"
        await bus.check_entries(queue)


@in_virtual_time
async def test_a_dead_letter_has_its_reason_and_can_be_completed() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel, letters = bus.channel(queue), bus.dead_letters(queue)
        await queue.send([new("a"), new("b")])
        waiting = asyncio.create_task(letters.receive(5, lock=True))
        received = await channel.receive(2, lock=True)
        await channel.settle(tokens(received[1:]), DeadLetter("bad", "really", {"n": 1}))
        await channel.settle(tokens(received[:1]), DeadLetter())
        found = await waiting
        found += await letters.receive(5, lock=True)
        assert texts(found) == ["b", "a"]
        assert dict(found[0].overlay) == {
            "DeadLetterReason": "bad",
            "DeadLetterErrorDescription": "really",
            "n": 1,
        }
        assert await letters.settle(tokens(found), COMPLETE) == [None, None]
        await bus.check_entries(queue)


@in_virtual_time
async def test_deferred_messages_are_received_by_their_numbers() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        await queue.send([new("a"), new("b")])
        received = await channel.receive(2, lock=True)
        await channel.settle(tokens(received), Defer({"later": True}))
        assert await channel.receive(2, lock=True, wait=False) == []
        assert await failure_of(channel.receive_deferred([2, 3], lock=True)) is Failure.MESSAGE_NOT_FOUND
        (found,) = await channel.receive_deferred([2], lock=True)
        assert (found.state, dict(found.overlay)) == (MessageState.DEFERRED, {"later": True})
        assert await failure_of(channel.receive_deferred([2], lock=True)) is Failure.MESSAGE_NOT_FOUND
        await channel.settle(tokens([found]), Abandon())
        (again,) = await channel.receive_deferred([2], lock=True)
        assert (again.state, again.delivery_count) == (MessageState.DEFERRED, 1)
        await channel.settle(tokens([again]), COMPLETE)
        assert texts(await channel.receive_deferred([1], lock=False)) == ["a"]
        await bus.check_entries(queue)


@in_virtual_time
async def test_a_waiting_receiver_gets_what_is_sent() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        waiting = [asyncio.create_task(channel.receive(1, lock=True)) for _ in range(3)]
        await asyncio.sleep(1)
        await queue.send([new("a")])
        await queue.send([new("b"), new("c")])
        received = [(await task)[0] for task in waiting]
        # Those that waited longest come first.
        assert texts(received) == ["a", "b", "c"]


@in_virtual_time
async def test_a_canceled_receiver_loses_no_message() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        for lock in (True, False):
            waiting = [asyncio.create_task(channel.receive(1, lock=lock)) for _ in range(4)]
            await asyncio.sleep(1)
            await queue.send([new("a"), new("b")])
            for task in waiting:
                task.cancel()
            results = await asyncio.gather(*waiting, return_exceptions=True)
            got = [message for result in results if isinstance(result, list) for message in result]
            rest = await drain(channel)
            await asyncio.sleep(0)
            rest += await drain(channel)
            assert sorted(texts([*got, *rest])) == ["a", "b"]
            await channel.settle(tokens(got), COMPLETE)
        await bus.check_entries(queue)


@in_virtual_time
async def test_peeking_shows_all_states_in_order_and_locks_nothing() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        await queue.send([new(name) for name in "abcd"])
        received = await channel.receive(2, lock=True)
        await channel.settle(tokens(received[:1]), Defer())
        await queue.send([new("e", scheduled_ms=channel.now_ms() + MINUTE)])
        peeked = await channel.peek(0, 10)
        assert texts(peeked) == ["a", "b", "c", "d", "e"]
        assert [int(message.state) for message in peeked] == [1, 0, 0, 0, 2]
        assert texts(await channel.peek(3, 1)) == ["c"]
        assert texts(await channel.receive(5, lock=True)) == ["c", "d"]


@in_virtual_time
async def test_a_full_queue_refuses_messages_and_takes_them_again_when_there_is_room() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(max_size_mb=1)
        channel = bus.channel(queue)
        for _ in range(4):
            await queue.send([new(b"x" * 250_000)])
        assert await failure_of(queue.send([new(b"x" * 250_000)])) is Failure.ENTITY_FULL
        await channel.receive(1, lock=False)
        await queue.send([new(b"x" * 250_000)])
        await bus.check_entries(queue)


@in_virtual_time
async def test_a_purge_removes_what_no_receiver_has() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        await queue.send([new(str(number)) for number in range(50)])
        await queue.send([new("later", scheduled_ms=channel.now_ms() + MINUTE)])
        (held,) = await channel.receive(1, lock=True)
        assert await channel.purge() == 50
        assert await channel.receive(5, lock=True, wait=False) == []
        await channel.settle(tokens([held]), COMPLETE)
        await queue.send([new("new")])
        assert texts(await drain(channel)) == ["new"]
        await asyncio.sleep(61)
        await bus.check_entries(queue)


@in_virtual_time
async def test_statuses_refuse_what_they_name() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(status="SendDisabled")
        assert await failure_of(queue.send([new("a")])) is Failure.ENTITY_DISABLED
        assert await bus.channel(queue).receive(1, lock=True, wait=False) == []
        other = await bus.queue("other", status="ReceiveDisabled")
        await other.send([new("a")])
        assert await failure_of(bus.channel(other).receive(1, lock=True)) is Failure.ENTITY_DISABLED


@in_virtual_time
async def test_many_messages_are_received_in_order_whatever_is_returned_between() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        await queue.send([new(str(number)) for number in range(1000)])
        first = await channel.receive(400, lock=True)
        await channel.settle(tokens(first[10:20]), UNLOCK)
        rest: list[str] = []
        while received := await channel.receive(64, lock=True, wait=False):
            rest += texts(received)
        assert rest == [str(number) for number in [*range(10, 20), *range(len(first), 1000)]]


@in_virtual_time
async def test_a_receiver_that_is_canceled_while_it_reads_passes_its_turn_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        scan = bus.world.router.scan

        async def scan_slowly(*args: Any, **options: Any) -> Any:
            await asyncio.sleep(1)
            return await scan(*args, **options)

        monkeypatch.setattr(bus.world.router, "scan", scan_slowly)
        waiting = [asyncio.create_task(channel.receive(1, lock=True)) for _ in range(2)]
        await asyncio.sleep(10)
        await queue.send([new("a")])
        await asyncio.sleep(0.5)
        # The first was woken, and is reading.
        waiting[0].cancel()
        assert texts(await waiting[1]) == ["a"]
