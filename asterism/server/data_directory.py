"""The data directory: its files, and the lock that admits one server at a time. A server in memory has none."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from asterism.server.config import IN_MEMORY, StartRefused
from asterism.server.store_address import LMDB_PREFIX, MEMORY_ADDRESS
from asterism.storage.file_locks import try_lock
from asterism.storage.process_ids import ENDING_SECONDS_MAX, has_ended

_ATTEMPT_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class DataDirectory:
    path: Path
    # The folder of the certificate of a server in memory.
    temporary: Path | None = None

    @property
    def store(self) -> Path:
        return self.path / "store"

    @property
    def is_kept(self) -> bool:
        return self.path != IN_MEMORY

    @property
    def store_address(self) -> str:
        return f"{LMDB_PREFIX}{self.store.absolute()}" if self.is_kept else MEMORY_ADDRESS

    @property
    def tls(self) -> Path:
        return self.temporary or self.path / "tls"

    @property
    def lock(self) -> Path:
        return self.path / "server.lock"

    @property
    def captures(self) -> Path:
        return self.path / "captures"

    @property
    def seeded_marker(self) -> Path:
        return self.path / "seeded"

    def is_seeded(self) -> bool:
        return self.seeded_marker.exists()

    def mark_seeded(self) -> None:
        if self.is_kept:
            self.seeded_marker.write_text("yes\n")


@contextlib.contextmanager
def in_memory(*, https: bool) -> Iterator[DataDirectory]:
    """Stand in for the data directory of a server that keeps nothing; the files of its certificate end with it."""
    if not https:
        yield DataDirectory(IN_MEMORY)
        return
    with tempfile.TemporaryDirectory(prefix="asterism-") as folder:
        yield DataDirectory(IN_MEMORY, Path(folder))


@contextlib.contextmanager
def claim_directory(path: Path) -> Iterator[DataDirectory]:
    """Lock the directory, made if it is missing, for this server alone.

    The lock belongs to the server, not to the store: processes a server forks inherit it and may share the store.
    """
    directory = DataDirectory(path)
    try:
        # Only for its owner: it holds the data of all users and the private key of the certificate.
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(directory.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartRefused(f"the data directory {path} cannot be used: {error.strerror}") from None
    try:
        _lock(handle, path)
        yield directory
    finally:
        os.close(handle)


def _lock(handle: int, path: Path) -> None:
    give_up_at = time.monotonic() + ENDING_SECONDS_MAX
    while not try_lock(handle, fcntl.LOCK_EX):
        holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
        if not has_ended(holder) or time.monotonic() > give_up_at:
            process = f" (process {holder})" if holder else ""
            raise StartRefused(
                f"another server{process} is using the data directory {path}; stop it, or choose another directory"
            )
        time.sleep(_ATTEMPT_SECONDS)
    # Only for the message above: not worth failing for on a full disk.
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
