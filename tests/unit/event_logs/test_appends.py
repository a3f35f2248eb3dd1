"""Appends: their order, their numbers, their times, and what becomes of them when the store fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from asterism.errors import ResourceNotFound, StorageUnavailable
from asterism.models.event_logs.appender import CHUNK_EVENTS_MAX
from asterism.models.event_logs.events import Appended, Busy, BusyReason
from asterism.models.event_logs.layout import CHUNKS, NewEvent
from asterism.models.event_logs.log import DOWN_SECONDS
from asterism.partitioning.partition_key import numbered_point
from tests.support.event_logs import (
    NAMESPACE,
    HubWorld,
    append,
    contents,
    open_hubs,
    open_two_processes,
    read_all,
    store_of,
)
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_events_are_numbered_from_0_in_each_partition() -> None:
    async with open_hubs() as world:
        hub = await world.hub()
        assert (await append(hub.log(0), b"a", b"b")).first_sequence == 0
        assert (await append(hub.log(0), b"c")).first_sequence == 2
        assert (await append(hub.log(1), b"d")).first_sequence == 0
        events = await read_all(hub.log(0))
        assert [(event.sequence, event.content) for event in events] == [(0, b"a"), (1, b"b"), (2, b"c")]
        await world.check_entries(hub)


@in_virtual_time
async def test_appends_keep_the_order_of_their_calls() -> None:
    async with open_hubs() as world:
        hub = await world.hub()
        results = [hub.log(0).append([NewEvent(b"%d" % number)]) for number in range(2500)]
        appended = await asyncio.gather(*results)
        firsts = [result.first_sequence for result in appended if isinstance(result, Appended)]
        assert firsts == list(range(2500))
        assert contents(await read_all(hub.log(0))) == [b"%d" % number for number in range(2500)]
        number = hub.keyspace.record.map.find(numbered_point(0)).partition
        assert len(await world.world.everything(number, CHUNKS)) == 3
        assert CHUNK_EVENTS_MAX == 1000


@in_virtual_time
async def test_a_batch_that_is_larger_than_a_chunk_stays_together() -> None:
    async with open_hubs() as world:
        hub = await world.hub()
        await append(hub.log(0), *[b"%d" % number for number in range(3000)], key=b"k")
        events = await read_all(hub.log(0), events_max=7)
        assert contents(events) == [b"%d" % number for number in range(3000)]
        assert {event.partition_key for event in events} == {b"k"}
        await world.check_entries(hub)


@in_virtual_time
async def test_partition_keys_are_kept_with_their_events() -> None:
    async with open_hubs(cache_bytes_max=0) as world:
        hub = await world.hub()
        await hub.log(0).append([NewEvent(b"a", b"k"), NewEvent(b"", None), NewEvent(b"c", b"")])
        events = await read_all(hub.log(0))
        assert [(event.content, event.partition_key) for event in events] == [(b"a", b"k"), (b"", None), (b"c", b"")]


@in_virtual_time
async def test_no_event_is_older_than_the_one_before() -> None:
    """E3."""
    async with open_hubs() as world:
        hub = await world.hub()
        first = await append(hub.log(0), b"a")
        world.wall.seconds = -3600
        second = await append(hub.log(0), b"b")
        world.wall.seconds = 3600
        third = await append(hub.log(0), b"c")
        assert second.enqueued_ms == first.enqueued_ms
        assert third.enqueued_ms == first.enqueued_ms + 3_600_000


@in_virtual_time
async def test_two_processes_append_without_loss() -> None:
    """E1."""
    async with open_two_processes() as (first, second):
        hub = await first.hub()
        other = await second.store.find_newest(NAMESPACE, "h")
        assert other is not None

        async def fill(name: str, log: Any) -> list[int]:
            return [(await append(log, b"%s%d" % (name.encode(), number))).first_sequence for number in range(50)]

        numbers = await asyncio.gather(fill("a", hub.log(0)), fill("b", other.log(0)))
        assert sorted(numbers[0] + numbers[1]) == list(range(100))
        by_sequence = {event.sequence: event.content for event in await read_all(hub.log(0))}
        assert [by_sequence[number] for number in numbers[0]] == [b"a%d" % number for number in range(50)]
        assert [by_sequence[number] for number in numbers[1]] == [b"b%d" % number for number in range(50)]
        await first.check_entries(hub)


@in_virtual_time
async def test_a_process_that_starts_goes_on_at_the_end() -> None:
    async with open_hubs() as world:
        hub = await world.hub()
        await append(hub.log(0), b"a", b"b")
        later = store_of(world.world, world.store.services.clock)
        found = later.find(NAMESPACE, "H")
        assert found is not None
        assert (await append(found.log(0), b"c")).first_sequence == 2
        assert contents(await read_all(found.log(0))) == [b"a", b"b", b"c"]


def fail_applies(world: HubWorld, monkeypatch: pytest.MonkeyPatch, *, after_applying: bool) -> None:
    apply = world.world.router.apply

    async def failing(*args: Any, **options: Any) -> Any:
        for _ in range(after_applying):
            await apply(*args, **options)
        raise StorageUnavailable(reason="the test says so")

    monkeypatch.setattr(world.world.router, "apply", failing)


@in_virtual_time
async def append_with_a_lost_answer(monkeypatch: pytest.MonkeyPatch, after_applying: bool) -> list[bytes]:
    async with open_hubs() as world:
        hub = await world.hub()
        await append(hub.log(0), b"a")
        with monkeypatch.context() as patch:
            fail_applies(world, patch, after_applying=after_applying)
            with pytest.raises(StorageUnavailable):
                await append(hub.log(0), b"b")
        await asyncio.sleep(DOWN_SECONDS)
        await append(hub.log(0), b"c")
        await world.check_entries(hub)
        return contents(await read_all(hub.log(0)))


@pytest.mark.parametrize(("after_applying", "expected"), [(True, [b"a", b"b", b"c"]), (False, [b"a", b"c"])])
def test_after_a_lost_answer_the_log_goes_on_at_its_true_end(
    monkeypatch: pytest.MonkeyPatch, after_applying: bool, expected: list[bytes]
) -> None:
    assert append_with_a_lost_answer(monkeypatch, after_applying) == expected


@in_virtual_time
async def skip_a_partition_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_hubs() as world:
        hub = await world.hub(partitions=3)
        with monkeypatch.context() as patch:
            fail_applies(world, patch, after_applying=False)
            with pytest.raises(StorageUnavailable):
                await append(hub.log(1), b"b")
        busy = await hub.log(1).append([NewEvent(b"c")])
        assert isinstance(busy, Busy)
        assert busy.reason is BusyReason.PARTITION_DOWN
        assert {hub.next_log().partition for _ in range(6)} == {0, 2}
        await asyncio.sleep(DOWN_SECONDS)
        assert {hub.next_log().partition for _ in range(6)} == {0, 1, 2}


def test_a_partition_that_is_down_is_passed_for_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    skip_a_partition_that_is_down(monkeypatch)


@in_virtual_time
async def test_an_append_to_a_deleted_hub_is_refused() -> None:
    async with open_hubs() as world:
        hub = await world.hub()
        await append(hub.log(0), b"a")
        await world.store.delete(hub)
        with pytest.raises(ResourceNotFound):
            await append(hub.log(0), b"b")


@in_virtual_time
async def test_an_append_goes_on_without_its_caller() -> None:
    async with open_hubs() as world:
        hub = await world.hub()
        waiting = asyncio.ensure_future(append(hub.log(0), b"a"))
        await asyncio.sleep(0)
        waiting.cancel()
        await append(hub.log(0), b"b")
        assert contents(await read_all(hub.log(0))) == [b"a", b"b"]


@in_virtual_time
async def test_a_hub_with_throughput_units_is_busy_when_they_are_used_up() -> None:
    async with open_hubs() as world:
        hub = await world.hub(throughput_units=1)
        await append(hub.log(0), *[b"x"] * 1500)
        busy = await hub.log(1).append([NewEvent(b"y")])
        assert isinstance(busy, Busy)
        assert busy.reason is BusyReason.THROUGHPUT
        await asyncio.sleep(busy.retry_after_seconds)
        await append(hub.log(1), b"y")
        await read_all(hub.log(0))
        assert hub.log(0).wait_seconds_out() == 0.0
        await asyncio.sleep(2)
        await append(hub.log(0), b"x" * 2**20)
        await asyncio.sleep(2)
        await append(hub.log(0), b"x" * 2**20)
        await asyncio.sleep(2)
        await append(hub.log(0), b"x" * 2**20)
        await read_all(hub.log(0))
        assert hub.log(0).wait_seconds_out() > 0.0
