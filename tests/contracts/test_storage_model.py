"""Every engine against a dictionary: after any calls, in any order, both have the same contents."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from asterism.storage.checked import CheckedEngine, CheckedSnapshot
from asterism.storage.contract import (
    Add,
    Batch,
    CeilingPassed,
    Expectation,
    ExpectationFailed,
    Fence,
    JournalEntry,
    ScanPage,
    Span,
    StorageRefusal,
    decode_counters,
    encode_counters,
)
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber
from tests.contracts.storage_engines import ENGINES, EngineOpener

SOURCE = PartitionNumber(1)
COPY = PartitionNumber(2)
EPOCH = Epoch(1)
RECORD_KEYS = [b"", b"\x00", b"a", b"aa", b"ab", b"b", b"b\xff", b"c", b"\xff\xff\xff\xff\xff"]
COUNTER_KEYS = [b"an", b"n"]
KEYS = RECORD_KEYS + COUNTER_KEYS

Answer = TypeVar("Answer")
Entries = list[tuple[bytes, bytes]]


# --- generated input ------------------------------------------------------------------------------------------------

values = st.binary(max_size=12)
bounds = st.sampled_from([*KEYS, b"aaa", b"\xff"])
spans = st.builds(Span, bounds, st.none() | bounds)
expectations = st.builds(
    Expectation, st.sampled_from(KEYS), st.none() | st.sampled_from([b"", b"\x00", b"\x00" * 8, b"\x00" * 7 + b"\x01"])
)
deltas = st.lists(st.integers(-3, 3), min_size=1, max_size=3).map(tuple)
adds = st.builds(Add, st.sampled_from(COUNTER_KEYS), deltas, st.none() | st.integers(-1, 4))


@st.composite
def batches(draw: st.DrawFn, *, may_be_refused: bool = True) -> Batch:
    lists = {key: draw(st.sampled_from(["", "deletes", "puts", "versioned_puts"])) for key in RECORD_KEYS}

    def keys_in(name: str) -> list[bytes]:
        return [key for key in RECORD_KEYS if lists[key] == name]

    drawn_adds = draw(st.lists(adds, max_size=3))
    return Batch(
        expectations=draw(st.lists(expectations, max_size=2 * may_be_refused)),
        range_deletes=draw(st.lists(spans, max_size=1)),
        deletes=keys_in("deletes"),
        puts=[(key, draw(values)) for key in keys_in("puts")],
        versioned_puts=[(key, draw(values)) for key in keys_in("versioned_puts")],
        stamped_puts=draw(st.lists(st.tuples(st.just(b"log"), st.binary(max_size=2), values), max_size=2)),
        adds=[Add(add.key, add.deltas, add.first_max if may_be_refused else None) for add in drawn_adds],
    )


# --- the dictionary -------------------------------------------------------------------------------------------------


@dataclass
class Model:
    """A partition as the contract describes it, regardless of speed."""

    data: dict[bytes, bytes] = field(default_factory=dict)
    lsn: int = 0
    journaling: bool = False
    journal: list[JournalEntry] = field(default_factory=list)

    def apply(self, batch: Batch) -> int:
        for expectation in batch.expectations:
            value = self.data.get(expectation.key)
            wanted = expectation.begins_with
            holds = value is None if wanted is None else value is not None and value.startswith(wanted)
            if not holds:
                raise ExpectationFailed(expectation.key)
        data = {
            key: value
            for key, value in self.data.items()
            if not any(span.contains(key) for span in batch.range_deletes)
        }
        lsn = self.lsn + 1
        stamp = lsn.to_bytes(8, "big")
        stamped = [(head + stamp + tail, value) for head, tail, value in batch.stamped_puts]
        for key in batch.deletes:
            data.pop(key, None)
        data.update(batch.puts)
        data.update((key, stamp + value) for key, value in batch.versioned_puts)
        data.update(stamped)
        self._add_up(data, batch.adds)
        self.data, self.lsn = data, lsn
        if self.journaling:
            keys = {key for key, _ in [*batch.puts, *batch.versioned_puts, *stamped]}
            keys |= {*batch.deletes, *(add.key for add in batch.adds)}
            self.journal.append(JournalEntry(Lsn(lsn), tuple(sorted(keys)), tuple(batch.range_deletes)))
        return lsn

    @staticmethod
    def _add_up(data: dict[bytes, bytes], adds: list[Add]) -> None:
        totals: dict[bytes, list[int]] = {}
        for add in adds:
            counters = totals.setdefault(add.key, list(decode_counters(data.get(add.key))))
            counters.extend([0] * (len(add.deltas) - len(counters)))
            for index, delta in enumerate(add.deltas):
                counters[index] += delta
            if add.first_max is not None and add.deltas[0] > 0 and counters[0] > add.first_max:
                raise CeilingPassed(add.key)
        for key, counters in totals.items():
            data.pop(key, None)
            if any(counters):
                data[key] = encode_counters(counters)

    def scan(self, span: Span, *, reverse: bool, limit: int, bytes_max: int | None) -> ScanPage:
        inside = sorted((key, value) for key, value in self.data.items() if span.contains(key))
        if reverse:
            inside.reverse()
        taken: Entries = []
        for key, value in inside:
            size = sum(len(key) + len(value) for key, value in taken)
            if len(taken) == limit or (bytes_max is not None and size >= bytes_max):
                return ScanPage(taken, more=True)
            taken.append((key, value))
        return ScanPage(taken, more=False)

    def outcome(self, batch: Batch) -> object:
        try:
            return self.apply(batch)
        except StorageRefusal as refusal:
            return type(refusal), str(refusal)

    def adopt_lengths(self, entries: Entries) -> None:
        """Take over the lengths of counters that were changed by batches applied together, if their values are right:
        the engine may or may not have deleted them in between."""
        stored = dict(entries)
        for key in COUNTER_KEYS:
            if key in self.data and key in stored and counters_of(self.data[key]) == counters_of(stored[key]):
                self.data[key] = stored[key]


def counters_of(value: bytes) -> tuple[int, ...]:
    """Return the counters of a value without the zeros at its end, which count for nothing."""
    counters = list(decode_counters(value))
    while counters and not counters[-1]:
        counters.pop()
    return tuple(counters)


def sorted_keys(entry: JournalEntry) -> JournalEntry:
    return JournalEntry(entry.lsn, tuple(sorted(set(entry.keys))), entry.spans)


# --- the comparison -------------------------------------------------------------------------------------------------


class StorageMachine(RuleBasedStateMachine):
    def __init__(self, open_engine: EngineOpener) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner()
        self.engine = CheckedEngine(self.run(open_engine(self.directory)))
        self.model = Model()
        self.snapshots: list[tuple[CheckedSnapshot, int, Entries]] = []
        self.run(self.engine.create_partition(SOURCE, Fence(EPOCH)))

    def run(self, call: Coroutine[Any, Any, Answer] | Any) -> Any:
        return self.runner.run(call)

    async def outcome(self, batch: Batch) -> object:
        try:
            return await self.engine.apply(SOURCE, EPOCH, batch)
        except StorageRefusal as refusal:
            return type(refusal), str(refusal)

    @rule(batch=batches())
    def apply(self, batch: Batch) -> None:
        assert self.run(self.outcome(batch)) == self.model.outcome(batch)

    @rule(group=st.lists(batches(may_be_refused=False), min_size=2, max_size=4))
    def apply_together(self, group: list[Batch]) -> None:
        async def apply_all() -> list[Lsn]:
            return await asyncio.gather(*(self.engine.apply(SOURCE, EPOCH, batch) for batch in group))

        by_lsn = dict(zip(self.run(apply_all()), group, strict=True))
        assert [self.model.apply(by_lsn[lsn]) for lsn in sorted(by_lsn)] == sorted(by_lsn)
        self.model.adopt_lengths(self.run(self.engine.scan(SOURCE, EPOCH, Span())).entries)

    @rule(span=spans, reverse=st.booleans(), limit=st.integers(1, 5), bytes_max=st.none() | st.integers(1, 40))
    def scan(self, span: Span, reverse: bool, limit: int, bytes_max: int | None) -> None:
        page = self.run(self.engine.scan(SOURCE, EPOCH, span, reverse=reverse, limit=limit, bytes_max=bytes_max))
        assert page == self.model.scan(span, reverse=reverse, limit=limit, bytes_max=bytes_max)

    @rule(keys=st.lists(st.sampled_from(KEYS), max_size=4))
    def read(self, keys: list[bytes]) -> None:
        expected = (self.model.lsn, [self.model.data.get(key) for key in keys])
        assert self.run(self.engine.read(SOURCE, EPOCH, keys)) == expected

    @precondition(lambda self: len(self.snapshots) < 3)
    @rule()
    def open_snapshot(self) -> None:
        snapshot = self.run(self.engine.snapshot(SOURCE, EPOCH))
        self.snapshots.append((snapshot, self.model.lsn, sorted(self.model.data.items())))

    @precondition(lambda self: self.snapshots)
    @rule()
    def close_snapshot(self) -> None:
        snapshot, lsn, entries = self.snapshots.pop(0)
        assert (snapshot.lsn, self.run(snapshot.scan(Span())).entries) == (lsn, entries)
        self.run(snapshot.close())

    @rule(journaling=st.booleans(), lsn_step=st.integers(-2, 2))
    def set_fence(self, journaling: bool, lsn_step: int) -> None:
        lsn = max(0, self.model.lsn + lsn_step)
        self.model.lsn = max(self.model.lsn, lsn)
        self.model.journaling = journaling
        self.model.journal *= journaling
        answer = self.run(self.engine.set_fence(SOURCE, Fence(EPOCH, journaling=journaling), lsn=Lsn(lsn)))
        assert answer == self.model.lsn

    @rule(page_entries=st.integers(1, 4))
    def copy(self, page_entries: int) -> None:
        self.run(self._copy(page_entries))

    async def _copy(self, page_entries: int) -> None:
        """Check that a copy in pages equals the partition, and drop it, which leaves nothing of it."""
        engine = self.engine
        await engine.create_partition(COPY, Fence(EPOCH, sealed=True))
        start, more = b"", True
        while more:
            page = await engine.scan_unfenced(SOURCE, Span(start), limit=page_entries)
            await engine.write_copied(COPY, EPOCH, puts=page.entries)
            start, more = (page.entries[-1][0] + b"\x00" if page.entries else start), page.more
        await engine.set_fence(COPY, Fence(EPOCH), lsn=Lsn(self.model.lsn))
        assert (await engine.scan(COPY, EPOCH, Span())).entries == sorted(self.model.data.items())
        assert await engine.drop_partition(COPY)

    @invariant()
    def both_hold_the_same(self) -> None:
        assert self.run(self.engine.scan_unfenced(SOURCE, Span())).entries == sorted(self.model.data.items())
        assert self.run(self.engine.partitions()) == {
            SOURCE: (Fence(EPOCH, journaling=self.model.journaling), self.model.lsn)
        }

    @invariant()
    def the_journal_is_complete(self) -> None:
        entries = self.run(self.engine.read_journal(SOURCE, after=Lsn(0)))
        assert [sorted_keys(entry) for entry in entries] == self.model.journal

    def teardown(self) -> None:
        while self.snapshots:
            self.close_snapshot()
        self.run(self.engine.close())
        self.runner.close()
        shutil.rmtree(self.directory)


@pytest.mark.parametrize("open_engine", ENGINES.values(), ids=ENGINES.keys())
def test_an_engine_holds_what_a_dictionary_would(open_engine: EngineOpener) -> None:
    make_machine: Any = lambda: StorageMachine(open_engine)  # noqa: E731  # typed as a class, called as a function
    run_state_machine_as_test(
        make_machine,
        settings=settings(
            max_examples=50,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
