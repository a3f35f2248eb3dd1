"""The write log and the tree of the LMDB engine when one of them cannot be written: nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
from pathlib import Path
from typing import Any

import pytest

from asterism.storage.contract import Batch, EngineFailed, OutOfSpace
from asterism.storage.lmdb import FoldPace, LmdbEngine, log_commit, write_log
from asterism.storage.lmdb.write_log import LOG_FILES
from tests.faults.storage_worker import EPOCH, PARTITION
from tests.support.logged_stores import (
    NAMES,
    killed_store,
    names_in,
    new_store,
    open_in_another_process,
    opened,
    stored_names,
    write,
    write_together,
)
from tests.support.store_images import (
    fold_held_up,
    killed_copy,
    logged_sequences,
    make_appends_fail,
    with_failing_tree,
)

# --- a log that cannot be written -------------------------------------------------------------------------------------

PARTS_WRITTEN = {
    "nothing": lambda _: b"",
    "a part": lambda record: record[: len(record) // 3],
    "all": lambda record: record,
}
parts_written = pytest.mark.parametrize("written", PARTS_WRITTEN.values(), ids=PARTS_WRITTEN)


@pytest.fixture
def retries_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engine try its log, and a fold, again with the next write."""
    monkeypatch.setattr(log_commit, "RETRY_SECONDS", 0.0)


@pytest.fixture
def one_record_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the changes that are made together share a record, however long each takes."""
    monkeypatch.setattr(log_commit, "GROUP_SECONDS_MAX", 3600.0)


@parts_written
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
async def test_an_append_that_fails_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, written: Any
) -> None:
    engine = await new_store(tmp_path / "store")
    await write(engine, NAMES[0])
    make_appends_fail(monkeypatch, code=code, written=written, times=1)
    assert await write_together(engine, *NAMES[1:4]) == [2, 3, 4]
    assert await stored_names(engine) == NAMES[:4]
    copies = [killed_copy(tmp_path / "store", tmp_path / "killed at once")]
    assert await write(engine, *NAMES[4:]) == [5, 6]
    copies.append(killed_copy(tmp_path / "store", tmp_path / "killed later"))
    await engine.close()
    assert await names_in(copies[0]) == NAMES[:4]
    assert await names_in(copies[1]) == NAMES
    assert await names_in(tmp_path / "store") == NAMES


@parts_written
@pytest.mark.usefixtures("retries_at_once")
async def test_a_log_that_failed_once_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: Any
) -> None:
    engine = await new_store(tmp_path / "store")
    await write(engine, NAMES[0])
    make_appends_fail(monkeypatch, code=errno.EIO, written=written, times=1)
    assert await write(engine, *NAMES[1:]) == [2, 3, 4, 5, 6]
    # The third record failed; those after it are in the other file.
    assert logged_sequences(tmp_path / "store")[1] == [4, 5, 6, 7]
    copy = killed_copy(tmp_path / "store", tmp_path / "killed")
    await engine.close()
    assert await names_in(copy) == NAMES


@parts_written
@pytest.mark.parametrize("acknowledged", [3, 4])
async def test_an_append_that_fails_while_a_fold_is_under_way_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: Any, acknowledged: int
) -> None:
    engine = await new_store(tmp_path / "store", fold_pace=FoldPace(changes=20, seconds=10**6))
    async with fold_held_up(engine):
        await write(engine, *NAMES[:acknowledged])
        # The fold has the first four records. With the next, the other file is begun.
        assert logged_sequences(tmp_path / "store") == [[1, 2, 3, 4], [5][: acknowledged - 3]]
        make_appends_fail(monkeypatch, code=errno.EIO, written=written, times=1)
        waiting = asyncio.ensure_future(write_together(engine, *NAMES[acknowledged:]))
        await asyncio.sleep(0.02)
    assert await waiting == list(range(acknowledged + 1, 7))
    copy = killed_copy(tmp_path / "store", tmp_path / "killed")
    await engine.close()
    assert await names_in(copy) == NAMES


@parts_written
@pytest.mark.usefixtures("retries_at_once")
async def test_a_log_that_always_fails_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: Any
) -> None:
    engine = await new_store(tmp_path / "store")
    make_appends_fail(monkeypatch, code=errno.EIO, written=written, times=10**9)
    assert await write(engine, *NAMES[:3]) == [1, 2, 3]
    assert await write_together(engine, *NAMES[3:]) == [4, 5, 6]
    copy = killed_copy(tmp_path / "store", tmp_path / "killed")
    assert await stored_names(engine) == NAMES
    await engine.close()
    assert await names_in(copy) == NAMES


@parts_written
@pytest.mark.usefixtures("retries_at_once", "one_record_for_all")
async def test_a_log_and_a_tree_that_both_fail_refuse_writes_and_keep_what_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: Any
) -> None:
    engine = await new_store(tmp_path / "store")
    tree = with_failing_tree(engine)
    await write(engine, *NAMES[:2])
    make_appends_fail(monkeypatch, code=errno.EIO, written=written, times=1)
    tree.is_full = True
    undecided = await write_together(engine, b"undecided-0", b"undecided-1")
    assert [type(outcome) for outcome in undecided] == [EngineFailed, EngineFailed]
    # Nothing of these can be in the log: it is not written before the record that failed is decided.
    refused = await write_together(engine, b"refused-0", b"refused-1")
    assert [type(outcome) for outcome in refused] == [OutOfSpace, OutOfSpace]
    assert await stored_names(engine) == NAMES[:2]
    copies = [killed_copy(tmp_path / "store", tmp_path / "killed in need")]
    tree.is_full = False
    assert await write(engine, NAMES[2]) == [3]
    copies.append(killed_copy(tmp_path / "store", tmp_path / "killed afterwards"))
    assert await write(engine, *NAMES[3:]) == [4, 5, 6]
    copies.append(killed_copy(tmp_path / "store", tmp_path / "killed later"))
    await engine.close()
    # Both or none of the batches whose outcome is unknown.
    assert await names_in(copies[0]) in ([*NAMES[:2]], [*NAMES[:2], b"undecided-0", b"undecided-1"])
    assert await names_in(copies[1]) == NAMES[:3]
    assert await names_in(copies[2]) == await names_in(tmp_path / "store") == NAMES


@parts_written
async def test_a_store_closed_while_log_and_tree_fail_keeps_what_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: Any
) -> None:
    engine = await new_store(tmp_path)
    tree = with_failing_tree(engine)
    await write(engine, *NAMES[:2])
    make_appends_fail(monkeypatch, code=errno.EIO, written=written, times=1)
    tree.is_full = True
    await write_together(engine, b"undecided-0", b"undecided-1")
    await engine.close()
    assert (await names_in(tmp_path))[:2] == NAMES[:2]
    # It was opened, so everything is decided.
    async with opened(tmp_path) as engine:
        before = await stored_names(engine)
        await write(engine, NAMES[2])
    assert await names_in(tmp_path) == [*before, NAMES[2]]


async def test_no_call_waits_for_a_log_writer_that_has_died(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await new_store(tmp_path / "store")
    await write(engine, NAMES[0])
    with monkeypatch.context() as patch:
        patch.setattr(write_log.WriteLog, "append", lambda *_: [][1])
        outcomes = await write_together(engine, *NAMES[1:4])
    assert [type(outcome) for outcome in outcomes] == [EngineFailed] * 3
    with pytest.raises(EngineFailed, match="writer has ended"):
        await engine.apply(PARTITION, EPOCH, Batch())
    assert await stored_names(engine) == NAMES[:1]
    copy = killed_copy(tmp_path / "store", tmp_path / "killed")
    await engine.close()
    assert await names_in(copy) == await names_in(tmp_path / "store") == NAMES[:1]


@pytest.mark.parametrize("name", LOG_FILES)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
async def test_a_store_whose_log_cannot_be_made_is_used_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    await (await new_store(tmp_path)).close()
    open_file = os.open

    def open_or_refuse(path: Any, *arguments: Any, **options: Any) -> int:
        if os.path.basename(os.fspath(path)) == name:
            raise OSError(code, os.strerror(code))
        return open_file(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", open_or_refuse)
        engine = LmdbEngine.open(tmp_path, durable=False)
    # Files that earlier tests have left behind are not closed in between.
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd"))
    assert await write(engine, *NAMES) == [1, 2, 3, 4, 5, 6]
    assert "another process" in await open_in_another_process(tmp_path, shared=True)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    await engine.close()
    assert await names_in(tmp_path) == NAMES


# --- a tree that cannot be written ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("retries_at_once")
async def test_a_fold_that_fails_is_repeated(tmp_path: Path) -> None:
    engine = await new_store(tmp_path / "store", fold_pace=FoldPace(changes=20, seconds=10**6))
    tree = with_failing_tree(engine)
    tree.is_full = True
    assert await write(engine, *NAMES[:4]) == [1, 2, 3, 4]
    while not tree.failures:
        await asyncio.sleep(0.001)
    assert await stored_names(engine) == NAMES[:4]
    copy = killed_copy(tmp_path / "store", tmp_path / "killed")
    tree.is_full = False
    assert await write(engine, *NAMES[4:]) == [5, 6]
    await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"more/%d" % number, b"") for number in range(40)]))
    while logged_sequences(tmp_path / "store")[0][:1] == [1]:
        await engine.apply(PARTITION, EPOCH, Batch(puts=[(b"more/%d" % number, b"") for number in range(40)]))
    await engine.close()
    assert await names_in(copy) == NAMES[:4]


@pytest.mark.usefixtures("retries_at_once")
async def test_writes_are_accepted_until_the_overlay_is_full_and_reads_go_on_while_folds_fail(tmp_path: Path) -> None:
    pace = FoldPace(changes=50, seconds=10**6)
    engine = await new_store(tmp_path / "store", fold_pace=pace)
    tree = with_failing_tree(engine)
    tree.is_full = True
    names = [b"full-%03d" % number for number in range(200)]
    outcomes = [(await write_together(engine, name))[0] for name in names]
    accepted = [name for name, outcome in zip(names, outcomes, strict=True) if isinstance(outcome, int)]
    # An overlay of the pace's size is frozen, and the next may have twice as much.
    changes_per_batch = 6
    assert pace.changes < len(accepted) * changes_per_batch < 4 * pace.changes
    assert outcomes[: len(accepted)] == list(range(1, len(accepted) + 1))
    assert {type(outcome) for outcome in outcomes[len(accepted) :]} == {OutOfSpace}
    assert await stored_names(engine) == accepted
    copy = killed_copy(tmp_path / "store", tmp_path / "killed")
    tree.is_full = False
    assert await write(engine, b"again") == [len(accepted) + 1]
    assert await stored_names(engine) == [*accepted, b"again"]
    await engine.close()
    assert await names_in(copy) == accepted
    assert await names_in(tmp_path / "store") == [*accepted, b"again"]


async def test_a_store_that_cannot_be_folded_when_it_is_closed_keeps_its_log(tmp_path: Path) -> None:
    engine = await new_store(tmp_path)
    tree = with_failing_tree(engine)
    await write(engine, *NAMES)
    tree.is_full = True
    await engine.close()
    assert logged_sequences(tmp_path) == [[1, 2, 3, 4, 5, 6, 7], []]
    assert await names_in(tmp_path) == NAMES


# --- a tree without room after a crash --------------------------------------------------------------------------------

MANY_NAMES = [b"batch-%d" % number for number in range(200)]
# Too small for the changes of those batches.
SMALL_MAP_BYTES = 1 << 18


async def test_a_store_without_room_for_its_log_is_opened_for_reads_and_refuses_writes(tmp_path: Path) -> None:
    copy = await killed_store(tmp_path, *MANY_NAMES)
    for _ in range(2):
        async with opened(copy, map_bytes=SMALL_MAP_BYTES) as engine:
            assert await stored_names(engine) == MANY_NAMES
            refused = await write_together(engine, b"more", b"and more")
            assert [type(outcome) for outcome in refused] == [OutOfSpace, OutOfSpace]
            assert await stored_names(engine) == MANY_NAMES
    async with opened(copy) as engine:
        assert await stored_names(engine) == MANY_NAMES
        assert await write(engine, b"more") == [201]
    assert await names_in(copy) == [*MANY_NAMES, b"more"]


async def test_a_store_without_room_for_its_log_cannot_be_shared(tmp_path: Path) -> None:
    copy = await killed_store(tmp_path, *MANY_NAMES)
    with pytest.raises(EngineFailed, match=r"cannot be written into data\.mdb"):
        LmdbEngine.open(copy, map_bytes=SMALL_MAP_BYTES, shared=True)
    assert await names_in(copy) == MANY_NAMES
