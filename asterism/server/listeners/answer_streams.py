"""Answers that are made while they are sent: no faster than the client reads them, and no longer than it listens."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from granian._granian import RSGIProtocolClosed as ProtocolClosed

from asterism.apis.transports.chunks import close_chunks
from asterism.apis.transports.http import ClientGone, StreamedResponse
from asterism.limits import MIB
from asterism.server.listeners.connection_rules import (
    AnswerBudget,
    Closure,
    Connection,
    Observed,
    PortConnections,
    held_bytes,
)
from asterism.server.listeners.connection_watch import can_watch, close, observe, own_descriptors

LOG = logging.getLogger("asterism.server")

# Granian takes bytes without a bound and never says that they were sent, so a producer waits when its client has this
# much to read, for half of it to be taken. As much is kept in memory for each stream. A look at the connection takes a
# few microseconds and comes at most once a millisecond, so half of it a millisecond is the fastest a stream can be:
# one whose client has taken everything by the first look may have more in flight, as long as it does.
STREAM_BYTES_MAX = 2 * MIB
FAST_STREAM_BYTES_MAX = 8 * MIB
_LOOK_SECONDS_MIN = 0.001
_LOOK_SECONDS_MAX = 0.05
# A client over HTTP/1 that owes nothing for this long has taken everything, whatever was counted.
_SETTLED_SECONDS = 0.25
_SLICE = 100


class AcknowledgedPace:
    """Back-pressure for an HTTP server that has none: what TCP says was acknowledged of a connection's answers."""

    def __init__(self, port: int, connections: PortConnections) -> None:
        self._ports: Mapping[int, PortConnections] = {port: connections}

    async def wait(self, connection: Connection, bytes_max: int) -> int:
        """Return when the client has taken half of what it may have to read, after that many pauses; ClientGone when
        its connection is not there."""
        observed = await self.find(connection)
        if observed is None:
            raise ClientGone
        loop = asyncio.get_running_loop()
        pauses, pause_seconds = 0, _LOOK_SECONDS_MIN
        settled_at = loop.time() + _SETTLED_SECONDS
        while held_bytes(connection, observed) > bytes_max // 2:
            await asyncio.sleep(pause_seconds)
            pauses += 1
            pause_seconds = min(pause_seconds * 2, _LOOK_SECONDS_MAX)
            acknowledged_bytes = observed.acknowledged_bytes
            observed = self._observe(observed.descriptor, connection)
            if observed is None:
                raise ClientGone
            if observed.owes_bytes or observed.acknowledged_bytes != acknowledged_bytes or connection.is_http2:
                settled_at = loop.time() + _SETTLED_SECONDS
            elif loop.time() >= settled_at:
                connection.answered_bytes = observed.acknowledged_bytes
        return pauses

    async def cut(self, connection: Connection) -> None:
        """Close the connection, so that its client does not take half an answer for the whole."""
        observed = await self.find(connection)
        if observed is not None:
            close(Closure(observed))

    async def find(self, connection: Connection) -> Observed | None:
        """Look at the client's connection, and for it among all descriptors where the last look is too old."""
        if connection.descriptor is not None:
            observed = self._observe(connection.descriptor, connection)
            if observed is not None:
                return observed
        with own_descriptors() as descriptors:
            while some := list(itertools.islice(descriptors, _SLICE)):
                for observed in observe(some, self._ports):
                    if observed.client == connection.client:
                        connection.descriptor = observed.descriptor
                        return observed
                await asyncio.sleep(0)
        return None

    def _observe(self, descriptor: int, connection: Connection) -> Observed | None:
        found = observe([descriptor], self._ports)
        return found[0] if found and found[0].client == connection.client else None


class AnswerStreams:
    """Sends the streamed answers of a port. Without `pace` the HTTP server itself waits for slow readers."""

    def __init__(
        self, answers: AnswerBudget, look_soon: Callable[[], None], *, pace: AcknowledgedPace | None = None
    ) -> None:
        self._answers = answers
        self._look_soon = look_soon
        self._pace = pace if can_watch() else None
        self._endless: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    async def send(self, protocol: Any, connection: Connection, response: StreamedResponse) -> None:
        """Send an answer to its end, or to the client's."""
        transport = protocol.response_stream(response.status, response.headers)
        producing = asyncio.create_task(self._produce(transport, connection, response.chunks))
        gone = asyncio.ensure_future(protocol.client_disconnect())
        if response.is_endless:
            self._endless.add(producing)
            if self._is_stopping:
                producing.cancel()
        try:
            await asyncio.wait({producing, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            producing.cancel()
            await asyncio.wait({producing})
            self._endless.discard(producing)
        if not producing.cancelled():
            error = producing.exception()
            if error is not None and not isinstance(error, ClientGone | ProtocolClosed):
                LOG.error("an answer could not be sent to its end", exc_info=error)
                await self._cut(protocol, connection)

    def end_endless(self) -> None:
        """End the streams that have no end of their own, for a server that stops."""
        self._is_stopping = True
        for producing in self._endless:
            producing.cancel()

    async def _produce(self, transport: Any, connection: Connection, chunks: AsyncIterator[bytes]) -> None:
        counted_bytes = sent_bytes = 0
        in_flight_max = STREAM_BYTES_MAX
        try:
            async for chunk in chunks:
                size = len(chunk)
                connection.answered_bytes += size
                await transport.send_bytes(chunk)
                if counted_bytes < in_flight_max:
                    # More is never in flight.
                    counted_bytes += size
                    if self._answers.add(size):
                        self._look_soon()
                sent_bytes += size
                if sent_bytes >= STREAM_BYTES_MAX // 2:
                    sent_bytes = 0
                    # A client that reads as fast as its answer is made must not keep others from being served.
                    await asyncio.sleep(0)
                    if self._pace is not None:
                        pauses = await self._pace.wait(connection, in_flight_max)
                        in_flight_max = _next_in_flight_max(in_flight_max, pauses)
        finally:
            await close_chunks(chunks)

    async def _cut(self, protocol: Any, connection: Connection) -> None:
        if self._pace is not None:
            await self._pace.cut(connection)
        elif hasattr(protocol, "cut"):
            protocol.cut()


def _next_in_flight_max(bytes_max: int, pauses: int) -> int:
    """Return how much a stream may have in flight after a wait of some pauses."""
    match pauses:
        case 0:
            return bytes_max
        case 1:
            return min(bytes_max * 2, FAST_STREAM_BYTES_MAX)
        case _:
            return STREAM_BYTES_MAX
