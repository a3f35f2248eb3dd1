"""Properties of the PostgreSQL engine alone: its database, its connection strings and its round trips."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.storage.contract import (
    Batch,
    EngineFailed,
    Expectation,
    ExpectationFailed,
    Fence,
    JournalEntry,
    PartitionUnknown,
    Span,
)
from asterism.storage.postgres import DatabaseIdentity, PostgresEngine, Timeouts, connections, without_password
from asterism.storage.postgres.addresses import split_hosts
from asterism.storage.postgres.journal_record import decode_journal, encode_journal
from asterism.values.identifiers import Epoch, Lsn, NodeNumber, PartitionNumber, partition_on
from tests.support.ports import free_port
from tests.support.postgres import shared_server
from tests.support.proxy import Proxy, proxy_to

ONE = PartitionNumber(1)
EPOCH = Epoch(1)
DATABASE = "particular"


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with proxy_to(shared_server().port) as proxy:
        yield proxy


@pytest.fixture
async def engine(proxy: Proxy) -> AsyncIterator[PostgresEngine]:
    await shared_server().empty_database(DATABASE)
    engine = await PostgresEngine.open(shared_server().dsn(DATABASE, port=proxy.port))
    await engine.create_partition(ONE, Fence(EPOCH))
    yield engine
    await engine.close()


# --- round trips ----------------------------------------------------------------------------------------------------


def put(key: bytes) -> Batch:
    return Batch(expectations=[Expectation(key, None)], versioned_puts=[(key, b"value")])


# P1 of asterism/storage/postgres/DESIGN.md.
async def test_a_read_and_a_batch_are_one_round_trip_each(engine: PostgresEngine, proxy: Proxy) -> None:
    await engine.apply(ONE, EPOCH, put(b"first"))
    await engine.read(ONE, EPOCH, [b"first"])
    before, counted_before = proxy.requests, engine.statements_sent
    for number in range(5):
        await engine.apply(ONE, EPOCH, put(b"%d" % number))
    assert (proxy.requests - before, engine.statements_sent - counted_before) == (5, 5)
    before, counted_before = proxy.requests, engine.statements_sent
    for number in range(5):
        assert (await engine.read(ONE, EPOCH, [b"%d" % number]))[1] != [None]
    assert (proxy.requests - before, engine.statements_sent - counted_before) == (5, 5)


# P2 of asterism/storage/postgres/DESIGN.md.
async def test_reads_that_wait_at_the_same_time_share_a_round_trip(engine: PostgresEngine) -> None:
    await engine.apply(ONE, EPOCH, put(b"a"))
    for _ in range(2):
        # The first time opens connections, which send statements of their own.
        before = engine.statements_sent
        answers = await asyncio.gather(*(engine.read(ONE, EPOCH, [b"a"]) for _ in range(100)))
        assert {lsn for lsn, _ in answers} == {1}
    # The first read is sent at once, and all others together.
    assert engine.statements_sent - before == 2


# P4 of asterism/storage/postgres/DESIGN.md.
async def test_a_canceled_read_disturbs_no_other(engine: PostgresEngine) -> None:
    await engine.apply(ONE, EPOCH, put(b"a"))
    reads = [asyncio.create_task(engine.read(ONE, EPOCH, [b"a"])) for _ in range(10)]
    await asyncio.sleep(0)
    for read in reads[::2]:
        read.cancel()
    outcomes = await asyncio.gather(*reads, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError, tuple] * 5
    assert (await engine.read(ONE, EPOCH, [b"a"]))[0] == 1


# P2 of asterism/storage/postgres/DESIGN.md.
async def test_batches_that_wait_at_the_same_time_share_a_transaction(engine: PostgresEngine, proxy: Proxy) -> None:
    await engine.apply(ONE, EPOCH, put(b"first"))
    before = proxy.requests
    lsns = await asyncio.gather(*(engine.apply(ONE, EPOCH, put(b"%d" % number)) for number in range(50)))
    assert sorted(lsns) == list(range(2, 52))
    assert proxy.requests - before == 1


# P3 of asterism/storage/postgres/DESIGN.md.
async def test_a_refused_batch_costs_its_group_one_more_round_trip(engine: PostgresEngine, proxy: Proxy) -> None:
    await engine.apply(ONE, EPOCH, put(b"0"))
    before = proxy.requests
    outcomes = await asyncio.gather(
        *(engine.apply(ONE, EPOCH, put(b"%d" % number)) for number in range(10)), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [ExpectationFailed] + [int] * 9
    assert proxy.requests - before == 2


# --- the database ---------------------------------------------------------------------------------------------------


# P9 of asterism/storage/postgres/DESIGN.md.
async def test_a_database_of_an_unknown_format_version_is_refused(engine: PostgresEngine) -> None:
    shared_server().sql("UPDATE asterism.node SET format_version = 3", DATABASE)
    with pytest.raises(EngineFailed, match="format version 3"):
        await PostgresEngine.open(shared_server().dsn(DATABASE))


# P10 of asterism/storage/postgres/DESIGN.md.
async def test_functions_that_an_older_program_did_not_create_are_created_on_demand(engine: PostgresEngine) -> None:
    await engine.apply(ONE, EPOCH, put(b"a"))
    shared_server().sql("DROP FUNCTION asterism.apply_v1_p1", DATABASE)
    assert await engine.apply(ONE, EPOCH, put(b"b")) == 2


# P10 of asterism/storage/postgres/DESIGN.md.
async def test_engines_that_open_an_empty_database_together_make_its_tables_once(engine: PostgresEngine) -> None:
    dsn = await shared_server().empty_database(f"{DATABASE}_together")
    engines = await asyncio.gather(*(PostgresEngine.open(dsn) for _ in range(5)))
    await engines[0].create_partition(ONE, Fence(EPOCH))
    assert [await opened.apply(ONE, EPOCH, Batch()) for opened in engines] == [1, 2, 3, 4, 5]
    for opened in engines:
        await opened.close()


# P9 of asterism/storage/postgres/DESIGN.md.
async def test_a_database_is_one_node_of_one_fleet(engine: PostgresEngine) -> None:
    mine = DatabaseIdentity("fleet-a", NodeNumber(1), "north")
    assert await engine.identity() is None
    await engine.claim(mine)
    await engine.claim(mine)
    assert await engine.identity() == mine
    for other in (
        DatabaseIdentity("fleet-b", NodeNumber(1), "north"),
        DatabaseIdentity("fleet-a", NodeNumber(2), "north"),
    ):
        with pytest.raises(EngineFailed, match="fleet-a"):
            await engine.claim(other)
    renamed = DatabaseIdentity("fleet-a", NodeNumber(1), "north-1")
    await engine.claim(renamed)
    assert await engine.identity() == renamed


async def test_partitions_of_every_node_number_have_tables(engine: PostgresEngine) -> None:
    number = partition_on(NodeNumber(2**31 - 1), 7)
    await engine.create_partition(number, Fence(EPOCH))
    assert await engine.apply(number, EPOCH, put(b"a")) == 1
    assert await engine.drop_partition(number)
    with pytest.raises(PartitionUnknown):
        await engine.read(number, EPOCH, [b"a"])
    left = shared_server().sql(f"SELECT count(*) FROM pg_class WHERE relname LIKE '%{number}%'", DATABASE)
    assert int(left) == 0


# P11 of asterism/storage/postgres/DESIGN.md.
async def test_a_snapshot_keeps_a_partition_that_is_being_dropped(engine: PostgresEngine) -> None:
    await engine.apply(ONE, EPOCH, put(b"a"))
    snapshot = await engine.snapshot(ONE, EPOCH)
    assert not await engine.drop_partition(ONE)
    with pytest.raises(PartitionUnknown):
        await engine.read(ONE, EPOCH, [b"a"])
    assert [value is not None for value in await snapshot.read([b"a", b"b"])] == [True, False]
    await snapshot.close()
    assert await engine.drop_partition(ONE)


async def test_a_missing_server_cannot_be_reached() -> None:
    timeouts = Timeouts(connect_seconds=0.5, total_seconds=0.5)
    with pytest.raises(EngineFailed, match="cannot be reached"):
        await PostgresEngine.open(f"postgresql://127.0.0.1:{free_port()}/asterism", timeouts=timeouts)
    with pytest.raises(EngineFailed, match="postgresql://"):
        await PostgresEngine.open("mysql://127.0.0.1/asterism")


# --- connection strings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("connection_string", "hosts"),
    [
        ("postgresql://u:p@one/db", ["postgresql://u:p@one/db"]),
        (
            "postgresql://u:p%40@one:1,two:2/db?sslmode=require&target_session_attrs=any",
            ["postgresql://u:p%40@one:1/db?sslmode=require", "postgresql://u:p%40@two:2/db?sslmode=require"],
        ),
        (
            "postgresql:///db?host=one,two&port=1,2",
            ["postgresql:///db?host=one&port=1", "postgresql:///db?host=two&port=2"],
        ),
    ],
)
def test_each_host_has_a_connection_string_of_its_own(connection_string: str, hosts: list[str]) -> None:
    assert list(split_hosts(connection_string)) == hosts


# P13 of asterism/storage/postgres/DESIGN.md.
def test_a_connection_string_is_shown_without_its_password() -> None:
    shown = without_password("postgresql://user:secret@one:1,two:2/db?password=secret&sslmode=require")
    assert shown == "postgresql://user@one:1,two:2/db?sslmode=require"


@pytest.mark.parametrize(
    "wrong", ["{dsn}_that_is_not_there", "postgresql://nobody@127.0.0.1:{port}/x", "{dsn}?sslmode=perhaps"]
)
async def test_an_invalid_address_is_refused_at_once(wrong: str) -> None:
    server = shared_server()
    endless = Timeouts(total_seconds=10_000)
    async with asyncio.timeout(120):
        with pytest.raises(EngineFailed, match="cannot be reached"):
            await PostgresEngine.open(wrong.format(dsn=server.dsn(), port=server.port), timeouts=endless)


async def test_a_connection_that_has_written_to_many_partitions_is_replaced(
    engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "PARTITIONS_WRITTEN_MAX", 3)
    numbers = [PartitionNumber(number) for number in range(2, 8)]
    for number in numbers:
        await engine.create_partition(number, Fence(EPOCH))
    opened = engine._node.writers.opened
    for number in numbers:
        await engine.apply(number, EPOCH, put(b"key"))
        await engine.apply(number, EPOCH, put(b"another"))
    assert engine._node.writers.opened - opened >= 2
    assert engine._node.writers._count <= 1


# --- journal records ------------------------------------------------------------------------------------------------

some_bytes = st.binary(max_size=600)


@given(
    st.lists(some_bytes),
    st.lists(st.tuples(some_bytes, some_bytes)),
    st.lists(st.builds(Span, some_bytes, st.none() | some_bytes)),
)
def test_a_journal_record_survives_its_encoding(
    keys: list[bytes], stamped: list[tuple[bytes, bytes]], spans: list[Span]
) -> None:
    batch = Batch(deletes=keys, range_deletes=spans, stamped_puts=[(head, tail, b"") for head, tail in stamped])
    stamped_keys = [head + (5).to_bytes(8, "big") + tail for head, tail in stamped]
    assert decode_journal(Lsn(5), encode_journal(batch)) == JournalEntry(
        Lsn(5), tuple(keys + stamped_keys), tuple(spans)
    )
