"""Watches on batches, and how those of other processes are heard of.

LMDB wakes nobody; but each commit writes to the data file, and the operating system can tell of that (inotify).
Where it does not, the watched partitions are looked at again and again.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from asterism.values.identifiers import Lsn, PartitionNumber

# Between two looks at the watched partitions: a look costs some tens of microseconds, and under load every moment has
# its commit.
POLL_SECONDS = 0.02
# The same where the operating system tells of commits, should it have missed one.
CALM_POLL_SECONDS = 2.0
_IN_MODIFY = 0x2
_EVENTS_BYTES = 64 * 1024

Callback = Callable[[], None]


class Watchers:
    """The watches of one engine. With a `file`, other processes write to the store, and it is the one they write to;
    otherwise only this process writes and tells."""

    def __init__(self, lsn_now: Callable[[PartitionNumber], Lsn | None], *, file: Path | None) -> None:
        self._lsn_now = lsn_now
        self._file = file
        self._callbacks: dict[PartitionNumber, list[Callback]] = {}
        self._lsn_told: dict[PartitionNumber, Lsn | None] = {}
        self._timer: asyncio.TimerHandle | None = None
        # Tells of changes of the file; None while nothing is watched, and where there is no such thing.
        self._events: int | None = None

    def __contains__(self, partition: PartitionNumber) -> bool:
        return partition in self._callbacks

    def add(self, partition: PartitionNumber, callback: Callback) -> Callback:
        if partition not in self._callbacks:
            self._callbacks[partition] = []
            self._lsn_told[partition] = self._lsn_now(partition)
        self._callbacks[partition].append(callback)
        if self._file is not None and self._timer is None:
            self._events = _watch_file(self._file)
            self._wait()
        return partial(self._remove, partition, callback)

    def _remove(self, partition: PartitionNumber, callback: Callback) -> None:
        callbacks = self._callbacks.get(partition, [])
        if callback in callbacks:
            callbacks.remove(callback)
        if not callbacks:
            self._callbacks.pop(partition, None)
            self._lsn_told.pop(partition, None)
        if not self._callbacks:
            self.close()

    def tell(self, partition: PartitionNumber, lsn: Lsn | None) -> None:
        self._lsn_told[partition] = lsn
        loop = asyncio.get_running_loop()
        for callback in self._callbacks[partition]:
            loop.call_soon(callback)

    # --- other processes ----------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        """For an event, or for the time of the next look."""
        loop = asyncio.get_running_loop()
        if self._events is None:
            self._timer = loop.call_later(POLL_SECONDS, self._poll)
        else:
            loop.add_reader(self._events, self._on_event)
            self._timer = loop.call_later(CALM_POLL_SECONDS, self._poll)

    def _on_event(self) -> None:
        """A look in a moment: a commit writes twice, and only then can it be seen; under load many come together."""
        loop = asyncio.get_running_loop()
        assert self._events is not None
        assert self._timer is not None
        loop.remove_reader(self._events)
        self._timer.cancel()
        self._timer = loop.call_later(POLL_SECONDS, self._poll)

    def _poll(self) -> None:
        if self._events is not None:
            # Before the look: what comes after it is for the next one.
            with contextlib.suppress(BlockingIOError):
                os.read(self._events, _EVENTS_BYTES)
        self._wait()
        for partition, told in list(self._lsn_told.items()):
            lsn = self._lsn_now(partition)
            if lsn != told:
                self.tell(partition, lsn)

    def close(self) -> None:
        self._callbacks.clear()
        self._lsn_told.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._events is not None:
            # A loop that is gone has no readers.
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().remove_reader(self._events)
            os.close(self._events)
            self._events = None


def _watch_file(file: Path) -> int | None:
    """A descriptor that can be read when the file has been written to; None where the system has no such thing."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if descriptor < 0:
        return None
    if libc.inotify_add_watch(descriptor, os.fsencode(file), _IN_MODIFY) < 0:
        os.close(descriptor)
        return None
    return descriptor
