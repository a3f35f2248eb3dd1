"""The pace of work in the background, by a clock that passes only while the work rests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from asterism.clock import SYSTEM_CLOCK, Clock
from asterism.models.documents.upkeep.pace import Pace
from asterism.models.documents.upkeep.removal import GENTLE_SHARE, LARGE_SHARE, share_of
from tests.support.world import World, open_world


class Hands:
    seconds = 1000.0


@asynccontextmanager
async def timed_world(directory: Path) -> AsyncIterator[tuple[World, Hands]]:
    hands = Hands()
    clock = Clock(wall_seconds=SYSTEM_CLOCK.wall_seconds, monotonic_seconds=lambda: hands.seconds)
    async with open_world(directory, clock=clock) as world:
        yield world, hands


async def rest_until_quick(pace: Pace, hands: Hands) -> None:
    async with asyncio.timeout(180):
        while pace.is_gentle:
            await pace.rest()
            hands.seconds += 0.01


async def ask(world: World) -> None:
    """Act as a request that reads from the store, again and again."""
    container = await world.container()
    while True:
        await world.router.read(container.keyspace, b"\x01", ())
        await asyncio.sleep(0)


async def test_work_in_the_background_begins_gently_and_takes_larger_steps_when_it_is_alone(tmp_path: Path) -> None:
    async with timed_world(tmp_path) as (world, hands):
        pace = Pace(world.store.services)
        first = share_of(pace)
        await rest_until_quick(pace, hands)
        assert (first, share_of(pace)) == (GENTLE_SHARE, LARGE_SHARE)


async def test_work_in_the_background_is_gentle_again_as_soon_as_requests_come(tmp_path: Path) -> None:
    async with timed_world(tmp_path) as (world, hands):
        pace = Pace(world.store.services)
        await rest_until_quick(pace, hands)
        requests = asyncio.create_task(ask(world))
        async with asyncio.timeout(180):
            while not pace.is_gentle:
                await pace.rest()
        requests.cancel()
        assert share_of(pace) == GENTLE_SHARE
