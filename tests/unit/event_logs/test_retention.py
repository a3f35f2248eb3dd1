"""Removal of events by age and by size."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from asterism.models.event_logs import retention
from asterism.models.event_logs.description import DAY_MS, HOUR_MS
from asterism.models.event_logs.events import FromTime
from asterism.models.event_logs.layout import CHUNKS
from asterism.partitioning.partition_key import numbered_point
from tests.support.event_logs import append, contents, open_hubs, open_two_processes, read_all
from tests.support.virtual_time import in_virtual_time

HOUR_SECONDS = 3600


@in_virtual_time
async def test_events_are_removed_when_they_are_old() -> None:
    async with open_hubs() as world:
        hub = await world.hub(retention_ms=HOUR_MS)
        for number in range(6):
            await append(hub.log(0), b"%d" % number)
            await asyncio.sleep(HOUR_SECONDS / 4)
        await world.upkeep.remove_due()
        properties = await hub.log(0).properties()
        assert (properties.begin_sequence, properties.last_sequence) == (2, 5)
        assert contents(await read_all(hub.log(0))) == [b"2", b"3", b"4", b"5"]
        await world.check_entries(hub)


@in_virtual_time
async def test_an_emptied_partition_keeps_its_numbers() -> None:
    async with open_hubs() as world:
        hub = await world.hub(retention_ms=HOUR_MS)
        await append(hub.log(0), b"a", b"b")
        await asyncio.sleep(2 * HOUR_SECONDS)
        assert await world.upkeep.remove_due() == 2
        properties = await hub.log(0).properties()
        assert (properties.begin_sequence, properties.last_sequence, properties.is_empty) == (2, 1, True)
        assert properties.stored_bytes == 0
        assert await read_all(hub.log(0)) == []
        assert (await append(hub.log(0), b"c")).first_sequence == 2
        await world.check_entries(hub)


@in_virtual_time
async def test_the_oldest_events_make_room_for_new_ones() -> None:
    async with open_hubs() as world:
        hub = await world.hub(retention_ms=DAY_MS, retention_bytes=5_000)
        for _ in range(40):
            await append(hub.log(1), b"x" * 1000)
        await world.upkeep.remove_due()
        properties = await hub.log(1).properties()
        assert 3_000 < properties.stored_bytes <= 5_000
        assert properties.last_sequence == 39
        await world.check_entries(hub)
        await append(hub.log(1), b"x" * 1000)
        await asyncio.sleep(60)
        await world.upkeep.remove_due()
        assert (await hub.log(1).properties()).begin_sequence == properties.begin_sequence + 1


@in_virtual_time
async def remove_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "REMOVED_EVENTS_MAX", 10)
    async with open_hubs() as world:
        hub = await world.hub(retention_ms=HOUR_MS)
        for size in (1, 7, 25, 3, 40, 1, 1):
            await append(hub.log(0), *[b"x"] * size)
        await asyncio.sleep(2 * HOUR_SECONDS)
        await append(hub.log(0), b"kept")
        assert await world.upkeep.remove_due() == 78
        number = hub.keyspace.record.map.find(numbered_point(0)).partition
        assert len(await world.world.everything(number, CHUNKS)) == 1
        await world.check_entries(hub)


def test_a_long_removal_is_made_of_bounded_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    remove_much(monkeypatch)


@in_virtual_time
async def test_a_reader_passes_events_that_were_removed() -> None:
    async with open_hubs(cache_bytes_max=0) as world:
        hub = await world.hub(retention_ms=HOUR_MS)
        log = hub.log(0)
        await append(log, b"a", b"b")
        reader = log.reader(0)
        assert contents(await reader.read(events_max=1, bytes_max=1)) == [b"a"]
        fresh = log.reader(1)
        await asyncio.sleep(2 * HOUR_SECONDS)
        await world.upkeep.remove_due()
        assert await fresh.read(events_max=1, bytes_max=1) == []
        assert fresh.next_sequence == 2
        await append(log, b"c")
        assert contents(await fresh.read(events_max=9, bytes_max=9)) == [b"c"]


@in_virtual_time
async def test_the_upkeep_finds_what_is_due_by_itself() -> None:
    async with open_hubs() as world:
        await world.upkeep.start()
        hub = await world.hub(retention_ms=HOUR_MS)
        await append(hub.log(0), b"a")
        await asyncio.sleep(HOUR_SECONDS / 2)
        await append(hub.log(0), b"b")
        await asyncio.sleep(HOUR_SECONDS / 2 + 60)
        assert contents(await read_all(hub.log(0), (await hub.log(0).properties()).begin_sequence)) == [b"b"]
        await asyncio.sleep(HOUR_SECONDS / 2 + 60)
        assert (await hub.log(0).properties()).is_empty
        await append(hub.log(0), b"c")
        await world.store.update(hub, lambda description: replace(description, retention_ms=60_000))
        await asyncio.sleep(120)
        assert (await hub.log(0).properties()).is_empty
        await world.store.delete(hub)
        await asyncio.sleep(HOUR_SECONDS)
        await world.upkeep.stop()


@in_virtual_time
async def test_two_processes_that_remove_at_once_do_no_harm() -> None:
    """E5."""
    async with open_two_processes() as (first, second):
        hub = await first.hub(retention_ms=HOUR_MS)
        for _ in range(30):
            await append(hub.log(0), b"x")
            await asyncio.sleep(HOUR_SECONDS / 20)
        await second.store.namespaces.catch_up()
        await asyncio.gather(first.upkeep.remove_due(), second.upkeep.remove_due())
        await first.check_entries(hub)
        assert (await hub.log(0).properties()).begin_sequence == 10


@in_virtual_time
async def test_a_place_by_time_is_found_in_what_is_left() -> None:
    async with open_hubs() as world:
        hub = await world.hub(retention_ms=HOUR_MS)
        log = hub.log(0)
        times = []
        for number in range(20):
            times.append((await append(log, b"%d" % number)).enqueued_ms)
            await asyncio.sleep(HOUR_SECONDS / 10)
        await world.upkeep.remove_due()
        begin = (await log.properties()).begin_sequence
        for number, enqueued_ms in enumerate(times):
            assert await log.find(FromTime(enqueued_ms, is_inclusive=True)) == max(number, begin)
