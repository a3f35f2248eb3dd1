"""Recovery of a store after a crash: what only its write log has.

A process with a log goes on as the one before: the records become overlays, and the next record goes behind the last.
Processes without one write them into the tree first. Everything is read and checked before anything is written: a log
that is damaged, or of another store, is refused.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lmdb

from asterism.storage.contract import EngineFailed
from asterism.storage.lmdb import transactions
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
from asterism.storage.lmdb.write_views import TreeWrites

# Log that is written into the tree by one transaction: LMDB holds changed pages in memory.
_BYTES_PER_TRANSACTION = 64 * 1024 * 1024

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive records at the beginning of a file of the log that are not in the tree."""

    file_number: int
    data: bytes
    places: list[RecordPlace]

    @property
    def end(self) -> int:
        """Return the place for the next record."""
        return self.places[-1].next_at

    @property
    def last_sequence(self) -> int:
        return self.places[-1].sequence

    def groups(self) -> Iterator[dict[bytes, Overlaid]]:
        """Return the changes of each record."""
        for place in self.places:
            yield decode_record(self.data, place)


@dataclass(frozen=True, slots=True)
class Recovered:
    """The checkpoint of the tree, and the log after it: nothing, the records of one file, or of both in their order."""

    checkpoint: Checkpoint
    stretches: list[Stretch]


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the log, and the whole records from its beginning."""

    name: str
    data: bytes
    places: list[RecordPlace]


def read_log(store: StoreEnvironment) -> Recovered:
    """Return what only the log has. No other process may have the store open. `EngineFailed`: the log is damaged, or
    that of another store."""
    with store.env.begin() as txn:
        record = txn.get(CHECKPOINT_KEY)
    files = [_read_file(store.directory, name) for name in LOG_FILES]
    checkpoint = _new_checkpoint(files) if record is None else decode_checkpoint(record)
    _check(files, checkpoint, store.directory)
    stretches = []
    for number, file in enumerate(files):
        places = [place for place in file.places if place.sequence > checkpoint.sequence]
        if places:
            stretches.append(Stretch(number, file.data, places))
    stretches.sort(key=lambda stretch: stretch.last_sequence)
    if stretches:
        megabytes = sum(stretch.end for stretch in stretches) / 1e6
        _log.info("%.1f MB of log are recovered after an unclean end", megabytes)
    return Recovered(checkpoint, stretches)


def replay(store: StoreEnvironment, recovered: Recovered) -> None:
    """Write into the tree what only the log has, for processes that share the store without a log."""
    try:
        for stretch in recovered.stretches:
            for part in _in_parts(stretch):
                _write_into_tree(part, recovered.checkpoint, store.env)
    except lmdb.Error as error:
        raise EngineFailed(f"the log of {store.directory} cannot be written into data.mdb: {error}") from error


def _write_into_tree(part: Stretch, checkpoint: Checkpoint, env: lmdb.Environment) -> None:
    with env.begin(write=True) as txn:
        writes = TreeWrites(txn)
        for group in part.groups():
            transactions.fold(writes, group)
        txn.put(CHECKPOINT_KEY, Checkpoint(checkpoint.store_id, part.last_sequence).encode())


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


def _check(files: list[_File], checkpoint: Checkpoint, directory: Path) -> None:
    """Refuse a log of another store, with damage, or with a record missing."""
    for file in files:
        if file.places and file.places[0].store_id != checkpoint.store_id:
            raise EngineFailed(f"{file.name} in {directory} is the log of another store; move it away")
        _check_for_damage(file, checkpoint, directory)
    found = [(place.sequence, file) for file in files for place in file.places if place.sequence > checkpoint.sequence]
    found.sort(key=lambda item: item[0])
    for expected, (sequence, file) in enumerate(found, checkpoint.sequence + 1):
        if sequence != expected:
            raise EngineFailed(
                f"record {expected} of the log is missing from {directory}: {file.name} continues with "
                f"{sequence}; restore data.mdb, {' and '.join(LOG_FILES)} from one copy"
            )


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


def _in_parts(stretch: Stretch) -> Iterator[Stretch]:
    """Return the records for one transaction after the other."""
    first, part_bytes = 0, 0
    for number, place in enumerate(stretch.places, 1):
        part_bytes += place.end - place.body_at
        if part_bytes >= _BYTES_PER_TRANSACTION or number == len(stretch.places):
            yield Stretch(stretch.file_number, stretch.data, stretch.places[first:number])
            first, part_bytes = number, 0
