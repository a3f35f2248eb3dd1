"""Files that are moved side by side, over several connections."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

from asterism.cli.blob_files import Advance, TargetExists, TargetImpossible
from asterism.cli.storage_client import StorageClient

# Files that wait for a connection, for each one: their list is read as they are moved, whatever its length.
_WAITING_PER_CONNECTION: Final = 4

T = TypeVar("T")


@dataclass(slots=True)
class Moved:
    """The results of moving a folder."""

    files: int = 0
    bytes: int = 0
    # Names that exist already, and were not to be replaced.
    left: list[str] = field(default_factory=list)
    # Names that no file in the folder, or no blob, can have.
    refused: list[str] = field(default_factory=list)


class Connections:
    """Clients that threads take and give back."""

    def __init__(self, make: Callable[[], StorageClient], count: int) -> None:
        self.count = count
        self._clients = [make() for _ in range(count)]
        self._free: SimpleQueue[StorageClient] = SimpleQueue()
        for client in self._clients:
            self._free.put(client)

    @contextmanager
    def client(self) -> Iterator[StorageClient]:
        client = self._free.get()
        try:
            yield client
        finally:
            self._free.put(client)

    def close(self) -> None:
        for client in self._clients:
            client.close()


class _Stopped(Exception):
    """Another file has failed, so this one is given up."""


class Mover(Generic[T]):
    """Moves files by several threads; the first failure stops all of them."""

    def __init__(self, threads: int, move: Callable[[T, Advance], int], advance: Advance) -> None:
        self._threads = threads
        self._move = move
        self._advance = advance
        self._stop = threading.Event()

    def run(self, wanted: Callable[[Moved], Iterator[tuple[str, T]]]) -> Moved:
        moved = Moved()
        under_way: dict[Future[int], str] = {}
        pool = ThreadPoolExecutor(self._threads, thread_name_prefix="blobs")
        try:
            for name, file in wanted(moved):
                if len(under_way) >= self._threads * _WAITING_PER_CONNECTION:
                    self._take_done(under_way, moved)
                under_way[pool.submit(self._move, file, self._check)] = name
            while under_way:
                self._take_done(under_way, moved)
        finally:
            self._stop.set()
            pool.shutdown(cancel_futures=True)
        return moved

    def _take_done(self, under_way: dict[Future[int], str], moved: Moved) -> None:
        done, _ = wait(under_way, return_when=FIRST_COMPLETED)
        for future in done:
            name = under_way.pop(future)
            with suppress(_Stopped):
                try:
                    moved.bytes += future.result()
                    moved.files += 1
                except TargetExists:
                    moved.left.append(name)
                except TargetImpossible:
                    moved.refused.append(name)

    def _check(self, count: int) -> None:
        self._advance(count)
        if self._stop.is_set():
            raise _Stopped
