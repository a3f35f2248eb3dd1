"""Scans of an interval: every entry once and in order, whatever the slices and whatever happens to the partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.errors import OwnerNotFound
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.scan import LineSlice, read_slice, scan_line, scan_span
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.partitioning.key_range import FULL, KeyRange
from asterism.partitioning.split_merge import SplitPlan, SplitReason
from asterism.storage.contract import Batch, ScanPage, Span
from asterism.values.identifiers import NodeNumber
from tests.support.virtual_time import run_virtual, virtual_clock
from tests.support.world import World, open_world

FAMILY, OTHER = b"\x1a", b"\x1b"
# Few different first bytes, so that entries lie on both sides of a division and directly at it.
POINTS = st.binary(min_size=1, max_size=3).map(lambda head: bytes([head[0] % 0xF0]) + head[1:])
DATA = st.dictionaries(POINTS, st.binary(max_size=40), max_size=40)
SIZES = st.builds(SliceSize, st.integers(1, 12), st.integers(1, 200))
INTERVALS = st.tuples(POINTS | st.just(FULL.start), POINTS | st.just(FULL.end)).map(
    lambda ends: KeyRange(min(ends), max(ends))
)


@dataclass(frozen=True)
class Change:
    """A change of the partitions; which of them is chosen by a number, whatever their count is by then."""

    kind: str
    number: int
    at: bytes


CHANGES = st.lists(
    st.none() | st.builds(Change, st.sampled_from(["split", "split", "merge", "move"]), st.integers(0, 9), POINTS),
    max_size=6,
)


async def write(world: World, keyspace: Keyspace, data: dict[bytes, bytes]) -> None:
    for point, value in data.items():
        puts = [(FAMILY + point, value), (OTHER + point, b"of another family")]
        await world.router.apply(keyspace, point, Batch(puts=puts))


async def carry_out(world: World, keyspace: Keyspace, change: Change) -> None:
    ranges = keyspace.record.map.ranges
    chosen = ranges[change.number % len(ranges)]
    if change.kind == "move":
        job = await world.reshaper.move(keyspace, chosen.id, NodeNumber(1 - chosen.node))
    elif change.kind == "merge" and len(ranges) > 1:
        left = change.number % (len(ranges) - 1)
        job = await world.reshaper.merge(keyspace, ranges[left].id, ranges[left + 1].id)
    elif chosen.range.start < change.at < chosen.range.end:
        job = await world.reshaper.split_at(keyspace, SplitPlan(chosen.id, change.at, SplitReason.DEMAND))
    else:
        return
    await world.reshaper.finished(job)


def expected(data: dict[bytes, bytes], interval: KeyRange, *, reverse: bool) -> list[tuple[bytes, bytes]]:
    found = [(FAMILY + point, value) for point, value in data.items() if interval.contains(point)]
    return sorted(found, reverse=reverse)


def entries_of(slices: Sequence[LineSlice]) -> list[tuple[bytes, bytes]]:
    return [entry for found in slices for entry in found.entries]


# K6 of asterism/keyspaces/DESIGN.md.
@settings(max_examples=200)
@given(DATA, SIZES, INTERVALS, CHANGES, st.booleans(), st.booleans())
def test_a_scan_has_every_entry_once_and_in_order_whatever_happens_between_its_slices(
    data: dict[bytes, bytes],
    size: SliceSize,
    interval: KeyRange,
    changes: list[Change | None],
    reverse: bool,
    is_relaxed: bool,
) -> None:
    async def scan() -> list[LineSlice]:
        clock = virtual_clock(asyncio.get_running_loop())
        async with open_world(None, clock=clock, node_labels=("", "")) as world:
            keyspace = (await world.container()).keyspace
            await write(world, keyspace, data)
            router: PartitionRouter = world.router
            if is_relaxed:
                router = PartitionRouter(world.engine, may_read_copies=True).relaxed({})
            left = list(changes)
            slices = []
            async for found in scan_line(router, keyspace, FAMILY, interval, size, reverse=reverse):
                slices.append(found)
                change = left.pop(0) if left else None
                if change is not None:
                    await carry_out(world, keyspace, change)
            return slices

    slices = run_virtual(scan())
    assert entries_of(slices) == expected(data, interval, reverse=reverse)
    for found in slices:
        assert len(found.entries) <= size.entries
        assert sum(len(key) + len(value) for key, value in found.entries[:-1]) < size.bytes
        assert all(found.partition.range.contains(key[1:]) for key, _ in found.entries)


async def test_a_slice_that_meets_a_split_is_read_from_the_child() -> None:
    """The map changes while the slice is read: the partition that was found first refuses."""
    async with open_world(None) as world:
        keyspace = (await world.container()).keyspace
        data = {bytes([number]): b"" for number in range(10, 100)}
        await write(world, keyspace, data)
        (parent,) = keyspace.record.map.ranges
        plan = SplitPlan(parent.id, bytes([50]), SplitReason.DEMAND)

        class SplitsFirst:
            """Splits the partition before the first scan, of which the caller still has the old map."""

            read = world.router.read
            is_split = False

            async def scan(self, *arguments: object, **named: object) -> ScanPage | None:
                if not self.is_split:
                    self.is_split = True
                    await world.reshaper.finished(await world.reshaper.split_at(keyspace, plan))
                return await world.router.scan(*arguments, **named)  # type: ignore[arg-type]  # handed on as they came

        found = await read_slice(SplitsFirst(), keyspace, FAMILY, KeyRange(b"\x20", b"\x60"), SliceSize(1000, 10_000))
        assert found.partition.range == KeyRange(parent.range.start, b"\x32")
        assert [key[1] for key, _ in found.entries] == list(range(0x20, 0x32))
        assert found.rest == KeyRange(b"\x32", b"\x60")


async def test_a_scan_of_a_keyspace_that_is_deleted_ends_with_that() -> None:
    async with open_world(None) as world:
        keyspace = (await world.container()).keyspace
        await write(world, keyspace, {bytes([number]): b"" for number in range(10)})
        scan = scan_line(world.router, keyspace, FAMILY, FULL, SliceSize(3, 1000))
        await anext(scan)
        (partition,) = keyspace.record.map.ranges
        await world.catalog.delete_keyspace(keyspace)
        await world.engine.drop_partition(partition.partition)
        with pytest.raises(OwnerNotFound):
            await anext(scan)


async def test_other_tasks_run_between_two_slices() -> None:
    async with open_world(None) as world:
        keyspace = (await world.container()).keyspace
        await write(world, keyspace, {bytes([number]): b"" for number in range(10)})
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counter = asyncio.create_task(count_turns())
        slices = [found async for found in scan_line(world.router, keyspace, FAMILY, FULL, SliceSize(2, 1000))]
        counter.cancel()
        assert len(slices) == 5
        assert turns >= len(slices) - 1


@given(st.lists(st.binary(min_size=1, max_size=3), unique=True, max_size=30), st.integers(1, 7))
def test_a_span_is_read_page_by_page(keys: list[bytes], limit: int) -> None:
    async def read_page(span: Span) -> ScanPage:
        inside = [(key, b"") for key in sorted(keys) if span.contains(key)]
        return ScanPage(inside[:limit], len(inside) > limit)

    async def scan() -> list[bytes]:
        return [key async for entries in scan_span(read_page, Span(b"\x20")) for key, _ in entries]

    assert asyncio.run(scan()) == [key for key in sorted(keys) if key >= b"\x20"]


@given(st.lists(st.binary(min_size=1, max_size=3), unique=True, max_size=20), st.integers(1, 5), st.booleans())
def test_the_rest_of_a_page_is_the_span_behind_it(keys: list[bytes], limit: int, reverse: bool) -> None:
    rest: Span | None = Span(b"\x10", b"\xf0")
    found = []
    while rest is not None:
        inside = sorted((key for key in keys if rest.contains(key)), reverse=reverse)
        page = ScanPage([(key, b"") for key in inside[:limit]], len(inside) > limit)
        found += [key for key, _ in page.entries]
        rest = page.rest(rest, reverse=reverse)
    assert found == sorted((key for key in keys if b"\x10" <= key < b"\xf0"), reverse=reverse)
