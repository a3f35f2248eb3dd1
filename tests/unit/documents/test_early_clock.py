"""A wall clock that is set to a time before 1970: what is written then is as old as anything can be."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from asterism.clock import Clock
from asterism.errors import ItemNotFound
from asterism.models.tables.record import pack_entity
from asterism.values.json.text import loads
from asterism.values.ticks import TickSource
from tests.support.world import open_world

BEFORE_1970 = -86_400_000.25


class SettableClock:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    @property
    def clock(self) -> Clock:
        return Clock(wall_seconds=lambda: self.seconds, monotonic_seconds=time.monotonic)


@pytest.mark.parametrize(
    "settings",
    [{}, {"defaultTtl": 100}, {"changeFeedPolicy": {"retentionDuration": 10}}],
    ids=["plain", "ttl", "versions"],
)
async def test_items_are_written_read_changed_and_deleted(tmp_path: Path, settings: dict[str, object]) -> None:
    async with open_world(tmp_path, clock=SettableClock(BEFORE_1970).clock) as world:
        container = await world.container(**settings)
        for number in range(20):
            await container.create_item({"id": str(number), "pk": str(number)}, None)
        await container.upsert_item({"id": "1", "pk": "1", "n": 2}, ("1",))
        found = loads((await container.read_item(b"1", ("1",))).body)
        assert isinstance(found, dict)
        assert (found["n"], found["_ts"]) == (2, 0)
        await container.delete_item(b"2", ("2",))
        await world.reshaper.finished(await world.reshaper.split(container.keyspace, 0))
        assert (await container.read_item(b"3", ("3",))).body
        with pytest.raises(ItemNotFound):
            await container.read_item(b"2", ("2",))


async def test_items_of_such_a_time_expire_when_the_clock_is_put_right(tmp_path: Path) -> None:
    clock = SettableClock(BEFORE_1970)
    async with open_world(tmp_path, clock=clock.clock) as world:
        container = await world.container(defaultTtl=100)
        await container.create_item({"id": "a", "pk": "a"}, None)
        assert (await container.read_item(b"a", ("a",))).body
        clock.seconds = time.time()
        with pytest.raises(ItemNotFound):
            await container.read_item(b"a", ("a",))
        await container.create_item({"id": "a", "pk": "a"}, None)
        assert (await container.read_item(b"a", ("a",))).body


def test_timestamps_of_entities_rise_and_can_be_stored() -> None:
    source = TickSource(lambda: BEFORE_1970)
    ticks = [source() for _ in range(3)]
    assert ticks == sorted(set(ticks))
    assert pack_entity("p", "r", ticks[0], b"")
