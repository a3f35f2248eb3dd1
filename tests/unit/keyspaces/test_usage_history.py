"""The history of usage: samples of this process and of others, and the growth of the hottest logical partitions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asterism.errors import StorageUnavailable
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.processes.usage_history import SLOT_SECONDS, UsageHistory
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import Reads
from asterism.models.documents.container import Container
from tests.support.virtual_time import in_virtual_time, virtual_clock
from tests.support.world import World, open_world

HOUR = 3600.0


class Watched:
    """A container in memory, in virtual time, whose usage is sampled."""

    def __init__(self, world: World, container: Container, history: UsageHistory) -> None:
        self.world = world
        self.container = container
        self.history = history

    @property
    def keyspace(self) -> Keyspace:
        return self.container.keyspace

    async def write(self, *ids: str, key: str = "key", size: int = 0) -> None:
        for item_id in ids:
            await self.container.create_item({"id": item_id, "pk": key, "text": "x" * size}, None)

    def requests(self, *, seconds: float = HOUR, points_max: int = 360) -> dict[int, list[int]]:
        found = self.history.of_keyspace(self.keyspace, seconds=seconds, points_max=points_max)
        return {range_id: served.requests for range_id, served in found.by_range.items()}


@asynccontextmanager
async def watched(
    *, history_seconds: float = HOUR, router: Reads | None = None, cells_max: int = 1000
) -> AsyncIterator[Watched]:
    clock = virtual_clock(asyncio.get_running_loop())
    async with open_world(None, clock=clock) as world:
        container = await world.container()
        history = UsageHistory(
            world.catalog, router or world.router, clock, history_seconds=history_seconds, cells_max=cells_max
        )
        await history.start()
        try:
            yield Watched(world, container, history)
        finally:
            await history.stop()


async def until_slot_is_over() -> None:
    await asyncio.sleep(SLOT_SECONDS)


@in_virtual_time
async def test_every_ten_seconds_the_work_since_the_last_sample_is_kept() -> None:
    async with watched() as store:
        await store.write("1", "2")
        await until_slot_is_over()
        await store.write("3")
        await until_slot_is_over()
        assert store.requests(seconds=30) == {0: [0, 2, 1]}
        shown = store.history.of_keyspace(store.keyspace, seconds=30, points_max=3)
        assert (shown.step_seconds, shown.ended_at - shown.began_at, shown.steps) == (10.0, 30.0, 3)
        assert sum(shown.by_range[0].request_units) == pytest.approx(store.keyspace.usage[0].request_units)


@in_virtual_time
async def test_steps_are_as_long_as_the_points_require() -> None:
    async with watched() as store:
        for number in range(6):
            await store.write(str(number))
            await until_slot_is_over()
        assert store.requests(seconds=60, points_max=2) == {0: [3, 3]}
        assert store.requests(seconds=60, points_max=4) == {0: [2, 2, 2]}
        assert store.requests(seconds=60, points_max=1) == {0: [6]}


@in_virtual_time
async def test_the_history_has_the_ranges_that_were_split() -> None:
    async with watched() as store:
        for key in ("a", "b"):
            await store.write(key, key=key)
        await until_slot_is_over()
        await store.world.reshaper.finished(await store.world.reshaper.split(store.keyspace, 0))
        await store.write("c", key="a")
        await until_slot_is_over()
        shown = {range_id: sum(requests) for range_id, requests in store.requests().items()}
        assert (shown.pop(0), sorted(shown.values())) == (2, [1])


@in_virtual_time
async def test_usage_is_forgotten_after_the_history_and_never_shown_for_longer() -> None:
    async with watched(history_seconds=60.0) as store:
        await store.write("1")
        await until_slot_is_over()
        assert len(store.requests(seconds=10 * HOUR)[0]) == 6
        await asyncio.sleep(60)
        assert store.requests() == {}


@in_virtual_time
async def test_without_a_history_nothing_is_sampled() -> None:
    async with watched(history_seconds=0.0) as store:
        await store.write("1")
        await until_slot_is_over()
        assert (store.history.history_seconds, store.requests()) == (0.0, {})
        assert store.history.of_keyspace(store.keyspace, seconds=HOUR, points_max=360).steps == 1


@in_virtual_time
async def test_work_before_the_start_counts_for_no_slot() -> None:
    async with watched() as store:
        await store.history.stop()
        await store.write("1")
        await store.history.start()
        await until_slot_is_over()
        assert store.requests() == {}


@in_virtual_time
async def test_counters_that_begin_again_count_whole() -> None:
    async with watched() as store:
        await store.write("1", "2")
        await until_slot_is_over()
        store.keyspace.usage.clear()
        await store.write("3")
        await until_slot_is_over()
        assert store.requests(seconds=20) == {0: [2, 1]}


@in_virtual_time
async def test_a_deleted_container_leaves_the_history() -> None:
    async with watched() as store:
        await store.write("1")
        await until_slot_is_over()
        await store.world.store.delete_container(store.container)
        await until_slot_is_over()
        assert store.requests() == {}


@in_virtual_time
async def test_keys_that_grow_are_measured_once_a_minute() -> None:
    async with watched() as store:
        for number in range(24):
            await store.write(f"{number}", key="grows", size=1000)
            await until_slot_is_over()
        (growth,) = store.history.growing_keys(store.keyspace)
        # An item is a little larger than its text.
        assert 18_000 < growth.bytes < 36_000
        assert 100 < growth.bytes_per_second < 150
        await asyncio.sleep(600)
        assert store.history.growing_keys(store.keyspace) == [], "it no longer grows"


@in_virtual_time
async def test_keys_that_are_only_read_do_not_grow() -> None:
    async with watched() as store:
        await store.write("1")
        for _ in range(24):
            await store.container.read_item(b"1", ("key",))
            await until_slot_is_over()
        assert store.history.growing_keys(store.keyspace) == []


class Refuser:
    """A router whose node cannot be reached."""

    def __init__(self) -> None:
        self.calls = 0

    async def read(self, keyspace: Keyspace, point: bytes, keys: Sequence[bytes]) -> Any:
        self.calls += 1
        raise StorageUnavailable(reason="the node cannot be reached")


@in_virtual_time
async def test_a_node_that_does_not_answer_is_asked_once_a_minute_and_stops_no_sample() -> None:
    refuser = Refuser()
    async with watched(router=cast(Reads, refuser)) as store:
        for number in range(13):
            await store.write(f"{number}a", key="a")
            await store.write(f"{number}b", key="b")
            await until_slot_is_over()
        assert refuser.calls == 2
        assert sum(store.requests()[0]) == 26


# --- several processes ----------------------------------------------------------------------------------------------


class Process:
    """Another process over the same store, with the same containers and counters of its own."""

    def __init__(self, store: Watched, number: int) -> None:
        known = store.keyspace
        self.keyspace = Keyspace(known.record, known.version, lambda: 0.0)
        catalog = SimpleNamespace(is_shared=True, boot_number=number, keyspaces={known.record.rid: self.keyspace})
        clock = virtual_clock(asyncio.get_running_loop())
        self.catalog = cast(Catalog, catalog)
        self.history = UsageHistory(self.catalog, store.world.router, clock, history_seconds=HOUR)

    def serve(self, count: int, key: bytes = b"\x10") -> None:
        for _ in range(count):
            self.keyspace.spend(self.keyspace.record.map.ranges[0], 5.0, key)

    def requests(self) -> dict[int, int]:
        found = self.history.of_keyspace(self.keyspace, seconds=HOUR, points_max=360)
        return {range_id: sum(served.requests) for range_id, served in found.by_range.items()}


def heard(process: Process) -> Mapping[str, Any]:
    """Return the report of a process as others read it from the store."""
    report: dict[str, Any] = json.loads(json.dumps({"name": "any", **process.history.report()}))
    return report


@in_virtual_time
async def test_samples_of_other_processes_are_added_once() -> None:
    async with watched() as store:
        first, second = Process(store, 1), Process(store, 2)
        first.serve(3)
        second.serve(4)
        await first.history.sample()
        await second.history.sample()
        for _ in range(3):
            first.history.hear([heard(second)])
        assert first.requests() == {0: 7}
        await until_slot_is_over()
        second.serve(1)
        await second.history.sample()
        first.history.hear([heard(second)])
        first.history.hear([])
        await first.history.sample()
        assert first.requests() == {0: 8}


@in_virtual_time
async def test_an_idle_process_reports_nothing() -> None:
    async with watched() as store:
        process = Process(store, 1)
        await process.history.sample()
        assert process.history.report() == {}
        assert not process.history.is_busy


@in_virtual_time
async def test_a_sample_of_a_container_that_this_process_does_not_know_is_left_out() -> None:
    async with watched() as store:
        first, second = Process(store, 1), Process(store, 2)
        second.serve(4)
        await second.history.sample(names_keys=True)
        known = dict(first.catalog.keyspaces)
        first.catalog.keyspaces.clear()
        first.history.hear([heard(second)])
        first.catalog.keyspaces.update(known)
        assert first.requests() == {}


@in_virtual_time
async def test_keys_that_another_process_finds_hot_are_measured_too() -> None:
    async with watched() as store:
        idle, busy = Process(store, 1), Process(store, 2)
        await store.write("1", key="grows", size=1000)
        (effective_key,) = dict(store.keyspace.usage[0].hottest.top(1))
        for number in range(2, 5):
            busy.serve(8, effective_key)
            await busy.history.sample(names_keys=True)
            idle.history.hear([heard(busy)])
            await idle.history.measure_growth()
            await store.write(str(number), key="grows", size=1000)
            await asyncio.sleep(60)
        (growth,) = idle.history.growing_keys(idle.keyspace)
        assert growth.effective_key == effective_key
        assert 1000 / 60 < growth.bytes_per_second < 1500 / 60
