"""The files of the write log: two, written in turn.

The changes since the last fold go to one file, record after record. When they are to be folded into the tree, the other
file is begun, from its start; when they are folded, the first file is free again. Files are written over and not cut:
to write over allocated blocks is one write to the disk, to make a file longer is two or three.

One record is under way at a time, so after a crash only the last can be torn.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

LOG_FILES = ("log.0", "log.1")


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

    def resume(self, file_number: int, at: int) -> None:
        """Go on behind the last record of a file."""
        self._current, self.bytes_written = file_number, at

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
