"""Writers of one key: overtaken once, they wait in a queue; scripts lock them out for a moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from asterism.keyspaces.routing import contention
from asterism.keyspaces.routing.contention import ATTEMPTS_MAX, WriterQueues
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.storage.contract import ExpectationFailed
from tests.support.world import open_world

POINT = b"\x01" * 16


async def write(queues: WriterQueues, keyspace: Keyspace, key: bytes | None = b"k", *, losses: int = 0) -> int | None:
    """The number of attempts that a write takes which is overtaken `losses` times; None when it gives up."""
    made = 0
    async for attempt in queues.attempts(keyspace, POINT, key):
        with attempt:
            made += 1
            assert not keyspace.in_flight.is_idle
            await asyncio.sleep(0)
            if made <= losses:
                raise ExpectationFailed(b"k")
            return made
    return None


async def test_a_write_is_attempted_until_it_is_not_overtaken(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        keyspace, queues = (await world.container()).keyspace, WriterQueues()
        assert await write(queues, keyspace) == 1
        assert await write(queues, keyspace, losses=3) == 4
        # One attempt outside of the queue, and as many as there may be in it.
        assert await write(queues, keyspace, losses=ATTEMPTS_MAX) == ATTEMPTS_MAX + 1
        assert await write(queues, keyspace, losses=ATTEMPTS_MAX + 1) is None
        assert (len(queues.semaphores), keyspace.in_flight.is_idle) == (0, True)


async def test_a_writer_that_comes_while_there_is_a_queue_waits_behind_it(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        keyspace, queues = (await world.container()).keyspace, WriterQueues()
        ended: list[str] = []

        async def named(name: str, key: bytes, losses: int) -> None:
            await write(queues, keyspace, key, losses=losses)
            ended.append(name)

        overtaken = asyncio.create_task(named("overtaken", b"k", 20))
        while not queues.semaphores:
            await asyncio.sleep(0)
        await asyncio.gather(named("later", b"k", 0), named("elsewhere", b"other", 0), overtaken)
        assert ended == ["elsewhere", "overtaken", "later"]


async def test_a_writer_that_fails_or_is_cancelled_leaves_the_queue(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        keyspace, queues = (await world.container()).keyspace, WriterQueues()

        async def fail() -> None:
            made = 0
            async for attempt in queues.attempts(keyspace, POINT, b"k"):
                with attempt:
                    made += 1
                    raise ExpectationFailed(b"k") if made < 3 else ValueError("third")

        with pytest.raises(ValueError, match="third"):
            await fail()
        assert not queues.semaphores
        for steps in range(40):
            losing = [asyncio.create_task(write(queues, keyspace, losses=ATTEMPTS_MAX)) for _ in range(3)]
            for _ in range(steps):
                await asyncio.sleep(0)
            for task in losing:
                task.cancel()
            await asyncio.gather(*losing, return_exceptions=True)
            assert (len(queues.semaphores), keyspace.in_flight.is_idle) == (0, True)
        assert await write(queues, keyspace) == 1


async def test_a_write_waits_only_a_moment_for_a_script_that_locks_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(tmp_path) as world:
        keyspace, queues = (await world.container()).keyspace, WriterQueues()
        monkeypatch.setattr(contention, "LOCK_OUT_SECONDS_MAX", 0.01)
        with queues.lock_out(keyspace, POINT):
            assert await asyncio.wait_for(write(queues, keyspace), 30) == 1
            monkeypatch.setattr(contention, "LOCK_OUT_SECONDS_MAX", 3600.0)
            with queues.lock_out(keyspace, b"elsewhere"):
                waiting = asyncio.create_task(write(queues, keyspace))
            for _ in range(3):
                await asyncio.sleep(0)
            assert not waiting.done()
        assert await asyncio.wait_for(waiting, 30) == 1
