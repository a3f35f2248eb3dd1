"""Stores of the embedded engine as a crash leaves them, and parts of an engine that fail on demand."""

from __future__ import annotations

import asyncio
import errno
import math
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import lmdb
import pytest

from asterism.storage.lmdb import FoldPace, LmdbEngine
from asterism.storage.lmdb.log_commit import LogCommitter
from asterism.storage.lmdb.log_record import find_records
from asterism.storage.lmdb.write_log import LOG_FILES, WriteLog

# Nothing is folded before the engine is closed.
NEVER = FoldPace(changes=10**9, log_bytes=10**15, seconds=10**6)
# A fold is nearly always under way.
ALWAYS = FoldPace(changes=5, seconds=0.001)
# The files that hold data. The others are for locks.
DATA_FILES = ("data.mdb", "store.marker", *LOG_FILES)


def killed_copy(directory: Path, copy: Path) -> Path:
    """Copy the directory of an open engine, as a kill at this moment would leave it. Nothing may be folding."""
    return Path(shutil.copytree(directory, copy))


def contents(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in DATA_FILES if (directory / name).exists()}


def logged_sequences(directory: Path) -> list[list[int]]:
    """Return the numbers of the whole records at the beginning of each file of the log."""
    files = [directory / name for name in LOG_FILES]
    data = [file.read_bytes() if file.exists() else b"" for file in files]
    return [[place.sequence for place in find_records(records)] for records in data]


class FailingEnvironment:
    """An LMDB environment whose write transactions can be made to fail when they are committed."""

    def __init__(self, env: lmdb.Environment) -> None:
        self._env = env
        # Number of transactions that are still committed.
        self.commits_left: float = math.inf
        self.failures = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    @property
    def is_full(self) -> bool:
        return self.commits_left == 0

    @is_full.setter
    def is_full(self, value: bool) -> None:
        self.commits_left = 0 if value else math.inf

    def begin(self, *, write: bool = False) -> Any:
        txn = self._env.begin(write=write)
        return _FailingTransaction(txn, self) if write else txn


class _FailingTransaction:
    def __init__(self, txn: lmdb.Transaction[bytes], env: FailingEnvironment) -> None:
        self._txn = txn
        self._env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self._txn, name)

    def __enter__(self) -> _FailingTransaction:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self._txn.abort()

    def commit(self) -> None:
        if self._env.commits_left > 0:
            self._env.commits_left -= 1
            self._txn.commit()
            return
        self._txn.abort()
        self._env.failures += 1
        error = lmdb.Error("mdb_txn_commit: no space is left")
        error.code = errno.ENOSPC  # type: ignore[misc]  # as the library sets it
        raise error


def with_failing_tree(engine: LmdbEngine) -> FailingEnvironment:
    """Replace the environment of an engine that has just been opened."""
    env = engine._store.env = FailingEnvironment(engine._store.env)  # type: ignore[assignment]  # it behaves as one
    return env


def make_appends_fail(
    monkeypatch: pytest.MonkeyPatch, *, code: int, written: Callable[[bytes], bytes], times: int
) -> None:
    """Make the next appends to a log fail after they have written a part of their record, or all of it."""
    append = WriteLog.append
    failures = iter(range(times))

    def append_or_fail(log: WriteLog, record: bytes) -> None:
        if next(failures, None) is None:
            append(log, record)
            return
        at = log.bytes_written
        append(log, written(record))
        log.bytes_written = at
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(WriteLog, "append", append_or_fail)


@asynccontextmanager
async def fold_held_up(engine: LmdbEngine) -> AsyncIterator[None]:
    """Hold LMDB's lock of writers, so that a fold that begins now is under way until the end of the block."""
    await settled(engine)
    txn = engine._store.env.begin(write=True)
    try:
        yield
    finally:
        txn.abort()


async def settled(engine: LmdbEngine) -> None:
    """Wait until no record and no fold is under way. Until the event loop runs again, the directory can be copied, and
    no other thread has LMDB's lock of writers, which it would keep for as long as this one waits."""
    committer = engine._committer
    assert isinstance(committer, LogCommitter)
    while committer._is_writing or committer._waiting or committer._background is not None:
        await asyncio.sleep(0.001)
