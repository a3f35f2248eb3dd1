"""Transactions: one batch of sends and settlements, or nothing."""

from __future__ import annotations

import asyncio

import pytest

from asterism.models.messages.messages import COMPLETE, Abandon, DeadLetter, Failure, MessagingRefused
from tests.support.messages import SECOND, drain, failure_of, new, open_bus, open_processes, texts, tokens
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_sends_and_settlements_are_seen_together_after_the_commit() -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        await queue.send([new("a"), new("b")])
        received = await channel.receive(2, lock=True)
        transaction = queue.transaction()
        transaction.send([new("c")])
        assert await transaction.settle(channel, tokens(received[:1]), COMPLETE) == [None]
        assert await transaction.settle(channel, tokens(received[1:]), DeadLetter("x")) == [None]
        assert await channel.receive(5, lock=True, wait=False) == []
        # A lock that is part of a transaction is not settled besides.
        assert await channel.settle(tokens(received), COMPLETE) == [Failure.LOCK_LOST] * 2
        await transaction.commit()
        assert texts(await channel.receive(5, lock=True)) == ["c"]
        assert texts(await drain(bus.dead_letters(queue))) == ["b"]
        assert await failure_of(transaction.commit()) is Failure.TRANSACTION_UNKNOWN
        await bus.check_entries(queue)


@in_virtual_time
async def test_a_rollback_leaves_everything_as_it_was() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(lock_ms=10 * SECOND)
        channel = bus.channel(queue)
        await queue.send([new("a")])
        received = await channel.receive(1, lock=True)
        transaction = queue.transaction()
        transaction.send([new("b")])
        await transaction.settle(channel, tokens(received), COMPLETE)
        transaction.rollback()
        assert await channel.settle(tokens(received), Abandon()) == [None]
        received = await channel.receive(5, lock=True)
        assert texts(received) == ["a"]
        other = queue.transaction()
        await other.settle(channel, tokens(received), COMPLETE)
        await asyncio.sleep(11)
        other.rollback()
        # The lock has ended meanwhile.
        (again,) = await channel.receive(5, lock=True)
        assert again.delivery_count == 2
        with pytest.raises(MessagingRefused):
            other.send([new("c")])


@in_virtual_time
async def test_a_refused_part_refuses_the_whole_and_nothing_else() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(max_size_mb=1)
        channel = bus.channel(queue)
        await queue.send([new("a")])
        received = await channel.receive(1, lock=True)
        transaction = queue.transaction()
        await transaction.settle(channel, tokens(received), COMPLETE)
        transaction.send([new(b"x" * 1_100_000)])
        committing = asyncio.create_task(transaction.commit())
        others = [asyncio.create_task(queue.send([new("small")])) for _ in range(3)]
        assert await failure_of(committing) is Failure.ENTITY_FULL
        await asyncio.gather(*others, return_exceptions=True)
        assert await channel.settle(tokens(received), COMPLETE) == [None]
        await bus.check_entries(queue)


@in_virtual_time
async def test_a_transaction_is_about_one_fragment_of_one_entity() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(is_partitioned=True)
        other = await bus.queue("other")
        await other.send([new("a")])
        received = await bus.channel(other).receive(1, lock=True)
        transaction = queue.transaction()
        transaction.send([new("a", partition_key="k")])
        keys = ["k", *(str(number) for number in range(5))]
        with pytest.raises(MessagingRefused):
            transaction.send([new("x", partition_key=key) for key in keys])
        with pytest.raises(MessagingRefused):
            transaction.send([new("no key")])
        refused = transaction.settle(bus.channel(other), tokens(received), COMPLETE)
        assert await failure_of(refused) is Failure.NOT_ALLOWED
        with pytest.raises(MessagingRefused):
            transaction.send([new("x", partition_key="k") for _ in range(100)])
        await transaction.commit()
        assert texts(await drain(bus.channel(queue))) == ["a"]


@in_virtual_time
async def test_a_transaction_fails_as_a_whole_if_another_process_has_settled_a_message() -> None:
    async with open_processes(2) as (first, second):
        queue = await first.queue()
        await queue.send([new("a"), new("b")])
        await second.store.namespaces.catch_up()
        here, there = first.channel(queue), second.channel(second.find())
        received = await here.receive(2, lock=True)
        transaction = queue.transaction()
        transaction.send([new("c")])
        await transaction.settle(here, tokens(received), COMPLETE)
        assert await there.settle(tokens(received[1:]), COMPLETE) == [None]
        assert await failure_of(transaction.commit()) is Failure.LOCK_LOST
        assert await here.settle(tokens(received[:1]), COMPLETE) == [None]
        assert await drain(there) == []
        await first.check_entries(queue)
