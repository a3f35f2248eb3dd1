"""The claim of one server on a store's directory, however many processes it has.

Every process of the server holds a shared lock on a file in the directory, and the file names the holder. LMDB itself
admits any number of processes; but two servers that do not know of each other would each rely on their own copy of the
catalog in memory.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from asterism.storage.contract import EngineFailed
from asterism.storage.file_locks import try_lock
from asterism.storage.process_ids import ENDING_SECONDS_MAX, has_ended

CLAIM_FILE = "server.lock"
# A fixed length, so that the claim of a later server is written in place, also on a full disk.
_CLAIM_BYTES = 64
# A process holds the lock exclusively only while it writes its name: a moment.
_WRITING_SECONDS_MAX = 1.0
_ATTEMPT_SECONDS = 0.01


class DirectoryClaim:
    """The lock of one process. The operating system releases it if the process dies."""

    def __init__(self, directory: Path, *, server: str) -> None:
        """Take the lock. `server` begins with a process id, which the refusal of another server shows."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(directory / CLAIM_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EngineFailed(f"{directory} cannot be used: {error.strerror}") from None
        try:
            self._claim(directory, server.encode().ljust(_CLAIM_BYTES))
        except BaseException:
            self.release()
            raise

    def _claim(self, directory: Path, server: bytes) -> None:
        began_at, seconds_max, process = time.monotonic(), _WRITING_SECONDS_MAX, ""
        while time.monotonic() - began_at < seconds_max:
            if try_lock(self._handle, fcntl.LOCK_EX):
                # Not worth failing for on a store that cannot be written.
                with contextlib.suppress(OSError):
                    os.pwrite(self._handle, server, 0)
            if try_lock(self._handle, fcntl.LOCK_SH):
                holder = os.pread(self._handle, _CLAIM_BYTES, 0)
                if holder in (server, b""):
                    return
                process = holder.decode("ascii", "replace").partition(" ")[0]
                if not has_ended(process):
                    break
                seconds_max = ENDING_SECONDS_MAX
                fcntl.flock(self._handle, fcntl.LOCK_UN)
            time.sleep(_ATTEMPT_SECONDS)
        holder_text = f" (process {process})" if process else ""
        raise EngineFailed(f"another server{holder_text} is using {directory}; stop it first")

    def release(self) -> None:
        os.close(self._handle)
