"""Batches applied at the same time have the effect of a sequence, in the order of their LSNs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.storage.checked import CheckedEngine
from asterism.storage.contract import Add, Batch, Expectation, Fence, Span, StorageRefusal
from asterism.values.identifiers import Epoch, PartitionNumber
from tests.contracts.storage_engines import ENGINES, EngineOpener
from tests.contracts.test_storage_model import COUNTER_KEYS, RECORD_KEYS, Model

EPOCH = Epoch(1)

values = st.binary(max_size=4)
record_keys = st.sampled_from(RECORD_KEYS)
ceilings = st.none() | st.integers(0, 6)


@st.composite
def small_batches(draw: st.DrawFn) -> Batch:
    """Draw batches of few keys, so that many can share a transaction and some conflict."""
    keys = draw(st.lists(record_keys, unique=True, max_size=3))
    deltas = st.lists(st.integers(-3, 3), min_size=1, max_size=2).map(tuple)
    batch = Batch(
        expectations=[
            Expectation(key, draw(st.none() | st.sampled_from([b"", b"\x00" * 7])))
            for key in draw(st.lists(record_keys, unique=True, max_size=1))
        ],
        range_deletes=draw(st.lists(st.just(Span(b"a", b"b")), max_size=1)) if draw(st.integers(0, 9)) == 0 else [],
        stamped_puts=draw(st.lists(st.tuples(st.just(b"log"), st.binary(max_size=1), values), max_size=1)),
        adds=draw(st.lists(st.builds(Add, st.sampled_from(COUNTER_KEYS), deltas, ceilings), max_size=2)),
    )
    for key in keys:
        match draw(st.integers(0, 2)):
            case 0:
                batch.deletes.append(key)
            case 1:
                batch.puts.append((key, draw(values)))
            case _:
                batch.versioned_puts.append((key, draw(values)))
    return batch


async def apply_all(engine: CheckedEngine, partition: PartitionNumber, batches: Sequence[Batch]) -> list[object]:
    calls = (engine.apply(partition, EPOCH, batch) for batch in batches)
    return await asyncio.gather(*calls, return_exceptions=True)


def refuses(model: Model, batch: Batch) -> type[StorageRefusal] | None:
    trial = Model(dict(model.data), model.lsn)
    try:
        trial.apply(batch)
    except StorageRefusal as refusal:
        return type(refusal)
    return None


async def compare(
    engine: CheckedEngine, partition: PartitionNumber, first: Sequence[Batch], together: Sequence[Batch]
) -> None:
    await engine.create_partition(partition, Fence(EPOCH))
    model = Model()
    for batch in first:
        (outcome,) = await apply_all(engine, partition, [batch])
        if isinstance(outcome, int):
            assert model.apply(batch) == outcome
    outcomes = await apply_all(engine, partition, together)
    applied = {lsn: batch for lsn, batch in zip(outcomes, together, strict=True) if isinstance(lsn, int)}
    refused = [(type(no), batch) for no, batch in zip(outcomes, together, strict=True) if not isinstance(no, int)]
    refusals_seen = [[refuses(model, batch) for _, batch in refused]]
    for lsn in sorted(applied):
        assert model.apply(applied[lsn]) == lsn
        refusals_seen.append([refuses(model, batch) for _, batch in refused])
    entries = (await engine.scan(partition, EPOCH, Span())).entries
    model.adopt_lengths(entries)
    assert entries == sorted(model.data.items())
    # Each refused batch was refused at some point between the others.
    for index, (kind, _) in enumerate(refused):
        assert kind in [seen[index] for seen in refusals_seen]


@pytest.mark.parametrize("open_engine", ENGINES.values(), ids=ENGINES.keys())
async def test_counters_of_different_lengths_add_up(open_engine: EngineOpener, tmp_path: Path) -> None:
    """The sums are zero in between, where one engine deletes the key, and another applies all in one transaction."""
    engine = CheckedEngine(await open_engine(tmp_path))
    deltas: Sequence[tuple[int, ...]] = ((0, 0), (1,), (2, 0, 0), (-3,), (0, 1), (0, -1), (5,))
    await compare(engine, PartitionNumber(1), [], [Batch(adds=[Add(b"an", each)]) for each in deltas])
    await engine.close()


@pytest.mark.parametrize("open_engine", ENGINES.values(), ids=ENGINES.keys())
def test_batches_applied_together_have_the_effect_of_one_after_another(
    open_engine: EngineOpener, tmp_path: Path
) -> None:
    numbers = itertools.count(1)
    with asyncio.Runner() as runner:
        engine = CheckedEngine(runner.run(open_engine(tmp_path)))

        @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.lists(small_batches(), max_size=2), st.lists(small_batches(), min_size=2, max_size=10))
        def hold(first: list[Batch], together: list[Batch]) -> None:
            runner.run(compare(engine, PartitionNumber(next(numbers)), first, together))

        hold()
        runner.run(engine.close())
