"""Consumers of a queue: each connection gets a message and deletes it, in a closed loop; or puts one before."""

from __future__ import annotations

import asyncio
import re
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from benchmarks import storage_wire
from benchmarks.load import percentile
from benchmarks.wire import UnexpectedAnswer, answer_length

_MESSAGE_ID = re.compile(rb"<MessageId>([^<]+)</MessageId>")
_RECEIPT = re.compile(rb"<PopReceipt>([^<]+)</PopReceipt>")
SECONDS_MAX = 120.0


@dataclass
class Consumption:
    """Rounds of all connections together: how long each took, and which messages came."""

    rounds_left: int
    latencies: array[float] = field(default_factory=lambda: array("d"))
    message_ids: set[bytes] = field(default_factory=set)
    seconds: float = 0.0

    @property
    def rate_per_second(self) -> float:
        return len(self.latencies) / self.seconds

    @property
    def median_ms(self) -> float:
        return percentile(self.latencies, 50) * 1000


class _Consumer(asyncio.Protocol):
    def __init__(self, queue: str, consumption: Consumption, first_requests: list[bytes]) -> None:
        self._queue = queue
        self._consumption = consumption
        # The last of them gets a message.
        self._first_requests = first_requests
        self._pending = b""
        self._step: Callable[[bytes], None] = self._begun
        self._sent_count = 0
        self._began = 0.0
        self._transport: asyncio.WriteTransport | None = None
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._begin()

    def data_received(self, data: bytes) -> None:
        data = self._pending + data
        if not answer_length(data):
            self._pending = data
            return
        self._pending = b""
        try:
            self._step(data)
        except UnexpectedAnswer as problem:
            self._finish(problem)

    def connection_lost(self, _: Exception | None) -> None:
        self._finish(UnexpectedAnswer("the server closed a connection"))

    def _begin(self) -> None:
        if self._consumption.rounds_left <= 0:
            self._finish(None)
            return
        self._consumption.rounds_left -= 1
        self._began = time.perf_counter()
        self._sent_count = 0
        self._begun(b"")

    def _begun(self, answer: bytes) -> None:
        """Send the next of the first requests; the answer to the last of them has a message."""
        if answer and not answer.startswith(b"HTTP/1.1 20"):
            raise UnexpectedAnswer(f"a message was not put: {answer[:200]!r}")
        self._send(self._first_requests[self._sent_count])
        self._sent_count += 1
        self._step = self._got if self._sent_count == len(self._first_requests) else self._begun

    def _got(self, answer: bytes) -> None:
        message_id, receipt = _MESSAGE_ID.search(answer), _RECEIPT.search(answer)
        if message_id is None or receipt is None:
            raise UnexpectedAnswer(f"no message came: {answer[:200]!r}")
        if message_id[1] in self._consumption.message_ids:
            raise UnexpectedAnswer("two consumers got one message")
        self._consumption.message_ids.add(message_id[1])
        self._step = self._deleted
        self._send(storage_wire.delete_message(self._queue, message_id[1].decode(), receipt[1].decode()))

    def _deleted(self, answer: bytes) -> None:
        if not answer.startswith(b"HTTP/1.1 204"):
            raise UnexpectedAnswer(f"a message was not deleted: {answer[:200]!r}")
        self._consumption.latencies.append(time.perf_counter() - self._began)
        self._begin()

    def _send(self, request: bytes) -> None:
        assert self._transport is not None
        self._transport.write(request)

    def _finish(self, problem: Exception | None) -> None:
        if self.finished.done():
            return
        if problem is None:
            self.finished.set_result(None)
        else:
            self.finished.set_exception(problem)
        if self._transport is not None:
            self._transport.close()


async def consume(
    port: int, queue: str, *, rounds: int, connections: int, text_to_put: str | None = None
) -> Consumption:
    """Get and delete so many messages; with a text, put one before each get."""
    first = [] if text_to_put is None else [storage_wire.put_message(queue, text_to_put)]
    first.append(storage_wire.get_message(queue))
    consumption = Consumption(rounds_left=rounds)
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    consumers: list[_Consumer] = []
    for _ in range(connections):
        _, consumer = await loop.create_connection(lambda: _Consumer(queue, consumption, first), "127.0.0.1", port)
        consumers.append(consumer)
    async with asyncio.timeout(SECONDS_MAX):
        for consumer in consumers:
            await consumer.finished
    consumption.seconds = time.perf_counter() - began
    return consumption
