"""The data directory: what is in it, and that one server at a time uses it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from asterism.server.config import StartRefused


@dataclass(frozen=True, slots=True)
class DataDirectory:
    path: Path

    @property
    def store(self) -> Path:
        return self.path / "store"

    @property
    def tls(self) -> Path:
        return self.path / "tls"

    @property
    def lock(self) -> Path:
        return self.path / "server.lock"

    @property
    def seeded_marker(self) -> Path:
        return self.path / "seeded"


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[DataDirectory]:
    """The directory, made if it is missing, for this server alone.

    The lock belongs to the server, not to the store: processes a server forks inherit it and may share the store.
    """
    directory = DataDirectory(path)
    try:
        # Only for its owner: it holds everybody's data and the private key of the certificate.
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
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
        told = f" (process {holder})" if holder else ""
        raise StartRefused(f"another server{told} is using the data directory {path}") from None
    # Only for the message above: not worth failing for on a full disk.
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
