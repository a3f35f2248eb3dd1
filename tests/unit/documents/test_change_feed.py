"""The change feed on a real store: nothing missed and nothing out of order, whatever the partitions do meanwhile."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from asterism.clock import Clock
from asterism.keyspaces.routing.families import VERSIONS
from asterism.models.documents.batch import Operation, OperationKind
from asterism.models.documents.changes.feed import AllVersions, FeedLog, LatestVersions, position_now, read_feed_page
from asterism.models.documents.changes.retention import VersionRetention
from asterism.models.documents.container import Container
from asterism.models.documents.results import Scope
from asterism.partitioning.feed_position import FeedPosition
from asterism.values.identifiers import Lsn
from asterism.values.json.text import loads
from tests.support.world import World, open_world

EVERYTHING = Scope(b"", b"\xff")
BEGINNING = FeedPosition.at(Lsn(0))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as opened:
        yield opened


class Reader:
    """Reads on and on from where it came to, through texts, as a client does."""

    def __init__(self, world: World, container: Container, *, log: FeedLog | None = None, items_max: int = 7) -> None:
        self.world = world
        self.container = container
        self.scope = EVERYTHING
        self.text = "0"
        self.log = log or LatestVersions()
        self.items_max = items_max
        self.pages: list[int] = []

    async def page(self) -> list[dict[str, Any]]:
        position = FeedPosition.from_text(self.text)
        page = await read_feed_page(
            self.world.router, self.container, self.scope, position, self.log, items_max=self.items_max
        )
        self.text = page.position.to_text()
        self.pages.append(len(page.rows))
        return [cast("dict[str, Any]", loads(row)) for row in page.rows]

    async def rest(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        while page := await self.page():
            rows += page
        return rows


async def write(container: Container, item_id: str, pk: str, **more: object) -> None:
    await container.upsert_item({"id": item_id, "pk": pk, **more}, None)


async def split(world: World, container: Container, range_id: int) -> None:
    await world.reshaper.finished(await world.reshaper.split(container.keyspace, range_id))


async def merge(world: World, container: Container, left: int, right: int) -> None:
    await world.reshaper.finished(await world.reshaper.merge(container.keyspace, left, right))


async def test_items_come_in_the_order_of_their_latest_changes(world: World) -> None:
    container = await world.container()
    for item_id in ("a", "b", "c", "a"):
        await write(container, item_id, f"p{item_id}")
    rows = await Reader(world, container).rest()
    assert [row["id"] for row in rows] == ["b", "c", "a"]
    assert [row["_lsn"] for row in rows] == sorted(row["_lsn"] for row in rows)


async def test_a_reader_that_has_caught_up_gets_only_what_is_new(world: World) -> None:
    container = await world.container()
    reader = Reader(world, container)
    await write(container, "a", "x")
    assert len(await reader.rest()) == 1
    assert await reader.page() == []
    await container.delete_item(b"a", ("x",))
    assert await reader.page() == []
    await write(container, "b", "x")
    assert [row["id"] for row in await reader.page()] == ["b"]


async def test_from_now_on_nothing_old_is_told(world: World) -> None:
    container = await world.container()
    await write(container, "a", "x")
    reader = Reader(world, container)
    reader.text = (await position_now(world.router, container, EVERYTHING)).to_text()
    assert await reader.page() == []
    await write(container, "b", "y")
    assert [row["id"] for row in await reader.page()] == ["b"]


async def test_a_time_leaves_out_what_changed_before_it(world: World) -> None:
    container = await world.container()
    await write(container, "a", "x")
    (row,) = await Reader(world, container).rest()
    reader = Reader(world, container)
    reader.text = BEGINNING.since(row["_ts"]).to_text()
    assert len(await reader.rest()) == 1
    reader.text = BEGINNING.since(row["_ts"] + 1).to_text()
    assert await reader.rest() == []


@pytest.mark.parametrize("is_one_key", [False, True])
async def test_a_page_that_finds_nothing_in_time_says_how_far_it_has_come(world: World, is_one_key: bool) -> None:
    container = await world.container()
    for number in range(600):
        await write(container, f"i{number}", f"p{number}")
    await write(container, "last", "wanted")
    since = 0 if is_one_key else 2**40
    scope = container.logical_scope(("wanted",)) if is_one_key else EVERYTHING
    position, positions, rows = BEGINNING.since(since), set(), []
    for _ in range(10):
        page = await read_feed_page(
            world.router, container, scope, position, LatestVersions(), items_max=1000, is_time_up=lambda: True
        )
        rows += page.rows
        position = FeedPosition.from_text(page.position.to_text())
        if not page.was_cut_short:
            break
        assert position not in positions, "the reader stands still"
        positions.add(position)
    assert len(positions) == 2
    assert [cast("dict[str, Any]", loads(row))["id"] for row in rows] == (["last"] if is_one_key else [])


async def test_a_page_cut_short_parts_no_batch(world: World) -> None:
    container = await world.container()
    for number in range(200):
        await write(container, f"i{number}", "p")
    # The first slice of the log ends within these.
    batch = [
        Operation(OperationKind.CREATE, f"b{number}".encode(), {"id": f"b{number}", "pk": "p"}) for number in range(100)
    ]
    await container.run_batch(("p",), batch)
    position, pages, is_cut_short = BEGINNING, [], True
    while is_cut_short:
        page = await read_feed_page(
            world.router, container, EVERYTHING, position, LatestVersions(), items_max=1000, is_time_up=lambda: True
        )
        pages.append([cast("dict[str, Any]", loads(row))["id"] for row in page.rows])
        position, is_cut_short = page.position, page.was_cut_short
    assert pages == [[f"i{number}" for number in range(200)], [f"b{number}" for number in range(100)]]


async def test_a_logical_partition_is_a_scope_of_its_own(world: World) -> None:
    container = await world.container()
    for number in range(40):
        await write(container, f"i{number}", f"p{number % 4}")
    reader = Reader(world, container)
    reader.scope = container.logical_scope(("p1",))
    assert [row["id"] for row in await reader.rest()] == [f"i{number}" for number in range(1, 40, 4)]
    assert reader.pages == [7, 3, 0]


async def test_every_partition_gets_its_share_of_a_page(world: World) -> None:
    container = await world.container()
    for number in range(60):
        await write(container, f"i{number}", f"p{number}")
    await split(world, container, 0)
    reader = Reader(world, container, items_max=10)
    rows = await reader.page()
    low = container.keyspace.record.map.ranges[0].range
    in_low = [row for row in rows if low.contains(container.logical_scope((row["pk"],)).start)]
    assert (len(rows), len(in_low)) == (10, 5)


async def test_a_reader_of_one_item_at_a_time_is_not_held_by_a_busy_partition(world: World) -> None:
    container = await world.container()
    for number in range(20):
        await write(container, f"i{number}", f"p{number}")
    await split(world, container, 0)
    reader, seen = Reader(world, container, items_max=1), set()
    for turn in range(60):
        seen.update(row["id"] for row in await reader.page())
        await write(container, "busy", "p0", n=turn)
    assert seen >= {f"i{number}" for number in range(20)}


@pytest.mark.parametrize("items_max", [1, 3, 50])
async def test_splits_and_merges_lose_nothing_and_keep_the_order_of_a_logical_partition(
    world: World, items_max: int
) -> None:
    container = await world.container()
    reader = Reader(world, container, items_max=items_max)
    rng = random.Random(items_max)
    numbers_by_key: dict[str, list[int]] = defaultdict(list)
    latest: dict[str, int] = {}
    numbers = iter(range(10_000))

    async def write_some(count: int) -> None:
        for _ in range(count):
            item, number = f"i{rng.randrange(30)}", next(numbers)
            pk = f"p{int(item[1:]) % 10}"
            await write(container, item, pk, n=number)
            latest[item] = number

    async def read_some(pages: int) -> None:
        for _ in range(pages):
            for row in await reader.page():
                numbers_by_key[row["pk"]].append(row["n"])

    async def read_and_write() -> None:
        await write_some(25)
        await read_some(4)

    await read_and_write()
    await split(world, container, 0)
    await read_and_write()
    await split(world, container, 1)
    await read_and_write()
    await merge(world, container, 4, 2)
    await read_and_write()
    await split(world, container, 3)
    await read_and_write()
    await merge(world, container, 6, 7)
    await write_some(25)
    await read_some(200)
    assert all(key_numbers == sorted(key_numbers) for key_numbers in numbers_by_key.values())
    numbers_read = {number for key_numbers in numbers_by_key.values() for number in key_numbers}
    assert numbers_read >= set(latest.values())
    assert sum(map(len, numbers_by_key.values())) == len(numbers_read)


async def test_a_page_while_partitions_split_is_whole(world: World) -> None:
    container = await world.container()
    for number in range(300):
        await write(container, f"i{number}", f"p{number}")
    job = await world.reshaper.split(container.keyspace, 0)
    rows = await Reader(world, container, items_max=20).rest()
    await world.reshaper.finished(job)
    assert sorted(row["id"] for row in rows) == sorted(f"i{number}" for number in range(300))


@pytest.mark.parametrize("keeps_versions", [False, True])
async def test_readers_writers_splits_and_merges_at_the_same_time(world: World, keeps_versions: bool) -> None:
    policy = {"changeFeedPolicy": {"retentionDuration": 10 * keeps_versions}}
    container = await world.container(**policy)
    logs: list[FeedLog] = [LatestVersions(), AllVersions()]
    reader = Reader(world, container, log=logs[keeps_versions], items_max=5)
    numbers_by_key: dict[str, list[int]] = defaultdict(list)
    writing = True

    async def write_all(first: int) -> None:
        for number in range(first, 400, 4):
            await write(container, f"i{number % 40}", f"p{number % 8}", n=number)

    async def read_all() -> None:
        while rows := await reader.page():
            for row in rows:
                item = row.get("current", row)
                numbers_by_key[item["pk"]].append(item["n"])

    async def read_on() -> None:
        while writing:
            await read_all()
            await asyncio.sleep(0)

    async def reshape() -> None:
        await split(world, container, 0)
        await split(world, container, 2)
        await merge(world, container, 1, 3)

    reading = asyncio.create_task(read_on())
    await asyncio.gather(*(write_all(first) for first in range(4)), reshape())
    writing = False
    await reading
    await read_all()
    # Each logical partition has one writer, whose numbers rise.
    assert all(numbers == sorted(set(numbers)) for numbers in numbers_by_key.values())
    wanted = range(0 if keeps_versions else 360, 400)
    assert {number for numbers in numbers_by_key.values() for number in numbers} >= set(wanted)


async def test_all_versions_tell_every_change_and_every_delete(world: World) -> None:
    container = await world.container(changeFeedPolicy={"retentionDuration": 10})
    await write(container, "a", "x", n=1)
    await write(container, "a", "x", n=2)
    await container.delete_item(b"a", ("x",))
    rows = await Reader(world, container, log=AllVersions()).rest()
    assert [row["metadata"]["operationType"] for row in rows] == ["create", "replace", "delete"]
    assert [row["current"].get("n") for row in rows] == [1, 2, None]
    assert [row.get("previous", {}).get("n") for row in rows] == [None, 1, 2]
    deleted = rows[2]["metadata"]
    assert (rows[2]["current"], deleted["id"], deleted["partitionKey"]) == ({}, "a", {"pk": "x"})
    assert deleted["timeToLiveExpired"] is False
    assert deleted["previousImageLSN"] == rows[1]["metadata"]["lsn"]


async def test_a_rename_is_a_delete_and_a_create(world: World) -> None:
    container = await world.container(changeFeedPolicy={"retentionDuration": 10})
    await write(container, "a", "x")
    await container.replace_item(b"a", {"id": "b", "pk": "x"}, None)
    rows = await Reader(world, container, log=AllVersions()).rest()
    assert sorted(row["metadata"]["operationType"] for row in rows) == ["create", "create", "delete"]


async def test_versions_go_along_with_splits_and_merges(world: World) -> None:
    container = await world.container(changeFeedPolicy={"retentionDuration": 10})
    reader = Reader(world, container, log=AllVersions(), items_max=3)
    for number in range(30):
        await write(container, f"i{number % 10}", f"p{number % 10}", n=number)
    rows = [row for _ in range(3) for row in await reader.page()]
    await split(world, container, 0)
    for number in range(30, 60):
        await write(container, f"i{number % 10}", f"p{number % 10}", n=number)
    rows += [row for _ in range(3) for row in await reader.page()]
    await merge(world, container, 1, 2)
    rows += await reader.rest()
    numbers_by_key = defaultdict(list)
    for row in rows:
        numbers_by_key[row["current"]["pk"]].append(row["current"]["n"])
    assert dict(numbers_by_key) == {f"p{number}": list(range(number, 60, 10)) for number in range(10)}


async def test_a_container_without_retention_keeps_no_versions(world: World) -> None:
    container = await world.container()
    await write(container, "a", "x")
    assert not container.keeps_versions
    assert await world.everything(container.keyspace.record.map.ranges[0].partition, VERSIONS) == []


async def test_versions_are_removed_when_their_retention_has_passed(world: World) -> None:
    container = await world.container(changeFeedPolicy={"retentionDuration": 10})
    for number in range(5):
        await write(container, "a", "x", n=number)
    (partition,) = container.keyspace.record.map.ranges
    clock = world.store.services.clock

    def later(seconds: float) -> VersionRetention:
        moved = Clock(lambda: clock.wall_seconds() + seconds, clock.monotonic_seconds)
        return VersionRetention(world.store, moved)

    assert await later(590).sweep() == 0
    assert len(await world.everything(partition.partition, VERSIONS)) == 5
    assert await later(610).sweep() == 5
    assert await world.everything(partition.partition, VERSIONS) == []
    assert [row["n"] for row in await Reader(world, container).rest()] == [4]
