"""A closed-loop load of messages: one is under way on each connection, and the next follows its reply."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.load import percentile
from benchmarks.wire import UnexpectedAnswer

# Of the replies only the first of each connection and every so many are read.
_CHECKED_EVERY = 500


@dataclass(frozen=True)
class MessageLoad:
    seconds: float
    latencies: array[float]

    @property
    def rate_per_second(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile_ms(self, percent: float) -> float:
        return percentile(self.latencies, percent) * 1000


class LoadConnection(asyncio.Protocol):
    """One connection of a load. A protocol finds its replies in the buffer and reports each of them to `answered`."""

    def __init__(self, requests: Iterator[bytes], latencies: array[float]) -> None:
        self._requests = requests
        self._latencies = latencies
        self._answered = 0
        self._sent_at = 0.0
        self._until = 0.0
        self._transport: asyncio.Transport | None = None
        self.buffer = bytearray()
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @abstractmethod
    def check(self, reply: bytes) -> None:
        """Read a reply; raises UnexpectedAnswer."""

    def start(self, transport: asyncio.Transport, until: float) -> None:
        """Send the first request; none is sent after `until`."""
        self._transport = transport
        self._until = until
        self._send()

    def _send(self) -> None:
        assert self._transport is not None
        request = next(self._requests)
        self._sent_at = time.perf_counter()
        self._transport.write(request)

    def answered(self, start: int, end: int) -> None:
        """Take the reply at this place of the buffer, which is then forgotten up to its end."""
        now = time.perf_counter()
        if self._answered % _CHECKED_EVERY == 0:
            try:
                self.check(bytes(self.buffer[start:end]))
            except UnexpectedAnswer as problem:
                self._finish(problem)
        del self.buffer[:end]
        self._answered += 1
        self._latencies.append(now - self._sent_at)
        if now < self._until and not self.finished.done():
            self._send()
        else:
            self._finish(None)

    def connection_lost(self, _: Exception | None) -> None:
        self._finish(UnexpectedAnswer("the server closed a connection"))

    def _finish(self, problem: Exception | None) -> None:
        if self.finished.done():
            return
        if problem is None:
            self.finished.set_result(None)
        else:
            self.finished.set_exception(problem)
        if self._transport is not None:
            self._transport.close()
