"""The LMDB engine when its process is killed, its space runs out, or parts of it die."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asterism.storage.contract import Batch, EngineFailed, Fence, OutOfSpace, Span
from asterism.storage.lmdb import LmdbEngine
from tests.faults.storage_worker import EPOCH, PARTITION, whole_batches

# A map so small that the engine never has plenty of room, and checks the file system before every transaction.
SMALL_MAP_BYTES = 64 * 1024 * 1024
PROJECT = Path(__file__).resolve().parents[2]


def worker_command(mode: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "tests.faults.storage_worker", mode, *map(str, arguments)]


class Writer:
    """A process that writes until it is killed, and the batches that it has acknowledged."""

    def __init__(self, directory: Path, kind: str, name: str) -> None:
        self.acknowledged: list[tuple[int, bytes]] = []
        self.process = subprocess.Popen(
            worker_command("write", directory, kind, name), cwd=PROJECT, stdout=subprocess.PIPE, bufsize=0
        )

    def await_acknowledgements(self, count: int) -> None:
        for _ in range(count):
            self._take_line(self._output.readline())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        # Lines are written whole; all that were in the pipe were acknowledged.
        for line in self._output:
            self._take_line(line)
        self._output.close()

    @property
    def _output(self) -> Any:
        return self.process.stdout

    def _take_line(self, line: bytes) -> None:
        lsn, name = line.split()
        self.acknowledged.append((int(lsn), name))


@contextmanager
def writers(directory: Path, kind: str, *names: str) -> Iterator[list[Writer]]:
    started = [Writer(directory, kind, name) for name in names]
    try:
        yield started
    finally:
        for writer in started:
            writer.process.kill()
            writer.process.wait()


async def stored(directory: Path) -> tuple[int, dict[bytes, bytes]]:
    engine = LmdbEngine.open(directory)
    _, lsn = await engine.read_fence(PARTITION)
    page = await engine.scan(PARTITION, EPOCH, Span(), limit=10**9)
    await engine.close()
    return lsn, dict(page.entries)


async def create_store(directory: Path, **options: Any) -> LmdbEngine:
    engine = LmdbEngine.open(directory, **options)
    await engine.create_partition(PARTITION, Fence(EPOCH))
    return engine


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[LmdbEngine]:
    engine = await create_store(tmp_path, durable=False, map_bytes=SMALL_MAP_BYTES)
    yield engine
    await engine.close()


# --- killed ---------------------------------------------------------------------------------------------------------


async def check_store(directory: Path, acknowledged: list[tuple[int, bytes]]) -> None:
    """Check that every acknowledged batch is there, and that each batch is whole."""
    batches = whole_batches(*await stored(directory))
    assert dict(acknowledged).items() <= batches.items()


def write_and_kill_two(directory: Path, name: str, chance: random.Random) -> list[tuple[int, bytes]]:
    """Return the batches that two processes have acknowledged before they were killed, one after the other."""
    with writers(directory, "shared", f"{name}a", f"{name}b") as (first, second):
        first.await_acknowledgements(chance.randrange(1, 250))
        second.await_acknowledgements(chance.randrange(1, 250))
        first.kill()
        # The other continues, even if the first one died while it held the writer's lock.
        second.await_acknowledgements(chance.randrange(20, 150))
        second.kill()
    return first.acknowledged + second.acknowledged


def write_and_kill(directory: Path, name: str, chance: random.Random) -> list[tuple[int, bytes]]:
    """Return the batches that a process with a log has acknowledged before it was killed."""
    with writers(directory, str(chance.choice([10, 100, 1000])), name) as (writer,):
        writer.await_acknowledgements(chance.randrange(1, 400))
        writer.kill()
    return writer.acknowledged


@pytest.mark.parametrize(
    ("write_until_killed", "rounds", "seed"), [(write_and_kill_two, 4, 20260101), (write_and_kill, 6, 20260102)]
)
async def test_processes_killed_while_writing_lose_and_halve_no_batch(
    tmp_path: Path,
    write_until_killed: Callable[[Path, str, random.Random], list[tuple[int, bytes]]],
    rounds: int,
    seed: int,
) -> None:
    """Two that share a store, and one that has it to itself, with a log."""
    await (await create_store(tmp_path)).close()
    chance = random.Random(seed)
    acknowledged: list[tuple[int, bytes]] = []
    for round_number in range(rounds):
        acknowledged += write_until_killed(tmp_path, str(round_number), chance)
        await check_store(tmp_path, acknowledged)


async def test_a_store_used_by_one_process_and_by_several_in_turn_loses_and_halves_no_batch(tmp_path: Path) -> None:
    await (await create_store(tmp_path)).close()
    chance = random.Random(20260103)
    acknowledged: list[tuple[int, bytes]] = []
    for round_number in range(3):
        # The processes that share the store replay the log of the one before them.
        acknowledged += write_and_kill(tmp_path, f"{round_number}-log", chance)
        acknowledged += write_and_kill_two(tmp_path, f"{round_number}-shared", chance)
    await check_store(tmp_path, acknowledged)


async def test_processes_killed_at_any_moment_of_their_start_and_work_lose_and_halve_no_batch(tmp_path: Path) -> None:
    await (await create_store(tmp_path)).close()
    chance = random.Random(20260104)
    acknowledged: list[tuple[int, bytes]] = []
    began_at = time.monotonic()
    with writers(tmp_path, "10", "first") as (writer,):
        writer.await_acknowledgements(1)
        start_seconds = time.monotonic() - began_at
        writer.kill()
    for round_number in range(12):
        acknowledged += writer.acknowledged
        with writers(tmp_path, chance.choice(["shared", "10", "200"]), str(round_number)) as (writer,):
            # Some are still replaying what the one before has left.
            await asyncio.sleep(start_seconds * chance.uniform(0.5, 2.0))
            writer.kill()
    acknowledged += writer.acknowledged
    assert acknowledged
    await check_store(tmp_path, acknowledged)


# --- no room --------------------------------------------------------------------------------------------------------


async def fill(engine: LmdbEngine, value_bytes: int) -> int:
    """Put values until one is refused; return the number of stored values."""
    for number in range(10_000):
        try:
            await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"%d" % number, bytes(value_bytes))]))
        except OutOfSpace:
            return number
    raise AssertionError("there was room for everything")


async def test_a_full_map_refuses_writes_serves_reads_and_recovers_by_deletes(tmp_path: Path) -> None:
    engine = await create_store(tmp_path, map_bytes=2 * 1024 * 1024, durable=False)
    count = await fill(engine, 50_000)
    assert count > 20
    lsn, values = await engine.read(PARTITION, EPOCH, [b"%d" % number for number in range(count + 1)])
    assert (lsn, [value is None for value in values]) == (count, [False] * count + [True])
    assert await engine.apply(PARTITION, EPOCH, Batch(deletes=[b"0", b"1", b"2"])) == count + 1
    assert await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"new", bytes(50_000))])) == count + 2
    await engine.close()


async def test_a_write_fits_into_the_room_that_one_large_delete_has_left(tmp_path: Path) -> None:
    engine = await create_store(tmp_path, map_bytes=4 * 1024 * 1024, durable=False)
    count = await fill(engine, 60_000)
    await engine.apply(PARTITION, EPOCH, Batch(range_deletes=[Span(b"", b"~")]))
    # No other commit is between them.
    values = [(b"%d" % number, bytes(60_000)) for number in range(count * 3 // 4)]
    assert await engine.apply(PARTITION, EPOCH, Batch(puts=values)) == count + 2
    await engine.close()


@pytest.mark.parametrize("value_bytes", [100, 1000, 5000])
async def test_a_full_store_still_accepts_every_delete(tmp_path: Path, value_bytes: int) -> None:
    engine = await create_store(tmp_path, map_bytes=1024 * 1024, durable=False)
    count = await fill(engine, value_bytes)
    for number in range(count):
        await engine.apply(PARTITION, EPOCH, Batch(deletes=[b"%d" % number], stamped_puts=[(b"log", b"", b"")]))
    assert await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"new", bytes(value_bytes))])) == 2 * count + 1
    await engine.close()


async def test_a_full_disk_keeps_its_last_bytes_for_deletes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await create_store(tmp_path, durable=False, map_bytes=SMALL_MAP_BYTES)
    await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"a", bytes(2_000_000))]))
    measured = os.statvfs(tmp_path)
    full = SimpleNamespace(f_bavail=0, f_frsize=measured.f_frsize)
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda _: full)
        with pytest.raises(OutOfSpace):
            await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"b", b"")]))
        assert await engine.apply(PARTITION, EPOCH, Batch(deletes=[b"a"])) == 2
        # The freed pages are available again.
        assert await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"b", b"")])) == 3
    await engine.close()


async def test_the_batch_that_does_not_fit_is_refused_alone(tmp_path: Path) -> None:
    engine = await create_store(tmp_path, map_bytes=2 * 1024 * 1024, durable=False)
    sizes = [10, 10, 5_000_000, 10, 10]
    batches = [Batch(puts=[(b"%d" % number, bytes(size))]) for number, size in enumerate(sizes)]
    outcomes = await asyncio.gather(
        *(engine.apply(PARTITION, EPOCH, batch) for batch in batches), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [int, int, OutOfSpace, int, int]
    page = await engine.scan(PARTITION, EPOCH, Span())
    assert [key for key, _ in page.entries] == [b"0", b"1", b"3", b"4"]
    await engine.close()


def outcomes_of_filling(directory: Path, kind: str, *, room_bytes: int) -> dict[str, Any]:
    command = worker_command("fill", directory, kind, room_bytes)
    finished = subprocess.run(command, cwd=PROJECT, capture_output=True, check=True, timeout=180)
    outcomes: dict[str, Any] = json.loads(finished.stdout)
    return outcomes


def test_a_file_that_may_not_grow_refuses_writes_serves_reads_and_recovers(tmp_path: Path) -> None:
    outcomes = outcomes_of_filling(tmp_path, "shared", room_bytes=600_000)
    applied = outcomes["applied"]
    assert applied > 5
    assert outcomes["refused"] == "OutOfSpace"
    assert set(outcomes["also_refused"]) == {"OutOfSpace"}
    assert (outcomes["readable_when_full"], outcomes["lsn_full"], outcomes["lsn_after"]) == (
        applied,
        applied,
        applied + 1,
    )
    lsn, entries = asyncio.run(stored(tmp_path))
    assert (lsn, set(entries)) == (applied + 1, {b"after", *(b"%d" % number for number in range(applied))})


@pytest.mark.parametrize("room_bytes", [50_000, 100_000, 250_000, 600_000])
def test_a_log_that_may_not_grow_refuses_writes_serves_reads_and_recovers(tmp_path: Path, room_bytes: int) -> None:
    """Log and tree have the same limit, so sometimes what is in the log has room in the tree, and sometimes not."""
    outcomes = outcomes_of_filling(tmp_path, "1000000", room_bytes=room_bytes)
    applied = outcomes["applied"]
    assert outcomes["has_log"]
    # The outcome of the batch whose record was cut short is unknown if the tree fails as well.
    assert outcomes["refused"] in ("OutOfSpace", "EngineFailed")
    assert set(outcomes["also_refused"]) == {"OutOfSpace"}
    assert (outcomes["readable_when_full"], outcomes["lsn_full"], outcomes["lsn_after"]) == (
        applied,
        applied,
        applied + 1,
    )
    lsn, entries = asyncio.run(stored(tmp_path))
    assert (lsn, set(entries)) == (applied + 1, {b"after", *(b"%d" % number for number in range(applied))})


# --- parts that die -------------------------------------------------------------------------------------------------


async def test_an_environment_that_failed_is_opened_again(engine: LmdbEngine) -> None:
    await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"a", b"1")]))
    snapshot = await engine.snapshot(PARTITION, EPOCH)
    engine._store.env.close()
    outcomes = await asyncio.gather(*(engine.apply(PARTITION, EPOCH, Batch()) for _ in range(3)))
    assert outcomes == [2, 3, 4]
    assert await engine.read(PARTITION, EPOCH, [b"a"]) == (4, [b"1"])
    with pytest.raises(EngineFailed):
        await snapshot.read([b"a"])
    await snapshot.close()


async def test_a_directory_that_vanishes_fails_the_calls_that_wait(engine: LmdbEngine, tmp_path: Path) -> None:
    hidden = tmp_path.rename(tmp_path.with_name("hidden"))
    outcomes = await asyncio.gather(
        *(engine.apply(PARTITION, EPOCH, Batch()) for _ in range(3)), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [EngineFailed] * 3
    hidden.rename(tmp_path)
    assert await engine.apply(PARTITION, EPOCH, Batch()) == 1


async def test_no_call_waits_for_a_writer_that_has_died(engine: LmdbEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(engine._store, "env", None)
        outcomes = await asyncio.gather(
            *(engine.apply(PARTITION, EPOCH, Batch()) for _ in range(3)), return_exceptions=True
        )
    assert [type(outcome) for outcome in outcomes] == [EngineFailed] * 3
    with pytest.raises(EngineFailed):
        await engine.apply(PARTITION, EPOCH, Batch())
    assert (await engine.read_fence(PARTITION))[1] == 0


def test_an_event_loop_closed_with_writes_in_flight_leaves_a_store_that_can_be_closed_and_opened(
    tmp_path: Path,
) -> None:
    first = asyncio.new_event_loop()
    engine = first.run_until_complete(create_store(tmp_path, durable=False))
    abandoned = [first.create_task(engine.apply(PARTITION, EPOCH, Batch())) for _ in range(3)]
    first.run_until_complete(asyncio.sleep(0))
    for task in abandoned:
        task.cancel()
    first.run_until_complete(asyncio.gather(*abandoned, return_exceptions=True))
    first.close()

    async def close_and_open_again() -> int:
        await engine.close()
        again = LmdbEngine.open(tmp_path)
        lsn = await again.apply(PARTITION, EPOCH, Batch(puts=[(b"a", b"1")]))
        await again.close()
        return lsn

    assert asyncio.run(close_and_open_again()) >= 1
