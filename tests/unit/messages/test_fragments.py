"""Partitioned entities: the choice of a fragment, and fragments that do not answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from asterism.errors import StorageUnavailable
from asterism.models.messages.descriptions import QueueDescription
from asterism.models.messages.messages import COMPLETE, Failure, FragmentState
from asterism.partitioning.partition_key import numbered_point
from tests.support.messages import BusWorld, drain, failure_of, new, open_bus, texts, tokens
from tests.support.virtual_time import in_virtual_time


def break_fragments(bus: BusWorld, monkeypatch: pytest.MonkeyPatch, broken: set[int]) -> None:
    """Let the stores of fragments not answer, those in the set at the moment of a call."""
    router = bus.world.router
    points = {number: numbered_point(number) for number in range(16)}
    apply, read, scan = router.apply, router.read, router.scan

    def check(point: bytes) -> None:
        if point in [points[number] for number in broken]:
            raise StorageUnavailable(reason="out of order")

    async def checked_apply(keyspace: Any, point: bytes, *args: Any, **options: Any) -> Any:
        check(point)
        return await apply(keyspace, point, *args, **options)

    async def checked_read(keyspace: Any, point: bytes, keys: Any) -> Any:
        check(point)
        return await read(keyspace, point, keys)

    async def checked_scan(keyspace: Any, record: Any, partition: Any, *args: Any, **options: Any) -> Any:
        check(partition.range.start or numbered_point(0))
        return await scan(keyspace, record, partition, *args, **options)

    monkeypatch.setattr(router, "apply", checked_apply)
    monkeypatch.setattr(router, "read", checked_read)
    monkeypatch.setattr(router, "scan", checked_scan)


@in_virtual_time
async def test_messages_without_a_key_go_round_and_numbers_have_their_fragment() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(is_partitioned=True)
        numbers = [(await queue.send([new(str(place))]))[0] for place in range(32)]
        assert [number >> 48 for number in numbers] == [*range(16), *range(16)]
        assert [number & 0xFFFF for number in numbers] == [1] * 16 + [2] * 16
        channel = bus.channel(queue)
        assert sorted(texts(await channel.peek(0, 100)), key=int) == [str(place) for place in range(32)]
        assert texts(await channel.peek(numbers[15], 1)) == ["15"]
        received = [message for _ in range(16) for message in await channel.receive(2, lock=True)]
        assert len(received) == 32
        assert await channel.settle(tokens(received), COMPLETE) == [None] * 32
        await bus.check_entries(queue)


@in_virtual_time
async def test_a_key_selects_its_fragment_and_keys_that_differ_are_refused() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(is_partitioned=True)
        first = await queue.send([new("a", partition_key="k"), new("b", session_id="k")], key="k")
        second = await queue.send([new("c", partition_key="k")])
        assert {number >> 48 for number in [*first, *second]} == {first[0] >> 48}
        keys = ["k", *(str(number) for number in range(5))]
        mixed = [new("x", partition_key=key) for key in keys]
        assert await failure_of(queue.send(mixed)) is Failure.NOT_ALLOWED
        conflict = [new("x", partition_key="a", session_id="b")]
        assert await failure_of(queue.send(conflict)) is Failure.NOT_ALLOWED


@in_virtual_time
async def test_duplicates_meet_in_the_fragment_of_their_message_id() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(is_partitioned=True, requires_duplicate_detection=True)
        first = await queue.send([new("a", message_id="7")])
        assert await queue.send([new("b", message_id="7")]) == first


@in_virtual_time
async def test_sends_pass_over_fragments_that_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_bus() as bus:
        queue = await bus.queue(is_partitioned=True)
        channel = bus.channel(queue)
        broken = {0, 1, queue.fragment_of_key("k").number}
        break_fragments(bus, monkeypatch, broken)
        for number in range(20):
            await queue.send([new(str(number))])
        assert await failure_of(queue.send([new("keyed", partition_key="k")])) is Failure.FRAGMENT_DOWN
        states = await queue.fragments()
        assert {status.number for status in states if status.state is FragmentState.DOWN} == broken
        assert sum(status.counts.active for status in states) == 20
        assert len(await drain(channel)) == 20
        waiting = asyncio.create_task(channel.receive(1, lock=True))
        await asyncio.sleep(1)
        broken.clear()
        await asyncio.sleep(10)
        await queue.send([new("keyed", partition_key="k")])
        assert texts(await waiting) == ["keyed"]
        await bus.check_entries(queue)


@in_virtual_time
async def test_a_closed_fragment_is_passed_over_until_it_is_open() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(is_partitioned=True)
        number = queue.fragment_of_key("k").number
        (sent,) = await queue.send([new("before", partition_key="k")])

        def close(before: QueueDescription) -> QueueDescription:
            return replace(before, closed_fragments=frozenset({number}))

        await bus.store.update(queue, close)
        assert await failure_of(queue.send([new("x", partition_key="k")])) is Failure.FRAGMENT_DOWN
        numbers = [(await queue.send([new("y")]))[0] for _ in range(16)]
        assert sent >> 48 not in {each >> 48 for each in numbers}
        assert (await queue.fragments())[number].state is FragmentState.CLOSED
        channel = bus.channel(queue)
        assert "before" not in texts(await drain(channel))
        waiting = asyncio.create_task(channel.receive(1, lock=True))
        await asyncio.sleep(1)
        await bus.store.update(queue, lambda before: replace(before, closed_fragments=frozenset()))
        assert texts(await waiting) == ["before"]


@in_virtual_time
async def test_sessions_of_all_fragments_are_accepted() -> None:
    async with open_bus() as bus:
        queue = await bus.queue(is_partitioned=True, requires_session=True)
        channel = bus.channel(queue)
        names = [f"s{number}" for number in range(30)]
        for name in names:
            await queue.send([new(name, session_id=name)])
        holds = [await channel.accept_session(None, wait_seconds=0) for _ in names]
        assert sorted(hold.session_id for hold in holds) == sorted(names)
        assert await channel.sessions(None, 0, 100) == sorted(names)
        for hold in holds:
            (message,) = await channel.receive(5, lock=False, session=hold)
            assert message.session_id == hold.session_id
        await bus.check_entries(queue)


@in_virtual_time
async def test_a_batch_whose_outcome_is_unknown_makes_the_fragment_forget_its_locks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_bus() as bus:
        queue = await bus.queue()
        channel = bus.channel(queue)
        await queue.send([new("a"), new("b")])
        received = await channel.receive(1, lock=True)
        broken = {0}
        break_fragments(bus, monkeypatch, broken)
        with pytest.raises(StorageUnavailable):
            await channel.settle(tokens(received), COMPLETE)
        broken.clear()
        assert await channel.settle(tokens(received), COMPLETE) == [Failure.LOCK_LOST]
        assert texts(await channel.receive(5, lock=True)) == ["a", "b"]
        await bus.check_entries(queue)
