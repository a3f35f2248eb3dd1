"""Messages that expire and queues that are cleared: what callers see, and the upkeep behind them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from asterism.errors import StorageUnavailable, StoredDamage
from asterism.models.queues.layout import point_of
from asterism.models.queues.messages import MessageFailure
from asterism.models.queues.upkeep import QueueUpkeep
from tests.support.queues import (
    MINUTE,
    SECOND,
    QueueWorld,
    failure_of,
    fill,
    receipt_of,
    run_queues,
    slow_scans,
)


def test_a_message_is_there_until_the_tick_in_which_it_expires() -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        message = await queue.put(b"text", delay_ticks=0, live_ticks=SECOND)
        world.moment.ticks += SECOND - 1
        assert len(await queue.peek(1)) == 1
        assert await world.upkeep.remove_expired() == 0
        world.moment.ticks += 1
        assert await queue.peek(1) == []
        found = await failure_of(queue.delete(message.message_id, receipt_of(message.receipt)))
        assert found is MessageFailure.NOT_FOUND
        assert await queue.get(1, invisible_ticks=SECOND) == []
        await world.tidy()
        assert await queue.count() == 0
        await world.check_entries()

    run_queues(test)


def test_a_message_that_expires_while_it_is_invisible_is_removed() -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await queue.put(b"text", delay_ticks=0, live_ticks=SECOND)
        await queue.get(1, invisible_ticks=MINUTE)
        world.moment.ticks += 2 * SECOND
        assert await world.upkeep.remove_expired() == 1
        assert await queue.count() == 0
        await world.check_entries()

    run_queues(test)


def test_messages_behind_many_expired_ones_are_found() -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await fill(queue, 600, live_ticks=SECOND, world=world)
        world.moment.ticks += 2 * SECOND
        await queue.put(b"fresh", delay_ticks=0, live_ticks=None)
        (message,) = await queue.get(3, invisible_ticks=MINUTE)
        assert message.text == b"fresh"
        await world.tidy()
        assert await queue.count() == 1
        await world.check_entries()

    run_queues(test)


def test_gets_leave_expired_messages_to_the_upkeep_and_pass_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await fill(queue, 3000, live_ticks=SECOND, world=world)
        world.moment.ticks += 2 * SECOND
        assert await queue.get(1, invisible_ticks=SECOND) == []
        await queue.put(b"fresh", delay_ticks=0, live_ticks=None)
        spans = slow_scans(world, monkeypatch)
        (message,) = await queue.get(1, invisible_ticks=MINUTE)
        assert message.text == b"fresh"
        assert len(spans) == 1
        assert await world.upkeep.remove_expired() == 3000
        await world.check_entries()

    run_queues(test)


def test_a_search_passes_many_expired_messages_with_few_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await queue.peek(1)
        await fill(queue, 3000, live_ticks=SECOND // 2, world=world)
        await queue.put(b"fresh", delay_ticks=0, live_ticks=None)
        # The start is known, and expired messages are behind it.
        world.moment.ticks += SECOND // 2
        spans = slow_scans(world, monkeypatch)
        assert [message.text for message in await queue.peek(1)] == [b"fresh"]
        assert len(spans) < 20

    run_queues(test)


def test_upkeep_goes_on_elsewhere_when_a_partition_or_a_queue_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: QueueWorld) -> None:
        names = ["away", "torn", "well"]
        for account in ("aaa", "bbb"):
            for name in names:
                await world.queues.create_queue(account, name, {})
                found = await world.queues.find_queue(account, name)
                assert found is not None
                await fill(found, 3, live_ticks=SECOND)
        world.moment.ticks += SECOND
        page, remove = QueueUpkeep._page, QueueUpkeep._remove_due_of

        async def page_of(upkeep: QueueUpkeep, keyspace: Any, *arguments: Any) -> Any:
            if keyspace is world.queues.keyspace_of("aaa"):
                raise StorageUnavailable(reason="A node is away.")
            return await page(upkeep, keyspace, *arguments)

        async def remove_of(upkeep: QueueUpkeep, keyspace: Any, planner: Any, due: Any) -> int:
            if planner.point == point_of("torn"):
                raise StoredDamage(what="A message cannot be read.")
            return await remove(upkeep, keyspace, planner, due)

        monkeypatch.setattr(QueueUpkeep, "_page", page_of)
        monkeypatch.setattr(QueueUpkeep, "_remove_due_of", remove_of)
        assert await world.upkeep.remove_expired() == 6

    run_queues(test)


def test_messages_expire_while_a_cleared_queue_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: QueueWorld) -> None:
        queue, cleared = await world.new_queue(), await world.new_queue("cleared")
        await fill(queue, 3, live_ticks=SECOND)
        await cleared.clear()
        reached, never = asyncio.Event(), asyncio.Event()

        async def wait(*_: object) -> int:
            reached.set()
            await never.wait()
            return 0

        monkeypatch.setattr(QueueUpkeep, "_remove_generation", wait)
        upkeep = QueueUpkeep(world.queues, round_seconds=0.01)
        await upkeep.start()
        await reached.wait()
        world.moment.ticks += SECOND
        while await queue.count():
            await asyncio.sleep(0.01)
        await upkeep.stop()

    run_queues(test)


def test_expired_messages_of_many_queues_and_of_cleared_ones_are_removed() -> None:
    async def test(world: QueueWorld) -> None:
        queues = [await world.new_queue(f"q{number}") for number in range(5)]
        for queue in queues:
            await fill(queue, 70, live_ticks=SECOND)
            await queue.put(b"stays", delay_ticks=0, live_ticks=None)
        await queues[0].clear()
        await queues[1].remove()
        world.moment.ticks += SECOND
        assert await world.upkeep.remove_expired() == 350
        assert await world.upkeep.remove_left() == 2
        await world.check_entries()
        assert [await queue.count() for queue in queues[2:]] == [1, 1, 1]

    run_queues(test)


def test_the_upkeep_works_by_itself() -> None:
    async def test(world: QueueWorld) -> None:
        queue = await world.new_queue()
        await fill(queue, 10, live_ticks=SECOND)
        world.moment.ticks += SECOND
        upkeep = type(world.upkeep)(world.queues, round_seconds=0.01)
        await upkeep.start()
        while await queue.count():
            await asyncio.sleep(0.01)
        await upkeep.stop()
        await world.check_entries()

    run_queues(test)
