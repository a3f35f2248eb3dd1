"""Sessions: held by one receiver, in order, released, lost; their states; the next one that is free."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from asterism.models.messages.channel import Channel
from asterism.models.messages.messages import COMPLETE, Abandon, DeadLetter, Defer, Failure
from tests.support.messages import SECOND, BusWorld, failure_of, new, open_bus, texts, tokens
from tests.support.virtual_time import in_virtual_time


async def session_queue(bus: BusWorld, **settings: Any) -> Channel:
    return bus.channel(await bus.queue(requires_session=True, **settings))


@in_virtual_time
async def test_a_session_is_received_in_order_by_one_receiver() -> None:
    async with open_bus() as bus:
        channel = await session_queue(bus)
        await channel.entity.send([new("a1", session_id="a"), new("b1", session_id="b"), new("a2", session_id="a")])
        hold = await channel.accept_session("a", wait_seconds=0)
        assert await failure_of(channel.accept_session("a", wait_seconds=0)) is Failure.SESSION_CANNOT_BE_LOCKED
        received = await channel.receive(5, lock=True, session=hold)
        assert texts(received) == ["a1", "a2"]
        assert [message.locked_until_ms for message in received] == [hold.locked_until_ms] * 2
        assert await channel.settle(tokens(received), COMPLETE, session_id="a") == [None, None]
        await hold.release()
        await bus.check_entries(channel.entity)


@in_virtual_time
async def test_messages_without_session_and_receivers_without_session_are_refused() -> None:
    async with open_bus() as bus:
        channel = await session_queue(bus)
        assert await failure_of(channel.entity.send([new("a")])) is Failure.NOT_ALLOWED
        assert await failure_of(channel.receive(1, lock=True)) is Failure.NOT_ALLOWED
        plain = bus.channel(await bus.queue("plain"))
        assert await failure_of(plain.accept_session("a", wait_seconds=0)) is Failure.NOT_ALLOWED


@in_virtual_time
async def test_an_abandoned_message_comes_again_before_later_ones() -> None:
    async with open_bus() as bus:
        channel = await session_queue(bus)
        await channel.entity.send([new(name, session_id="") for name in "abc"])
        hold = await channel.accept_session("", wait_seconds=0)
        received = await channel.receive(2, lock=True, session=hold)
        await channel.settle(tokens(received), Abandon())
        again = await channel.receive(5, lock=True, session=hold)
        assert [(text, message.delivery_count) for text, message in zip(texts(again), again, strict=True)] == [
            ("a", 1),
            ("b", 1),
            ("c", 0),
        ]


@in_virtual_time
async def test_a_released_session_is_free_with_its_messages_uncounted() -> None:
    async with open_bus() as bus:
        channel = await session_queue(bus)
        await channel.entity.send([new("a", session_id="s")])
        hold = await channel.accept_session(None, wait_seconds=0)
        old = await channel.receive(1, lock=True, session=hold)
        waiting = asyncio.create_task(channel.accept_session(None, wait_seconds=60))
        await asyncio.sleep(1)
        await hold.release()
        other = await waiting
        assert other.session_id == "s"
        assert await channel.settle(tokens(old), COMPLETE) == [Failure.SESSION_LOCK_LOST]
        assert await failure_of(channel.receive(1, lock=True, session=hold)) is Failure.SESSION_LOCK_LOST
        (again,) = await channel.receive(1, lock=True, session=other)
        assert again.delivery_count == 0


@in_virtual_time
async def test_a_session_whose_lock_ends_is_lost_and_its_deliveries_count() -> None:
    async with open_bus() as bus:
        channel = await session_queue(bus, lock_ms=5 * SECOND)
        await channel.entity.send([new("a", session_id="s")])
        hold = await channel.accept_session("s", wait_seconds=0)
        lost: list[str] = []
        hold.on_lost = lambda: lost.append("lost")
        await channel.receive(1, lock=True, session=hold)
        waiting = asyncio.create_task(channel.receive(1, lock=True, session=hold))
        await asyncio.sleep(4)
        assert await channel.renew_session("s") == channel.now_ms() + 5 * SECOND
        await asyncio.sleep(4)
        assert lost == []
        await asyncio.sleep(2)
        assert lost == ["lost"]
        assert await failure_of(waiting) is Failure.SESSION_LOCK_LOST
        other = await channel.accept_session(None, wait_seconds=0)
        (again,) = await channel.receive(1, lock=True, session=other)
        assert again.delivery_count == 1
        assert await failure_of(channel.renew_session("other")) is Failure.SESSION_LOCK_LOST


@in_virtual_time
async def test_a_session_that_renews_itself_is_not_lost() -> None:
    async with open_bus() as bus:
        channel = await session_queue(bus, lock_ms=5 * SECOND)
        hold = await channel.accept_session("s", wait_seconds=0)
        hold.renews_itself = True
        waiting = asyncio.create_task(channel.receive(1, lock=False, session=hold))
        await asyncio.sleep(30)
        await channel.entity.send([new("a", session_id="s")])
        assert texts(await waiting) == ["a"]
        await hold.release()


@in_virtual_time
async def test_the_next_session_is_any_that_is_free_and_all_have_their_turn() -> None:
    async with open_bus() as bus:
        channel = await session_queue(bus)
        await channel.entity.send([new(name, session_id=name) for name in ("a", "b", "c", "x" * 300)])
        holds = [await channel.accept_session(None, wait_seconds=0) for _ in range(4)]
        assert [hold.session_id for hold in holds] == ["a", "b", "c", "x" * 300]
        assert await failure_of(channel.accept_session(None, wait_seconds=5)) is Failure.TIMED_OUT
        await holds[1].release()
        await holds[0].release()
        assert (await channel.accept_session(None, wait_seconds=0)).session_id == "a"
        assert (await channel.accept_session(None, wait_seconds=0)).session_id == "b"


@in_virtual_time
async def test_callers_that_wait_for_a_session_are_served_in_their_order() -> None:
    async with open_bus() as bus:
        channel = await session_queue(bus)
        waiting = [asyncio.create_task(channel.accept_session(None, wait_seconds=60)) for _ in range(2)]
        await asyncio.sleep(1)
        await channel.entity.send([new("1", session_id="z")])
        await channel.entity.send([new("2", session_id="y")])
        assert [(await task).session_id for task in waiting] == ["z", "y"]


@in_virtual_time
async def test_states_of_sessions_are_kept_and_listed() -> None:
    async with open_bus() as bus:
        channel = await session_queue(bus)
        assert await channel.session_state("s") is None
        assert await failure_of(channel.set_session_state("s", b"1")) is Failure.SESSION_LOCK_LOST
        hold = await channel.accept_session("s", wait_seconds=0)
        await channel.set_session_state("s", b"1")
        await channel.set_session_state("s", b"22")
        moment_ms = channel.now_ms()
        await hold.release()
        assert await channel.session_state("s") == b"22"
        await channel.entity.send([new("a", session_id="t"), new("b", session_id="t")])
        assert await channel.sessions(None, 0, 10) == ["s", "t"]
        assert await channel.sessions(None, 1, 10) == ["t"]
        assert await channel.sessions(moment_ms - 1, 0, 10) == ["s"]
        assert await channel.sessions(moment_ms, 0, 10) == []
        await bus.check_entries(channel.entity)
        await channel.accept_session("s", wait_seconds=0)
        await channel.set_session_state("s", None)
        assert await channel.sessions(None, 0, 10) == ["t"]
        await bus.check_entries(channel.entity)


@in_virtual_time
async def test_deferred_messages_of_a_session_are_for_its_holder_and_are_peeked() -> None:
    async with open_bus() as bus:
        channel = await session_queue(bus)
        await channel.entity.send([new("a", session_id="s"), new("x", session_id="t"), new("b", session_id="s")])
        assert await failure_of(channel.receive_deferred([1], lock=True, session_id="s")) is Failure.SESSION_LOCK_LOST
        hold = await channel.accept_session("s", wait_seconds=0)
        received = await channel.receive(1, lock=True, session=hold)
        await channel.settle(tokens(received), Defer())
        assert texts(await channel.peek(0, 10, session_id="s")) == ["a", "b"]
        found = await channel.receive_deferred([1], lock=True, session_id="s")
        await channel.settle(tokens(found), DeadLetter("no"))
        (letter,) = await bus.dead_letters(channel.entity).receive(1, lock=True)
        assert letter.session_id == "s"
        assert texts(await channel.peek(0, 10, session_id="s")) == ["b"]
        await bus.check_entries(channel.entity)


@in_virtual_time
async def test_a_release_waits_for_settlements_on_their_way() -> None:
    async with open_bus() as bus:
        channel = await session_queue(bus)
        await channel.entity.send([new("a", session_id="s"), new("b", session_id="s")])
        hold = await channel.accept_session("s", wait_seconds=0)
        received = await channel.receive(1, lock=True, session=hold)
        settling = asyncio.create_task(channel.settle(tokens(received), COMPLETE))
        releasing = asyncio.create_task(hold.release())
        waiting = asyncio.create_task(channel.accept_session(None, wait_seconds=60))
        other = await waiting
        assert texts(await channel.receive(5, lock=True, session=other)) == ["b"]
        assert await settling == [None]
        await releasing
        await bus.check_entries(channel.entity)


@in_virtual_time
async def test_a_purge_of_sessions_leaves_those_that_are_held() -> None:
    async with open_bus() as bus:
        channel = await session_queue(bus)
        await channel.entity.send([new(name, session_id=name) for name in "abc"])
        hold = await channel.accept_session("b", wait_seconds=0)
        assert await channel.purge() == 2
        assert texts(await channel.receive(5, lock=False, session=hold)) == ["b"]
        await bus.check_entries(channel.entity)


@pytest.mark.parametrize("lock", [True, False])
def test_a_session_gets_what_is_sent_while_its_receiver_waits(lock: bool) -> None:
    @in_virtual_time
    async def test() -> None:
        async with open_bus() as bus:
            channel = await session_queue(bus)
            hold = await channel.accept_session("s", wait_seconds=0)
            waiting = asyncio.create_task(channel.receive(5, lock=lock, session=hold))
            await asyncio.sleep(1)
            await channel.entity.send([new("other", session_id="t")])
            await channel.entity.send([new("a", session_id="s")])
            assert texts(await waiting) == ["a"]

    test()
