"""A load generator that costs much less than any server it loads.

Raw protocols on uvloop, requests that are ready as bytes, one outstanding request per connection (a closed loop), and
of an answer only its status and length are looked at.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from benchmarks.pacing import Pace
from benchmarks.wire import answer_length

DRAIN_SECONDS_MAX = 10.0


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the value that so many percent of the values are below; 0 if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else 0.0


@dataclass(frozen=True)
class LoadResult:
    """Every answer of a load: when it came and how long it took, in the order of arrival."""

    started: float
    ended: float
    arrivals: array[float]
    latencies: array[float]
    statuses: Counter[int]
    broken_connections: int
    # Of all answers, those of the warm-up too.
    received_bytes: int
    # The share of its core that the generator used; near 1.0 the generator, not the server, is the limit.
    generator_load: float

    @property
    def rate_per_second(self) -> float:
        return len(self.latencies) / (self.ended - self.started)

    @property
    def error_count(self) -> int:
        return self.broken_connections + sum(count for status, count in self.statuses.items() if status >= 400)

    def percentile_ms(self, percent: float, *, after: float = 0.0, before: float = float("inf")) -> float:
        """A percentile of the latencies of answers that arrived in the given time; 0 if there were none."""
        pairs = zip(self.arrivals, self.latencies, strict=True)
        return percentile((latency for arrival, latency in pairs if after <= arrival < before), percent) * 1000


class Load:
    """Connections that send the requests of a shared iterator until they are stopped.

    With `per_second`, all connections together send at most at that rate: a load beside the one that is measured.
    """

    def __init__(
        self, port: int, requests: Iterator[bytes], *, connections: int, per_second: float | None = None
    ) -> None:
        self.requests = requests
        self.pace: Pace | None = None
        self.sending = True
        self.arrivals: array[float] = array("d")
        self.latencies: array[float] = array("d")
        self.statuses: Counter[int] = Counter()
        self.broken_connections = 0
        self.received_bytes = 0
        self._port = port
        self._connection_count = connections
        self._per_second = per_second
        self._idle_count = 0
        self._all_idle = asyncio.Event()
        self._connecting: set[asyncio.Future[None]] = set()
        self._started = 0.0
        self._cpu_started = 0.0

    async def start(self) -> None:
        self.forget()
        if self._per_second is not None:
            self.pace = Pace(per_second=self._per_second, started=self._started)
        for _ in range(self._connection_count):
            await self.connect()

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: _Connection(self), "127.0.0.1", self._port)
        except OSError:
            self.became_idle(broken=True)

    def reconnect(self) -> None:
        """For a server that ends the connection after its answer: the new connection is part of its work."""
        task = asyncio.ensure_future(self.connect())
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    def forget(self) -> None:
        """Restart the count: the requests before were warm-up."""
        self.arrivals, self.latencies = array("d"), array("d")
        self.statuses.clear()
        self._started, self._cpu_started = time.perf_counter(), time.process_time()

    async def wait_until_idle(self) -> None:
        """Returns when the requests have run out and all of them are answered."""
        await self._all_idle.wait()

    async def finish(self) -> LoadResult:
        """Sends nothing more, waits for the answers under way, so that each request's fate is known."""
        ended, cpu_ended = time.perf_counter(), time.process_time()
        self.sending = False
        try:
            await asyncio.wait_for(self._all_idle.wait(), DRAIN_SECONDS_MAX)
        except TimeoutError:
            self.broken_connections += self._connection_count - self._idle_count
        return LoadResult(
            started=self._started,
            ended=ended,
            arrivals=self.arrivals,
            latencies=self.latencies,
            statuses=self.statuses,
            broken_connections=self.broken_connections,
            received_bytes=self.received_bytes,
            generator_load=(cpu_ended - self._cpu_started) / (ended - self._started),
        )

    def became_idle(self, *, broken: bool) -> None:
        self.broken_connections += broken
        self._idle_count += 1
        if self._idle_count == self._connection_count:
            self._all_idle.set()


class _Connection(asyncio.Protocol):
    """A connection that sends the next request after each answer. `_waiting` while an answer is owed."""

    __slots__ = ("_load", "_pending", "_sent", "_transport", "_waiting")

    _transport: asyncio.WriteTransport

    def __init__(self, load: Load) -> None:
        self._load = load
        self._pending = b""
        self._sent = 0.0
        self._waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._send_when_due()

    def _send_when_due(self) -> None:
        pace = self._load.pace
        delay_seconds = 0.0 if pace is None else pace.next_due() - time.perf_counter()
        if delay_seconds > 0:
            asyncio.get_running_loop().call_later(delay_seconds, self._send)
        else:
            self._send()

    def _send(self) -> None:
        request = next(self._load.requests, None) if self._load.sending else None
        if request is None:
            self._transport.close()
            self._load.became_idle(broken=False)
            return
        self._waiting = True
        self._sent = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._load.received_bytes += len(data)
        if self._pending:
            data = self._pending + data
        if not answer_length(data):
            self._pending = data
            return
        self._pending = b""
        self._waiting = False
        now = time.perf_counter()
        load = self._load
        load.arrivals.append(now)
        load.latencies.append(now - self._sent)
        load.statuses[int(data[9:12])] += 1
        if b"\r\nconnection: close\r\n" in data:
            self._transport.close()
            load.reconnect()
        else:
            self._send_when_due()

    def connection_lost(self, _exception: Exception | None) -> None:
        if self._waiting:
            self._load.became_idle(broken=True)


async def run_load(
    port: int, requests: Iterator[bytes], *, connections: int, seconds: float, warm_up_seconds: float = 0.0
) -> LoadResult:
    load = Load(port, requests, connections=connections)
    await load.start()
    if warm_up_seconds:
        await asyncio.sleep(warm_up_seconds)
        load.forget()
    await asyncio.sleep(seconds)
    return await load.finish()


def middle(results: Sequence[LoadResult]) -> LoadResult:
    """The round with the median rate: rounds that something else on the machine disturbed do not count."""
    return sorted(results, key=lambda result: result.rate_per_second)[len(results) // 2]


async def run_all(port: int, requests: Iterator[bytes], *, connections: int) -> LoadResult:
    """Send every request once."""
    load = Load(port, requests, connections=connections)
    await load.start()
    await load.wait_until_idle()
    return await load.finish()
