"""The write log of the LMDB engine: what is only in it survives, and what contradicts it is refused."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
from pathlib import Path

import lmdb
import pytest

from asterism.storage.contract import Batch, EngineFailed, Fence, ScanPage, Span, StorageRefusal
from asterism.storage.lmdb import FoldPace, LmdbEngine, log_commit, recovery
from asterism.storage.lmdb.environment import StoreEnvironment
from asterism.storage.lmdb.layout import CHECKPOINT_KEY, decode_checkpoint
from asterism.storage.lmdb.log_record import ALIGNMENT_BYTES, encode_record, find_records
from asterism.storage.lmdb.views import LmdbSnapshot
from asterism.storage.lmdb.write_log import LOG_FILES
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber
from tests.faults.storage_worker import EPOCH, PARTITION, batch_of, whole_batches
from tests.support.logged_stores import (
    ALL,
    NAMES,
    after_batch,
    damage,
    folded_and_killed_store,
    killed_store,
    names_in,
    new_store,
    open_in_another_process,
    opened,
    random_batch,
    record_starts,
    store_with_two_logs,
    stored_names,
    write,
    write_together,
)
from tests.support.older_store import unpack_layout_2_store
from tests.support.store_images import (
    ALWAYS,
    NEVER,
    FailingEnvironment,
    contents,
    fold_held_up,
    killed_copy,
    logged_sequences,
    settled,
)

# --- after a kill -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
async def test_a_store_opened_after_a_kill_has_every_acknowledged_batch(tmp_path: Path, shared: bool) -> None:
    copy = await killed_store(tmp_path, *NAMES)
    assert logged_sequences(copy) == [[1, 2, 3, 4, 5, 6, 7], []]
    async with opened(copy, shared=shared) as engine:
        assert await stored_names(engine) == NAMES
        assert await write(engine, b"later") == [7]
    assert await names_in(copy) == [*NAMES, b"later"]


async def test_a_store_killed_again_and_again_has_every_acknowledged_batch(tmp_path: Path) -> None:
    directory = await killed_store(tmp_path, NAMES[0])
    for number, name in enumerate(NAMES[1:], 1):
        async with opened(directory, fold_pace=NEVER) as engine:
            assert await stored_names(engine) == NAMES[:number]
            await write(engine, name)
            copy = killed_copy(directory, tmp_path / f"killed-{number}")
        directory = copy
    assert await names_in(directory) == NAMES


async def test_a_store_killed_while_it_folds_has_what_is_in_both_files(tmp_path: Path) -> None:
    copy = await store_with_two_logs(tmp_path)
    assert await names_in(copy) == NAMES


async def test_a_store_killed_before_the_checkpoint_of_its_fold_has_everything_once(tmp_path: Path) -> None:
    """The tree has the changes already, and the log is laid over them a second time."""
    copy = await store_with_two_logs(tmp_path)
    logs = contents(copy)
    assert await names_in(copy) == NAMES
    with lmdb.open(str(copy)) as env, env.begin(write=True) as txn:
        txn.delete(b"\xff\xff\xff\xffL")
    for name in LOG_FILES:
        (copy / name).write_bytes(logs[name])
    assert await names_in(copy) == NAMES


async def test_a_process_goes_on_with_the_log_of_the_one_before(tmp_path: Path) -> None:
    copy = await killed_store(tmp_path, *NAMES[:3])
    async with opened(copy, fold_pace=NEVER) as engine:
        await write(engine, NAMES[3])
        assert logged_sequences(copy) == [[1, 2, 3, 4, 5], []]
        again = killed_copy(copy, tmp_path / "again")
    assert await names_in(again) == NAMES[:4]


async def test_the_file_that_was_being_folded_is_folded_by_the_next_process(tmp_path: Path) -> None:
    copy = await store_with_two_logs(tmp_path)
    async with opened(copy, fold_pace=NEVER) as engine:
        assert await stored_names(engine) == NAMES
        await write(engine, b"next")
        assert logged_sequences(copy) == [[1, 2, 3, 4], [5, 6, 7, 8]]
        async with asyncio.timeout(120):
            while checkpoint_of(copy) != 4:
                await asyncio.sleep(0.005)
        assert await stored_names(engine) == [*NAMES, b"next"]
    assert await names_in(copy) == [*NAMES, b"next"]


def checkpoint_of(directory: Path) -> int:
    """Return the last record that is in the tree, read by another environment."""
    copy = killed_copy(directory, directory.with_name("checkpoint"))
    with lmdb.open(str(copy)) as env, env.begin() as txn:
        record = txn.get(CHECKPOINT_KEY)
    shutil.rmtree(copy)
    return 0 if record is None else decode_checkpoint(record).sequence


async def test_the_replayed_log_is_in_the_tree_and_gone(tmp_path: Path) -> None:
    copy = await killed_store(tmp_path, *NAMES)
    async with opened(copy, shared=True):
        assert logged_sequences(copy) == [[], []]
        assert not [name for name in LOG_FILES if (copy / name).exists()]


@pytest.mark.parametrize("committed", range(7))
async def test_a_replay_that_is_interrupted_between_its_transactions_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: int
) -> None:
    monkeypatch.setattr(recovery, "_BYTES_PER_TRANSACTION", 1)
    copy = await store_with_two_logs(tmp_path)
    store = StoreEnvironment(copy, map_bytes=None, durable=False)
    failing = FailingEnvironment(store.env)
    failing.commits_left = committed
    store.env = failing  # type: ignore[assignment]  # it behaves as one
    with pytest.raises(EngineFailed, match=r"cannot be written into data\.mdb"):
        recovery.replay(store, recovery.read_log(store))
    assert recovery.read_log(store).checkpoint.sequence == committed
    store.close()
    assert await names_in(copy, shared=True) == NAMES


@pytest.mark.parametrize("kept_share", [0.0, 0.01, 0.3, 0.5, 0.99])
async def test_a_record_that_is_not_whole_at_the_end_is_dropped(tmp_path: Path, kept_share: float) -> None:
    copy = await killed_store(tmp_path, *NAMES)
    log = copy / LOG_FILES[0]
    (*_, last) = find_records(log.read_bytes())
    start = record_starts(log)[7]
    os.truncate(log, start + int((last.end - start) * kept_share))
    async with opened(copy) as engine:
        assert await stored_names(engine) == NAMES[:-1]
        assert await write(engine, b"instead") == [6]
    assert await names_in(copy) == [*NAMES[:-1], b"instead"]


async def test_a_first_record_that_is_not_whole_leaves_an_empty_store(tmp_path: Path) -> None:
    copy = await killed_store(tmp_path)
    damage(copy / LOG_FILES[0], at=60)
    async with opened(copy) as engine:
        assert await engine.partitions() == {}


# --- one process, or several that share -------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
async def test_another_process_is_refused_while_a_process_has_the_store_to_itself(tmp_path: Path, shared: bool) -> None:
    engine = await new_store(tmp_path)
    await write(engine, NAMES[0])
    refusal = await open_in_another_process(tmp_path, shared=shared)
    assert "another process has the store" in refusal
    assert str(tmp_path) in refusal
    assert logged_sequences(tmp_path) == [[1, 2], []]
    assert await write(engine, NAMES[1]) == [2]
    await engine.close()
    assert await open_in_another_process(tmp_path, shared=shared) == "opened"
    assert await names_in(tmp_path) == NAMES[:2]


async def test_a_store_that_is_shared_is_shared_with_more_processes_and_not_given_to_a_single_process(
    tmp_path: Path,
) -> None:
    await (await new_store(tmp_path)).close()
    async with opened(tmp_path, shared=True):
        assert await open_in_another_process(tmp_path, shared=True) == "opened"
        refusal = await open_in_another_process(tmp_path, shared=False)
        assert "another process has the store" in refusal
        assert str(tmp_path) in refusal


async def test_a_shared_store_has_no_log(tmp_path: Path) -> None:
    await (await new_store(tmp_path)).close()
    async with opened(tmp_path, shared=True) as engine:
        await write(engine, *NAMES)
        assert not [name for name in LOG_FILES if (tmp_path / name).exists()]


# --- refused ----------------------------------------------------------------------------------------------------------


async def refusal_of(directory: Path, *, shared: bool = False) -> str:
    """Open a store that must be refused; check that nothing is changed, and return the message."""
    before = contents(directory)
    with pytest.raises(EngineFailed) as refused:
        LmdbEngine.open(directory, shared=shared)
    assert contents(directory) == before
    return str(refused.value)


@pytest.mark.parametrize("shared", [False, True])
async def test_the_log_of_another_store_is_refused(tmp_path: Path, shared: bool) -> None:
    copy = await folded_and_killed_store(tmp_path / "own", folded=2, logged=2)
    theirs = await folded_and_killed_store(tmp_path / "theirs", folded=2, logged=3)
    own_log = (copy / LOG_FILES[0]).read_bytes()
    shutil.copy(theirs / LOG_FILES[0], copy / LOG_FILES[0])
    message = await refusal_of(copy, shared=shared)
    assert str(copy) in message
    assert "log.0" in message
    assert "another store" in message
    # The message says that it can be moved away; with its own log the store is complete again.
    (copy / LOG_FILES[0]).write_bytes(own_log)
    assert await names_in(copy) == NAMES[:4]


async def test_the_log_of_another_store_beside_an_older_one_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    theirs = await folded_and_killed_store(tmp_path / "theirs", folded=2, logged=3)
    own = tmp_path / "own"
    async with opened(own, shared=True) as engine:
        await engine.create_partition(PARTITION, Fence(EPOCH))
        await write(engine, *NAMES[:2])
    shutil.copy(theirs / LOG_FILES[0], own / LOG_FILES[0])
    message = await refusal_of(own)
    assert str(own) in message
    (own / LOG_FILES[0]).unlink()
    assert await names_in(own) == NAMES[:2]


@pytest.mark.parametrize("shared", [False, True])
async def test_an_older_data_file_beside_a_newer_log_is_refused(tmp_path: Path, shared: bool) -> None:
    older = await folded_and_killed_store(tmp_path / "older", folded=2, logged=0)
    async with opened(tmp_path / "older" / "running") as engine:
        await write(engine, *NAMES[2:4])
    async with opened(tmp_path / "older" / "running", fold_pace=NEVER) as engine:
        await write(engine, *NAMES[4:6])
        newer = killed_copy(tmp_path / "older" / "running", tmp_path / "newer")
    data = (newer / "data.mdb").read_bytes()
    shutil.copy(older / "data.mdb", newer / "data.mdb")
    message = await refusal_of(newer, shared=shared)
    assert str(newer) in message
    assert "is missing" in message
    assert "restore data.mdb, log.0 and log.1 from one copy" in message
    (newer / "data.mdb").write_bytes(data)
    assert await names_in(newer) == NAMES


@pytest.mark.parametrize("number", [1, 2, 4, 6])
async def test_damage_before_the_last_record_of_the_first_log_of_a_store_is_refused(
    tmp_path: Path, number: int
) -> None:
    copy = await killed_store(tmp_path, *NAMES)
    log = copy / LOG_FILES[0]
    damage(log, at=record_starts(log)[number] + 60)
    message = await refusal_of(copy)
    assert str(copy) in message
    assert "log.0" in message
    assert f"record {number} is not whole" in message
    assert "restore" in message


@pytest.mark.parametrize("number", [0, 1, 2])
async def test_damage_before_the_last_record_of_a_later_log_is_refused(tmp_path: Path, number: int) -> None:
    copy = await folded_and_killed_store(tmp_path, folded=2, logged=4)
    log = copy / LOG_FILES[0]
    sequence, start = list(record_starts(log).items())[number]
    damage(log, at=start)
    message = await refusal_of(copy)
    assert "is damaged" in message
    assert f"record {sequence} is not whole" in message


@pytest.mark.parametrize(("file", "number"), [(0, 1), (0, 3), (0, 4), (1, 5), (1, 6)])
async def test_damage_in_either_of_two_logs_is_refused(tmp_path: Path, file: int, number: int) -> None:
    copy = await store_with_two_logs(tmp_path)
    log = copy / LOG_FILES[file]
    damage(log, at=record_starts(log)[number] + 50)
    message = await refusal_of(copy)
    assert str(copy) in message
    assert "restore" in message


@pytest.mark.parametrize("name", LOG_FILES)
async def test_a_log_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    copy = await folded_and_killed_store(tmp_path, folded=2, logged=0)
    (copy / name).unlink(missing_ok=True)
    (copy / name).mkdir()
    with pytest.raises(EngineFailed, match="cannot be read"):
        LmdbEngine.open(copy)


# --- harmless ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
async def test_log_files_that_are_folded_already_are_harmless(tmp_path: Path, shared: bool) -> None:
    copy = await killed_store(tmp_path, *NAMES[:3])
    stale = contents(copy)
    async with opened(copy) as engine:
        await engine.apply(PARTITION, EPOCH, Batch(range_deletes=[Span()]))
    for name in LOG_FILES:
        (copy / name).write_bytes(stale[name])
    async with opened(copy, shared=shared) as engine:
        assert (await engine.scan(PARTITION, EPOCH, ALL)).entries == []
        assert (await engine.read_fence(PARTITION))[1] == 4


async def test_log_files_that_could_not_be_removed_are_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = await killed_store(tmp_path, *NAMES[:3])
    monkeypatch.setattr(Path, "unlink", _refuse_unlink)
    assert await names_in(copy) == NAMES[:3]
    async with opened(copy, fold_pace=NEVER) as engine:
        await write(engine, NAMES[3])
        assert logged_sequences(copy) == [[5], []]
        again = killed_copy(copy, tmp_path / "again")
    assert logged_sequences(copy) == [[5], []]
    assert await names_in(again) == await names_in(copy) == NAMES[:4]


def _refuse_unlink(path: Path, missing_ok: bool = False) -> None:
    raise PermissionError(errno.EACCES, "not permitted", str(path))


async def test_bytes_of_another_kind_in_a_log_are_harmless_behind_its_end(tmp_path: Path) -> None:
    copy = await killed_store(tmp_path, *NAMES)
    with (copy / LOG_FILES[0]).open("ab") as log:
        log.write(os.urandom(3 * ALIGNMENT_BYTES) + b"asterlog" + bytes(ALIGNMENT_BYTES))
        # The whole record of another store, and one of this file's past.
        log.write(encode_record(b"theirs--", 8, {b"key": b"value"}))
    assert await names_in(copy) == NAMES


# --- the files --------------------------------------------------------------------------------------------------------


async def test_a_closed_store_is_its_data_file_alone(tmp_path: Path) -> None:
    engine = await new_store(tmp_path / "source")
    await write(engine, *NAMES)
    assert logged_sequences(tmp_path / "source")[0] != []
    await engine.close()
    assert not [name for name in LOG_FILES if (tmp_path / "source" / name).exists()]
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "source" / "data.mdb", tmp_path / "copy")
    assert await names_in(tmp_path / "copy") == NAMES


@pytest.mark.parametrize("shared", [False, True])
async def test_an_engine_that_is_closed_twice_closes_nothing_of_others(tmp_path: Path, shared: bool) -> None:
    await (await new_store(tmp_path / "first")).close()
    engine = LmdbEngine.open(tmp_path / "first", durable=False, shared=shared)
    await engine.close()
    # Its files get the descriptors that have become free.
    async with opened(tmp_path / "second", fold_pace=NEVER) as other:
        await engine.close()
        await other.create_partition(PARTITION, Fence(EPOCH))
        await write(other, *NAMES)
        assert "another process" in await open_in_another_process(tmp_path / "second", shared=False)
    assert await names_in(tmp_path / "second") == NAMES


async def test_a_store_that_is_opened_and_closed_without_a_write_has_no_log(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    assert not [name for name in LOG_FILES if (tmp_path / name).exists()]


async def test_the_log_does_not_grow_beyond_its_pace(tmp_path: Path) -> None:
    pace = FoldPace(changes=10**9, log_bytes=64 * 1024, seconds=10**6)
    engine = await new_store(tmp_path, fold_pace=pace)
    sizes: list[int] = []

    async def write_some(writer: int) -> None:
        for number in range(60):
            value = bytes(1000)
            await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"%d-%d" % (writer, number), value)]))
            sizes.append(max((tmp_path / name).stat().st_size for name in LOG_FILES))

    await asyncio.gather(*(write_some(writer) for writer in range(8)))
    record_bytes_max = 8 * 1100 + ALIGNMENT_BYTES
    assert pace.log_bytes <= max(sizes) <= log_commit.FULL_MULTIPLE * pace.log_bytes + record_bytes_max
    assert (await engine.read_fence(PARTITION))[1] == 8 * 60
    await engine.close()


async def test_the_bytes_in_use_include_the_log(tmp_path: Path) -> None:
    engine = await new_store(tmp_path)
    before = engine.stats().bytes_used
    await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"large", bytes(1 << 20))]))
    assert engine.stats().bytes_used >= before + (1 << 20)
    await engine.close()


# --- folds ------------------------------------------------------------------------------------------------------------


async def folded(engine: LmdbEngine) -> None:
    """Wait until the tree has everything."""
    while engine._committer.layers:
        await asyncio.sleep(0.001)


async def test_snapshots_opened_before_during_and_after_a_fold_see_one_state(tmp_path: Path) -> None:
    engine = await new_store(tmp_path, fold_pace=FoldPace(changes=30, seconds=0.001))
    await write(engine, NAMES[0])
    snapshots = [await engine.snapshot(PARTITION, EPOCH)]
    async with fold_held_up(engine):
        for name in NAMES[1:5]:
            await write(engine, name)
            await asyncio.sleep(0.002)
            snapshots.append(await engine.snapshot(PARTITION, EPOCH))
    await folded(engine)
    snapshots.append(await engine.snapshot(PARTITION, EPOCH))
    await write(engine, NAMES[5])
    await engine.apply(PARTITION, EPOCH, Batch(range_deletes=[Span()]))
    await folded(engine)
    for number, snapshot in enumerate(snapshots):
        expected = NAMES[: min(number, 4) + 1]
        page = await snapshot.scan(ALL, limit=10**9)
        assert list(whole_batches(snapshot.lsn, dict(page.entries)).values()) == expected
        backward = await snapshot.scan(ALL, limit=10**9, reverse=True)
        assert backward.entries == page.entries[::-1]
        keys = [key for key, _ in page.entries]
        assert await snapshot.read([*keys, b"data/later/0"]) == [*(value for _, value in page.entries), None]
        await snapshot.close()
    await engine.close()


@pytest.mark.parametrize("pace", [NEVER, ALWAYS, FoldPace(changes=100, seconds=10**6)])
async def test_snapshots_of_many_moments_see_one_state_each_while_folds_come_and_go(
    tmp_path: Path, pace: FoldPace
) -> None:
    chance = random.Random(pace.changes)
    keys = [b"%03d" % number for number in range(300)]
    engine = await new_store(tmp_path, fold_pace=pace)
    snapshots: list[tuple[LmdbSnapshot, dict[bytes, bytes]]] = []
    state: dict[bytes, bytes] = {}
    for number in range(150):
        batch = random_batch(chance, keys)
        await engine.apply(PARTITION, EPOCH, batch)
        state = after_batch(state, batch)
        snapshots.append((await engine.snapshot(PARTITION, EPOCH), state))
        await asyncio.sleep(chance.choice([0, 0, 0, 0.002]))
        # All are looked at some time after they were opened, and closed in another order.
        snapshot, expected = snapshots[chance.randrange(len(snapshots))]
        span = Span(*sorted(chance.sample(keys, 2)))
        inside = sorted(entry for entry in expected.items() if span.contains(entry[0]))
        assert (await snapshot.scan(span)).entries == inside
        assert (await snapshot.scan(span, reverse=True, limit=5)).entries == inside[::-1][:5]
        asked = chance.sample(keys, 5)
        assert await snapshot.read(asked) == [expected.get(key) for key in asked]
        chance.shuffle(snapshots)
        for closed, _ in snapshots[8:]:
            await closed.close()
        del snapshots[8:]
        assert snapshot.lsn <= number + 1
    for snapshot, expected in snapshots:
        assert (await snapshot.scan(ALL)).entries == sorted(expected.items())
        await snapshot.close()
    await engine.close()
    async with opened(tmp_path) as engine:
        assert (await engine.scan(PARTITION, EPOCH, ALL)).entries == sorted(state.items())


@pytest.mark.parametrize("pace", [NEVER, ALWAYS])
async def test_a_scan_passes_over_many_deletes_that_are_only_in_the_log(tmp_path: Path, pace: FoldPace) -> None:
    keys = [b"%05d" % number for number in range(3000)]
    kept = keys[::500]
    async with opened(tmp_path) as engine:
        await engine.create_partition(PARTITION, Fence(EPOCH))
        await engine.apply(PARTITION, EPOCH, Batch(puts=[(key, b"v") for key in keys]))
    async with opened(tmp_path, fold_pace=pace) as engine:
        for part in range(0, 3000, 100):
            gone = [key for key in keys[part : part + 100] if key not in kept]
            await engine.apply(PARTITION, EPOCH, Batch(deletes=gone))
        page = await engine.scan(PARTITION, EPOCH, ALL, limit=4)
        assert ([key for key, _ in page.entries], page.more) == (kept[:4], True)
        page = await engine.scan(PARTITION, EPOCH, ALL, limit=6)
        assert ([key for key, _ in page.entries], page.more) == (kept, False)
        page = await engine.scan(PARTITION, EPOCH, ALL, limit=2, reverse=True)
        assert ([key for key, _ in page.entries], page.more) == (kept[:-3:-1], True)
        page = await engine.scan(PARTITION, EPOCH, Span(keys[1], keys[2999]), bytes_max=7)
        assert ([key for key, _ in page.entries], page.more) == (kept[1:3], True)
        # Two pages of the tree's deletes, none of them left.
        assert await engine.scan(PARTITION, EPOCH, Span(keys[501], keys[1000])) == page_of([])
        await engine.apply(PARTITION, EPOCH, Batch(range_deletes=[Span(keys[400], keys[2400])]))
        assert await engine.scan(PARTITION, EPOCH, ALL) == page_of([(kept[0], b"v"), (kept[5], b"v")])


def page_of(entries: list[tuple[bytes, bytes]]) -> ScanPage:
    return ScanPage(entries, more=False)


async def test_commits_count_the_records_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Those that are written together share records, however long each takes.
    monkeypatch.setattr(log_commit, "GROUP_SECONDS_MAX", 3600.0)
    engine = await new_store(tmp_path)
    before = engine.commits
    await write(engine, *NAMES)
    assert engine.commits - before == len(NAMES)
    await write_together(engine, *(b"together-%d" % number for number in range(50)))
    assert len(NAMES) < engine.commits - before < len(NAMES) + 50
    with pytest.raises(StorageRefusal):
        await engine.apply(PARTITION, Epoch(9), Batch())
    refused = engine.commits
    await stored_names(engine)
    assert engine.commits == refused
    await engine.close()


@pytest.mark.parametrize("pace", [NEVER, ALWAYS])
async def test_an_environment_that_failed_is_opened_again_and_what_is_in_the_log_is_kept(
    tmp_path: Path, pace: FoldPace
) -> None:
    engine = await new_store(tmp_path, fold_pace=pace)
    await write(engine, *NAMES[:2])
    await settled(engine)
    engine._store.env.close()
    assert await write_together(engine, *NAMES[2:]) == [3, 4, 5, 6]
    assert await stored_names(engine) == NAMES
    await engine.close()
    assert await names_in(tmp_path) == NAMES


@pytest.mark.parametrize("pace", [NEVER, ALWAYS])
async def test_callers_that_are_canceled_leave_whole_batches_and_no_gap(tmp_path: Path, pace: FoldPace) -> None:
    chance = random.Random(13)
    engine = await new_store(tmp_path / "store", fold_pace=pace)
    names = [b"canceled-%d" % number for number in range(120)]
    calls = {name: asyncio.ensure_future(engine.apply(PARTITION, EPOCH, batch_of(name))) for name in names}
    for name in chance.sample(names, 60):
        calls[name].cancel()
        await asyncio.sleep(chance.choice([0, 0, 0.001]))
    outcomes = await asyncio.gather(*calls.values(), return_exceptions=True)
    acknowledged = {lsn: name for name, lsn in zip(names, outcomes, strict=True) if isinstance(lsn, int)}
    assert len(acknowledged) >= 60
    await settled(engine)
    copy = killed_copy(tmp_path / "store", tmp_path / "killed")
    stored = await stored_names(engine)
    assert acknowledged.items() <= dict(enumerate(stored, 1)).items()
    await engine.close()
    assert await names_in(copy) == await names_in(tmp_path / "store") == stored


@pytest.mark.parametrize("pace", [NEVER, ALWAYS])
async def test_an_engine_that_is_closed_answers_the_calls_in_flight(tmp_path: Path, pace: FoldPace) -> None:
    engine = await new_store(tmp_path, fold_pace=pace)
    names = [b"closing-%d" % number for number in range(300)]
    calls = asyncio.ensure_future(write_together(engine, *names))
    # Two steps: the calls are made, and then they begin.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await engine.close()
    assert await calls == list(range(1, 301))
    assert await names_in(tmp_path) == names


@pytest.mark.parametrize("pace", [NEVER, ALWAYS])
def test_an_engine_with_a_log_serves_one_event_loop_after_another(tmp_path: Path, pace: FoldPace) -> None:
    """A loop may end while a fold is under way that none of its callers knows of."""
    engine = asyncio.run(new_store(tmp_path, fold_pace=pace))
    names = [b"loop-%d" % number for number in range(40)]
    for name in names:
        asyncio.run(write(engine, name))
    assert asyncio.run(stored_names(engine)) == names
    asyncio.run(engine.close())
    assert asyncio.run(names_in(tmp_path)) == names


async def test_a_store_of_format_version_2_gets_a_log(tmp_path: Path) -> None:
    directory = tmp_path / "store"
    unpack_layout_2_store(directory)
    assert format_of(directory).endswith(b"\x02")
    async with opened(directory, fold_pace=NEVER) as engine:
        before = await engine.partitions()
        assert len(before) > 5
        await engine.create_partition(PartitionNumber(1000), Fence(EPOCH))
        assert logged_sequences(directory) == [[1], []]
        copy = killed_copy(directory, tmp_path / "killed")
    assert format_of(copy).endswith(b"\x03")
    for store in (directory, copy):
        async with opened(store) as engine:
            assert await engine.partitions() == {**before, PartitionNumber(1000): (Fence(EPOCH), 0)}


def format_of(directory: Path) -> bytes:
    with lmdb.open(str(directory)) as env, env.begin() as txn:
        return txn.get(b"\xff\xff\xff\xffF") or b""


# --- kinds of changes -------------------------------------------------------------------------------------------------


async def test_a_journal_survives_a_kill(tmp_path: Path) -> None:
    engine = await new_store(tmp_path / "store")
    await write(engine, NAMES[0])
    await engine.set_fence(PARTITION, Fence(EPOCH, journaling=True))
    await write(engine, *NAMES[1:4])
    await engine.apply(PARTITION, EPOCH, Batch(range_deletes=[Span(b"x", b"y")]))
    journal = await engine.read_journal(PARTITION, after=Lsn(0))
    assert [entry.lsn for entry in journal] == [2, 3, 4, 5]
    copy = killed_copy(tmp_path / "store", tmp_path / "killed")
    await engine.set_fence(PARTITION, Fence(EPOCH))
    without = killed_copy(tmp_path / "store", tmp_path / "without")
    await engine.close()
    async with opened(copy) as engine:
        assert await engine.read_journal(PARTITION, after=Lsn(0)) == journal
        assert await engine.read_journal(PARTITION, after=Lsn(3), limit=1) == journal[2:3]
    async with opened(without) as engine:
        assert await engine.read_journal(PARTITION, after=Lsn(0)) == []
        assert not [key for key in stored_keys(without) if key.startswith(b"\xff\xff\xff\xffJ")]


def stored_keys(directory: Path) -> list[bytes]:
    copy = killed_copy(directory, directory.with_name(f"{directory.name}-read"))
    with lmdb.open(str(copy)) as env, env.begin() as txn:
        return list(txn.cursor().iternext(values=False))


@pytest.mark.parametrize("pace", [NEVER, ALWAYS])
async def test_a_partition_is_dropped_in_pieces_over_a_kill(tmp_path: Path, pace: FoldPace) -> None:
    engine = await new_store(tmp_path / "store", fold_pace=pace)
    await engine.create_partition(PartitionNumber(2), Fence(EPOCH))
    for part in range(12):
        puts = [(b"%d-%d" % (part, number), b"") for number in range(1000)]
        await engine.apply(PARTITION, EPOCH, Batch(puts=puts))
    await engine.apply(PartitionNumber(2), EPOCH, Batch(puts=[(b"kept", b"")]))
    assert not await engine.drop_partition(PARTITION)
    await settled(engine)
    copy = killed_copy(tmp_path / "store", tmp_path / "killed")
    await engine.close()
    async with opened(copy, fold_pace=pace) as engine:
        assert list(await engine.partitions()) == [2]
        with pytest.raises(StorageRefusal):
            await engine.read(PARTITION, EPOCH, [b"0-0"])
        assert await engine.drop_partition(PARTITION)
        await engine.create_partition(PARTITION, Fence(EPOCH))
        assert (await engine.scan(PARTITION, EPOCH, ALL)).entries == []
        assert (await engine.scan(PartitionNumber(2), EPOCH, ALL)).entries == [(b"kept", b"")]


async def test_copied_entries_survive_a_kill(tmp_path: Path) -> None:
    engine = await new_store(tmp_path / "store")
    await write(engine, NAMES[0])
    await engine.set_fence(PARTITION, Fence(EPOCH, sealed=True), lsn=Lsn(40))
    span = Span(b"data/", b"data0")
    await engine.write_copied(PARTITION, EPOCH, puts=[(b"data/x", b"1"), (b"y", b"2")], range_deletes=[span])
    await engine.write_copied(PARTITION, EPOCH, deletes=[b"y"], puts=[(b"z", b"3")])
    copy = killed_copy(tmp_path / "store", tmp_path / "killed")
    entries = (await engine.scan_unfenced(PARTITION, ALL)).entries
    assert [key for key, _ in entries] == [b"counters", b"data/x", b"log/" + (1).to_bytes(8, "big"), b"z"]
    await engine.close()
    async with opened(copy) as engine:
        assert (await engine.scan_unfenced(PARTITION, ALL)).entries == entries
        assert await engine.read_fence(PARTITION) == (Fence(EPOCH, sealed=True), 40)


async def test_a_batch_with_a_key_that_the_tree_would_refuse_fails_alone_and_stays_out_of_the_log(
    tmp_path: Path,
) -> None:
    engine = await new_store(tmp_path / "store")
    batches = [batch_of(NAMES[0]), Batch(puts=[(b"k" * 508, b"")]), batch_of(NAMES[1])]
    calls = (engine.apply(PARTITION, EPOCH, batch) for batch in batches)
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [int, EngineFailed, int]
    copy = killed_copy(tmp_path / "store", tmp_path / "killed")
    await engine.close()
    assert await names_in(copy) == await names_in(tmp_path / "store") == NAMES[:2]
