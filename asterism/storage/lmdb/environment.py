"""The LMDB environment of a node: opening, reopening after a fatal error, and translation of its errors."""

from __future__ import annotations

import errno
import os
import resource
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import lmdb

from asterism.storage.contract import EngineFailed, OutOfSpace, StorageRefusal
from asterism.storage.lmdb.file_check import DATA_FILE, allocate_lock_file, check_data_file, is_marked, mark_store
from asterism.storage.lmdb.layout import FORMAT_KEY, FORMAT_VERSION, check_format, encode_format
from asterism.storage.lmdb.write_log import sync_directory

# The map is only address space, the file grows as it is used; if a limit on address space forbids this much, the map is
# halved until it is allowed.
MAP_BYTES_DEFAULT = 1 << 40
MAP_BYTES_LEAST = 1 << 26
# One slot per open read transaction, in all processes together: mostly snapshots.
READERS_MAX = 1024
# LMDB's reader table: 64 bytes a slot, and two more slots at its head.
LOCK_FILE_BYTES = (READERS_MAX + 2) * 64
# Ended read transactions kept for the next read; this halves the time of a point read.
SPARE_TRANSACTIONS = 16

# Room that only deletes may use, and the few small records without which a store cannot be served
# (`Batch.may_use_reserve`): they need pages of their own before they free any, and freed pages are reusable two commits
# later. A full group of deletes dirties a few megabytes, a single one some twenty pages in all.
RESERVED_BYTES_MAX = 1 << 24
RESERVED_BYTES_MIN = 1 << 18
RESERVED_SHARE = 16
# With this much room beyond the reserve, this many transactions of a few megabytes cannot use it up.
PLENTY_BYTES = 256 * 1024 * 1024
ROOM_CHECKS_SKIPPED = 16

SPACE_ERRORS = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
# Size of the file written to test for room: that of the least reserve.
PROBE_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class EngineStats:
    """Statistics of a node's store for operators. `bytes_used` includes pages that are free for reuse, and the log;
    `entries` does not include what is only in the log."""

    bytes_used: int
    map_bytes: int
    entries: int
    readers: int
    readers_max: int


class StoreEnvironment:
    """Owner of the `lmdb.Environment`, which is replaced after a fatal error."""

    def __init__(self, path: Path, *, map_bytes: int | None, durable: bool) -> None:
        self._path = path
        self._map_bytes = map_bytes
        self._durable = durable
        self._map_bytes_open = 0
        self._checks_to_skip = 0
        self.env = self._open()

    @property
    def directory(self) -> Path:
        return self._path

    @property
    def is_durable(self) -> bool:
        return self._durable

    @property
    def data_file(self) -> Path:
        return self._path / DATA_FILE

    def _open(self) -> lmdb.Environment:
        check_data_file(self._path)
        is_new = not is_marked(self._path)
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            allocate_lock_file(self._path, lock_bytes=LOCK_FILE_BYTES)
            env = self._open_largest()
        except (lmdb.Error, OSError) as error:
            raise EngineFailed(f"the store cannot be opened: {error}") from error
        try:
            # Slots of processes that were killed would otherwise keep old pages alive.
            env.reader_check()
            _claim_format(env)
        except (lmdb.Error, EngineFailed) as error:
            env.close()
            raise self.translate(error) from error
        self._map_bytes_open = env.info()["map_size"]
        if is_new:
            mark_store(self._path)
            if self._durable:
                sync_directory(self._path)
                sync_directory(self._path.parent)
        return env

    def _open_largest(self) -> lmdb.Environment:
        map_bytes = self._map_bytes or MAP_BYTES_DEFAULT
        while True:
            try:
                return lmdb.open(
                    str(self._path),
                    map_size=map_bytes,
                    sync=self._durable,
                    metasync=self._durable,
                    # Random point reads in a store larger than memory: reading ahead would evict needed pages.
                    readahead=False,
                    max_readers=READERS_MAX,
                    max_spare_txns=SPARE_TRANSACTIONS,
                    mode=0o600,
                )
            except lmdb.MemoryError:
                if self._map_bytes is not None or map_bytes <= MAP_BYTES_LEAST:
                    raise
                map_bytes //= 2

    def reopen(self) -> None:
        """Replace an environment that refuses further work. Snapshots of the old one fail afterwards."""
        self.env.close()
        self.env = self._open()

    def close(self) -> None:
        self.env.close()

    def begin_read(self) -> lmdb.Transaction[bytes]:
        """Begin a read transaction; repair the cause if LMDB refuses and the cause is repairable."""
        try:
            return self.env.begin()
        except lmdb.ReadersFullError:
            self.env.reader_check()
            return self.env.begin()
        except lmdb.MapResizedError:
            # Another process has opened the store with a larger map and filled it beyond ours.
            self.env.set_mapsize(0)
            return self.env.begin()

    def has_room(self, txn: lmdb.Transaction[bytes]) -> bool:
        """Return True if the store may grow: its tree leaves more than the reserve, in the map and on the disk."""
        return self.has_plenty(txn) or self.room_bytes(txn) > 0

    def has_plenty(self, txn: lmdb.Transaction[bytes]) -> bool:
        """Return True if there is so much room that the next transactions cannot use it up.

        Asking the file system costs as much as writing an item, so with plenty of room it is asked only now and then.
        """
        if self._checks_to_skip > 0:
            self._checks_to_skip -= 1
            return True
        is_plenty = self.room_bytes(txn) > PLENTY_BYTES
        self._checks_to_skip = ROOM_CHECKS_SKIPPED if is_plenty else 0
        return is_plenty

    def room_bytes(self, txn: lmdb.Transaction[bytes]) -> int:
        tree = txn.stat()
        used_bytes = (tree["branch_pages"] + tree["leaf_pages"] + tree["overflow_pages"]) * tree["psize"]
        disk = os.statvfs(self._path)
        file_bytes = os.stat(self.data_file).st_size
        capacity_bytes = min(self._map_bytes_open, _file_bytes_limit(), file_bytes + disk.f_bavail * disk.f_frsize)
        reserved_bytes = min(RESERVED_BYTES_MAX, max(RESERVED_BYTES_MIN, capacity_bytes // RESERVED_SHARE))
        return capacity_bytes - used_bytes - reserved_bytes

    def translate(self, error: Exception) -> StorageRefusal:
        """Return the refusal for the callers of a transaction that failed, if nothing was committed."""
        if isinstance(error, StorageRefusal):
            return error
        if isinstance(error, lmdb.MapFullError):
            return OutOfSpace("the configured map is full")
        if isinstance(error, lmdb.Error) and self._is_out_of_space(error):
            return OutOfSpace(str(error))
        return EngineFailed(f"{type(error).__name__}: {error}")

    def translate_commit(self, error: Exception) -> StorageRefusal:
        """Return the refusal for a failed commit; called on the thread that made it.

        LMDB undoes a commit that fails before its last page, the one that publishes it. If that page failed, it
        declares the environment dead, and the outcome of the commit is unknown.
        """
        try:
            self.env.begin(write=True).abort()
        except lmdb.Error as fatal:
            return EngineFailed(f"{error}; {fatal}")
        return self.translate(error)

    def _is_out_of_space(self, error: lmdb.Error) -> bool:
        if error.code in SPACE_ERRORS:
            return True
        # LMDB reports a short write as EIO, which is the first sign of both a full disk and a file at its size limit; a
        # defect of the disk has the same code.
        return error.code == errno.EIO and (self._file_is_at_limit() or self._disk_is_full())

    def _file_is_at_limit(self) -> bool:
        return self.data_file.stat().st_size + PROBE_BYTES > _file_bytes_limit()

    def _disk_is_full(self) -> bool:
        try:
            with tempfile.TemporaryFile(dir=self._path) as probe:
                probe.write(bytes(PROBE_BYTES))
                probe.flush()
                os.fsync(probe.fileno())
        except OSError as error:
            return error.errno in SPACE_ERRORS
        return False

    def stats(self, *, log_bytes: int) -> EngineStats:
        info, tree = self.env.info(), self.env.stat()
        # The first line of the reader table is its heading.
        readers = [line for line in self.env.readers().splitlines()[1:] if line.strip()]
        return EngineStats(
            bytes_used=(info["last_pgno"] + 1) * tree["psize"] + log_bytes,
            map_bytes=info["map_size"],
            entries=tree["entries"],
            readers=len(readers),
            readers_max=info["max_readers"],
        )


def _claim_format(env: lmdb.Environment) -> None:
    """Check the format of the store; write it to an empty one."""
    with env.begin() as txn:
        record = txn.get(FORMAT_KEY)
    if record is None:
        with env.begin(write=True) as txn:
            # Another process may have been first.
            record = txn.get(FORMAT_KEY)
            if record is None and txn.stat()["entries"] == 0:
                record = encode_format()
                txn.put(FORMAT_KEY, record)
    if check_format(record or b"") != FORMAT_VERSION:
        # The engine's own records are unchanged; the floors above convert the contents of partitions.
        with env.begin(write=True) as txn:
            txn.put(FORMAT_KEY, encode_format())


def _file_bytes_limit() -> int:
    """Return the operating system's limit for the size of a file of this process."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit
