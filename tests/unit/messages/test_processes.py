"""Several processes on one store: each message is with one receiver, whatever process it is in."""

from __future__ import annotations

import asyncio

import pytest

from asterism.models.messages.messages import (
    COMPLETE,
    UNLOCK,
    Abandon,
    DeadLetter,
    Defer,
    Failure,
    Received,
)
from tests.support.messages import (
    MINUTE,
    NAMESPACE,
    SECOND,
    BusWorld,
    drain,
    failure_of,
    new,
    open_processes,
    texts,
    tokens,
)
from tests.support.virtual_time import in_virtual_time


async def caught_up(bus: BusWorld) -> BusWorld:
    await bus.store.namespaces.catch_up()
    return bus


@in_virtual_time
async def test_a_message_is_locked_for_all_processes_and_settled_in_any() -> None:
    async with open_processes(2) as (first, second):
        queue = await first.queue()
        await queue.send([new("a"), new("b"), new("c")])
        other = (await caught_up(second)).find()
        here, there = first.channel(queue), second.channel(other)
        mine = await here.receive(1, lock=True)
        theirs = await there.receive(1, lock=True)
        assert texts([*mine, *theirs]) == ["a", "b"]
        # A token works in every process.
        assert await there.settle(tokens(mine), COMPLETE) == [None]
        assert await here.settle(tokens(mine), COMPLETE) == [Failure.LOCK_LOST]
        assert await here.settle(tokens(theirs), Abandon()) == [None]
        (again,) = await here.receive(1, lock=True)
        assert (texts([again]), again.delivery_count) == (["b"], 1)
        assert await there.settle(tokens(theirs), COMPLETE) == [Failure.LOCK_LOST]
        await here.settle(tokens([again]), COMPLETE)
        assert texts(await there.receive(5, lock=False)) == ["c"]
        await first.check_entries(queue)


@in_virtual_time
async def test_sends_of_several_processes_get_numbers_of_their_own() -> None:
    async with open_processes(3) as buses:
        queue = await buses[0].queue()
        entities = [queue, *[(await caught_up(bus)).find() for bus in buses[1:]]]
        numbers = await asyncio.gather(*[entity.send([new("x"), new("y")]) for entity in entities for _ in range(20)])
        assert sorted(number for pair in numbers for number in pair) == list(range(1, 121))
        await buses[0].check_entries(queue)


@in_virtual_time
async def test_a_waiting_receiver_finds_what_another_process_sends_returns_and_activates() -> None:
    async with open_processes(2) as (first, second):
        queue = await first.queue()
        other = (await caught_up(second)).find()
        here, there = first.channel(queue), second.channel(other)
        waiting = asyncio.create_task(there.receive(1, lock=True))
        await asyncio.sleep(1)
        await queue.send([new("a"), new("b", scheduled_ms=here.now_ms() + 30 * SECOND)])
        received = await waiting
        waiting = asyncio.create_task(here.receive(1, lock=True))
        await asyncio.sleep(1)
        await there.settle(tokens(received), UNLOCK)
        received = await waiting
        assert texts(received) == ["a"]
        waiting = asyncio.create_task(there.receive(1, lock=True))
        await asyncio.sleep(1)
        await here.settle(tokens(received), DeadLetter("bad"))
        assert texts(await waiting) == ["b"]
        assert texts(await second.dead_letters(other).receive(1, lock=False)) == ["a"]
        await first.check_entries(queue)


@in_virtual_time
async def test_the_locks_of_a_process_that_is_gone_end_and_count() -> None:
    async with open_processes(2) as (first, second):
        queue = await first.queue(lock_ms=10 * SECOND, max_delivery_count=2)
        await queue.send([new("a")])
        other = (await caught_up(second)).find()
        here, there = first.channel(queue), second.channel(other)
        for count in range(2):
            (received,) = await here.receive(1, lock=True)
            assert received.delivery_count == count
            # As if the process had ended: it no longer knows of the lock.
            here.locks.forget(0)
            if not count:
                here.receivers.forget(0)
        waiting = asyncio.create_task(there.receive(1, lock=True))
        (letter,) = await second.dead_letters(other).receive(1, lock=True)
        assert letter.overlay["DeadLetterReason"] == "MaxDeliveryCountExceeded"
        waiting.cancel()
        await second.dead_letters(other).settle(tokens([letter]), COMPLETE)
        await first.check_entries(queue)


@in_virtual_time
async def test_renewed_locks_hold_in_every_process() -> None:
    async with open_processes(2) as (first, second):
        queue = await first.queue(lock_ms=10 * SECOND)
        await queue.send([new("a")])
        there = second.channel((await caught_up(second)).find())
        here = first.channel(queue)
        received = await here.receive(1, lock=True)
        for _ in range(5):
            await asyncio.sleep(6)
            assert isinstance((await there.renew(tokens(received)))[0], int)
            assert await there.receive(1, lock=True, wait=False) == []
        assert await there.settle(tokens(received), Defer()) == [None]
        assert texts(await here.receive_deferred([1], lock=False)) == ["a"]
        await first.check_entries(queue)


@in_virtual_time
async def test_competing_processes_share_a_backlog_without_doubles() -> None:
    async with open_processes(3) as buses:
        queue = await buses[0].queue()
        await queue.send([new(str(number)) for number in range(500)])
        got: list[str] = []

        async def consume(bus: BusWorld, *, lock: bool) -> None:
            channel = bus.channel((await caught_up(bus)).find())
            while received := await channel.receive(7, lock=lock, wait=False):
                got.extend(texts(received))
                if lock:
                    assert set(await channel.settle(tokens(received), COMPLETE)) == {None}

        await asyncio.gather(*[consume(bus, lock=place != 2) for place, bus in enumerate(buses)])
        assert sorted(got, key=int) == [str(number) for number in range(500)]
        await buses[0].check_entries(queue)


@in_virtual_time
async def test_a_canceled_claim_leaves_no_lock() -> None:
    async with open_processes(2) as (first, second):
        queue = await first.queue()
        here = first.channel(queue)
        there = second.channel((await caught_up(second)).find())
        await queue.send([new("a")])
        receiving = asyncio.create_task(here.receive(1, lock=True))
        for _ in range(3):
            await asyncio.sleep(0)
        receiving.cancel()
        results = await asyncio.gather(receiving, return_exceptions=True)
        got = [message for result in results if isinstance(result, list) for message in result]
        await here.settle(tokens(got), UNLOCK)
        (received,) = await there.receive(1, lock=True)
        assert received.delivery_count == 0


@in_virtual_time
async def test_sessions_are_held_in_one_process_at_a_time() -> None:
    async with open_processes(2) as (first, second):
        queue = await first.queue(requires_session=True, lock_ms=10 * SECOND)
        await queue.send([new("a1", session_id="a"), new("b1", session_id="b"), new("a2", session_id="a")])
        here, there = first.channel(queue), second.channel((await caught_up(second)).find())
        hold = await here.accept_session("a", wait_seconds=0)
        assert await failure_of(there.accept_session("a", wait_seconds=0)) is Failure.SESSION_CANNOT_BE_LOCKED
        other = await there.accept_session(None, wait_seconds=0)
        assert other.session_id == "b"
        assert await failure_of(there.accept_session(None, wait_seconds=3)) is Failure.TIMED_OUT
        received = await here.receive(1, lock=True, session=hold)
        await here.settle(tokens(received), COMPLETE)
        await there.set_session_state("b", b"state")
        assert await here.session_state("b") == b"state"
        waiting = asyncio.create_task(there.accept_session(None, wait_seconds=60))
        await asyncio.sleep(1)
        await hold.release()
        taken = await waiting
        assert taken.session_id == "a"
        receiving = asyncio.create_task(there.receive(5, lock=True, session=taken))
        assert texts(await receiving) == ["a2"]
        receiving = asyncio.create_task(there.receive(5, lock=True, session=taken))
        await asyncio.sleep(1)
        await queue.send([new("a3", session_id="a")])
        assert texts(await receiving) == ["a3"]
        await taken.release()
        await other.release()
        await first.check_entries(queue)


@in_virtual_time
async def test_a_hold_that_another_process_has_taken_over_settles_nothing() -> None:
    async with open_processes(2) as (first, second):
        queue = await first.queue(requires_session=True, lock_ms=10 * SECOND)
        await queue.send([new("a", session_id="s")])
        here, there = first.channel(queue), second.channel((await caught_up(second)).find())
        hold = await here.accept_session("s", wait_seconds=0)
        received = await here.receive(1, lock=True, session=hold)
        lost: list[str] = []
        hold.on_lost = lambda: lost.append("lost")
        # The process was stopped for a while: its timers come too late.
        hold.renews_itself = False
        assert hold._timer is not None
        hold._timer.cancel()
        await asyncio.sleep(11)
        taken = await there.accept_session("s", wait_seconds=0)
        hold.locked_until_ms += MINUTE
        assert await here.settle(tokens(received), COMPLETE) == [Failure.SESSION_LOCK_LOST]
        assert await failure_of(hold.renew()) is Failure.SESSION_LOCK_LOST
        assert lost == ["lost"]
        assert texts(await there.receive(1, lock=False, session=taken)) == ["a"]
        await taken.release()
        await first.check_entries(queue)


@in_virtual_time
async def test_a_send_goes_by_the_rules_that_another_process_has_changed() -> None:
    async with open_processes(2) as (first, second):
        topic = await first.topic("a")
        other = (await caught_up(second)).find("t")
        await other.send([new("1")])
        changed = await first.subscribe(topic, "b")
        await other.send([new("2")])
        assert texts(await drain(changed)) == ["2"]
        assert texts(await drain(second.channel(other, "b"))) == []
        deleted: list[tuple[str, str, str | None]] = []
        second.store.deletion_listeners.append(lambda *news: deleted.append(news))
        await first.store.delete_subscription(topic, "a")
        await caught_up(second)
        await first.store.delete(topic)
        await caught_up(second)
        assert deleted == [(NAMESPACE, "t", "a"), (NAMESPACE, "t", None)]


@in_virtual_time
async def test_duplicates_are_noticed_whatever_process_they_came_to() -> None:
    async with open_processes(2) as (first, second):
        queue = await first.queue(requires_duplicate_detection=True)
        other = (await caught_up(second)).find()
        results = await asyncio.gather(
            *[entity.send([new("x", message_id="1")]) for entity in (queue, other) for _ in range(5)]
        )
        assert results == [[1]] * 10
        await first.check_entries(queue)


@pytest.mark.parametrize("action", [COMPLETE, Abandon(), Defer(), DeadLetter("x"), UNLOCK])
def test_two_settlements_of_one_message_at_once_are_one(action: object) -> None:
    @in_virtual_time
    async def test() -> None:
        async with open_processes(2) as (first, second):
            queue = await first.queue()
            await queue.send([new("a")])
            here, there = first.channel(queue), second.channel((await caught_up(second)).find())
            received: list[Received] = await here.receive(1, lock=True)
            results = await asyncio.gather(
                here.settle(tokens(received), action),  # type: ignore[arg-type]  # an action
                there.settle(tokens(received), action),  # type: ignore[arg-type]  # an action
            )
            assert sorted(str(failure) for (failure,) in results) == ["None", "lock lost"]
            await first.check_entries(queue)

    test()


@in_virtual_time
async def test_an_entity_that_another_process_uses_is_not_deleted_as_idle() -> None:
    async with open_processes(2) as (first, second):
        await first.queue(auto_delete_ms=5 * MINUTE)
        other = (await caught_up(second)).find()
        waiting = asyncio.create_task(second.channel(other).receive(1, lock=True))
        await first.upkeep.start()
        await asyncio.sleep(20 * 60)
        assert first.store.find(NAMESPACE, "q") is not None
        waiting.cancel()
        await asyncio.sleep(20 * 60)
        assert first.store.find(NAMESPACE, "q") is None
        await first.upkeep.stop()
