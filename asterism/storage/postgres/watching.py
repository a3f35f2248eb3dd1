"""Notifications of applied batches: LISTEN on a connection of its own, while there are watches."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import Any

import asyncpg

from asterism.storage.contract import StorageRefusal, WatchCallback
from asterism.storage.postgres.connections import Link, Pool
from asterism.storage.postgres.database_errors import ConnectionLost, TransientError
from asterism.storage.postgres.layout import CHANNEL
from asterism.values.identifiers import PartitionNumber

# A silent connection looks the same as one that drops all packets.
HEARTBEAT_SECONDS = 5.0
RETRY_SECONDS = 0.1


class NotificationListener:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._patience = pool.timeouts
        self._callbacks: dict[PartitionNumber, list[WatchCallback]] = {}
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    def add(self, partition: PartitionNumber, callback: WatchCallback) -> WatchCallback:
        self._callbacks.setdefault(partition, []).append(callback)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._listen())
        return partial(self._remove, partition, callback)

    def _remove(self, partition: PartitionNumber, callback: WatchCallback) -> None:
        callbacks = self._callbacks.get(partition, [])
        if callback in callbacks:
            callbacks.remove(callback)
        if not callbacks:
            self._callbacks.pop(partition, None)
        if not self._callbacks and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(ConnectionLost, TransientError, StorageRefusal, asyncpg.PostgresError, OSError):
                await self._listen_once()
            await asyncio.sleep(RETRY_SECONDS)

    async def _listen_once(self) -> None:
        """Listen until the connection is lost."""
        link = await self._pool.acquire(asyncio.get_running_loop().time() + self._patience.total_seconds)
        try:
            self._ended.clear()
            link.connection.add_termination_listener(self._on_ended)
            await self._start(link)
            # Batches applied before were not notified.
            for partition in list(self._callbacks):
                self._notify(partition)
            while link.is_open:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(HEARTBEAT_SECONDS):
                        await self._ended.wait()
                await link.ask(self._patience.read_seconds, "SELECT 1")
        finally:
            link.connection.terminate()
            self._pool.release(link)

    async def _start(self, link: Link) -> None:
        alarm = asyncio.get_running_loop().call_later(self._patience.read_seconds, link.connection.terminate)
        try:
            await link.connection.add_listener(CHANNEL, self._on_notice)
        except asyncpg.InterfaceError as error:
            raise ConnectionLost(str(error)) from error
        finally:
            alarm.cancel()

    def _on_ended(self, _connection: Any) -> None:
        self._ended.set()

    def _on_notice(self, _connection: Any, _process: int, _channel: str, payload: str) -> None:
        self._notify(PartitionNumber(int(payload)))

    def _notify(self, partition: PartitionNumber) -> None:
        loop = asyncio.get_running_loop()
        for callback in self._callbacks.get(partition, ()):
            loop.call_soon(callback)

    async def close(self) -> None:
        self._callbacks.clear()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
