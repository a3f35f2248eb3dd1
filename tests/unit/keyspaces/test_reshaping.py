"""Splits and merges on a real engine, under writes that never stop."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from asterism.errors import ItemExists, ItemNotFound, PhysicalPartitionFull, ReshapeRefused
from asterism.keyspaces.catalog.memory import CatalogChanges
from asterism.keyspaces.reshaping.takeover import abandon
from asterism.limits import DEFAULT_LIMITS
from asterism.models.documents.container import Container
from asterism.models.documents.pages import read_items_page
from asterism.models.documents.results import Scope
from asterism.partitioning.partition_key import PartitionKey
from asterism.throughput.budgets import Manual
from asterism.values.json.text import loads
from tests.support.world import World, open_world

WHOLE = Scope(b"", b"\xff")


async def all_items(world: World, container: Container) -> dict[tuple[str, str], dict[str, object]]:
    found: dict[tuple[str, str], dict[str, object]] = {}
    position = None
    while True:
        page = await read_items_page(world.router, container, WHOLE, position=position, items_max=50)
        for body in page.bodies:
            item = loads(body)
            assert isinstance(item, dict)
            assert (item["pk"], item["id"]) not in found
            found[item["pk"], item["id"]] = item
        position = page.position
        if position is None:
            return found


class Writer:
    """Write, replace and delete at random until asked to stop, and remember the acknowledged writes."""

    def __init__(self, container: Container, name: int, keys: int = 40) -> None:
        self.container = container
        self.known: dict[tuple[str, str], int] = {}
        self.stopping = False
        self._random = random.Random(name)
        self._name = name
        self._keys = keys

    async def run(self) -> None:
        number = 0
        while not self.stopping:
            number += 1
            key = f"k{self._random.randrange(self._keys)}"
            item_id = f"{self._name}-{self._random.randrange(60)}"
            if self._random.random() < 0.25 and (key, item_id) in self.known:
                await self.container.delete_item(item_id.encode(), (key,))
                del self.known[key, item_id]
            else:
                item = {"id": item_id, "pk": key, "n": number, "pad": "x" * self._random.randrange(200)}
                await self.container.upsert_item(item, (key,))
                self.known[key, item_id] = number
            found = await self.container.read_item(item_id.encode(), (key,)) if (key, item_id) in self.known else None
            assert found is None or loads(found.body)["n"] == number  # type: ignore[index]  # an object, as written


async def run_during(
    container: Container, work: asyncio.Future[None] | asyncio.Task[None], writers: int = 4
) -> dict[tuple[str, str], int]:
    running = [Writer(container, name) for name in range(writers)]
    async with asyncio.TaskGroup() as group:
        for writer in running:
            group.create_task(writer.run())
        await work
        await asyncio.sleep(0.1)
        for writer in running:
            writer.stopping = True
    return {key: number for writer in running for key, number in writer.known.items()}


# K3 of asterism/keyspaces/DESIGN.md.
# K7 of asterism/keyspaces/DESIGN.md.
async def test_a_split_under_writes_keeps_every_acknowledged_write(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        for number in range(300):
            await container.create_item({"id": f"old-{number}", "pk": f"k{number % 40}"}, None)

        async def split_twice() -> None:
            await asyncio.sleep(0.05)
            await world.reshaper.finished(await world.reshaper.split(container.keyspace, 0))
            await world.reshaper.finished(await world.reshaper.split(container.keyspace, 1))

        known = await run_during(container, asyncio.ensure_future(split_twice()))
        ranges = container.keyspace.record.map.ranges
        assert len(ranges) == 3
        assert [partition.parents for partition in ranges] == [(0, 1), (0, 1), (0,)]
        found = await all_items(world, container)
        assert {key: item["n"] for key, item in found.items() if "n" in item} == known
        assert sum("n" not in item for item in found.values()) == 300
        await world.check_statistics(container)


async def test_a_merge_under_writes_keeps_every_acknowledged_write(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container(throughput=Manual(12_000))
        keyspace = container.keyspace
        offer = world.catalog.offer_for(keyspace.record.rid)
        assert offer is not None
        await world.store.replace_offer(offer, Manual(400))

        async def merge() -> None:
            await asyncio.sleep(0.1)
            await world.reshaper.finished(await world.reshaper.merge(keyspace, 0, 1))

        known = await run_during(container, asyncio.ensure_future(merge()))
        assert [partition.parents for partition in keyspace.record.map.ranges] == [(0, 1)]
        assert {key: item["n"] for key, item in (await all_items(world, container)).items()} == known
        await world.check_statistics(container)


# K9 of asterism/keyspaces/DESIGN.md.
async def test_lsns_go_on_in_the_children_so_that_session_tokens_stay_true(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        answers = [await container.create_item({"id": str(n), "pk": str(n)}, None) for n in range(20)]
        await world.reshaper.finished(await world.reshaper.split(container.keyspace, 0))
        after = await container.read_item(b"3", ("3",), session={0: answers[-1].lsn})
        assert after.lsn == answers[-1].lsn
        written = await container.create_item({"id": "new", "pk": "3"}, None)
        assert written.lsn == answers[-1].lsn + 1


# K14 of asterism/keyspaces/DESIGN.md.
async def test_a_partition_with_one_logical_key_refuses_to_split_and_says_so(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        await container.create_item({"id": "1", "pk": "only"}, None)
        await container.create_item({"id": "2", "pk": "only"}, None)
        with pytest.raises(ReshapeRefused, match="one partition key value"):
            await world.reshaper.split(container.keyspace, 0)


async def test_a_partition_that_fills_up_splits_by_itself(tmp_path: Path) -> None:
    limits = DEFAULT_LIMITS.with_changes(physical_partition_bytes_max=64 * 1024)
    async with open_world(tmp_path, limits=limits) as world:
        container = await world.container()
        for number in range(400):
            await container.create_item({"id": str(number), "pk": str(number), "pad": "x" * 500}, None)
        assert len(container.keyspace.record.map.ranges) >= 4
        assert len(await all_items(world, container)) == 400
        await world.check_statistics(container)


async def test_a_full_partition_of_one_logical_key_refuses_growth_and_keeps_what_it_has(tmp_path: Path) -> None:
    limits = DEFAULT_LIMITS.with_changes(physical_partition_bytes_max=16 * 1024)
    async with open_world(tmp_path, limits=limits) as world:
        container = await world.container()
        kept: list[str] = []

        async def fill() -> None:
            for number in range(100):
                await container.create_item({"id": str(number), "pk": "only", "pad": "x" * 500}, None)
                kept.append(str(number))

        with pytest.raises(PhysicalPartitionFull):
            await fill()
        assert sorted(item_id for _, item_id in await all_items(world, container)) == sorted(kept)
        await container.delete_item(kept[0].encode(), ("only",))
        await container.create_item({"id": "again", "pk": "only"}, None)


async def test_raised_throughput_splits_and_is_pending_until_then(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container(throughput=Manual(400))
        offer = world.catalog.offer_for(container.record.rid)
        assert offer is not None
        offer = await world.store.replace_offer(offer, Manual(11_000))
        assert world.store.is_offer_pending(offer)
        async with asyncio.timeout(180):
            while world.store.is_offer_pending(offer):
                await asyncio.sleep(0.01)
        assert [partition.range.to_texts() for partition in container.keyspace.record.map.ranges] == [
            ("", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"),
            ("1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "FF"),
        ]


async def test_a_deleted_container_ends_its_split_and_leaves_no_partition(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        for number in range(200):
            await container.create_item({"id": str(number), "pk": str(number)}, None)
        job = await world.reshaper.split(container.keyspace, 0)
        await world.store.delete_container(container)
        await world.reshaper.finished(job)
        async with asyncio.timeout(180):
            while len(await world.engine.partitions()) > 1:
                await asyncio.sleep(0.02)
        assert world.reshaper.progress == {}


async def test_items_live_by_partition_key_and_id(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        key: PartitionKey = ("a",)
        await container.create_item({"id": "1", "pk": "a"}, key)
        await container.create_item({"id": "1", "pk": "b"}, ("b",))
        with pytest.raises(ItemExists):
            await container.create_item({"id": "1", "pk": "a"}, key)
        await container.delete_item(b"1", key)
        with pytest.raises(ItemNotFound):
            await container.read_item(b"1", key)
        assert list(await all_items(world, container)) == [("b", "1")]
        await world.check_statistics(container)


async def test_a_container_of_a_deleted_ones_name_can_be_read_with_the_old_session(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        old = await world.container()
        answers = [await old.create_item({"id": str(n), "pk": "a"}, None) for n in range(5)]
        await world.store.delete_container(old)
        new = await world.container()
        await new.create_item({"id": "1", "pk": "a"}, None)
        found = await new.read_item(b"1", ("a",), session={0: answers[-1].lsn})
        assert found.lsn > answers[-1].lsn


async def filled(world: World) -> Container:
    container = await world.container()
    for number in range(20):
        await container.create_item({"id": str(number), "pk": str(number)}, None)
    return container


async def test_a_job_that_somebody_has_finished_is_not_undone_by_giving_it_up(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        job = await world.reshaper.split(container.keyspace, 0)
        await world.reshaper.finished(job)
        await abandon(world.catalog, job)
        assert not world.catalog.garbage & {target.number for target in job.targets}
        assert len(await all_items(world, container)) == 20


async def test_a_writer_that_needs_room_waits_for_a_split_that_another_has_begun(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        keyspace = container.keyspace
        assert await asyncio.gather(*(world.reshaper.make_room(keyspace, b"") for _ in range(4))) == [True] * 4
        assert len(keyspace.record.map.ranges) == 2


async def test_a_job_is_remembered_until_somebody_is_at_work_and_is_then_started_once(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        await world.reshaper.stop()
        job = await world.reshaper.split(container.keyspace, 0)
        world.reshaper.wake(CatalogChanges(work=True))
        assert world.reshaper.progress == {}
        await world.reshaper.recover()
        world.reshaper.wake(CatalogChanges(work=True))
        await world.reshaper.finished(job)
        assert len(container.keyspace.record.map.ranges) == 2
        assert len(await world.catalog.work.history_of(container.keyspace.record.rid)) == 1
        assert len(await all_items(world, container)) == 20
