"""The store of tables against a plain dictionary, and what it promises besides."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.errors import LogicalPartitionFull, RequestRateTooLarge, ResourceExists, ResourceNotFound
from asterism.keyspaces.routing.keyspace import Spent
from asterism.limits import DEFAULT_LIMITS
from asterism.models.tables.entities import (
    EntityWrite,
    FailureReason,
    OperationFailed,
    StoredEntity,
    TableKind,
    WriteKind,
)
from asterism.models.tables.table import EntityKey, Table
from asterism.throughput.budgets import Manual
from asterism.values.ordered_text import ordered_text
from tests.support.tables import ACCOUNT, TableWorld, everything, open_tables

Name = tuple[str, str]
WEAK = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def write(kind: WriteKind, pk: str, rk: str, properties: bytes = b"", if_match: object = None) -> EntityWrite:
    return EntityWrite(kind, pk, rk, properties, if_match)  # type: ignore[arg-type]  # tests try every condition


def insert(pk: str, rk: str, properties: bytes = b'"a":1') -> EntityWrite:
    return write(WriteKind.INSERT, pk, rk, properties)


def order(name: Name) -> tuple[bytes, bytes]:
    return ordered_text(name[0]), ordered_text(name[1])


def run(test: Callable[[TableWorld], Awaitable[None]], **options: object) -> None:
    async def go() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with open_tables(Path(directory), **options) as world:  # type: ignore[arg-type]  # passed through
                await test(world)

    asyncio.run(go())


async def a_table(world: TableWorld, kind: TableKind = "storage") -> Table:
    return await world.tables.create_table(ACCOUNT, "Things", kind=kind)


# --- names ------------------------------------------------------------------------------------------------------------


def test_storage_tables_are_found_in_any_case_and_keep_theirs() -> None:
    async def test(world: TableWorld) -> None:
        await world.tables.create_table(ACCOUNT, "MyTable", kind="storage")
        with pytest.raises(ResourceExists):
            await world.tables.create_table(ACCOUNT, "mytable", kind="storage")
        found = world.tables.find_table(ACCOUNT, "MYTABLE")
        assert found is not None
        assert (found.name, found.kind, found.account) == ("MyTable", "storage", ACCOUNT)
        assert world.tables.find_table("another", "MyTable") is None
        assert world.tables.find_table(ACCOUNT, "MyTable2") is None

    run(test)


def test_cosmos_tables_are_found_by_their_exact_name() -> None:
    async def test(world: TableWorld) -> None:
        await world.tables.create_table(ACCOUNT, "Ünï_1", kind="cosmos")
        assert world.tables.find_table(ACCOUNT, "Ünï_1") is not None
        assert world.tables.find_table(ACCOUNT, "ünï_1") is None

    run(test)


def test_tables_are_listed_in_order_and_from_any_name_on() -> None:
    async def test(world: TableWorld) -> None:
        for name in ("beta", "Alpha", "gamma", "Delta"):
            await world.tables.create_table(ACCOUNT, name, kind="storage")
        assert await world.tables.list_tables(ACCOUNT, None, 10) == ["Alpha", "beta", "Delta", "gamma"]
        assert await world.tables.list_tables(ACCOUNT, "ALPHA", 2) == ["beta", "Delta"]
        assert await world.tables.list_tables("nobody", None, 10) == []
        assert world.world.store.list_databases(ACCOUNT) == []

    run(test)


def test_a_listing_goes_on_behind_a_table_that_was_deleted_meanwhile() -> None:
    async def test(world: TableWorld) -> None:
        for name in ("Wow_", "Xen_", "Yak_", "Zed_"):
            await world.tables.create_table(ACCOUNT, name, kind="cosmos")
        seen: list[str] = []
        while page := await world.tables.list_tables(ACCOUNT, seen[-1] if seen else None, 1):
            seen += page
            await world.tables.delete_table(ACCOUNT, page[0])
        assert seen == ["Wow_", "Xen_", "Yak_", "Zed_"]

    run(test)


# T6 of asterism/models/tables/DESIGN.md.
@pytest.mark.parametrize(
    ("first", "kind", "second", "other_kind"),
    [
        ("Orders", "storage", "Orders", "cosmos"),
        ("Orders", "storage", "ORDERS", "cosmos"),
        ("Orders", "cosmos", "Orders", "storage"),
        ("Orders", "cosmos", "orders", "storage"),
    ],
)
def test_a_table_of_one_port_is_not_hidden_by_one_of_the_other(
    first: str, kind: TableKind, second: str, other_kind: TableKind
) -> None:
    async def test(world: TableWorld) -> None:
        table = await world.tables.create_table(ACCOUNT, first, kind=kind)
        await table.apply([insert("p", "r")])
        with pytest.raises(ResourceExists):
            await world.tables.create_table(ACCOUNT, second, kind=other_kind)
        found = world.tables.find_table(ACCOUNT, first)
        assert found is not None
        assert await found.get("p", "r") is not None

    run(test)


def test_a_deleted_table_is_gone_with_its_entities_and_documents() -> None:
    async def test(world: TableWorld) -> None:
        table = await a_table(world)
        await table.apply([insert("p", "r")])
        await world.tables.put_document(ACCOUNT, table, "acl", b"x")
        assert await world.tables.replace_account_document(ACCOUNT, "properties", b"y", before=None)
        await world.tables.delete_table(ACCOUNT, "things")
        assert world.tables.find_table(ACCOUNT, "Things") is None
        with pytest.raises(ResourceNotFound):
            await world.tables.delete_table(ACCOUNT, "Things")
        again = await a_table(world)
        assert await again.get("p", "r") is None
        assert await world.tables.get_document(ACCOUNT, again, "acl") is None
        assert await world.tables.get_account_document(ACCOUNT, "properties") == b"y"

    run(test)


# --- one entity -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["storage", "cosmos"])
def test_an_entity_is_read_as_it_was_written(kind: TableKind) -> None:
    async def test(world: TableWorld) -> None:
        table = await a_table(world, kind)
        (written,) = await table.apply([insert("p", "r", b'"a":"b"')])
        assert written == await table.get("p", "r")
        assert written is not None
        assert written.properties == b'"a":"b"'
        assert await table.get("p", "R") is None

    run(test)


@pytest.mark.parametrize(
    ("there", "operation", "reason"),
    [
        (True, insert("p", "r"), FailureReason.EXISTS),
        (False, write(WriteKind.REPLACE, "p", "r", if_match="*"), FailureReason.NOT_FOUND),
        (False, write(WriteKind.MERGE, "p", "r", if_match=5), FailureReason.NOT_FOUND),
        (False, write(WriteKind.DELETE, "p", "r", if_match="*"), FailureReason.NOT_FOUND),
        (True, write(WriteKind.REPLACE, "p", "r", if_match=5), FailureReason.ETAG_MISMATCH),
        (True, write(WriteKind.DELETE, "p", "r", if_match=5), FailureReason.ETAG_MISMATCH),
    ],
)
def test_what_cannot_be_done_is_told_with_its_place(there: bool, operation: EntityWrite, reason: FailureReason) -> None:
    async def test(world: TableWorld) -> None:
        table = await a_table(world)
        if there:
            await table.apply([insert("p", "r")])
        with pytest.raises(OperationFailed) as failed:
            await table.apply([write(WriteKind.INSERT_OR_REPLACE, "p", "other"), operation])
        assert (failed.value.index, failed.value.failure) == (1, reason)
        assert await table.get("p", "other") is None
        await world.check_statistics(table)

    run(test)


# T1 of asterism/models/tables/DESIGN.md.
def test_of_many_inserts_the_first_that_is_there_is_named_and_none_is_done() -> None:
    async def test(world: TableWorld) -> None:
        table = await a_table(world)
        await table.apply([insert("p", "3"), insert("p", "7")])
        with pytest.raises(OperationFailed) as failed:
            await table.apply([insert("p", str(number)) for number in range(10)])
        assert (failed.value.index, failed.value.failure) == (3, FailureReason.EXISTS)
        assert len(await everything(table)) == 2

    run(test)


# T3 of asterism/models/tables/DESIGN.md.
def test_timestamps_rise_with_every_write_of_an_entity() -> None:
    async def test(world: TableWorld) -> None:
        table = await a_table(world)
        seen: list[str] = []
        for _ in range(5):
            (entity,) = await table.apply([write(WriteKind.INSERT_OR_REPLACE, "p", "r")])
            assert entity is not None
            seen.append(entity.etag_time)
        assert seen == sorted(set(seen))
        await table.apply([write(WriteKind.DELETE, "p", "r", if_match=seen[-1])])

    run(test)


# T2 of asterism/models/tables/DESIGN.md.
def test_writers_of_one_entity_lose_nothing_of_each_other() -> None:
    async def test(world: TableWorld) -> None:
        table = await a_table(world)
        await table.apply([insert("p", "r", b"")])
        names = [f"n{number}" for number in range(20)]
        await asyncio.gather(
            *(table.apply([write(WriteKind.MERGE, "p", "r", f'"{name}":1'.encode(), "*")]) for name in names)
        )
        entity = await table.get("p", "r")
        assert entity is not None
        assert all(f'"{name}":1'.encode() in entity.properties for name in names)
        await world.check_statistics(table)

    run(test)


# --- many entities ----------------------------------------------------------------------------------------------------

# Short ones that meet each other, and long ones that are cut, with beginnings in common.
_ENDS = "ab\x00\x01é\ue000\U0001f600"
keys = st.one_of(
    st.text(st.sampled_from(_ENDS), max_size=2),
    st.builds(lambda count, end: "k" * count + end, st.integers(224, 230), st.text(st.sampled_from(_ENDS), max_size=3)),
)
names = st.tuples(keys, keys)
contents = st.sampled_from([b"", b'"a":1', b'"a":2', b'"b":"text"', b'"c":[]'])


@st.composite
def groups(draw: st.DrawFn) -> list[EntityWrite]:
    pk = draw(keys)
    rows = draw(st.lists(keys, min_size=1, max_size=5, unique_by=ordered_text))
    return [write(draw(st.sampled_from(list(WriteKind))), pk, row, draw(contents)) for row in rows]


def apply_to_model(model: dict[Name, bytes], group: list[EntityWrite]) -> FailureReason | None:
    after = dict(model)
    for write in group:
        name = write.partition_key, write.row_key
        there = name in model
        if write.kind is WriteKind.INSERT and there:
            return FailureReason.EXISTS
        if write.kind in (WriteKind.REPLACE, WriteKind.MERGE, WriteKind.DELETE) and not there:
            return FailureReason.NOT_FOUND
        if write.kind is WriteKind.DELETE:
            del after[name]
        elif write.kind in (WriteKind.MERGE, WriteKind.INSERT_OR_MERGE) and there:
            after[name] = merged(model[name], write.properties)
        else:
            after[name] = write.properties
    model.clear()
    model.update(after)
    return None


def merged(stored: bytes, given: bytes) -> bytes:
    members = [part for part in (stored, given) if part]
    if len(members) < 2:
        return members[0] if members else b""
    names = [part.partition(b":")[0] for part in stored.split(b",")]
    if given.partition(b":")[0] in names:
        return b",".join(given if part.startswith(given.partition(b":")[0]) else part for part in stored.split(b","))
    return stored + b"," + given


@WEAK
@given(st.lists(groups(), max_size=12), st.lists(st.tuples(names, names), max_size=4), st.integers(1, 7))
@pytest.mark.parametrize("kind", ["storage", "cosmos"])
def test_the_store_agrees_with_a_dictionary(
    kind: TableKind, all_groups: list[list[EntityWrite]], spans: list[tuple[Name, Name]], limit: int
) -> None:
    async def test(world: TableWorld) -> None:
        table = await a_table(world, kind)
        model: dict[Name, bytes] = {}
        for group in all_groups:
            expected = apply_to_model(model, group)
            assert await outcome_of(table, group) is expected
        for name, properties in model.items():
            found = await table.get(*name)
            assert found is not None
            assert found.properties == properties
        await check_scans(table, kind, model, spans, limit)
        await world.check_statistics(table)

    run(test)


async def outcome_of(table: Table, group: list[EntityWrite]) -> FailureReason | None:
    try:
        await table.apply(group)
    except OperationFailed as failed:
        return failed.failure
    return None


async def check_scans(
    table: Table, kind: TableKind, model: dict[Name, bytes], spans: list[tuple[Name, Name]], limit: int
) -> None:
    found = await everything(table, limit=limit)
    assert [(entity.partition_key, entity.row_key) for entity in found] == (
        sorted(model, key=order) if kind == "storage" else unordered_partitions(found, model)
    )
    for lower, upper in spans:
        if kind == "cosmos":
            upper = (lower[0], upper[1])
        wanted = sorted((name for name in model if order(lower) <= order(name) < order(upper)), key=order)
        names_found = [
            (entity.partition_key, entity.row_key) for entity in await everything(table, lower, upper, limit=limit)
        ]
        assert names_found == wanted
        whole: EntityKey = (lower[0], None)
        names_found = [
            (entity.partition_key, entity.row_key) for entity in await everything(table, whole, whole, limit=limit)
        ]
        assert names_found == sorted((name for name in model if name[0] == lower[0]), key=order)


def unordered_partitions(found: list[StoredEntity], model: dict[Name, bytes]) -> list[Name]:
    """Return the names of the model, its partitions in the order in which they were found."""
    first_met = list(dict.fromkeys(entity.partition_key for entity in found))
    return [name for pk in first_met for name in sorted((key for key in model if key[0] == pk), key=order)] + [
        name for name in model if name[0] not in first_met
    ]


def test_a_large_collision_run_of_long_keys_is_read_in_order() -> None:
    async def test(world: TableWorld) -> None:
        table = await a_table(world)
        rows = ["x" * 300 + f"{number:04}" for number in range(1200)]
        for at in range(0, len(rows), 100):
            await table.apply([insert("p", row) for row in rows[at : at + 100]])
        assert [entity.row_key for entity in await everything(table, limit=400)] == rows
        middle = await table.scan(("p", rows[700]), ("p", rows[705]), limit=100, entries_examined_max=5000)
        assert [entity.row_key for entity in middle.entities] == rows[700:705]

    run(test)


def test_a_page_holds_what_was_asked_for_and_tells_the_next_that_fits() -> None:
    async def test(world: TableWorld) -> None:
        table = await a_table(world)
        await table.apply([insert("p", f"{number:02}", b'"even":%d' % (number % 2 == 0)) for number in range(20)])

        def is_even(entity: StoredEntity) -> bool:
            return entity.properties == b'"even":1'

        page = await table.scan(None, None, limit=4, entries_examined_max=100, accept=is_even)
        assert [entity.row_key for entity in page.entities] == ["00", "02", "04", "06"]
        assert page.next_key == ("p", "08")
        page = await table.scan(page.next_key, None, limit=6, entries_examined_max=100, accept=is_even)
        assert (len(page.entities), page.next_key) == (6, None)
        page = await table.scan(None, None, limit=10, entries_examined_max=5, accept=is_even)
        assert ([entity.row_key for entity in page.entities], page.next_key) == (["00", "02", "04"], ("p", "05"))

    run(test)


def test_a_page_of_large_entities_ends_before_it_is_too_large() -> None:
    async def test(world: TableWorld) -> None:
        table = await a_table(world)
        for number in range(7):
            await table.apply([insert("p", str(number), b'"a":"%s"' % (b"x" * 900_000))])
        page = await table.scan(None, None, limit=1000, entries_examined_max=1000)
        assert len(page.entities) == 5
        assert page.next_key == ("p", "5")

    run(test)


# --- throughput -------------------------------------------------------------------------------------------------------


def test_a_cosmos_table_charges_and_throttles_and_a_storage_table_never_throttles() -> None:
    async def test(world: TableWorld) -> None:
        cosmos = await world.tables.create_table(ACCOUNT, "c", kind="cosmos", throughput=Manual(400))
        storage = await world.tables.create_table(ACCOUNT, "abc", kind="storage")
        spent = Spent()
        await cosmos.apply([insert("p", "r", b'"a":"%s"' % (b"x" * 900))], spent)
        assert spent.charge == 5.0
        await cosmos.get("p", "r", spent)
        assert spent.charge == 6.0

        async def flood(table: Table) -> None:
            for _ in range(300):
                await table.apply([write(WriteKind.INSERT_OR_REPLACE, "p", "r", b'"a":"%s"' % (b"x" * 100_000))])

        with pytest.raises(RequestRateTooLarge):
            await asyncio.wait_for(flood(cosmos), 30)
        for _ in range(50):
            await storage.apply([write(WriteKind.INSERT_OR_REPLACE, "p", "r", b'"a":"%s"' % (b"x" * 100_000))])

    run(test, enforce=True)


def test_a_cosmos_table_has_as_many_partitions_as_its_throughput_needs() -> None:
    async def test(world: TableWorld) -> None:
        table = await world.tables.create_table(ACCOUNT, "c", kind="cosmos", throughput=Manual(18_000))
        assert len(table.keyspace.record.map.ranges) == 3
        await asyncio.gather(*(table.apply([insert(str(number), "r")]) for number in range(50)))
        assert len(await everything(table)) == 50
        await world.check_statistics(table)

    run(test)


def test_a_logical_partition_of_a_cosmos_table_is_limited_and_that_of_a_storage_table_is_not() -> None:
    async def test(world: TableWorld) -> None:
        big = b'"a":"%s"' % (b"x" * 600)
        for kind in ("storage", "cosmos"):
            table = await world.tables.create_table(ACCOUNT, kind, kind=kind)
            await table.apply([insert("p", "1", big)])
            if kind == "cosmos":
                with pytest.raises(LogicalPartitionFull):
                    await table.apply([insert("p", "2", big)])
            else:
                await table.apply([insert("p", "2", big)])

    run(test, limits=DEFAULT_LIMITS.with_changes(logical_partition_bytes_max=1000))


# --- what it asks of the store ----------------------------------------------------------------------------------------


def test_a_get_is_one_read_an_insert_one_batch_and_a_group_one_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: TableWorld) -> None:
        table = await a_table(world)
        # The size of a partition is learned once, after the first write to it.
        await table.apply([insert("p", "first")])
        await asyncio.sleep(0.01)
        calls: list[str] = []
        engine = world.world.engine
        for name in ("read", "scan", "apply"):
            monkeypatch.setattr(engine, name, counted(calls, name, getattr(engine, name)))
        await table.get("p", "r")
        assert calls == ["read"]
        calls.clear()
        await table.apply([insert("p", str(number)) for number in range(100)])
        assert calls == ["apply"]
        calls.clear()
        await table.apply([write(WriteKind.MERGE, "p", str(number), b'"b":2', "*") for number in range(100)])
        assert calls == ["read", "apply"]
        calls.clear()
        page = await table.scan(("p", "1"), ("p", "2"), limit=100, entries_examined_max=100)
        assert (len(page.entities), calls) == (11, ["scan"])

    run(test)


def counted(calls: list[str], name: str, call: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
    async def count(*arguments: object, **named: object) -> object:
        calls.append(name)
        return await call(*arguments, **named)

    return count


def test_many_who_write_one_entity_all_the_time_each_get_their_turn() -> None:
    async def test(world: TableWorld) -> None:
        table = await a_table(world)
        await table.apply([insert("p", "r")])

        async def write_often(name: int) -> None:
            for number in range(5):
                await table.apply([write(WriteKind.MERGE, "p", "r", b'"w%d":%d' % (name, number))])

        await asyncio.gather(*map(write_often, range(60)))
        entity = await table.get("p", "r")
        assert all(b'"w%d":4' % name in entity.properties for name in range(60))

    run(test)
