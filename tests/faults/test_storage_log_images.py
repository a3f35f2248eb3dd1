"""Images of a store as a power failure could leave it: log and tree as of the last completed write, and any part of
those under way. Each must open, with every acknowledged batch, and each batch whole or not at all."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import lmdb
import pytest

from asterism.storage.contract import Batch, Fence, Span
from asterism.storage.lmdb import FoldPace, LmdbEngine
from asterism.storage.lmdb.log_record import find_records
from asterism.storage.lmdb.write_log import LOG_FILES, WriteLog
from tests.faults.storage_worker import EPOCH, PARTITION, batch_of, whole_batches
from tests.support.store_images import NEVER, killed_copy

SECTOR_BYTES = 512
# The disk may write this much to change a part of it.
BLOCK_BYTES = 4096
# LMDB writes one of its two header pages when all other pages of a transaction are on the disk.
HEADER_SECTORS = range(2 * 4096 // SECTOR_BYTES)
TASKS = 5
BATCHES_PER_TASK = 12
IMAGES_PER_RUN = 80


# --- what happened ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AppendBegun:
    file: int
    at: int
    record: bytes


@dataclass(frozen=True)
class AppendEnded:
    pass


@dataclass(frozen=True)
class CommitBegun:
    pass


@dataclass(frozen=True)
class CommitEnded:
    data: bytes


@dataclass(frozen=True)
class Acknowledged:
    lsn: int
    name: bytes


@dataclass(frozen=True)
class Closed:
    """From now on, the files of the log may be gone."""


Event = AppendBegun | AppendEnded | CommitBegun | CommitEnded | Acknowledged | Closed


class RecordedEnvironment:
    """An LMDB environment that notes the data file after each of its commits."""

    def __init__(self, env: lmdb.Environment, data_file: Path, events: list[Event]) -> None:
        self._env = env
        self._data_file = data_file
        self._events = events

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def begin(self, *, write: bool = False) -> Any:
        txn = self._env.begin(write=write)
        return _RecordedTransaction(txn, self) if write else txn

    def commit(self, txn: lmdb.Transaction[bytes]) -> None:
        self._events.append(CommitBegun())
        # Time in which records of the log are begun and ended.
        time.sleep(0.001)
        txn.commit()
        self._events.append(CommitEnded(self._data_file.read_bytes()))


class _RecordedTransaction:
    def __init__(self, txn: lmdb.Transaction[bytes], env: RecordedEnvironment) -> None:
        self._txn = txn
        self._env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self._txn, name)

    def __enter__(self) -> _RecordedTransaction:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.commit() if kind is None else self._txn.abort()

    def commit(self) -> None:
        self._env.commit(self._txn)


def record_appends(monkeypatch: pytest.MonkeyPatch, events: list[Event]) -> None:
    append = WriteLog.append

    def recorded(log: WriteLog, record: bytes) -> None:
        events.append(AppendBegun(log._current, log.bytes_written, record))
        time.sleep(0.0005)
        append(log, record)
        events.append(AppendEnded())

    monkeypatch.setattr(WriteLog, "append", recorded)


def marked_batch(task: int, number: int) -> Batch:
    """Return a batch that also deletes the mark of the task's batch before it, and leaves its own."""
    name = b"%d-%d" % (task, number)
    batch = batch_of(name)
    batch.puts.append((b"mark/" + name, name))
    batch.puts.append((b"last/%d" % task, name))
    # Some records have many blocks, and some values have pages of their own in the tree.
    batch.puts.append((b"bulk/%d" % task, bytes(9000 * (number % 3 == 0))))
    batch.deletes.append(b"mark/%d-%d" % (task, number - 1))
    return batch


@dataclass
class Run:
    """A store from its first write to its end: its data file at the beginning, and all that happened."""

    data: bytes
    events: list[Event] = field(default_factory=list)


async def recorded_run(directory: Path, monkeypatch: pytest.MonkeyPatch, chance: random.Random) -> Run:
    """Write from several tasks while folds are under way."""
    # A shared store never had a log, and its tree has no checkpoint yet.
    engine = LmdbEngine.open(directory, durable=False, shared=chance.random() < 0.5)
    await engine.create_partition(PARTITION, Fence(EPOCH))
    await engine.close()
    pace = FoldPace(changes=chance.choice([20, 60]), seconds=0.003)
    engine = LmdbEngine.open(directory, durable=False, fold_pace=pace)
    run = Run((directory / "data.mdb").read_bytes())
    with monkeypatch.context() as patch:
        record_appends(patch, run.events)
        recorded = RecordedEnvironment(engine._store.env, directory / "data.mdb", run.events)
        patch.setattr(engine._store, "env", recorded)
        pauses = iter([chance.choice([0, 0, 0, 0.001, 0.004]) for _ in range(TASKS * BATCHES_PER_TASK)])

        async def write(task: int) -> None:
            for number in range(BATCHES_PER_TASK):
                lsn = await engine.apply(PARTITION, EPOCH, marked_batch(task, number))
                run.events.append(Acknowledged(lsn, b"%d-%d" % (task, number)))
                # Scans keep the groups of the overlay apart, which are joined otherwise.
                await engine.scan(PARTITION, EPOCH, Span(), limit=1 + number % 2)
                await asyncio.sleep(next(pauses))

        await asyncio.gather(*map(write, range(TASKS)))
        await engine.close()
    run.events.append(Closed())
    return run


# --- what a power failure leaves --------------------------------------------------------------------------------------


@dataclass
class Moment:
    """Bytes that are on the disk for certain, and those under way."""

    logs: list[bytes]
    data: bytes
    append: AppendBegun | None = None
    # The data file when the commit under way is complete.
    data_to_be: bytes | None = None
    acknowledged: dict[int, bytes] = field(default_factory=dict)
    is_closed: bool = False


def moments(run: Run) -> Iterator[Moment]:
    """Return the state after each event."""
    logs, data = [b"", b""], run.data
    append: AppendBegun | None = None
    data_to_be: bytes | None = None
    acknowledged: dict[int, bytes] = {}
    is_closed = False
    datas = [event.data for event in run.events if isinstance(event, CommitEnded)]
    for event in run.events:
        match event:
            case AppendBegun():
                append = event
            case AppendEnded():
                assert append is not None
                logs[append.file] = written_over(logs[append.file], append.record, append.at)
                append = None
            case CommitBegun():
                data_to_be = datas.pop(0)
            case CommitEnded():
                data, data_to_be = event.data, None
            case Acknowledged():
                acknowledged[event.lsn] = event.name
            case Closed():
                is_closed = True
        yield Moment(list(logs), data, append, data_to_be, dict(acknowledged), is_closed)


def written_over(before: bytes, record: bytes, at: int) -> bytes:
    return before[:at].ljust(at, b"\x00") + record + before[at + len(record) :]


def partly_written(before: bytes, after: bytes, sectors: Iterable[int]) -> bytes:
    """Return the file with some of its sectors written; it ends with the last of them, or where it ended before."""
    image = bytearray(before)
    for sector in sorted(sectors):
        start, end = sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES
        image.extend(bytes(max(0, start - len(image))))
        image[start:end] = after[start:end]
    return bytes(image)


def changed_sectors(before: bytes, after: bytes) -> list[int]:
    starts = range(0, len(after), SECTOR_BYTES)
    return [
        start // SECTOR_BYTES
        for start in starts
        if before[start : start + SECTOR_BYTES] != after[start : start + SECTOR_BYTES]
    ]


def some_of(sectors: list[int], chance: random.Random) -> list[int]:
    """Return a part of the sectors: the first ones, as if in order, or any, or all but one."""
    kind = chance.randrange(4) if sectors else 3
    if kind == 0:
        return sectors[: chance.randint(0, len(sectors))]
    if kind == 1:
        return chance.sample(sectors, chance.randint(0, len(sectors)))
    if kind == 2:
        missing = chance.choice(sectors)
        return [sector for sector in sectors if sector != missing]
    return sectors


def with_spoiled_sector(image: bytes, append: AppendBegun, chance: random.Random) -> bytes:
    """Return the image, in every third case with a sector of the blocks under way that holds neither the old nor the
    new bytes."""
    block = range(append.at // BLOCK_BYTES * BLOCK_BYTES, append.at + len(append.record), SECTOR_BYTES)
    start = chance.choice(block)
    if chance.random() < 2 / 3 or start + SECTOR_BYTES > len(image):
        return image
    return image[:start] + chance.randbytes(SECTOR_BYTES) + image[start + SECTOR_BYTES :]


def make_image(directory: Path, moment: Moment, chance: random.Random) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    logs = list(moment.logs)
    if moment.append is not None:
        before = logs[moment.append.file]
        after = written_over(before, moment.append.record, moment.append.at)
        image = partly_written(before, after, some_of(changed_sectors(before, after), chance))
        logs[moment.append.file] = with_spoiled_sector(image, moment.append, chance)
    data = moment.data
    if moment.data_to_be is not None:
        is_complete = chance.random() < 0.2
        pages = [sector for sector in changed_sectors(data, moment.data_to_be) if sector not in HEADER_SECTORS]
        data = moment.data_to_be if is_complete else partly_written(data, moment.data_to_be, some_of(pages, chance))
    (directory / "data.mdb").write_bytes(data)
    (directory / "store.marker").touch()
    for name, log in zip(LOG_FILES, logs, strict=True):
        if not moment.is_closed or chance.random() < 0.5:
            (directory / name).write_bytes(log)


def chosen_moments(run: Run, chance: random.Random) -> list[Moment]:
    """Return moments in equal parts of each kind: append and commit under way, one of both, or none."""
    kinds: dict[tuple[bool, bool], list[Moment]] = {}
    for moment in moments(run):
        kinds.setdefault((moment.append is not None, moment.data_to_be is not None), []).append(moment)
    assert len(kinds) == 4, "the run was too short for every kind of moment"
    chosen = [chance.choice(found) for found in kinds.values() for _ in range(IMAGES_PER_RUN // 4)]
    return [*chosen, *list(moments(run))[-3:]]


# --- checks -----------------------------------------------------------------------------------------------------------


async def stored_batches(engine: LmdbEngine) -> dict[int, bytes]:
    """Return the names of the batches by their LSNs; check that each is whole and that deletes are in place."""
    _, lsn = await engine.read_fence(PARTITION)
    entries = dict((await engine.scan(PARTITION, EPOCH, Span(), limit=10**9)).entries)
    batches = whole_batches(lsn, entries)
    last = {name.partition(b"-")[0]: name for name in batches.values()}
    assert {key: value for key, value in entries.items() if key.startswith(b"last/")} == {
        b"last/" + task: name for task, name in last.items()
    }
    assert {value for key, value in entries.items() if key.startswith(b"mark/")} == set(last.values())
    return batches


async def check_image(directory: Path, acknowledged: dict[int, bytes], *, shared: bool, fold_pace: FoldPace) -> None:
    open_store = partial(LmdbEngine.open, directory, durable=False, fold_pace=fold_pace)
    engine = open_store(shared=shared)
    found = await stored_batches(engine)
    assert acknowledged.items() <= found.items()
    later = [await engine.apply(PARTITION, EPOCH, marked_batch(99, number)) for number in range(3)]
    assert later == [len(found) + 1, len(found) + 2, len(found) + 3]
    killed = killed_copy(directory, directory.with_name("killed")) if fold_pace is NEVER else directory
    await engine.close()
    engine = LmdbEngine.open(killed, durable=False)
    expected = found | {int(lsn): b"99-%d" % number for number, lsn in enumerate(later)}
    assert await stored_batches(engine) == expected
    await engine.close()
    shutil.rmtree(directory.with_name("killed"), ignore_errors=True)


# --- tests ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
async def test_a_power_failure_at_any_moment_loses_and_halves_no_acknowledged_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    run = await recorded_run(tmp_path / "store", monkeypatch, chance)
    for number, moment in enumerate(chosen_moments(run, chance)):
        make_image(tmp_path / "image", moment, chance)
        shared = number % 7 == 0
        fold_pace = NEVER if number % 2 else FoldPace(changes=10, seconds=0.001)
        await check_image(tmp_path / "image", moment.acknowledged, shared=shared, fold_pace=fold_pace)


@pytest.mark.parametrize("seed", range(2))
async def test_a_power_failure_during_the_replay_after_another_loses_and_halves_no_acknowledged_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    run = await recorded_run(tmp_path / "store", monkeypatch, chance)
    for moment in chosen_moments(run, chance)[::4]:
        make_image(tmp_path / "image", moment, chance)
        logs = [file.read_bytes() if (file := tmp_path / "image" / name).exists() else b"" for name in LOG_FILES]
        data = (tmp_path / "image" / "data.mdb").read_bytes()
        engine = LmdbEngine.open(tmp_path / "image", durable=False, shared=True)
        replayed = Moment(logs, data, None, (tmp_path / "image" / "data.mdb").read_bytes(), moment.acknowledged)
        expected = await stored_batches(engine)
        await engine.close()
        make_image(tmp_path / "image", replayed, chance)
        engine = LmdbEngine.open(tmp_path / "image", durable=False)
        assert await stored_batches(engine) == expected
        await engine.close()


async def test_a_log_cut_at_any_byte_of_its_last_record_loses_that_record_alone(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path / "store", durable=False, fold_pace=NEVER)
    await engine.create_partition(PARTITION, Fence(EPOCH))
    await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"first", b"1")]))
    await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"last", b"2")], deletes=[b"first"]))
    store = killed_copy(tmp_path / "store", tmp_path / "killed")
    await engine.close()
    log = (store / LOG_FILES[0]).read_bytes()
    data = (store / "data.mdb").read_bytes()
    *_, before, last = find_records(log)
    padding = range(last.end, last.next_at + 1, 512)
    for cut in (*range(before.next_at, last.end), *padding):
        (store / LOG_FILES[0]).write_bytes(log[:cut])
        (store / "data.mdb").write_bytes(data)
        engine = LmdbEngine.open(store, durable=False)
        lsn, values = await engine.read(PARTITION, EPOCH, [b"first", b"last"])
        assert (lsn, values) == [(1, [b"1", None]), (2, [None, b"2"])][cut >= last.end], cut
        await engine.close()
