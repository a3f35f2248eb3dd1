"""Time to live: what is hidden, when it is removed, and what a change of the container's default does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from asterism.clock import Clock
from asterism.errors import ItemExists, ItemNotFound, MalformedRequest
from asterism.keyspaces.catalog.store import TASK
from asterism.keyspaces.routing.families import EXPIRY, INDEX, ITEMS, UNIQUE_KEYS
from asterism.models.documents.container import Container
from asterism.models.documents.cosmos.codec import CosmosCodec
from asterism.models.documents.cosmos.time_to_live import check_item_ttl
from asterism.models.documents.item_position import Position
from asterism.models.documents.pages import range_scope, read_items_page
from asterism.models.documents.upkeep import expiry
from asterism.models.documents.upkeep import housekeeper as housekeeper
from asterism.models.documents.upkeep.time_to_live import TimeToLive
from asterism.partitioning.key_range import FULL
from tests.support.world import ACCOUNT, World, open_world

KEY = ("p",)
START = 1_700_000_000.0


@dataclass
class Hands:
    """A wall clock that a test sets."""

    seconds: float = START

    def clock(self) -> Clock:
        return Clock(wall_seconds=lambda: self.seconds, monotonic_seconds=time.monotonic)


@dataclass(frozen=True)
class Timed:
    world: World
    hands: Hands

    async def sweep(self, container: Container) -> int:
        return await self.world.store.housekeeper.expiry.sweep(container)

    async def entries(self, container: Container, family: bytes) -> int:
        ranges = container.keyspace.record.map.ranges
        return sum([len(await self.world.everything(interval.partition, family)) for interval in ranges])

    async def visible(self, container: Container, *, items_max: int = 100) -> list[str]:
        found: list[str] = []
        position: Position | None = Position(b"")
        while position is not None:
            page = await read_items_page(
                self.world.router, container, range_scope(FULL), position=position, items_max=items_max
            )
            found += [body.decode().partition('"id":"')[2].partition('"')[0] for body in page.bodies]
            position = page.position
        return sorted(found)

    async def set_default(self, container: Container, default_ttl: int | None) -> Container:
        body = {key: value for key, value in container.record.settings.items() if key != "defaultTtl"}
        return await self.world.store.replace_container(container, {**body, "defaultTtl": default_ttl})


@asynccontextmanager
async def timed_world(directory: Path) -> AsyncIterator[Timed]:
    hands = Hands()
    with pytest.MonkeyPatch.context() as patch:
        # The timer's own sweep would take some of the items that are counted here.
        patch.setattr(expiry, "_DELAY_SECONDS_MIN", 3600.0)
        async with open_world(directory, clock=hands.clock()) as opened:
            yield Timed(opened, hands)


@pytest.fixture
async def timed(tmp_path: Path) -> AsyncIterator[Timed]:
    async with timed_world(tmp_path) as opened:
        yield opened


async def write(container: Container, item_id: str, pk: str = "p", **more: Any) -> None:
    await container.upsert_item({"id": item_id, "pk": pk, **more}, (pk,))


@pytest.mark.parametrize("ttl", [0, None, -10, "5", True, 1.5, 2**31, [], {}])
def test_a_ttl_that_is_no_time_is_refused(ttl: Any) -> None:
    with pytest.raises(MalformedRequest):
        check_item_ttl(ttl)


@pytest.mark.parametrize("ttl", [-1, 1, 10.0, 2**31 - 1])
def test_a_ttl_may_be_seconds_or_for_ever(ttl: Any) -> None:
    check_item_ttl(ttl)


@pytest.mark.parametrize(
    ("default", "body", "expires_at"),
    [
        (10, b'{"id":"a","_ts":100}', 110),
        (-1, b'{"id":"a","_ts":100}', None),
        (10, b'{"id":"a","ttl":-1,"_ts":100}', None),
        (-1, b'{"id":"a","ttl":5,"_ts":100}', 105),
        (10, b'{"id":"a","deep":{"ttl":5},"_ts":100}', 110),
        (10, b'{"id":"\\"_ts\\":7","_ts":100}', 110),
    ],
)
def test_the_items_own_wish_comes_before_the_default(default: int, body: bytes, expires_at: int | None) -> None:
    assert TimeToLive(CosmosCodec(bytes(8)), default).expires_at(body) == expires_at


async def test_an_expired_item_is_not_seen_before_it_is_removed(timed: Timed) -> None:
    container = await timed.world.container(defaultTtl=10)
    await write(container, "a")
    await write(container, "stays", ttl=-1)
    await write(container, "short", ttl=3)
    timed.hands.seconds += 9.9
    assert await timed.visible(container) == ["a", "stays"]
    timed.hands.seconds += 0.1
    assert await timed.visible(container, items_max=1) == ["stays"]
    assert await timed.entries(container, ITEMS) == 3
    with pytest.raises(ItemNotFound):
        await container.read_item(b"a", KEY)
    with pytest.raises(ItemNotFound):
        await container.delete_item(b"a", KEY)
    with pytest.raises(ItemNotFound):
        await container.replace_item(b"a", {"id": "a", "pk": "p"}, KEY)


async def test_a_page_goes_on_behind_items_that_are_hidden(timed: Timed) -> None:
    container = await timed.world.container(defaultTtl=-1)
    for number in range(400):
        await write(container, f"{number:03}", **({"ttl": 1} if number < 390 else {}))
    timed.hands.seconds += 2
    assert await timed.visible(container, items_max=3) == [f"{number:03}" for number in range(390, 400)]


async def test_a_sweep_removes_every_trace_of_what_has_expired(timed: Timed) -> None:
    unique = {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/id"]}]}}
    container = await timed.world.container(defaultTtl=10, **unique)
    for number in range(150):
        await write(container, f"i{number}", pk=f"p{number % 7}", ttl=5 if number % 2 else 50)
    timed.hands.seconds += 6
    assert await timed.sweep(container) == 75
    assert await timed.sweep(container) == 0
    assert len(await timed.visible(container)) == 75
    await timed.world.check_statistics(container)
    timed.hands.seconds += 100
    await timed.sweep(container)
    counts = [await timed.entries(container, family) for family in (ITEMS, EXPIRY, INDEX, UNIQUE_KEYS)]
    assert counts == [0, 0, 0, 0]


async def test_a_change_begins_the_time_anew(timed: Timed) -> None:
    container = await timed.world.container(defaultTtl=10)
    await write(container, "a")
    timed.hands.seconds += 8
    await write(container, "a")
    timed.hands.seconds += 8
    assert await timed.sweep(container) == 0
    assert await timed.visible(container) == ["a"]
    assert await timed.entries(container, EXPIRY) == 1


async def test_an_expired_item_stands_in_nobodys_way(timed: Timed) -> None:
    unique = {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/name"]}]}}
    container = await timed.world.container(defaultTtl=10, **unique)
    await write(container, "a", name="x")
    timed.hands.seconds += 11
    made = await container.create_item({"id": "b", "pk": "p", "name": "x"}, KEY)
    again = await container.upsert_item({"id": "a", "pk": "p", "name": "y"}, KEY)
    assert (made.created, again.created) == (True, True)
    assert await timed.visible(container) == ["a", "b"]
    assert await timed.entries(container, UNIQUE_KEYS) == 2
    await timed.world.check_statistics(container)


async def test_a_create_in_the_place_of_an_expired_item_makes_a_new_item(timed: Timed) -> None:
    container = await timed.world.container(defaultTtl=10)
    await write(container, "a", old=True)
    timed.hands.seconds += 11
    made = await container.create_item({"id": "a", "pk": "p"}, KEY)
    assert made.created
    assert b"old" not in made.body
    with pytest.raises(ItemExists):
        await container.create_item({"id": "a", "pk": "p"}, KEY)
    assert await timed.sweep(container) == 0
    assert await timed.entries(container, EXPIRY) == 1


async def test_without_a_default_nothing_expires_and_nothing_is_kept_for_it(timed: Timed) -> None:
    container = await timed.world.container()
    await write(container, "a", ttl=1)
    timed.hands.seconds += 100
    assert await timed.visible(container) == ["a"]
    assert await timed.entries(container, EXPIRY) == 0


async def test_a_new_default_reaches_the_items_that_are_there(timed: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeper, "_SETTLE_SECONDS", 0.0)
    container = await timed.world.container()
    for number in range(150):
        await write(container, f"i{number}", pk=f"p{number % 7}", **({"ttl": 5} if number % 3 == 0 else {}))
    container = await timed.set_default(container, 20)
    await finished(timed.world)
    assert await timed.entries(container, EXPIRY) == 150
    timed.hands.seconds += 6
    assert await timed.sweep(container) == 50
    timed.hands.seconds += 15
    assert await timed.sweep(container) == 100


async def test_a_longer_default_keeps_items_whose_old_time_is_over(
    timed: Timed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeper, "_SETTLE_SECONDS", 0.0)
    container = await timed.world.container(defaultTtl=10)
    await write(container, "a")
    container = await timed.set_default(container, 100)
    await finished(timed.world)
    timed.hands.seconds += 11
    assert await timed.sweep(container) == 0
    assert await timed.visible(container) == ["a"]
    assert await timed.entries(container, EXPIRY) == 1
    timed.hands.seconds += 100
    assert await timed.sweep(container) == 1
    assert await timed.entries(container, EXPIRY) == 0


async def test_a_default_that_is_taken_away_and_given_back_changes_what_is_seen_at_once(timed: Timed) -> None:
    container = await timed.world.container(defaultTtl=10)
    await write(container, "a")
    timed.hands.seconds += 11
    container = await timed.set_default(container, None)
    assert await timed.visible(container) == ["a"]
    container = await timed.set_default(container, 5)
    assert await timed.visible(container) == []


async def test_expiry_goes_on_across_a_split(timed: Timed) -> None:
    container = await timed.world.container(defaultTtl=10)
    for number in range(60):
        await write(container, f"i{number}", pk=f"p{number}")
    job = await timed.world.reshaper.split(container.keyspace, 0)
    await timed.world.reshaper.finished(job)
    assert await timed.entries(container, EXPIRY) == 60
    timed.hands.seconds += 11
    assert await timed.sweep(container) == 60
    await timed.world.check_statistics(container)


async def test_the_work_that_a_new_default_calls_for_survives_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeper, "_SETTLE_SECONDS", 60.0)
    async with timed_world(tmp_path) as timed:
        container = await timed.world.container()
        await write(container, "a")
        await timed.set_default(container, 10)
    monkeypatch.setattr(housekeeper, "_SETTLE_SECONDS", 0.0)
    async with timed_world(tmp_path) as timed:
        await finished(timed.world)
        container = timed.world.store.container_for_items(ACCOUNT, "d", "c")
        assert await timed.entries(container, EXPIRY) == 1
        assert await timed.world.catalog.store.scan(TASK) == []


async def finished(world: World) -> None:
    while world.store.housekeeper.tasks:
        await asyncio.sleep(0.005)
