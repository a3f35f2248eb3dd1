"""Several engines over one database, like the gateways of a fleet: one partition, one history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from asterism.storage.contract import (
    Add,
    Batch,
    CeilingPassed,
    EpochFenced,
    Expectation,
    ExpectationFailed,
    Fence,
    Span,
    decode_counters,
)
from asterism.storage.postgres import PostgresEngine
from asterism.storage.postgres.layout import GATEWAYS_MAX
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber
from tests.support.postgres import shared_server

ONE = PartitionNumber(1)
EPOCH = Epoch(1)

Gateways = tuple[PostgresEngine, PostgresEngine]


@pytest.fixture
async def gateways() -> AsyncIterator[Gateways]:
    dsn = await shared_server().empty_database("gateways")
    first, second = await asyncio.gather(PostgresEngine.open(dsn), PostgresEngine.open(dsn))
    await first.create_partition(ONE, Fence(EPOCH), announced=True)
    yield first, second
    await asyncio.gather(first.close(), second.close())


# P6 of asterism/storage/postgres/DESIGN.md.
async def test_lsns_of_two_gateways_have_no_gap_and_every_batch_is_stored(gateways: Gateways) -> None:
    batch = Batch(adds=[Add(b"n", (1,))], stamped_puts=[(b"log", b"", b"")])
    lsns = await asyncio.gather(*(gateways[number % 2].apply(ONE, EPOCH, batch) for number in range(200)))
    assert sorted(lsns) == list(range(1, 201))
    for gateway in gateways:
        lsn, (counter,) = await gateway.read(ONE, EPOCH, [b"n"])
        assert (lsn, decode_counters(counter)) == (200, (200,))
    assert len((await gateways[0].scan(ONE, EPOCH, Span(b"log", b"loh"))).entries) == 200


# P6 of asterism/storage/postgres/DESIGN.md.
async def test_of_creations_of_one_key_by_two_gateways_exactly_one_succeeds(gateways: Gateways) -> None:
    creations = [
        gateways[attempt % 2].apply(
            ONE, EPOCH, Batch(expectations=[Expectation(key, None)], puts=[(key, b"%d" % attempt)])
        )
        for key in (b"k%d" % number for number in range(20))
        for attempt in range(4)
    ]
    outcomes = await asyncio.gather(*creations, return_exceptions=True)
    kinds: list[type] = [type(outcome) for outcome in outcomes]
    assert [kinds[start : start + 4].count(int) for start in range(0, 80, 4)] == [1] * 20
    assert kinds.count(ExpectationFailed) == 60
    entries = (await gateways[0].scan(ONE, EPOCH, Span(b"k", b"l"))).entries
    winners = {b"k%d" % (number // 4): b"%d" % (number % 4) for number, kind in enumerate(kinds) if kind is int}
    assert dict(entries) == winners


async def test_a_read_version_protects_against_every_other_gateway(gateways: Gateways) -> None:
    """Each gateway increments a number by reading it and writing it back."""

    async def add_one(gateway: PostgresEngine) -> None:
        while True:
            _, (value,) = await gateway.read(ONE, EPOCH, [b"v"])
            number = 0 if value is None else int(value[8:])
            expectation = Expectation(b"v", None if value is None else value[:8])
            batch = Batch(expectations=[expectation], versioned_puts=[(b"v", b"%d" % (number + 1))])
            try:
                await gateway.apply(ONE, EPOCH, batch)
            except ExpectationFailed:
                continue
            return

    await asyncio.gather(*(add_one(gateways[number % 2]) for number in range(30)))
    lsn, (value,) = await gateways[0].read(ONE, EPOCH, [b"v"])
    assert (lsn, value is not None and value[8:]) == (30, b"30")


# P6 of asterism/storage/postgres/DESIGN.md.
async def test_a_ceiling_holds_exactly_for_all_gateways(gateways: Gateways) -> None:
    add = Batch(adds=[Add(b"n", (1,), first_max=25)])
    outcomes = await asyncio.gather(
        *(gateways[number % 2].apply(ONE, EPOCH, add) for number in range(60)), return_exceptions=True
    )
    kinds: list[type] = [type(outcome) for outcome in outcomes]
    assert (kinds.count(int), kinds.count(CeilingPassed)) == (25, 35)
    assert await gateways[0].read(ONE, EPOCH, [b"n"]) == (25, [(25).to_bytes(8, "big")])


# P6 of asterism/storage/postgres/DESIGN.md.
async def test_a_seal_by_one_gateway_stops_the_other_at_once(gateways: Gateways) -> None:
    first, second = gateways
    writes = [asyncio.create_task(second.apply(ONE, EPOCH, Batch(adds=[Add(b"n", (1,))]))) for _ in range(50)]
    await asyncio.sleep(0)
    sealed_at = await first.set_fence(ONE, Fence(EPOCH, sealed=True), expected=Fence(EPOCH))
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    applied = [outcome for outcome in outcomes if isinstance(outcome, int)]
    assert sorted(applied) == list(range(1, sealed_at + 1))
    assert all(isinstance(outcome, EpochFenced) for outcome in outcomes if not isinstance(outcome, int))
    with pytest.raises(EpochFenced):
        await second.read(ONE, EPOCH, [b"n"])


async def test_journaling_turned_on_by_one_gateway_is_kept_by_the_other(gateways: Gateways) -> None:
    first, second = gateways
    await second.apply(ONE, EPOCH, Batch(puts=[(b"before", b"")]))
    await first.set_fence(ONE, Fence(EPOCH, journaling=True))
    await asyncio.gather(*(second.apply(ONE, EPOCH, Batch(puts=[(b"%d" % number, b"")])) for number in range(10)))
    journal = await first.read_journal(ONE, after=Lsn(0))
    assert [entry.lsn for entry in journal] == list(range(2, 12))
    assert {key for entry in journal for key in entry.keys} == {b"%d" % number for number in range(10)}


async def test_a_batch_of_one_gateway_is_notified_to_the_other(gateways: Gateways) -> None:
    first, second = gateways
    notified = asyncio.Event()
    end_watch = first.watch(ONE, notified.set)
    await asyncio.wait_for(notified.wait(), 60)
    await asyncio.sleep(0.1)
    notified.clear()
    await second.apply(ONE, EPOCH, Batch())
    await asyncio.wait_for(notified.wait(), 60)
    end_watch()


async def test_more_gateways_than_a_partition_remembers_can_write(gateways: Gateways) -> None:
    dsn = shared_server().dsn("gateways")
    for number in range(GATEWAYS_MAX + 3):
        engine = await PostgresEngine.open(dsn)
        assert await engine.apply(ONE, EPOCH, Batch()) == number + 1
        await engine.close()
    remembered = shared_server().sql("SELECT cardinality(gateways) FROM asterism.partitions", "gateways")
    assert int(remembered) == GATEWAYS_MAX
