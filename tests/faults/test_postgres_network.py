"""The network between the PostgreSQL engine and its node breaks: nothing is done twice, nothing is guessed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest

from asterism.storage.contract import (
    Add,
    Batch,
    EngineFailed,
    Expectation,
    ExpectationFailed,
    Fence,
    FenceChanged,
    Span,
    decode_counters,
)
from asterism.storage.postgres import PostgresEngine, Timeouts, connections
from asterism.storage.postgres.connections import Hosts, Pool
from asterism.storage.postgres.writing import PartitionWriter
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber
from tests.support.ports import free_port
from tests.support.postgres import shared_server
from tests.support.proxy import Fault, Proxy, proxy_to

ONE = PartitionNumber(1)
EPOCH = Epoch(1)
# Calls that succeed may take their time, on a busy machine.
TIMEOUTS = Timeouts(connect_seconds=20, read_seconds=20, commit_seconds=20, total_seconds=60)
SHORT_TIMEOUTS = Timeouts(connect_seconds=1, read_seconds=1, commit_seconds=1, total_seconds=3)
# Every call is bounded by `total_seconds` and the time of its last part.
BOUND_SECONDS = 60
COUNTED = Batch(adds=[Add(b"n", (1,))], stamped_puts=[(b"log", b"", b"")])


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with proxy_to(shared_server().port) as proxy:
        yield proxy


@pytest.fixture
async def engine(proxy: Proxy) -> AsyncIterator[PostgresEngine]:
    await shared_server().empty_database("network")
    engine = await PostgresEngine.open(shared_server().dsn("network", port=proxy.port), timeouts=TIMEOUTS)
    await engine.create_partition(ONE, Fence(EPOCH), announced=True)
    # The connection is open and its statements are prepared, so that the next request is the one under test.
    assert await engine.apply(ONE, EPOCH, COUNTED) == 1
    await engine.read(ONE, EPOCH, [b"n"])
    yield engine
    await engine.close()


def set_timeouts(engine: PostgresEngine, timeouts: Timeouts) -> None:
    engine._node.timeouts = timeouts
    for pool in engine._node.pools:
        pool.timeouts = timeouts


async def batches_applied(engine: PostgresEngine) -> int:
    """Return the number of applied batches by the counter, the log and the LSN, which must agree."""
    lsn, (counter,) = await engine.read(ONE, EPOCH, [b"n"])
    logged = (await engine.scan(ONE, EPOCH, Span(b"log", b"loh"))).entries
    assert decode_counters(counter) == (lsn,)
    assert len(logged) == lsn
    return lsn


# P5 of asterism/storage/postgres/DESIGN.md.
@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REQUEST_LOST, Fault.REQUEST_HELD])
async def test_a_batch_whose_connection_is_cut_is_applied_exactly_once(
    engine: PostgresEngine, proxy: Proxy, fault: Fault
) -> None:
    proxy.arm(fault)
    assert await engine.apply(ONE, EPOCH, COUNTED) == 2
    assert proxy.struck.is_set()
    assert await batches_applied(engine) == 2


async def test_a_request_that_arrives_after_it_was_given_up_is_not_carried_out(
    engine: PostgresEngine, proxy: Proxy
) -> None:
    proxy.arm(Fault.REQUEST_HELD)
    assert await engine.apply(ONE, EPOCH, COUNTED) == 2
    assert await proxy.deliver_held()
    assert await batches_applied(engine) == 2
    assert await engine.apply(ONE, EPOCH, COUNTED) == 3


async def test_a_question_that_arrives_after_a_later_order_does_not_erase_it(
    engine: PostgresEngine, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome of the first order was asked twice: the network held one question back until the other was answered,
    the next order sent and carried out, and its answer lost."""
    database = await asyncpg.connect(shared_server().dsn("network"))
    row = await database.fetchrow("SELECT gateways[1], tokens[1] FROM asterism.partitions WHERE number = $1", ONE)
    resolve = PartitionWriter._resolve

    async def after_the_late_question(self: PartitionWriter, token: int, deadline: float) -> int:
        assert token > row[1]
        await database.execute("SELECT asterism.resolve_v1($1, $2, $3)", ONE, *row)
        return await resolve(self, token, deadline)

    monkeypatch.setattr(PartitionWriter, "_resolve", after_the_late_question)
    proxy.arm(Fault.ANSWER_LOST)
    assert await engine.apply(ONE, EPOCH, COUNTED) == 2
    assert await batches_applied(engine) == 2
    await database.close()


# P5 of asterism/storage/postgres/DESIGN.md.
async def test_a_group_whose_answer_is_lost_is_acknowledged_to_each_of_its_callers(
    engine: PostgresEngine, proxy: Proxy
) -> None:
    proxy.arm(Fault.ANSWER_LOST)
    lsns = await asyncio.gather(*(engine.apply(ONE, EPOCH, COUNTED) for _ in range(20)))
    assert sorted(lsns) == list(range(2, 22))
    assert await batches_applied(engine) == 21


async def test_a_refusal_whose_answer_is_lost_is_still_a_refusal(engine: PostgresEngine, proxy: Proxy) -> None:
    proxy.arm(Fault.ANSWER_LOST)
    with pytest.raises(ExpectationFailed):
        await engine.apply(ONE, EPOCH, Batch(expectations=[Expectation(b"n", None)], deletes=[b"n"]))
    assert await batches_applied(engine) == 1


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REQUEST_LOST, Fault.REQUEST_HELD])
async def test_a_fence_whose_connection_is_cut_is_replaced_once(
    engine: PostgresEngine, proxy: Proxy, fault: Fault
) -> None:
    await engine.set_fence(ONE, Fence(EPOCH), expected=Fence(EPOCH))
    proxy.arm(fault)
    assert await engine.set_fence(ONE, Fence(Epoch(2)), expected=Fence(EPOCH)) == 1
    with pytest.raises(FenceChanged):
        await engine.set_fence(ONE, Fence(Epoch(3)), expected=Fence(EPOCH))
    assert await engine.read_fence(ONE) == (Fence(Epoch(2)), 1)


async def test_copied_entries_that_arrive_late_do_not_overwrite_newer_ones(
    engine: PostgresEngine, proxy: Proxy
) -> None:
    await engine.set_fence(ONE, Fence(EPOCH, sealed=True))
    await engine.write_copied(ONE, EPOCH, puts=[(b"a", b"0")])
    proxy.arm(Fault.REQUEST_HELD)
    await engine.write_copied(ONE, EPOCH, puts=[(b"a", b"old")])
    await engine.write_copied(ONE, EPOCH, puts=[(b"a", b"new")])
    assert await proxy.deliver_held()
    assert await engine.read_unfenced(ONE, [b"a"]) == [b"new"]


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REQUEST_LOST])
async def test_a_partition_is_created_although_the_connection_is_cut(
    engine: PostgresEngine, proxy: Proxy, fault: Fault
) -> None:
    two = PartitionNumber(2)
    await engine.create_partition(PartitionNumber(3), Fence(EPOCH))
    proxy.arm(fault)
    await engine.create_partition(two, Fence(EPOCH), lsn=Lsn(7))
    assert proxy.struck.is_set()
    assert await engine.apply(two, EPOCH, Batch()) == 8
    with pytest.raises(EngineFailed):
        await engine.create_partition(two, Fence(EPOCH))


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REQUEST_LOST])
async def test_a_read_whose_connection_is_cut_is_answered(engine: PostgresEngine, proxy: Proxy, fault: Fault) -> None:
    proxy.arm(fault)
    assert decode_counters((await engine.read(ONE, EPOCH, [b"n"]))[1][0]) == (1,)
    assert proxy.struck.is_set()


async def test_idle_connections_that_were_cut_are_opened_again(engine: PostgresEngine, proxy: Proxy) -> None:
    proxy.cut_all()
    assert await engine.apply(ONE, EPOCH, COUNTED) == 2
    proxy.cut_all()
    assert await batches_applied(engine) == 2


Break = Callable[[Proxy], Awaitable[None]]


async def stall(proxy: Proxy) -> None:
    proxy.stall()


async def mend(proxy: Proxy) -> None:
    proxy.flow()


async def listen_again(proxy: Proxy) -> None:
    await proxy.start()


# P12 of asterism/storage/postgres/DESIGN.md.
@pytest.mark.parametrize(
    ("break_it", "mend_it"), [(stall, mend), (Proxy.refuse, listen_again)], ids=["silent", "refused"]
)
async def test_a_node_out_of_reach_fails_calls_in_bounded_time_and_heals(
    engine: PostgresEngine, proxy: Proxy, break_it: Break, mend_it: Break
) -> None:
    set_timeouts(engine, SHORT_TIMEOUTS)
    await break_it(proxy)
    calls = (
        engine.apply(ONE, EPOCH, COUNTED),
        engine.read(ONE, EPOCH, [b"n"]),
        engine.scan(ONE, EPOCH, Span()),
        engine.snapshot(ONE, EPOCH),
        engine.status(),
    )
    outcomes = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), BOUND_SECONDS)
    assert [type(outcome) for outcome in outcomes] == [EngineFailed] * 5
    set_timeouts(engine, TIMEOUTS)
    await mend_it(proxy)
    # The first batch may be applied or not, its outcome is unknown; but at most once, and the second one was applied.
    assert await engine.apply(ONE, EPOCH, COUNTED) in (2, 3)
    assert await batches_applied(engine) in (2, 3)


async def test_a_call_queued_behind_others_for_a_silent_node_waits_no_longer_than_they_do(
    engine: PostgresEngine, proxy: Proxy
) -> None:
    set_timeouts(engine, SHORT_TIMEOUTS)
    proxy.stall()
    # No two of these can share a statement or a transaction.
    many = [b"%d" % number for number in range(200)]
    reads = [engine.read(ONE, EPOCH, many) for _ in range(100)]
    batches = [engine.apply(ONE, EPOCH, Batch(puts=[(b"same", b"")])) for _ in range(100)]
    outcomes = await asyncio.wait_for(asyncio.gather(*reads, *batches, return_exceptions=True), BOUND_SECONDS)
    assert {type(outcome) for outcome in outcomes} == {EngineFailed}
    set_timeouts(engine, TIMEOUTS)
    proxy.flow()
    assert len((await engine.read(ONE, EPOCH, many))[1]) == len(many)


async def test_the_total_time_limit_bounds_its_parts(proxy: Proxy) -> None:
    await shared_server().empty_database("network")
    engine = await PostgresEngine.open(shared_server().dsn("network", port=proxy.port), timeouts=TIMEOUTS)
    await engine.create_partition(ONE, Fence(EPOCH))
    await engine.apply(ONE, EPOCH, COUNTED)
    await engine.read(ONE, EPOCH, [b"n"])
    set_timeouts(engine, Timeouts(connect_seconds=1, read_seconds=1_000, commit_seconds=1_000, total_seconds=2))
    proxy.stall()
    calls = (engine.apply(ONE, EPOCH, COUNTED), engine.read(ONE, EPOCH, [b"n"]), engine.scan(ONE, EPOCH, Span()))
    outcomes = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), BOUND_SECONDS)
    assert [type(outcome) for outcome in outcomes] == [EngineFailed] * 3
    assert all(str(outcome) and not str(outcome).endswith(": ") for outcome in outcomes)
    proxy.flow()
    await engine.close()


async def test_a_silence_shorter_than_the_time_limit_is_not_noticed(proxy: Proxy) -> None:
    """It is longer than the time limit of one connection: the request and the questions after it arrive late."""
    await shared_server().empty_database("network")
    timeouts = Timeouts(connect_seconds=1, read_seconds=1, commit_seconds=0.5, total_seconds=BOUND_SECONDS)
    engine = await PostgresEngine.open(shared_server().dsn("network", port=proxy.port), timeouts=TIMEOUTS)
    await engine.create_partition(ONE, Fence(EPOCH))
    set_timeouts(engine, timeouts)
    for applied in range(1, 4):
        proxy.stall()
        call = asyncio.create_task(engine.apply(ONE, EPOCH, COUNTED))
        await asyncio.sleep(1.2)
        assert not call.done()
        proxy.flow()
        assert await call == applied
        assert await batches_applied(engine) == applied
    await engine.close()


async def test_a_watcher_is_called_after_its_connection_was_lost(engine: PostgresEngine, proxy: Proxy) -> None:
    notified = asyncio.Event()
    end_watch = engine.watch(ONE, notified.set)
    await asyncio.wait_for(notified.wait(), BOUND_SECONDS)
    notified.clear()
    proxy.cut_all()
    await asyncio.wait_for(notified.wait(), BOUND_SECONDS)
    await asyncio.sleep(0.1)
    notified.clear()
    await engine.apply(ONE, EPOCH, COUNTED)
    await asyncio.wait_for(notified.wait(), BOUND_SECONDS)
    end_watch()


async def test_all_idle_connections_but_one_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS_MAX", 0.2)
    pool = Pool(Hosts([shared_server().dsn("postgres")]), Timeouts(), size=4)
    links = [await pool.acquire(pool.deadline()) for _ in range(4)]
    for link in links:
        pool.release(link)
    async with asyncio.timeout(BOUND_SECONDS):
        while sum(link.is_open for link in links) > 1:
            await asyncio.sleep(0.05)
        # The remaining connection is used first, and others can be opened again.
        taken = [await pool.acquire(pool.deadline()) for _ in range(4)]
    assert taken[0] is links[-1]
    assert pool.opened == 7
    for link in taken:
        pool.release(link)
    await pool.close()


async def test_the_wait_for_an_unreachable_node_is_shorter_until_it_answers() -> None:
    timeouts, now = Timeouts(connect_seconds=1, total_seconds=3), asyncio.get_running_loop().time
    began_at = now()
    hosts = Hosts([shared_server().dsn("postgres", port=free_port())])
    pool = Pool(hosts, timeouts, size=1)
    assert pool.deadline() - began_at > 2
    with pytest.raises(EngineFailed):
        await pool.acquire(now() + 0.3)
    assert pool.deadline() - now() <= 1
    hosts.addresses[:] = [shared_server().dsn("postgres")]
    pool.release(await pool.acquire(now() + BOUND_SECONDS))
    answered_at = now()
    assert pool.deadline() - answered_at > 2
    await pool.close()
