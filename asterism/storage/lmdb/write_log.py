"""The files of the write log: two, written in turn.

The changes since the last fold go to one file, record after record. When they are to be folded into the tree, the other
file is begun, from its start; when they are folded, the first file is free again. Files are written over and not cut:
to write over allocated blocks is one write to the disk, to make a file longer is two or three.

One record is under way at a time, so after a crash only the last can be torn.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lmdb

from asterism.storage.contract import EngineFailed
from asterism.storage.lmdb.layout import CHECKPOINT_KEY, Checkpoint, decode_checkpoint
from asterism.storage.lmdb.log_record import (
    ALIGNMENT_BYTES,
    MAGIC,
    STORE_ID_BYTES,
    RecordPlace,
    decode_record,
    find_record,
    find_records,
)

LOG_FILES = ("log.0", "log.1")
# Log that is written into the tree by one transaction after a crash: LMDB holds changed pages in memory.
_REPLAY_BYTES_PER_TRANSACTION = 64 * 1024 * 1024

_log = logging.getLogger(__name__)


class WriteLog:
    """The open files. Only `append` may be called from another thread than the owner's."""

    def __init__(self, directory: Path, *, durable: bool) -> None:
        self._directory = directory
        self._is_durable = durable
        # A write returns when its bytes are on the disk: one call, which holds the interpreter's lock at neither end of
        # a wait. Where a disk keeps written bytes in a cache, there is a call to empty it.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (os.O_DSYNC if durable else 0)
        self._handles: list[int] = []
        with contextlib.ExitStack() as undo:
            for name in LOG_FILES:
                self._handles.append(os.open(directory / name, flags, 0o600))
                undo.callback(os.close, self._handles[-1])
            if durable:
                sync_directory(directory)
            undo.pop_all()
        self._current = 0
        # The place of the next record in the current file.
        self.bytes_written = 0

    def append(self, record: bytes) -> None:
        """Write a record after the last; it is durable on return. On failure it may be there, whole or in part."""
        handle, at = self._handles[self._current], self.bytes_written
        written = os.pwrite(handle, record, at)
        while written < len(record):
            written += os.pwrite(handle, record[written:], at + written)
        if self._is_durable and hasattr(fcntl, "F_FULLFSYNC"):
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        self.bytes_written = at + written

    def switch(self) -> None:
        """Begin the other file, whose records must be folded."""
        self._current = 1 - self._current
        self.bytes_written = 0

    def file_bytes(self) -> int:
        return sum(os.fstat(handle).st_size for handle in self._handles)

    def close(self, *, is_folded: bool) -> None:
        for handle in self._handles:
            os.close(handle)
        if is_folded:
            remove_log(self._directory)


def remove_log(directory: Path) -> None:
    """Remove the files, whose records must be folded. Where that fails they stay, and count no more."""
    for name in LOG_FILES:
        with contextlib.suppress(OSError):
            (directory / name).unlink()


def sync_directory(path: Path) -> None:
    # A directory that this process may not open cannot be synced, and was not made by it.
    with contextlib.suppress(PermissionError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# --- after a crash ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the log, and the whole records from its beginning."""

    name: str
    data: bytes
    places: list[RecordPlace]


def replay(directory: Path, env: lmdb.Environment) -> Checkpoint:
    """Write into the tree what only the log has, and return the checkpoint.

    No other process may have the store open. `EngineFailed`: the log is damaged, or not that of this store; nothing is
    changed then.
    """
    with env.begin() as txn:
        record = txn.get(CHECKPOINT_KEY)
    files = [_read_file(directory, name) for name in LOG_FILES]
    checkpoint = _new_checkpoint(files) if record is None else decode_checkpoint(record)
    unfolded = _unfolded(files, checkpoint, directory)
    began_at = time.perf_counter()
    try:
        checkpoint = _write_into_tree(unfolded, checkpoint, env)
    except lmdb.Error as error:
        raise EngineFailed(f"the log of {directory} cannot be written into data.mdb: {error}") from error
    if unfolded:
        seconds = time.perf_counter() - began_at
        megabytes = sum(place.next_at - place.body_at for _, place in unfolded) / 1e6
        _log.info("%.1f MB of log were replayed after an unclean end, in %.1f s", megabytes, seconds)
    return checkpoint


def _write_into_tree(
    unfolded: list[tuple[_File, RecordPlace]], checkpoint: Checkpoint, env: lmdb.Environment
) -> Checkpoint:
    for part in _in_parts(unfolded):
        last = part[-1][1].sequence
        with env.begin(write=True) as txn:
            cursor = txn.cursor()
            for file, place in part:
                puts, deletes = decode_record(file.data, place)
                cursor.putmulti(puts)
                for key in deletes:
                    txn.delete(key)
            checkpoint = Checkpoint(checkpoint.store_id, last)
            txn.put(CHECKPOINT_KEY, checkpoint.encode())
    return checkpoint


def _new_checkpoint(files: list[_File]) -> Checkpoint:
    """Return the checkpoint of a tree into which nothing was folded: its log, if there is one, is the store's first."""
    # Not only from the beginning: if the first record is damaged, the others must not be taken for another store's.
    ids = (place.store_id for file in files for place in _whole_records(file, 0))
    return Checkpoint(next(ids, None) or os.urandom(STORE_ID_BYTES), 0)


def _read_file(directory: Path, name: str) -> _File:
    try:
        data = (directory / name).read_bytes()
    except FileNotFoundError:
        data = b""
    except OSError as error:
        raise EngineFailed(f"{directory / name} cannot be read: {error.strerror}") from None
    return _File(name, data, list(find_records(data)))


def _unfolded(files: list[_File], checkpoint: Checkpoint, directory: Path) -> list[tuple[_File, RecordPlace]]:
    """Return the records after the checkpoint, in order."""
    for file in files:
        if file.places and file.places[0].store_id != checkpoint.store_id:
            raise EngineFailed(f"{file.name} in {directory} is the log of another store; move it away")
        _check_for_damage(file, checkpoint, directory)
    found = [(file, place) for file in files for place in file.places if place.sequence > checkpoint.sequence]
    found.sort(key=lambda item: item[1].sequence)
    for expected, (file, place) in enumerate(found, checkpoint.sequence + 1):
        if place.sequence != expected:
            raise EngineFailed(
                f"record {expected} of the log is missing from {directory}: {file.name} continues with "
                f"{place.sequence}; restore data.mdb, {' and '.join(LOG_FILES)} from one copy"
            )
    return found


def _check_for_damage(file: _File, checkpoint: Checkpoint, directory: Path) -> None:
    """Refuse a file with a later record behind one that is not whole: only the last can be torn by a crash."""
    last = max([checkpoint.sequence, *(place.sequence for place in file.places[-1:])])
    end = file.places[-1].next_at if file.places else 0
    for place in _whole_records(file, end):
        if place.store_id == checkpoint.store_id and place.sequence > last:
            raise EngineFailed(
                f"{file.name} in {directory} is damaged: record {last + 1} is not whole, but record {place.sequence} "
                "is; restore the directory from a copy"
            )


def _whole_records(file: _File, start: int) -> Iterator[RecordPlace]:
    """Return the records of a file from some place on, whatever lies between them."""
    at = file.data.find(MAGIC, start)
    while at >= 0:
        place = find_record(file.data, at) if at % ALIGNMENT_BYTES == 0 else None
        if place is not None:
            yield place
        at = file.data.find(MAGIC, at + 1)


def _in_parts(unfolded: list[tuple[_File, RecordPlace]]) -> Iterator[list[tuple[_File, RecordPlace]]]:
    """Return the records for one transaction after the other."""
    part: list[tuple[_File, RecordPlace]] = []
    part_bytes = 0
    for file, place in unfolded:
        part.append((file, place))
        part_bytes += place.next_at - place.body_at
        if part_bytes >= _REPLAY_BYTES_PER_TRANSACTION:
            yield part
            part, part_bytes = [], 0
    if part:
        yield part
