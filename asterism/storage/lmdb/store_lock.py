"""The lock of those that may write to a store: one process with a log, or several that all write to the tree."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from asterism.storage.contract import EngineFailed
from asterism.storage.file_locks import try_lock

LOCK_FILE = "log.lock"
# A process that only replays the log before it shares the store takes no longer than this.
_ATTEMPT_SECONDS = 0.01
_SECONDS_MAX = 30.0
# One that has the store to itself keeps it; a process that ends may take a moment.
_ALONE_SECONDS_MAX = 2.0


class StoreLock:
    """The lock of one process. The operating system releases it if the process dies."""

    def __init__(self, directory: Path, *, shared: bool) -> None:
        """Take the store alone, or, if others share it already and `shared` allows that, with them."""
        try:
            self._handle = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EngineFailed(f"{directory} cannot be used: {error.strerror}") from None
        try:
            self.is_alone = self._take(directory, shared=shared)
        except BaseException:
            self.release()
            raise

    def _take(self, directory: Path, *, shared: bool) -> bool:
        began_at = time.monotonic()
        while True:
            if try_lock(self._handle, fcntl.LOCK_EX):
                return True
            if shared and try_lock(self._handle, fcntl.LOCK_SH):
                return False
            if time.monotonic() > began_at + (_SECONDS_MAX if shared else _ALONE_SECONDS_MAX):
                raise EngineFailed(f"another process has the store in {directory} open; stop it first")
            time.sleep(_ATTEMPT_SECONDS)

    def share(self) -> None:
        """Let other processes in that share the store."""
        began_at = time.monotonic()
        # The system may give the lock to another process before it is ours again.
        while not try_lock(self._handle, fcntl.LOCK_SH):
            if time.monotonic() > began_at + _SECONDS_MAX:
                raise EngineFailed("another process has opened the store for itself; stop it first")
            time.sleep(_ATTEMPT_SECONDS)
        self.is_alone = False

    def release(self) -> None:
        os.close(self._handle)
