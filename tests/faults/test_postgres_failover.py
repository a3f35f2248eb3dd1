"""A primary dies and its standby replaces it: every acknowledged batch exists, and nothing has to be restarted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from asterism.storage.contract import Add, Batch, EngineFailed, EpochFenced, Fence, Span, decode_counters
from asterism.storage.postgres import PostgresEngine, Timeouts, node
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber
from tests.support.postgres import FOLLOWS, PostgresServer, both_hosts, replicated_server

ONE = PartitionNumber(1)
EPOCH = Epoch(1)
NEXT_EPOCH = Epoch(2)
# Calls that succeed may take their time, on a busy machine.
TIMEOUTS = Timeouts(connect_seconds=20, read_seconds=20, commit_seconds=20, total_seconds=60)
SHORT_TIMEOUTS = Timeouts(connect_seconds=2, read_seconds=2, commit_seconds=2, total_seconds=4)
WRITERS = 8

Servers = tuple[PostgresServer, PostgresServer]


@pytest.fixture
def servers() -> Iterator[Servers]:
    with replicated_server() as (primary, standby):
        primary.create_database()
        yield primary, standby


@pytest.fixture
async def engine(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PostgresEngine]:
    # A standby that is slower than this is not asked.
    monkeypatch.setattr(node, "STANDBY_SECONDS", 20.0)
    engine = await PostgresEngine.open(both_hosts(*servers), timeouts=TIMEOUTS)
    await engine.create_partition(ONE, Fence(EPOCH))
    yield engine
    await engine.close()


@pytest.fixture
async def hasty(servers: Servers, engine: PostgresEngine) -> AsyncIterator[PostgresEngine]:
    """Another engine, for calls that have to fail."""
    hasty = await PostgresEngine.open(both_hosts(*servers), timeouts=SHORT_TIMEOUTS)
    yield hasty
    await hasty.close()


def counted(key: bytes) -> Batch:
    return Batch(puts=[(key, b"")], adds=[Add(b"n", (1,))], stamped_puts=[(b"log", b"", key)])


async def write_until(engine: PostgresEngine, ends: asyncio.Event, writer: int, acknowledged: dict[bytes, int]) -> None:
    number = 0
    while not ends.is_set():
        key = b"k%d-%d" % (writer, number)
        number += 1
        try:
            acknowledged[key] = await engine.apply(ONE, EPOCH, counted(key))
        except EngineFailed:
            await asyncio.sleep(0.05)


async def all_entries(engine: PostgresEngine, span: Span) -> list[tuple[bytes, bytes]]:
    return (await engine.scan(ONE, EPOCH, span, limit=1_000_000)).entries


async def wait_for_acknowledgements(acknowledged: dict[bytes, int], count: int) -> None:
    async with asyncio.timeout(180):
        while len(acknowledged) < count:
            await asyncio.sleep(0.01)


async def test_acknowledged_batches_survive_the_primary_and_writing_continues(
    engine: PostgresEngine, hasty: PostgresEngine, servers: Servers
) -> None:
    primary, standby = servers
    acknowledged: dict[bytes, int] = {}
    ends = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for writer in range(WRITERS):
            group.create_task(write_until(hasty, ends, writer, acknowledged))
        await wait_for_acknowledgements(acknowledged, 100)
        await asyncio.to_thread(primary.kill)
        await asyncio.to_thread(standby.promote)
        await wait_for_acknowledgements(acknowledged, len(acknowledged) + 100)
        ends.set()
    stored = {key for key, _ in await all_entries(engine, Span(b"k", b"l"))}
    log = await all_entries(engine, Span(b"log", b"loh"))
    lsn, (counter,) = await engine.read(ONE, EPOCH, [b"n"])
    # No acknowledged batch is lost, none was applied twice, and the LSNs have neither gap nor repetition.
    assert acknowledged.keys() <= stored
    assert [key for key, _ in log] == [b"log" + number.to_bytes(8, "big") for number in range(1, lsn + 1)]
    assert decode_counters(counter) == (lsn,)
    assert {key: int.from_bytes(entry[3:], "big") for entry, key in log if key in acknowledged} == acknowledged


async def test_a_replaced_primary_is_not_used_when_it_restarts(engine: PostgresEngine, servers: Servers) -> None:
    primary, standby = servers
    await engine.apply(ONE, EPOCH, counted(b"a"))
    await asyncio.to_thread(primary.kill)
    await asyncio.to_thread(standby.promote)
    assert await engine.apply(ONE, EPOCH, counted(b"b")) == 2
    await asyncio.to_thread(primary.start)
    standby.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'asterism'")
    assert await engine.apply(ONE, EPOCH, counted(b"c")) == 3
    newcomer = await PostgresEngine.open(both_hosts(*servers), timeouts=TIMEOUTS)
    assert (await newcomer.read_fence(ONE))[1] == 3
    await newcomer.close()


# P7 of asterism/storage/postgres/DESIGN.md.
async def test_stale_reads_come_from_the_standby_even_without_a_primary_and_never_pass_the_fence(
    engine: PostgresEngine, hasty: PostgresEngine, servers: Servers
) -> None:
    primary, standby = servers
    lsn = await engine.apply(ONE, EPOCH, counted(b"k"))
    await asyncio.to_thread(standby.wait_until, "SELECT pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn()")
    await asyncio.to_thread(primary.kill)
    assert await engine.read(ONE, EPOCH, [b"k"], at_least=lsn) == (1, [b""])
    assert (await engine.scan(ONE, EPOCH, Span(b"k", b"l"), at_least=lsn)).entries == [(b"k", b"")]
    snapshot = await engine.snapshot(ONE, EPOCH, at_least=lsn)
    assert (snapshot.lsn, await snapshot.read([b"k"])) == (1, [b""])
    await snapshot.close()
    # Reads that the standby may not answer go to the primary, which is dead.
    outcomes = await asyncio.gather(
        hasty.read(ONE, NEXT_EPOCH, [b"k"], at_least=lsn),
        hasty.read(ONE, EPOCH, [b"k"], at_least=Lsn(2)),
        hasty.read(ONE, EPOCH, [b"k"]),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [EngineFailed] * 3


# P7 of asterism/storage/postgres/DESIGN.md.
async def test_a_standby_that_lags_answers_only_what_it_has_reached(engine: PostgresEngine, servers: Servers) -> None:
    primary, standby = servers
    await engine.apply(ONE, EPOCH, Batch(puts=[(b"k", b"old")]))
    replayed = f"SELECT pg_last_wal_replay_lsn() >= '{primary.sql('SELECT pg_current_wal_lsn()').strip()}'"
    await asyncio.to_thread(standby.wait_until, replayed)
    standby.sql("SELECT pg_wal_replay_pause()")
    await asyncio.to_thread(standby.wait_until, "SELECT pg_get_wal_replay_pause_state() = 'paused'")
    lsn = await engine.apply(ONE, EPOCH, Batch(puts=[(b"k", b"new")]))
    assert await engine.read(ONE, EPOCH, [b"k"], at_least=Lsn(1)) == (1, [b"old"])
    assert await engine.read(ONE, EPOCH, [b"k"], at_least=lsn) == (2, [b"new"])
    assert await engine.read(ONE, EPOCH, [b"k"]) == (2, [b"new"])
    standby.sql("SELECT pg_wal_replay_resume()")


async def test_a_stale_epoch_is_refused_by_primary_and_standby(
    engine: PostgresEngine, hasty: PostgresEngine, servers: Servers
) -> None:
    primary, standby = servers
    await engine.apply(ONE, EPOCH, counted(b"k"))
    await engine.set_fence(ONE, Fence(NEXT_EPOCH), expected=Fence(EPOCH))
    replayed = f"SELECT pg_last_wal_replay_lsn() >= '{primary.sql('SELECT pg_current_wal_lsn()').strip()}'"
    await asyncio.to_thread(standby.wait_until, replayed)
    for call in (
        engine.apply(ONE, EPOCH, counted(b"l")),
        engine.read(ONE, EPOCH, [b"k"]),
        engine.scan(ONE, EPOCH, Span()),
        engine.snapshot(ONE, EPOCH),
        engine.read(ONE, EPOCH, [b"k"], at_least=Lsn(0)),
        engine.scan(ONE, EPOCH, Span(), at_least=Lsn(0)),
        engine.snapshot(ONE, EPOCH, at_least=Lsn(0)),
    ):
        with pytest.raises(EpochFenced):
            await call
    # The standby itself refuses: without a primary, no data of the partition is returned.
    await asyncio.to_thread(primary.kill)
    with pytest.raises(EngineFailed):
        await hasty.read(ONE, EPOCH, [b"k"], at_least=Lsn(0))
    assert await engine.read(ONE, NEXT_EPOCH, [b"k"], at_least=Lsn(0)) == (1, [b""])
    await asyncio.to_thread(standby.promote)
    with pytest.raises(EpochFenced):
        await engine.apply(ONE, EPOCH, counted(b"l"))
    assert await engine.apply(ONE, NEXT_EPOCH, counted(b"l")) == 2


# P8 of asterism/storage/postgres/DESIGN.md.
async def test_a_commit_is_not_acknowledged_before_the_standby_has_it(
    engine: PostgresEngine, hasty: PostgresEngine, servers: Servers
) -> None:
    primary, standby = servers
    await engine.apply(ONE, EPOCH, counted(b"a"))
    await asyncio.to_thread(standby.stop)
    with pytest.raises(EngineFailed):
        await hasty.apply(ONE, EPOCH, counted(b"b"))
    # Statements that were given up would hold up the next batch.
    active = "FROM pg_stat_activity WHERE state = 'active' AND usename = 'asterism'"
    await asyncio.to_thread(primary.wait_until, f"SELECT count(pg_terminate_backend(pid)) = 0 {active}")
    # Canceling the database's wait for the standby does not acknowledge the batch.
    call = asyncio.create_task(engine.apply(ONE, EPOCH, counted(b"c")))
    waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    await asyncio.to_thread(primary.wait_until, f"SELECT count(*) = 1 {waiting}")
    await asyncio.to_thread(primary.sql, f"SELECT pg_cancel_backend(pid) {waiting}")
    await asyncio.sleep(0.3)
    assert not call.done()
    await asyncio.to_thread(standby.start)
    await asyncio.to_thread(primary.wait_until, FOLLOWS)
    with_standby = (await asyncio.gather(call, return_exceptions=True))[0]
    lsn = await engine.apply(ONE, EPOCH, counted(b"d"))
    assert isinstance(with_standby, EngineFailed) or with_standby == lsn - 1
    assert decode_counters((await engine.read(ONE, EPOCH, [b"n"]))[1][0]) == (lsn,)


async def test_the_status_shows_of_standbys_what_the_role_may_see(engine: PostgresEngine, servers: Servers) -> None:
    (hidden,) = (await engine.status()).standbys
    assert (hidden.name, hidden.state, hidden.lag_bytes) == ("standby", "hidden", None)
    servers[0].sql("GRANT pg_monitor TO asterism")
    (seen,) = (await engine.status()).standbys
    assert (seen.name, seen.state, type(seen.lag_bytes)) == ("standby", "sync", int)
