"""Recovery of a store after a crash: what only its write log has goes into the tree.

Everything is read and checked before anything is written. A log that is damaged, or of another store, is refused.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lmdb

from asterism.storage.contract import EngineFailed, OutOfSpace
from asterism.storage.lmdb.environment import StoreEnvironment
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
from asterism.storage.lmdb.overlay import Overlaid
from asterism.storage.lmdb.write_log import LOG_FILES

# Log that is written into the tree by one transaction: LMDB holds changed pages in memory.
_BYTES_PER_TRANSACTION = 64 * 1024 * 1024

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recovered:
    """The checkpoint in the tree, and the records after it for which the tree had no room: those are still in the log
    alone."""

    checkpoint: Checkpoint
    unfolded: list[dict[bytes, Overlaid]]


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the log, and the whole records from its beginning."""

    name: str
    data: bytes
    places: list[RecordPlace]


def recover(store: StoreEnvironment) -> Recovered:
    """Write into the tree what only the log has. No other process may have the store open. `EngineFailed`: the log is
    damaged, or not that of this store; nothing is changed then."""
    with store.env.begin() as txn:
        record = txn.get(CHECKPOINT_KEY)
    files = [_read_file(store.directory, name) for name in LOG_FILES]
    checkpoint = _new_checkpoint(files) if record is None else decode_checkpoint(record)
    waiting = _unfolded(files, checkpoint, store.directory)
    if not waiting:
        return Recovered(checkpoint, [])
    began_at = time.perf_counter()
    megabytes = sum(place.next_at - place.body_at for _, place in waiting) / 1e6
    try:
        for part in _in_parts(waiting):
            checkpoint = _write_into_tree(part, checkpoint, store.env)
    except lmdb.Error as error:
        refusal = store.translate(error)
        if not isinstance(refusal, OutOfSpace):
            raise EngineFailed(f"the log of {store.directory} cannot be written into data.mdb: {error}") from error
        _log.warning("there is no room to write the log of %s into data.mdb; it is only read", store.directory)
        left = [(file, place) for file, place in waiting if place.sequence > checkpoint.sequence]
        return Recovered(checkpoint, [_changes(file, place) for file, place in left])
    seconds = time.perf_counter() - began_at
    _log.info("%.1f MB of log were replayed after an unclean end, in %.1f s", megabytes, seconds)
    return Recovered(checkpoint, [])


def _write_into_tree(
    part: list[tuple[_File, RecordPlace]], checkpoint: Checkpoint, env: lmdb.Environment
) -> Checkpoint:
    with env.begin(write=True) as txn:
        cursor = txn.cursor()
        for file, place in part:
            puts, deletes = decode_record(file.data, place)
            cursor.putmulti(puts)
            for key in deletes:
                txn.delete(key)
        reached = Checkpoint(checkpoint.store_id, part[-1][1].sequence)
        txn.put(CHECKPOINT_KEY, reached.encode())
    return reached


def _changes(file: _File, place: RecordPlace) -> dict[bytes, Overlaid]:
    puts, deletes = decode_record(file.data, place)
    return {**dict(puts), **dict.fromkeys(deletes)}


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
        if part_bytes >= _BYTES_PER_TRANSACTION:
            yield part
            part, part_bytes = [], 0
    if part:
        yield part
