"""Readers of a log: where they begin, what a page holds, and how they hear of new events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from asterism.errors import ResourceNotFound
from asterism.models.event_logs.events import BehindEnd, FromLatest, FromSequence, FromStart, FromTime, Place
from asterism.models.event_logs.log import PartitionLog
from tests.support.event_logs import (
    NAMESPACE,
    append,
    contents,
    open_hubs,
    open_two_processes,
    read_all,
)
from tests.support.virtual_time import WALL_START_SECONDS, in_virtual_time

START_MS = int(WALL_START_SECONDS * 1000) + 1_000_000


async def news(log: PartitionLog, sequence: int) -> None:
    """Return when the log has an event of a number."""
    heard = asyncio.Event()
    log.end.call_on_news(sequence, heard.set)
    await heard.wait()


@pytest.mark.parametrize("cache_bytes_max", [0, 2**20])
def test_a_page_has_the_events_that_fit(cache_bytes_max: int) -> None:
    @in_virtual_time
    async def check() -> None:
        async with open_hubs(cache_bytes_max=cache_bytes_max) as world:
            log = (await world.hub()).log(0)
            await append(log, *[b"%04d" % number for number in range(10)])
            await append(log, *[b"%04d" % number for number in range(10, 20)])
            assert [event.sequence for event in await log.read(0, events_max=3, bytes_max=1000)] == [0, 1, 2]
            assert [event.sequence for event in await log.read(5, events_max=100, bytes_max=9)] == [5, 6, 7]
            assert [event.sequence for event in await log.read(19, events_max=100, bytes_max=1)] == [19]
            assert await log.read(20, events_max=100, bytes_max=100) == []
            assert [event.sequence for event in await read_all(log, events_max=3)] == list(range(20))
            assert [event.sequence for event in await read_all(log, 13, bytes_max=10)] == list(range(13, 20))

    check()


PLACES: list[tuple[Place, object]] = [
    (FromStart(), 0),
    (FromLatest(), 5),
    (FromSequence(2, is_inclusive=True), 2),
    (FromSequence(2, is_inclusive=False), 3),
    (FromSequence(-1, is_inclusive=False), 0),
    (FromSequence(4, is_inclusive=False), 5),
    (FromSequence(5, is_inclusive=False), BehindEnd(5)),
    (FromSequence(2**70, is_inclusive=True), BehindEnd(5)),
    (FromTime(0, is_inclusive=True), 0),
    (FromTime(START_MS, is_inclusive=True), 0),
    (FromTime(START_MS, is_inclusive=False), 2),
    (FromTime(START_MS + 1_500, is_inclusive=True), 3),
    (FromTime(START_MS + 2_000, is_inclusive=False), 4),
    (FromTime(START_MS + 3_000, is_inclusive=True), 4),
    (FromTime(START_MS + 3_001, is_inclusive=True), 5),
]


@pytest.mark.parametrize(("place", "expected"), PLACES)
def test_reading_begins_at_the_place_that_was_asked_for(place: Place, expected: object) -> None:
    @in_virtual_time
    async def check() -> None:
        async with open_hubs() as world:
            log = (await world.hub()).log(0)
            await append(log, b"0", b"1")
            for number in range(2, 5):
                await asyncio.sleep(1)
                await append(log, b"%d" % number)
            assert await log.find(place) == expected

    check()


@in_virtual_time
async def test_an_empty_partition_has_properties_too() -> None:
    async with open_hubs() as world:
        properties = await (await world.hub()).log(0).properties()
        assert (properties.begin_sequence, properties.last_sequence, properties.last_offset) == (0, -1, "-1")
        assert properties.last_enqueued_ms is None
        assert properties.is_empty


@in_virtual_time
async def test_a_reader_that_waits_hears_of_the_next_append() -> None:
    async with open_hubs() as world:
        log = (await world.hub()).log(0)
        reader = log.reader(await _start(log))
        waiting = asyncio.create_task(news(log, 0))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await append(log, b"a")
        await waiting
        assert contents(await reader.read(events_max=10, bytes_max=10)) == [b"a"]


async def _start(log: PartitionLog) -> int:
    start = await log.find(FromLatest())
    assert isinstance(start, int)
    return start


@in_virtual_time
async def test_a_reader_hears_of_appends_of_another_process() -> None:
    async with open_two_processes() as (first, second):
        hub = await first.hub()
        other = await second.store.find_newest(NAMESPACE, "h")
        assert other is not None
        log = hub.log(0)
        reader = log.reader(await _start(log))
        waiting = asyncio.create_task(news(log, 0))
        await asyncio.sleep(10)
        assert not waiting.done()
        await append(other.log(0), b"a")
        async with asyncio.timeout(1):
            await waiting
        assert contents(await reader.read(events_max=10, bytes_max=10)) == [b"a"]


@in_virtual_time
async def test_a_cancelled_wait_is_not_called() -> None:
    async with open_hubs() as world:
        log = (await world.hub()).log(0)
        called: list[int] = []
        callback: Callable[[], None] = lambda: called.append(1)  # noqa: E731
        log.end.call_on_news(0, callback)
        log.end.cancel(callback)
        await append(log, b"a")
        assert called == []
        log.end.call_on_news(0, callback)
        assert called == [1]


@in_virtual_time
async def test_readers_share_the_chunks_that_were_read_last() -> None:
    async with open_hubs() as world:
        log = (await world.hub()).log(0)
        await append(log, b"a", b"b")
        (first, _) = await log.read(0, events_max=2, bytes_max=10)
        (again,) = await log.read(0, events_max=1, bytes_max=10)
        assert first is again


@in_virtual_time
async def test_the_cache_stays_within_its_bytes() -> None:
    async with open_hubs(cache_bytes_max=10_000) as world:
        log = (await world.hub()).log(0)
        for number in range(100):
            await append(log, b"%d" % number * 100)
        assert 0 < world.store.services.cache.bytes_used <= 10_000
        assert [event.sequence for event in await read_all(log)] == list(range(100))
        assert 0 < world.store.services.cache.bytes_used <= 10_000


@in_virtual_time
async def test_reading_a_deleted_hub_is_refused() -> None:
    async with open_hubs(cache_bytes_max=0) as world:
        hub = await world.hub()
        await append(hub.log(0), b"a")
        await world.store.delete(hub)
        with pytest.raises(ResourceNotFound):
            await hub.log(0).read(0, events_max=1, bytes_max=1)
