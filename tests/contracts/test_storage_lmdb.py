"""Properties of the LMDB engine alone: its directory, its format and its bytes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import stat
import sys
from pathlib import Path

import lmdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.storage.contract import Batch, EngineFailed, Fence, JournalEntry, Span
from asterism.storage.lmdb import LmdbEngine, watching
from asterism.storage.lmdb.layout import PartitionMeta, decode_journal, decode_meta, encode_journal
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

ONE = PartitionNumber(1)
EPOCH = Epoch(1)


def write_raw(directory: Path, key: bytes, value: bytes) -> None:
    with lmdb.open(str(directory)) as env, env.begin(write=True) as txn:
        txn.put(key, value)


async def make_store(directory: Path) -> None:
    engine = LmdbEngine.open(directory, durable=False)
    await engine.create_partition(ONE, Fence(EPOCH))
    await engine.apply(ONE, EPOCH, Batch(puts=[(b"key", b"value")]))
    await engine.close()


def test_the_bytes_on_disk_are_those_of_the_storage_format_document(tmp_path: Path) -> None:
    asyncio.run(make_store(tmp_path))
    with lmdb.open(str(tmp_path)) as env, env.begin() as txn:
        entries = list(txn.cursor())
    meta = bytes.fromhex("00 0000000000000001 0000000000000001 0000000000000000")
    (checkpoint,) = (value for key, value in entries if key == b"\xff\xff\xff\xffL")
    assert (len(checkpoint), checkpoint[8:]) == (16, (2).to_bytes(8, "big"))
    assert entries == [
        (b"\x00\x00\x00\x01key", b"value"),
        (b"\xff\xff\xff\xffF", b"asterism-lmdb\x00\x00\x00\x03"),
        (b"\xff\xff\xff\xffL", checkpoint),
        (b"\xff\xff\xff\xffM\x00\x00\x00\x01", meta),
    ]


def test_a_store_of_an_unknown_format_version_is_refused(tmp_path: Path) -> None:
    write_raw(tmp_path, b"\xff\xff\xff\xffF", b"asterism-lmdb\x00\x00\x00\x04")
    with pytest.raises(EngineFailed, match="format version 4"):
        LmdbEngine.open(tmp_path)


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_earlier_format_version_gets_the_current_one(tmp_path: Path, version: int) -> None:
    write_raw(tmp_path, b"\xff\xff\xff\xffF", b"asterism-lmdb\x00\x00\x00%c" % version)
    asyncio.run(LmdbEngine.open(tmp_path).close())
    with lmdb.open(str(tmp_path)) as env, env.begin() as txn:
        assert txn.get(b"\xff\xff\xff\xffF") == b"asterism-lmdb\x00\x00\x00\x03"


def test_an_environment_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    write_raw(tmp_path, b"theirs", b"value")
    with pytest.raises(EngineFailed, match="not Asterism's"):
        LmdbEngine.open(tmp_path)
    with lmdb.open(str(tmp_path)) as env, env.begin() as txn:
        assert list(txn.cursor()) == [(b"theirs", b"value")]


def test_a_file_that_is_not_an_lmdb_environment_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"something else" * 1000)
    with pytest.raises(EngineFailed, match="cannot be opened"):
        LmdbEngine.open(tmp_path)


async def test_one_process_opens_a_directory_once(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path)
    with pytest.raises(EngineFailed, match="already open"):
        LmdbEngine.open(tmp_path)
    await engine.close()


async def test_the_files_are_for_their_owner_only(tmp_path: Path) -> None:
    await make_store(tmp_path)
    modes = {name: stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in os.listdir(tmp_path)}
    assert modes == {"data.mdb": 0o600, "lock.mdb": 0o600, "log.lock": 0o600, "store.marker": 0o600}


async def test_stats_have_use_size_and_readers(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path, map_bytes=1 << 24, durable=False)
    await engine.create_partition(ONE, Fence(EPOCH))
    before = engine.stats()
    await engine.apply(ONE, EPOCH, Batch(puts=[(b"large", bytes(1 << 20))]))
    snapshots = [await engine.snapshot(ONE, EPOCH) for _ in range(3)]
    after = engine.stats()
    assert (after.map_bytes, after.readers_max, after.entries) == (1 << 24, 1024, before.entries + 1)
    assert after.bytes_used >= before.bytes_used + (1 << 20)
    assert after.readers >= 3
    for snapshot in snapshots:
        await snapshot.close()
    await engine.close()


def test_an_engine_serves_one_event_loop_after_another(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path, durable=False)
    asyncio.run(engine.create_partition(ONE, Fence(EPOCH)))
    assert [asyncio.run(engine.apply(ONE, EPOCH, Batch())) for _ in range(3)] == [1, 2, 3]
    asyncio.run(engine.close())


WRITES_FROM_ANOTHER_PROCESS = """
import asyncio, sys
from asterism.storage.contract import Batch
from asterism.storage.lmdb import LmdbEngine

async def main():
    engine = LmdbEngine.open(sys.argv[1], durable=False, shared=True)
    await engine.apply(1, 1, Batch(puts=[(b"theirs", b"")]))
    await engine.close()

asyncio.run(main())
"""


async def write_from_another_process(directory: Path) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", WRITES_FROM_ANOTHER_PROCESS, str(directory))
    assert await process.wait() == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the operating system must report changed files")
async def test_a_batch_of_another_process_is_noticed_without_polling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "CALM_POLL_SECONDS", 3600.0)
    await make_store(tmp_path)
    engine = LmdbEngine.open(tmp_path, durable=False, shared=True)
    polls: list[PartitionNumber] = []
    lsn_now = engine._watchers._lsn_now
    monkeypatch.setattr(engine._watchers, "_lsn_now", lambda number: (polls.append(number), lsn_now(number))[1])
    notified = asyncio.Event()
    engine.watch(ONE, notified.set)
    # Long enough for several polls.
    await asyncio.sleep(10 * watching.POLL_SECONDS)
    assert len(polls) == 1
    for _ in range(3):
        notified.clear()
        async with asyncio.timeout(180):
            while not notified.is_set():
                # One whose process is held up between the change of the file and the end of its transaction is noticed
                # with the next batch, or by the calm poll.
                await write_from_another_process(tmp_path)
                await wait_shortly(notified)
    await engine.close()


async def wait_shortly(event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(5):
            await event.wait()


async def test_a_batch_of_another_process_is_noticed_where_the_system_does_not_report_changed_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_watch_file", lambda _: None)
    await make_store(tmp_path)
    engine = LmdbEngine.open(tmp_path, durable=False, shared=True)
    notified = asyncio.Event()
    engine.watch(ONE, notified.set)
    await write_from_another_process(tmp_path)
    async with asyncio.timeout(120):
        await notified.wait()
    await engine.close()


async def test_watches_leave_no_descriptor_open(tmp_path: Path) -> None:
    await make_store(tmp_path)
    engine = LmdbEngine.open(tmp_path, durable=False, shared=True)
    # Files that earlier tests have left behind are not closed in between.
    gc.collect()
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        end_watch = engine.watch(ONE, lambda: None)
        end_watch()
    assert len(os.listdir("/dev/fd")) == before
    await engine.close()


numbers = st.integers(0, 2**64 - 1)
some_bytes = st.binary(max_size=600)


@given(st.builds(PartitionMeta, numbers, numbers, st.booleans(), st.booleans(), st.booleans(), numbers))
def test_a_meta_record_survives_its_encoding(meta: PartitionMeta) -> None:
    assert decode_meta(meta.encode()) == meta


@given(st.lists(some_bytes), st.lists(st.builds(Span, some_bytes, st.none() | some_bytes)))
def test_a_journal_record_survives_its_encoding(keys: list[bytes], spans: list[Span]) -> None:
    record = encode_journal(Batch(deletes=keys, range_deletes=spans), stamp=bytes(8))
    assert decode_journal(Lsn(5), record) == JournalEntry(Lsn(5), tuple(keys), tuple(spans))
