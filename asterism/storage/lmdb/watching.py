"""Who wants to hear of batches, and the polling that hears of those of other processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from asterism.values.identifiers import Lsn, PartitionNumber

# LMDB wakes nobody; looking at a record every so often costs a few microseconds.
POLL_SECONDS = 0.02

Callback = Callable[[], None]


class Watchers:
    """The watches of one engine. With `polls`, watched partitions are looked at again and again, otherwise only this
    process writes and tells."""

    def __init__(self, lsn_now: Callable[[PartitionNumber], Lsn | None], *, polls: bool) -> None:
        self._lsn_now = lsn_now
        self._polls = polls
        self._callbacks: dict[PartitionNumber, list[Callback]] = {}
        self._lsn_told: dict[PartitionNumber, Lsn | None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __contains__(self, partition: PartitionNumber) -> bool:
        return partition in self._callbacks

    def add(self, partition: PartitionNumber, callback: Callback) -> Callback:
        if partition not in self._callbacks:
            self._callbacks[partition] = []
            self._lsn_told[partition] = self._lsn_now(partition)
        self._callbacks[partition].append(callback)
        if self._polls and self._timer is None:
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

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(POLL_SECONDS, self._poll)

    def _poll(self) -> None:
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
