"""The engine of one process, which serves any number of connections."""

from __future__ import annotations

from collections.abc import Callable

from asterism.apis.amqp.engine.connection import Connection
from asterism.apis.amqp.engine.pulse import Pulse
from asterism.apis.amqp.engine.settings import EngineCounters, EngineSettings
from asterism.apis.amqp.nodes import AmqpError, NodeHost
from asterism.apis.transports.tcp import ByteStream
from asterism.clock import Clock
from asterism.errors import AsterismError


class Engine:
    """The state that all connections of a process share. One per door; its counters are the door's metrics."""

    def __init__(
        self,
        host: NodeHost,
        *,
        words: Callable[[AsterismError], AmqpError],
        clock: Clock,
        container_id: str = "asterism",
        settings: EngineSettings | None = None,
    ) -> None:
        self.host = host
        # The table from the database's errors to conditions of the protocol.
        self.words = words
        self.clock = clock
        self.container_id = container_id
        self.settings = settings or EngineSettings()
        self.counters = EngineCounters()
        self.pulse = Pulse(heartbeat_seconds=self.settings.heartbeat_seconds, monotonic_seconds=clock.monotonic_seconds)

    async def serve(self, stream: ByteStream) -> None:
        """Serve a connection from its first byte to its end. A websocket is a `WebSocketStream`."""
        # Empty frames go out every few seconds; silence of the client is counted by the connection itself.
        stream.idle_seconds_max = self.settings.silence_seconds_max
        await Connection(self, stream).serve()
