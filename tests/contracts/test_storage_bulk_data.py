"""Bulk data and the write log of the LMDB engine: they are committed to the tree directly while they come."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from asterism.storage.contract import Batch
from asterism.storage.lmdb import FoldPace, LmdbEngine, log_commit
from asterism.storage.lmdb.log_commit import LogCommitter
from asterism.storage.lmdb.write_log import LOG_FILES
from tests.faults.storage_worker import EPOCH, PARTITION
from tests.support.logged_stores import ALL, after_batch, new_store, opened, random_batch
from tests.support.store_images import killed_copy, settled

BULK_PACE = FoldPace(changes=10**9, log_bytes=64 * 1024, seconds=10**6)


BULK_WRITERS = 4
# Of a record with a batch of every writer; names have five letters.
BULK_RECORD_BYTES_MAX = BULK_WRITERS * 4 * (5 * 4000 + 1024)


def bulk_batch(name: str) -> Batch:
    return Batch(puts=[(f"bulk/{name}/{part}".encode(), name.encode() * 4000) for part in range(4)])


async def write_bulk(engine: LmdbEngine, phase: int, state: dict[bytes, bytes]) -> None:
    """Write from several callers at once what is more than the log takes before it is folded."""

    async def write_some(writer: int) -> None:
        for number in range(10):
            batch = bulk_batch(f"{phase}-{writer}-{number}")
            await engine.apply(PARTITION, EPOCH, batch)
            state.update(batch.puts)

    await asyncio.gather(*(write_some(writer) for writer in range(BULK_WRITERS)))


async def test_bulk_data_are_committed_directly_and_the_log_is_used_again_behind_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_commit, "BULK_CHANGE_BYTES", 4096)
    monkeypatch.setattr(log_commit, "RETRY_SECONDS", 0)
    become_direct, times = LogCommitter._become_direct, list[int]()

    def count_and_become_direct(committer: LogCommitter) -> None:
        times.append(committer._sequence)
        become_direct(committer)

    monkeypatch.setattr(LogCommitter, "_become_direct", count_and_become_direct)
    chance = random.Random(11)
    keys = [b"%03d" % number for number in range(300)]
    engine = await new_store(tmp_path / "running", fold_pace=BULK_PACE)
    committer, state = engine._committer, dict[bytes, bytes]()
    assert isinstance(committer, LogCommitter)
    for phase in range(6):
        before, expected = await engine.snapshot(PARTITION, EPOCH), dict(state)
        await write_bulk(engine, phase, state)
        # The log does not grow meanwhile, although it is used again and again between two batches.
        full_bytes = log_commit.FULL_MULTIPLE * BULK_PACE.log_bytes
        assert engine._committer.log_bytes <= len(LOG_FILES) * (full_bytes + BULK_RECORD_BYTES_MAX)
        for _ in range(20):
            batch = random_batch(chance, keys)
            await engine.apply(PARTITION, EPOCH, batch)
            state = after_batch(state, batch)
        assert not committer._is_direct
        assert (await before.scan(ALL, limit=10**9)).entries == sorted(expected.items())
        await before.close()
        await settled(engine)
        copy = killed_copy(tmp_path / "running", tmp_path / f"killed-{phase}")
        async with opened(copy) as killed:
            assert (await killed.scan(PARTITION, EPOCH, ALL, limit=10**9)).entries == sorted(state.items())
    assert len(times) >= 6
    await engine.close()
    async with opened(tmp_path / "running") as engine:
        assert (await engine.scan(PARTITION, EPOCH, ALL, limit=10**9)).entries == sorted(state.items())


async def test_the_log_stays_unused_as_long_as_bulk_data_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_commit, "BULK_CHANGE_BYTES", 4096)
    engine = await new_store(tmp_path, fold_pace=BULK_PACE)
    committer, state = engine._committer, dict[bytes, bytes]()
    assert isinstance(committer, LogCommitter)
    await write_bulk(engine, 0, state)
    assert committer._is_direct
    records, item = committer._sequence, Batch(puts=[(b"item", b"v")])
    monkeypatch.setattr(log_commit, "RETRY_SECONDS", 0)
    large = Batch(puts=[(b"large", bytes(BULK_PACE.log_bytes))])
    for batch in (large, item, large):
        committer._direct_bytes += BULK_PACE.log_bytes
        await engine.apply(PARTITION, EPOCH, batch)
    assert (committer._is_direct, committer._sequence) == (True, records)
    committer._direct_bytes = 0
    await engine.apply(PARTITION, EPOCH, item)
    assert (committer._is_direct, committer._sequence) == (False, records + 1)
    await engine.close()


async def test_many_small_changes_are_no_bulk_data(tmp_path: Path) -> None:
    engine = await new_store(tmp_path, fold_pace=BULK_PACE)
    for number in range(300):
        await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"%d" % number, bytes(1000))]))
    committer = engine._committer
    assert isinstance(committer, LogCommitter)
    assert not committer._is_direct
    await engine.close()
