"""The promises of every storage engine, one test per promise. All calls pass through `CheckedEngine`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from asterism.storage.checked import CheckedEngine
from asterism.storage.contract import (
    KEY_BYTES_MAX,
    Add,
    Batch,
    CeilingPassed,
    EngineFailed,
    EpochFenced,
    Expectation,
    ExpectationFailed,
    Fence,
    FenceChanged,
    JournalEntry,
    PartitionUnknown,
    ScanPage,
    Span,
    decode_counters,
    encode_counters,
)
from asterism.storage.lmdb import log_commit
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber
from tests.contracts.storage_engines import ENGINES, EngineOpener

ONE = PartitionNumber(1)
TWO = PartitionNumber(2)
EPOCH = Epoch(7)
OTHER_EPOCH = Epoch(8)
ALL = Span()


@pytest.fixture(params=list(ENGINES.values()), ids=list(ENGINES))
def open_engine(request: pytest.FixtureRequest) -> EngineOpener:
    opener: EngineOpener = request.param
    return opener


@pytest.fixture
async def engine(open_engine: EngineOpener, tmp_path: Path) -> AsyncIterator[CheckedEngine]:
    engine = CheckedEngine(await open_engine(tmp_path))
    await engine.create_partition(ONE, Fence(EPOCH))
    yield engine
    await engine.close()


async def put(engine: CheckedEngine, *keys: bytes, partition: PartitionNumber = ONE) -> Lsn:
    return await engine.apply(partition, EPOCH, Batch(puts=[(key, b"value of " + key) for key in keys]))


async def get(engine: CheckedEngine, key: bytes) -> bytes | None:
    _, (value,) = await engine.read(ONE, EPOCH, [key])
    return value


async def keys_of(engine: CheckedEngine, partition: PartitionNumber = ONE) -> list[bytes]:
    return [key for key, _ in (await engine.scan_unfenced(partition, ALL)).entries]


# --- reading --------------------------------------------------------------------------------------------------------


async def test_a_read_answers_every_key_in_order_with_none_where_absent(engine: CheckedEngine) -> None:
    await put(engine, b"a", b"c")
    assert await engine.read(ONE, EPOCH, [b"c", b"b", b"a"]) == (1, [b"value of c", None, b"value of a"])


async def test_the_empty_key_and_the_longest_key_are_keys(engine: CheckedEngine) -> None:
    longest = b"\xff" * KEY_BYTES_MAX
    await engine.apply(ONE, EPOCH, Batch(puts=[(b"", b""), (longest, b"x")]))
    assert (await engine.read(ONE, EPOCH, [b"", longest]))[1] == [b"", b"x"]
    assert (await engine.scan(ONE, EPOCH, ALL)).entries == [(b"", b""), (longest, b"x")]
    assert (await engine.scan(ONE, EPOCH, Span(longest, longest + b"\x00"))).entries == [(longest, b"x")]


async def test_a_value_of_megabytes_is_returned_whole(engine: CheckedEngine) -> None:
    value = bytes(range(256)) * 12_000
    await engine.apply(ONE, EPOCH, Batch(puts=[(b"large", value)]))
    assert await get(engine, b"large") == value


async def test_a_scan_is_in_key_order_and_half_open(engine: CheckedEngine) -> None:
    await put(engine, b"d", b"b", b"a", b"c", b"bb")
    page = await engine.scan(ONE, EPOCH, Span(b"b", b"d"))
    assert page == ScanPage([(key, b"value of " + key) for key in (b"b", b"bb", b"c")], more=False)


async def test_a_reversed_scan_is_the_scan_in_reverse(engine: CheckedEngine) -> None:
    await put(engine, b"a", b"b", b"bb", b"c", b"d")
    forward = await engine.scan(ONE, EPOCH, Span(b"b", b"d"))
    backward = await engine.scan(ONE, EPOCH, Span(b"b", b"d"), reverse=True)
    assert backward.entries == forward.entries[::-1]
    whole = await engine.scan(ONE, EPOCH, ALL, reverse=True)
    assert [key for key, _ in whole.entries] == [b"d", b"c", b"bb", b"b", b"a"]


async def test_an_empty_or_inverted_span_has_no_entries(engine: CheckedEngine) -> None:
    await put(engine, b"a", b"b", b"c")
    spans = [Span(b"b", b"b"), Span(b"c", b"a"), Span(b"x"), Span(b"", b"")]
    pages = [await engine.scan(ONE, EPOCH, span, reverse=reverse) for span in spans for reverse in (False, True)]
    assert pages == [ScanPage([], more=False)] * 8


async def test_more_is_true_only_if_a_further_entry_exists(engine: CheckedEngine) -> None:
    await put(engine, b"a", b"b", b"c")
    assert (await engine.scan(ONE, EPOCH, ALL, limit=2)).more
    assert not (await engine.scan(ONE, EPOCH, ALL, limit=3)).more
    assert not (await engine.scan(ONE, EPOCH, Span(b"a", b"c"), limit=2)).more
    assert (await engine.scan(ONE, EPOCH, ALL, limit=2, reverse=True)).more
    assert not (await engine.scan(ONE, EPOCH, ALL, limit=3, reverse=True)).more


async def test_a_scan_stops_after_the_entry_that_reaches_its_bytes(engine: CheckedEngine) -> None:
    await engine.apply(ONE, EPOCH, Batch(puts=[(b"a", b"x" * 9), (b"b", b"x" * 9), (b"c", b"x" * 9)]))
    assert [key for key, _ in (await engine.scan(ONE, EPOCH, ALL, bytes_max=11)).entries] == [b"a", b"b"]
    assert await engine.scan(ONE, EPOCH, ALL, bytes_max=1) == ScanPage([(b"a", b"x" * 9)], more=True)
    assert not (await engine.scan(ONE, EPOCH, ALL, bytes_max=30)).more


async def test_partitions_do_not_see_each_other(engine: CheckedEngine) -> None:
    await engine.create_partition(TWO, Fence(EPOCH))
    await put(engine, b"", b"a", b"\xff" * 8)
    await put(engine, b"z", partition=TWO)
    assert await keys_of(engine) == [b"", b"a", b"\xff" * 8]
    assert await keys_of(engine, TWO) == [b"z"]
    assert [key for key, _ in (await engine.scan(TWO, EPOCH, ALL, reverse=True)).entries] == [b"z"]


# --- batches --------------------------------------------------------------------------------------------------------


async def test_lsns_rise_by_one_per_batch_even_an_empty_one(engine: CheckedEngine) -> None:
    assert [await put(engine, b"a"), await engine.apply(ONE, EPOCH, Batch()), await put(engine, b"b")] == [1, 2, 3]


async def test_lsns_of_concurrent_batches_have_no_gap(engine: CheckedEngine) -> None:
    lsns = await asyncio.gather(*(put(engine, b"%d" % number) for number in range(300)))
    assert sorted(lsns) == list(range(1, 301))


async def test_versioned_and_stamped_puts_carry_the_lsn_of_their_batch(engine: CheckedEngine) -> None:
    await put(engine, b"a")
    batch = Batch(versioned_puts=[(b"v", b"body")], stamped_puts=[(b"log", b"tail", b"entry")])
    stamp = (await engine.apply(ONE, EPOCH, batch)).to_bytes(8, "big")
    assert await get(engine, b"v") == stamp + b"body"
    assert await get(engine, b"log" + stamp + b"tail") == b"entry"


async def test_a_batch_is_applied_in_the_order_of_its_lists(engine: CheckedEngine) -> None:
    await put(engine, b"a1", b"a2", b"a3", b"b")
    await engine.apply(ONE, EPOCH, Batch(adds=[Add(b"a9", (5,))]))
    batch = Batch(
        range_deletes=[Span(b"a", b"b")], deletes=[b"b", b"absent"], puts=[(b"a2", b"new")], adds=[Add(b"a9", (1,))]
    )
    await engine.apply(ONE, EPOCH, batch)
    assert (await engine.scan(ONE, EPOCH, ALL)).entries == [(b"a2", b"new"), (b"a9", encode_counters([1]))]


async def test_the_last_put_of_a_key_wins(engine: CheckedEngine) -> None:
    await engine.apply(ONE, EPOCH, Batch(puts=[(b"a", b"first"), (b"a", b"last")]))
    assert await get(engine, b"a") == b"last"


async def test_an_expectation_of_absence_holds_only_for_an_absent_key(engine: CheckedEngine) -> None:
    create = Batch(expectations=[Expectation(b"a", None)], puts=[(b"a", b"1"), (b"b", b"1")])
    assert await engine.apply(ONE, EPOCH, create) == 1
    with pytest.raises(ExpectationFailed) as refused:
        await engine.apply(ONE, EPOCH, Batch(expectations=[Expectation(b"a", None)], puts=[(b"b", b"2")]))
    assert refused.value.key == b"a"
    assert await engine.read(ONE, EPOCH, [b"b"]) == (1, [b"1"])


async def test_an_expected_version_holds_until_the_record_is_written_again(engine: CheckedEngine) -> None:
    write = Batch(versioned_puts=[(b"a", b"body")])
    version = (await engine.apply(ONE, EPOCH, write)).to_bytes(8, "big")
    replace = Batch(expectations=[Expectation(b"a", version)], versioned_puts=[(b"a", b"body")])
    await engine.apply(ONE, EPOCH, replace)
    with pytest.raises(ExpectationFailed):
        await engine.apply(ONE, EPOCH, replace)
    with pytest.raises(ExpectationFailed):
        await engine.apply(ONE, EPOCH, Batch(expectations=[Expectation(b"absent", b"")]))


async def test_of_concurrent_creations_exactly_one_succeeds(engine: CheckedEngine) -> None:
    batches = [Batch(expectations=[Expectation(b"a", None)], puts=[(b"a", b"%d" % number)]) for number in range(20)]
    outcomes = await asyncio.gather(*(engine.apply(ONE, EPOCH, batch) for batch in batches), return_exceptions=True)
    kinds: list[type] = [type(outcome) for outcome in outcomes]
    assert (kinds.count(int), kinds.count(ExpectationFailed)) == (1, 19)
    assert await engine.read(ONE, EPOCH, [b"a"]) == (1, [b"%d" % kinds.index(int)])


async def test_adds_count_from_zero_and_a_key_of_zeros_is_deleted(engine: CheckedEngine) -> None:
    await engine.apply(ONE, EPOCH, Batch(adds=[Add(b"n", (5, -2))]))
    assert decode_counters(await get(engine, b"n")) == (5, -2)
    await engine.apply(ONE, EPOCH, Batch(adds=[Add(b"n", (-5, 2)), Add(b"never", (0,))]))
    assert await keys_of(engine) == []


async def test_adds_of_one_batch_to_one_key_accumulate(engine: CheckedEngine) -> None:
    await engine.apply(ONE, EPOCH, Batch(adds=[Add(b"n", (1, 1)), Add(b"n", (2,)), Add(b"n", (0, 0, 4))]))
    assert decode_counters(await get(engine, b"n")) == (3, 1, 4)


async def test_a_ceiling_refuses_growth_beyond_it_and_never_shrinking(engine: CheckedEngine) -> None:
    await engine.apply(ONE, EPOCH, Batch(adds=[Add(b"n", (10, 1), first_max=10)]))
    with pytest.raises(CeilingPassed) as refused:
        await engine.apply(ONE, EPOCH, Batch(puts=[(b"a", b"")], adds=[Add(b"n", (1, 1), first_max=10)]))
    assert refused.value.key == b"n"
    await engine.apply(ONE, EPOCH, Batch(adds=[Add(b"n", (-1, 5), first_max=3)]))
    lsn, (value, absent) = await engine.read(ONE, EPOCH, [b"n", b"a"])
    assert (lsn, decode_counters(value), absent) == (2, (9, 6), None)


async def test_a_counter_that_overflows_64_bits_refuses_the_batch_alone(engine: CheckedEngine) -> None:
    await engine.apply(ONE, EPOCH, Batch(adds=[Add(b"n", (2**63 - 1,))]))
    overflow = Batch(puts=[(b"a", b"")], adds=[Add(b"n", (1,))])
    outcomes = await asyncio.gather(
        put(engine, b"b"), engine.apply(ONE, EPOCH, overflow), put(engine, b"c"), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [int, EngineFailed, int]
    assert await keys_of(engine) == [b"b", b"c", b"n"]


async def test_a_batch_the_engine_cannot_store_fails_alone(engine: CheckedEngine) -> None:
    impossible = Batch(puts=[(b"a", b""), (b"k" * 5000, b"")])
    outcomes = await asyncio.gather(
        put(engine, b"b"),
        engine.engine.apply(ONE, EPOCH, impossible),
        put(engine, b"c"),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [int, EngineFailed, int]
    assert await keys_of(engine) == [b"b", b"c"]


async def test_a_canceled_caller_disturbs_no_other(engine: CheckedEngine) -> None:
    tasks = [asyncio.create_task(put(engine, b"%03d" % number)) for number in range(100)]
    await asyncio.sleep(0)
    canceled = tasks[::3]
    for task in canceled:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == ([asyncio.CancelledError, int, int] * 34)[:100]
    stored = set(await keys_of(engine))
    assert {b"%03d" % number for number in range(100) if number % 3} <= stored
    assert await put(engine, b"after") == len(stored) + 1


# --- snapshots ------------------------------------------------------------------------------------------------------


async def test_a_snapshot_stays_as_it_was(engine: CheckedEngine) -> None:
    await put(engine, b"a", b"b")
    snapshot = await engine.snapshot(ONE, EPOCH)
    await engine.apply(ONE, EPOCH, Batch(deletes=[b"a"], puts=[(b"b", b"new"), (b"c", b"new")]))
    await engine.set_fence(ONE, Fence(OTHER_EPOCH, sealed=True))
    assert snapshot.lsn == 1
    assert await snapshot.read([b"a", b"c"]) == [b"value of a", None]
    assert (await snapshot.scan(ALL, reverse=True)).entries == [(b"b", b"value of b"), (b"a", b"value of a")]
    assert (await snapshot.scan(ALL, limit=1)).more
    await snapshot.close()


async def test_many_snapshots_may_be_open_at_once(engine: CheckedEngine) -> None:
    snapshots = []
    for number in range(200):
        await put(engine, b"n")
        snapshots.append(await engine.snapshot(ONE, EPOCH))
        assert snapshots[-1].lsn == number + 1
    for snapshot in snapshots:
        await snapshot.close()


# --- fences and partitions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fence", [Fence(OTHER_EPOCH), Fence(EPOCH, sealed=True)], ids=["other epoch", "sealed"])
async def test_a_fence_stops_every_call_with_an_epoch_and_none_without(engine: CheckedEngine, fence: Fence) -> None:
    await put(engine, b"a")
    assert await engine.set_fence(ONE, fence) == 1
    for call in (
        engine.read(ONE, EPOCH, [b"a"]),
        engine.scan(ONE, EPOCH, ALL),
        engine.snapshot(ONE, EPOCH),
        put(engine, b"b"),
    ):
        with pytest.raises(EpochFenced):
            await call
    assert await engine.read_fence(ONE) == (fence, 1)
    assert await engine.read_unfenced(ONE, [b"a", b"b"]) == [b"value of a", None]
    assert await keys_of(engine) == [b"a"]


async def test_no_batch_escapes_a_seal(engine: CheckedEngine) -> None:
    outcomes: list[Any] = await asyncio.gather(
        *(put(engine, b"before %d" % number) for number in range(10)),
        engine.set_fence(ONE, Fence(EPOCH, sealed=True)),
        *(put(engine, b"after %d" % number) for number in range(10)),
        return_exceptions=True,
    )
    sealed_at = outcomes.pop(10)
    applied = [outcome for outcome in outcomes if not isinstance(outcome, EpochFenced)]
    assert sorted(applied) == list(range(1, sealed_at + 1))
    assert len(await keys_of(engine)) == sealed_at


async def test_a_fence_raises_the_lsn_and_never_lowers_it(engine: CheckedEngine) -> None:
    assert await engine.set_fence(ONE, Fence(EPOCH), lsn=Lsn(41)) == 41
    assert await engine.set_fence(ONE, Fence(EPOCH), lsn=Lsn(5)) == 41
    assert await put(engine, b"a") == 42


async def test_a_partition_may_begin_at_any_lsn(engine: CheckedEngine) -> None:
    await engine.create_partition(TWO, Fence(EPOCH), lsn=Lsn(1000))
    assert await put(engine, b"a", partition=TWO) == 1001


async def test_creating_a_partition_that_exists_is_refused_and_harmless(engine: CheckedEngine) -> None:
    await put(engine, b"a")
    with pytest.raises(EngineFailed):
        await engine.create_partition(ONE, Fence(OTHER_EPOCH))
    assert await engine.read_fence(ONE) == (Fence(EPOCH), 1)


async def test_an_unknown_partition_refuses_every_call(engine: CheckedEngine) -> None:
    for call in (
        engine.read(TWO, EPOCH, []),
        engine.scan(TWO, EPOCH, ALL),
        engine.snapshot(TWO, EPOCH),
        engine.apply(TWO, EPOCH, Batch()),
        engine.read_fence(TWO),
        engine.set_fence(TWO, Fence(EPOCH)),
        engine.read_unfenced(TWO, []),
        engine.scan_unfenced(TWO, ALL),
        engine.read_journal(TWO, after=Lsn(0)),
        engine.write_copied(TWO, EPOCH),
        engine.read(PartitionNumber(2**40), EPOCH, []),
    ):
        with pytest.raises(PartitionUnknown):
            await call
    assert await engine.drop_partition(TWO)


async def test_every_partition_is_listed_with_its_fence_and_lsn(engine: CheckedEngine) -> None:
    fence = Fence(OTHER_EPOCH, sealed=True, journaling=True)
    high = PartitionNumber(0xFFFFFFFE)
    await engine.create_partition(high, fence, lsn=Lsn(9))
    await engine.create_partition(PartitionNumber(0x4D4D4D4D), Fence(EPOCH))
    await put(engine, b"a")
    assert await engine.partitions() == {ONE: (Fence(EPOCH), 1), 0x4D4D4D4D: (Fence(EPOCH), 0), high: (fence, 9)}
    assert await engine.drop_partition(high)
    assert list(await engine.partitions()) == [ONE, 0x4D4D4D4D]


async def test_a_drop_forbids_access_at_once_and_removes_in_parts(engine: CheckedEngine) -> None:
    await engine.create_partition(TWO, Fence(EPOCH, sealed=True))
    await put(engine, b"kept")
    await engine.write_copied(TWO, EPOCH, puts=[(b"%05d" % number, b"") for number in range(10_500)])
    assert not await engine.drop_partition(TWO)
    assert list(await engine.partitions()) == [ONE]
    with pytest.raises(PartitionUnknown):
        await engine.scan_unfenced(TWO, ALL)
    with pytest.raises(EngineFailed):
        await engine.create_partition(TWO, Fence(EPOCH))
    assert await engine.drop_partition(TWO)
    assert await keys_of(engine) == [b"kept"]
    await engine.create_partition(TWO, Fence(EPOCH))
    assert await keys_of(engine, TWO) == []


async def test_a_fence_is_replaced_only_if_it_is_the_expected_one(engine: CheckedEngine) -> None:
    await put(engine, b"a")
    sealed = Fence(EPOCH, sealed=True, journaling=True)
    for expected in (Fence(OTHER_EPOCH), Fence(EPOCH, sealed=True), Fence(EPOCH, journaling=True)):
        with pytest.raises(FenceChanged):
            await engine.set_fence(ONE, sealed, lsn=Lsn(9), expected=expected)
    assert await engine.read_fence(ONE) == (Fence(EPOCH), 1)
    assert await engine.set_fence(ONE, sealed, lsn=Lsn(9), expected=Fence(EPOCH)) == 9
    assert await engine.read_fence(ONE) == (sealed, 9)
    with pytest.raises(PartitionUnknown):
        await engine.set_fence(TWO, sealed, expected=Fence(EPOCH))


async def test_of_concurrent_changes_of_one_fence_exactly_one_succeeds(engine: CheckedEngine) -> None:
    fences = [Fence(Epoch(100 + number)) for number in range(10)]
    changes = (engine.engine.set_fence(ONE, fence, expected=Fence(EPOCH)) for fence in fences)
    outcomes = await asyncio.gather(*changes, return_exceptions=True)
    kinds: list[type] = [type(outcome) for outcome in outcomes]
    assert (kinds.count(int), kinds.count(FenceChanged)) == (1, 9)
    assert (await engine.engine.read_fence(ONE))[0] == fences[kinds.index(int)]


# --- watching -------------------------------------------------------------------------------------------------------


async def test_a_watch_reports_each_batch_of_an_announced_partition_until_it_ends(
    engine: CheckedEngine,
) -> None:
    await engine.create_partition(TWO, Fence(EPOCH), announced=True)
    notified = asyncio.Event()
    end_watch = engine.watch(TWO, notified.set)
    for _ in range(3):
        await put(engine, b"a", partition=TWO)
        await asyncio.wait_for(notified.wait(), timeout=60)
        # A pending call for the same batch must arrive before the next batch is applied.
        await asyncio.sleep(0.05)
        notified.clear()
    end_watch()
    # A call that was pending then is of an earlier batch.
    await asyncio.sleep(0.05)
    notified.clear()
    await put(engine, b"a", partition=TWO)
    await asyncio.sleep(0.1)
    assert not notified.is_set()


async def test_watches_of_one_partition_are_independent(engine: CheckedEngine) -> None:
    await engine.create_partition(TWO, Fence(EPOCH), announced=True)
    first, second = asyncio.Event(), asyncio.Event()
    end_first = engine.watch(TWO, first.set)
    end_second = engine.watch(TWO, second.set)
    end_first()
    end_first()
    await put(engine, b"a", partition=TWO)
    await asyncio.wait_for(second.wait(), timeout=60)
    assert not first.is_set()
    end_second()


# --- reads that may be stale ----------------------------------------------------------------------------------------


async def test_a_read_that_may_be_stale_sees_at_least_the_requested_lsn(engine: CheckedEngine) -> None:
    lsn = await put(engine, b"a")
    assert await engine.read(ONE, EPOCH, [b"a"], at_least=lsn) == (1, [b"value of a"])
    assert (await engine.scan(ONE, EPOCH, ALL, at_least=lsn)).entries == [(b"a", b"value of a")]
    snapshot = await engine.snapshot(ONE, EPOCH, at_least=lsn)
    assert (snapshot.lsn, await snapshot.read([b"a"])) == (1, [b"value of a"])
    await snapshot.close()
    # No replica has reached this LSN, and the primary answers with its own.
    assert (await engine.read(ONE, EPOCH, [b"a"], at_least=Lsn(99)))[0] == 1


async def test_a_read_that_may_be_stale_does_not_pass_the_fence(engine: CheckedEngine) -> None:
    await put(engine, b"a")
    await engine.set_fence(ONE, Fence(OTHER_EPOCH))
    for call in (
        engine.read(ONE, EPOCH, [b"a"], at_least=Lsn(0)),
        engine.scan(ONE, EPOCH, ALL, at_least=Lsn(0)),
        engine.snapshot(ONE, EPOCH, at_least=Lsn(0)),
    ):
        with pytest.raises(EpochFenced):
            await call


# --- journal and copies ---------------------------------------------------------------------------------------------


async def test_the_journal_names_everything_a_batch_touched(engine: CheckedEngine) -> None:
    await put(engine, b"before")
    await engine.set_fence(ONE, Fence(EPOCH, journaling=True))
    batch = Batch(
        expectations=[Expectation(b"only read", None)],
        range_deletes=[Span(b"r", b"s"), Span(b"t")],
        deletes=[b"d"],
        puts=[(b"p", b"")],
        versioned_puts=[(b"v", b"")],
        stamped_puts=[(b"l", b"e", b"")],
        adds=[Add(b"n", (1,))],
    )
    await engine.apply(ONE, EPOCH, batch)
    (entry,) = await engine.read_journal(ONE, after=Lsn(0))
    assert (entry.lsn, entry.spans) == (2, (Span(b"r", b"s"), Span(b"t")))
    assert sorted(entry.keys) == sorted([b"d", b"p", b"v", b"l" + (2).to_bytes(8, "big") + b"e", b"n"])


async def test_the_journal_is_read_in_pages_and_discarded_when_it_ends(engine: CheckedEngine) -> None:
    await engine.set_fence(ONE, Fence(EPOCH, journaling=True))
    await asyncio.gather(*(put(engine, b"%d" % number) for number in range(5)))
    page = await engine.read_journal(ONE, after=Lsn(2), limit=2)
    assert page == [JournalEntry(Lsn(3), (b"2",), ()), JournalEntry(Lsn(4), (b"3",), ())]
    # A change of epoch alone keeps it.
    await engine.set_fence(ONE, Fence(OTHER_EPOCH, journaling=True))
    assert len(await engine.read_journal(ONE, after=Lsn(0))) == 5
    await engine.set_fence(ONE, Fence(EPOCH))
    await put(engine, b"unseen")
    assert await engine.read_journal(ONE, after=Lsn(0)) == []
    await engine.set_fence(ONE, Fence(EPOCH, journaling=True))
    await put(engine, b"seen")
    assert await engine.read_journal(ONE, after=Lsn(0)) == [JournalEntry(Lsn(7), (b"seen",), ())]


async def test_copied_entries_are_written_unchanged_without_lsn_or_journal(engine: CheckedEngine) -> None:
    await engine.create_partition(TWO, Fence(EPOCH, sealed=True, journaling=True), lsn=Lsn(3))
    await engine.write_copied(TWO, EPOCH, puts=[(b"a", b"1"), (b"b", b"1"), (b"c", b"1")])
    await engine.write_copied(TWO, EPOCH, range_deletes=[Span(b"a", b"b")], deletes=[b"b"], puts=[(b"a", b"2")])
    assert (await engine.scan_unfenced(TWO, ALL)).entries == [(b"a", b"2"), (b"c", b"1")]
    assert await engine.read_journal(TWO, after=Lsn(0)) == []
    assert (await engine.read_fence(TWO))[1] == 3


async def test_nothing_is_copied_into_a_partition_in_use(engine: CheckedEngine) -> None:
    with pytest.raises(EpochFenced):
        await engine.engine.write_copied(ONE, EPOCH, puts=[(b"a", b"1")])
    assert await keys_of(engine) == []


async def test_nothing_is_copied_with_an_epoch_other_than_that_of_the_seal(engine: CheckedEngine) -> None:
    """A copier that was stopped for a long time may find the partition sealed again, for another reason."""
    await engine.create_partition(TWO, Fence(OTHER_EPOCH, sealed=True))
    with pytest.raises(EpochFenced):
        await engine.write_copied(TWO, EPOCH, puts=[(b"a", b"1")])
    assert (await engine.scan_unfenced(TWO, ALL)).entries == []


# --- the engine itself ----------------------------------------------------------------------------------------------


async def test_the_status_has_the_stored_bytes_and_the_server_version(engine: CheckedEngine) -> None:
    before = await engine.status()
    await engine.apply(ONE, EPOCH, Batch(puts=[(b"large", os.urandom(3 << 20))]))
    after = await engine.status()
    assert after.bytes_used > before.bytes_used
    assert after.is_writable
    assert any(character.isdigit() for character in after.server_version)


async def test_commits_rise_with_every_change_and_not_with_reads(engine: CheckedEngine) -> None:
    counts = [engine.commits]
    for key in (b"a", b"b"):
        await put(engine, key)
        counts.append(engine.commits)
    await engine.set_fence(ONE, Fence(EPOCH, journaling=True))
    counts.append(engine.commits)
    await engine.create_partition(TWO, Fence(EPOCH, sealed=True))
    counts.append(engine.commits)
    await engine.write_copied(TWO, EPOCH, puts=[(b"a", b"1")])
    counts.append(engine.commits)
    assert counts == sorted(set(counts)), "a change was not counted"
    await get(engine, b"a")
    await engine.scan(ONE, EPOCH, ALL)
    assert engine.commits == counts[-1]


async def test_batches_that_share_a_transaction_count_once(
    engine: CheckedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long each takes; a fold of many short records would count as well.
    monkeypatch.setattr(log_commit, "GROUP_SECONDS_MAX", 3600.0)
    before = engine.commits
    await asyncio.gather(*(put(engine, str(number).encode()) for number in range(50)))
    assert 1 <= engine.commits - before <= 50


async def test_a_reopened_store_has_all_data(open_engine: EngineOpener, tmp_path: Path) -> None:
    first = CheckedEngine(await open_engine(tmp_path))
    await first.create_partition(ONE, Fence(EPOCH, journaling=True))
    await put(first, b"a")
    await first.close()
    second = CheckedEngine(await open_engine(tmp_path))
    assert await second.read(ONE, EPOCH, [b"a"]) == (1, [b"value of a"])
    assert await second.read_journal(ONE, after=Lsn(0)) == [JournalEntry(Lsn(1), (b"a",), ())]
    assert await put(second, b"b") == 2
    await second.close()


async def test_closing_waits_for_batches_in_flight_and_refuses_later_ones(
    open_engine: EngineOpener, tmp_path: Path
) -> None:
    engine = await open_engine(tmp_path)
    await engine.create_partition(ONE, Fence(EPOCH))
    tasks = [asyncio.create_task(engine.apply(ONE, EPOCH, Batch())) for _ in range(50)]
    await asyncio.sleep(0)
    await engine.close()
    assert sorted(await asyncio.gather(*tasks)) == list(range(1, 51))
    for call in (engine.apply(ONE, EPOCH, Batch()), engine.read(ONE, EPOCH, [b"a"]), engine.scan(ONE, EPOCH, ALL)):
        with pytest.raises(EngineFailed):
            await call
