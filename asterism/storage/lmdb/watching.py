"""Watches on batches, of this process and of others.

LMDB has no notifications; but each commit writes to the data file, and the operating system can report that (inotify).
Where it does not, the watched partitions are polled.
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

from asterism.storage.contract import WatchCallback
from asterism.values.identifiers import Lsn, PartitionNumber

# Between two polls of the watched partitions: a poll costs some tens of microseconds, and under load commits are
# continuous.
POLL_SECONDS = 0.02
# The same if the operating system reports commits, in case it misses one.
CALM_POLL_SECONDS = 2.0
_IN_MODIFY = 0x2
_EVENTS_BYTES = 64 * 1024


class Watchers:
    """The watches of one engine. With a `file`, other processes write to the store, which is that file; otherwise only
    this process writes, and calls `notify`."""

    def __init__(self, lsn_now: Callable[[PartitionNumber], Lsn | None], *, file: Path | None) -> None:
        self._lsn_now = lsn_now
        self._file = file
        # Of each watched partition. Every write looks here, so it is not hidden behind a method.
        self.callbacks: dict[PartitionNumber, list[WatchCallback]] = {}
        self._lsns_notified: dict[PartitionNumber, Lsn | None] = {}
        self._timer: asyncio.TimerHandle | None = None
        # Descriptor that reports changes of the file; None while nothing is watched, and where it is unsupported.
        self._events: int | None = None

    def add(self, partition: PartitionNumber, callback: WatchCallback) -> WatchCallback:
        if partition not in self.callbacks:
            self.callbacks[partition] = []
            self._lsns_notified[partition] = self._lsn_now(partition)
        self.callbacks[partition].append(callback)
        if self._file is not None and self._timer is None:
            self._events = _watch_file(self._file)
            self._wait()
        return partial(self._remove, partition, callback)

    def _remove(self, partition: PartitionNumber, callback: WatchCallback) -> None:
        callbacks = self.callbacks.get(partition, [])
        if callback in callbacks:
            callbacks.remove(callback)
        if not callbacks:
            self.callbacks.pop(partition, None)
            self._lsns_notified.pop(partition, None)
        if not self.callbacks:
            self.close()

    def notify(self, partition: PartitionNumber, lsn: Lsn | None) -> None:
        self._lsns_notified[partition] = lsn
        loop = asyncio.get_running_loop()
        for callback in self.callbacks[partition]:
            loop.call_soon(callback)

    # --- other processes ----------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Wait for an event, or for the time of the next poll."""
        loop = asyncio.get_running_loop()
        if self._events is None:
            self._timer = loop.call_later(POLL_SECONDS, self._poll)
        else:
            loop.add_reader(self._events, self._on_event)
            self._timer = loop.call_later(CALM_POLL_SECONDS, self._poll)

    def _on_event(self) -> None:
        """Poll in a moment: a commit writes twice, and is visible only then; under load many are polled together."""
        loop = asyncio.get_running_loop()
        assert self._events is not None
        assert self._timer is not None
        loop.remove_reader(self._events)
        self._timer.cancel()
        self._timer = loop.call_later(POLL_SECONDS, self._poll)

    def _poll(self) -> None:
        if self._events is not None:
            # Before the poll: later events are for the next one.
            with contextlib.suppress(BlockingIOError):
                os.read(self._events, _EVENTS_BYTES)
        self._wait()
        for partition, notified in list(self._lsns_notified.items()):
            lsn = self._lsn_now(partition)
            if lsn != notified:
                self.notify(partition, lsn)

    def close(self) -> None:
        self.callbacks.clear()
        self._lsns_notified.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._events is not None:
            # A closed loop has no readers.
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().remove_reader(self._events)
            os.close(self._events)
            self._events = None


def _watch_file(file: Path) -> int | None:
    """Return a descriptor that becomes readable when the file is written; None if the system does not support it."""
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
