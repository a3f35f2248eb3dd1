"""Ranges of PartitionKey: divided and joined under load, read in order across all of them."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.errors import ReshapeRefused
from asterism.keyspaces.reshaping.load_watch import Patience
from asterism.limits import DEFAULT_LIMITS, KIB
from asterism.models.tables.entities import EntityWrite, OperationFailed, WriteKind
from asterism.models.tables.table import EntityKey, Table
from asterism.values.ordered_text import ordered_text
from tests.support.tables import ACCOUNT, TableWorld, everything, open_tables

WEAK = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
QUICK = Patience(period_seconds=0.03, hot_periods=2, cold_seconds=0.3)
NEVER = Patience(period_seconds=1000.0)


def upsert(pk: str, rk: str, properties: bytes = b'"a":1') -> EntityWrite:
    return EntityWrite(WriteKind.INSERT_OR_REPLACE, pk, rk, properties)


def run(test: Callable[[TableWorld], Awaitable[None]], **options: object) -> None:
    async def go() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with open_tables(Path(directory), **options) as world:  # type: ignore[arg-type]  # passed through
                async with asyncio.timeout(180):
                    await test(world)

    asyncio.run(go())


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.01)


def ranges(table: Table) -> int:
    return len(table.keyspace.record.map.ranges)


# --- under load -------------------------------------------------------------------------------------------------------


async def keep_writing(
    table: Table, model: dict[tuple[str, str], bytes], writer: int, until_done: asyncio.Event
) -> None:
    """Writes, replaces and deletes entities of its own until told to stop; `model` is what it was told is so."""
    number = 0
    while not until_done.is_set():
        number += 1
        pk, rk = f"k{number * 7 % 40:02}", f"w{writer}-{number % 30}"
        if number % 5 == 0:
            with contextlib.suppress(OperationFailed):
                await table.apply([EntityWrite(WriteKind.DELETE, pk, rk, if_match="*")])
            model.pop((pk, rk), None)
        else:
            properties = b'"n":%d' % number
            group = [upsert(pk, rk, properties), upsert(pk, rk + "b", properties)]
            await table.apply(group)
            model |= {(pk, rk): properties, (pk, rk + "b"): properties}


def test_splits_and_merges_under_load_lose_nothing() -> None:
    async def test(world: TableWorld) -> None:
        table = await world.tables.create_table(ACCOUNT, "Busy", kind="storage")
        model: dict[tuple[str, str], bytes] = {}
        done = asyncio.Event()
        writers = [asyncio.create_task(keep_writing(table, model, writer, done)) for writer in range(4)]
        await asyncio.sleep(0.1)
        reshaper, keyspace = world.world.reshaper, table.keyspace
        for _ in range(2):
            for partition in keyspace.record.map.ranges:
                await reshaper.finished(await reshaper.split(keyspace, partition.id))
        assert ranges(table) == 4
        in_order = [(entity.partition_key, entity.row_key) for entity in await everything(table)]
        assert in_order == sorted(in_order)
        for _ in range(3):
            left, right, *_ = keyspace.record.map.ranges
            await reshaper.finished(await reshaper.merge(keyspace, left.id, right.id))
        assert ranges(table) == 1
        done.set()
        await asyncio.gather(*writers)
        found = {(entity.partition_key, entity.row_key): entity.properties for entity in await everything(table)}
        assert found == model
        await world.check_statistics(table)

    run(test, patience=NEVER)


def test_a_table_that_grows_is_divided_where_its_data_is() -> None:
    async def test(world: TableWorld) -> None:
        table = await world.tables.create_table(ACCOUNT, "Large", kind="storage")
        padding = b'"a":"%s"' % (b"x" * 1000)
        for number in range(300):
            await table.apply([upsert(f"{number % 60:02}", f"{number}-{row}", padding) for row in range(2)])
        await until(lambda: ranges(table) >= 4 and not world.world.reshaper.progress)
        assert len(await everything(table)) == 600
        await world.check_statistics(table)

    limits = DEFAULT_LIMITS.with_changes(physical_partition_bytes_max=200 * KIB)
    run(test, limits=limits, patience=NEVER)


def test_a_part_of_a_split_that_is_nearly_full_is_divided_without_another_write() -> None:
    async def test(world: TableWorld) -> None:
        table = await world.tables.create_table(ACCOUNT, "Late", kind="storage")
        padding = b'"a":"%s"' % (b"x" * 1000)
        reshaper = world.world.reshaper
        # No write is noticed, as if all of them had come while the partition was copied.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reshaper, "notice_growth", lambda *_: None)
            for number in range(300):
                await table.apply([upsert(f"{number % 60:02}", f"{number}-{row}", padding) for row in range(2)])
        assert ranges(table) == 1
        await reshaper.finished(await reshaper.split(table.keyspace, 0))
        await until(lambda: ranges(table) >= 4 and not reshaper.progress)
        assert len(await everything(table)) == 600

    limits = DEFAULT_LIMITS.with_changes(physical_partition_bytes_max=200 * KIB)
    run(test, limits=limits, patience=NEVER)


def test_one_partition_key_is_never_divided_and_goes_on_growing() -> None:
    async def test(world: TableWorld) -> None:
        table = await world.tables.create_table(ACCOUNT, "One", kind="storage")
        padding = b'"a":"%s"' % (b"x" * 1000)
        for number in range(60):
            await table.apply([upsert("p", f"{number}-{row}", padding) for row in range(5)])
        assert ranges(table) == 1
        with pytest.raises(ReshapeRefused, match="one partition key value"):
            await world.world.reshaper.split(table.keyspace, 0)
        assert len(await everything(table)) == 300

    run(test, limits=DEFAULT_LIMITS.with_changes(physical_partition_bytes_max=100 * KIB), patience=NEVER)


# --- by load ----------------------------------------------------------------------------------------------------------

HOT = DEFAULT_LIMITS.with_changes(ordered_range_ru_per_second_max=200)


async def read_for_ever(table: Table, names: list[str]) -> None:
    while True:
        for number, name in enumerate(names):
            await table.get(name, "r")
            # A read of the embedded store never suspends.
            await asyncio.sleep(0 if number % 20 else 0.001)


def test_a_hot_range_is_divided_where_its_load_is_and_joined_again_when_it_is_cold() -> None:
    async def test(world: TableWorld) -> None:
        table = await world.tables.create_table(ACCOUNT, "Hot", kind="storage")
        # Most of the data lies below "m", all of the load above it.
        await table.apply([upsert("a", f"{row}", b'"a":"%s"' % (b"x" * 500)) for row in range(50)])
        names = [f"z{(number * 7) % 20:02}" for number in range(20)]
        for name in names:
            await table.apply([upsert(name, "r")])
        reading = asyncio.create_task(read_for_ever(table, names))
        await until(lambda: ranges(table) >= 2)
        first = table.keyspace.record.map.ranges[1].range.start
        assert first > ordered_text("z05")
        history = await world.world.catalog.work.history_of(table.keyspace.record.rid)
        assert b'"reason":"load"' in history[0]
        reading.cancel()
        await until(lambda: ranges(table) == 1 and not world.world.reshaper.progress)
        await until(lambda: world.load.is_asleep)
        assert len(await everything(table)) == 70
        await world.check_statistics(table)

    run(test, limits=HOT, patience=QUICK)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["only"], "one partition key"),
        ([f"2026-{number:06}" for number in range(100_000)], "upper end of the line"),
        ([f"2026-{100_000 - number:06}" for number in range(100_000)], "lower end of the line"),
    ],
    ids=["one key", "rising", "falling"],
)
def test_a_load_that_no_split_can_divide_is_left_alone_and_said(names: list[str], sentence: str) -> None:
    async def test(world: TableWorld) -> None:
        table = await world.tables.create_table(ACCOUNT, "Hot", kind="storage")
        reading = asyncio.create_task(read_for_ever(table, names))

        def said() -> bool:
            load = world.load.load_of(table.keyspace, 0)
            return load is not None and sentence in load.refusal

        await until(said)
        reading.cancel()
        assert ranges(table) == 1

    run(test, limits=HOT, patience=QUICK)


def test_cold_ranges_are_joined_after_a_restart_too(tmp_path: Path) -> None:
    async def go() -> None:
        async with open_tables(tmp_path, patience=NEVER) as world:
            table = await world.tables.create_table(ACCOUNT, "Cold", kind="storage")
            await table.apply([upsert("a", "r")])
            await table.apply([upsert("b", "r")])
            await world.world.reshaper.finished(await world.world.reshaper.split(table.keyspace, 0))
        async with open_tables(tmp_path, patience=QUICK) as world, asyncio.timeout(180):
            found = world.tables.find_table(ACCOUNT, "Cold")
            assert found is not None
            assert ranges(found) == 2
            await until(lambda: ranges(found) == 1 and not world.world.reshaper.progress)
            await until(lambda: world.load.is_asleep)

    asyncio.run(go())


# --- order across ranges ----------------------------------------------------------------------------------------------

_ENDS = "ab\x00é\ue000\U0001f600"
keys = st.one_of(
    st.text(st.sampled_from(_ENDS), max_size=2),
    st.builds(lambda count, end: "k" * count + end, st.integers(225, 229), st.text(st.sampled_from(_ENDS), max_size=2)),
)
Name = tuple[str, str]


def order(name: Name) -> tuple[bytes, bytes]:
    return ordered_text(name[0]), ordered_text(name[1])


@WEAK
@given(
    st.lists(st.tuples(keys, keys), min_size=2, max_size=25, unique=True),
    st.lists(st.tuples(st.tuples(keys, keys), st.tuples(keys, keys)), max_size=4),
    st.integers(1, 6),
)
def test_a_scan_over_several_ranges_is_in_order_and_exact(
    names: list[Name], spans: list[tuple[Name, Name]], limit: int
) -> None:
    async def test(world: TableWorld) -> None:
        table = await world.tables.create_table(ACCOUNT, "Order", kind="storage")
        for name in names:
            await table.apply([upsert(*name)])
        for partition in [*table.keyspace.record.map.ranges] * 2:
            with contextlib.suppress(ReshapeRefused):
                last = table.keyspace.record.map.ranges[-1] if partition.id not in live(table) else partition
                await world.world.reshaper.finished(await world.world.reshaper.split(table.keyspace, last.id))
        assert await keys_in(table, None, None, limit) == sorted(names, key=order)
        for lower, upper in spans:
            wanted = sorted((name for name in names if order(lower) <= order(name) < order(upper)), key=order)
            assert await keys_in(table, lower, upper, limit) == wanted
        await world.check_statistics(table)

    run(test, patience=NEVER)


def live(table: Table) -> set[int]:
    return {partition.id for partition in table.keyspace.record.map.ranges}


async def keys_in(table: Table, lower: EntityKey | None, upper: EntityKey | None, limit: int) -> list[Name]:
    return [(entity.partition_key, entity.row_key) for entity in await everything(table, lower, upper, limit=limit)]


# T5 of asterism/models/tables/DESIGN.md.
def test_scans_that_run_while_ranges_are_divided_and_joined_miss_nothing() -> None:
    async def test(world: TableWorld) -> None:
        table = await world.tables.create_table(ACCOUNT, "Read", kind="storage")
        long = "k" * 300
        names = [(f"{pk:02}{long if pk % 5 == 0 else ''}", f"{row:02}") for pk in range(40) for row in range(10)]
        for pk in dict.fromkeys(name[0] for name in names):
            await table.apply([upsert(*name) for name in names if name[0] == pk])
        done = asyncio.Event()
        scans = 0

        async def keep_scanning() -> None:
            nonlocal scans
            while not done.is_set():
                assert await keys_in(table, None, None, 7) == sorted(names, key=order)
                scans += 1

        scanning = [asyncio.create_task(keep_scanning()) for _ in range(2)]
        reshaper, keyspace = world.world.reshaper, table.keyspace
        for _ in range(3):
            await reshaper.finished(await reshaper.split(keyspace, keyspace.record.map.ranges[0].id))
        while ranges(table) > 1:
            left, right, *_ = keyspace.record.map.ranges
            await reshaper.finished(await reshaper.merge(keyspace, left.id, right.id))
        done.set()
        await asyncio.gather(*scanning)
        assert scans > 2

    run(test, patience=NEVER)
