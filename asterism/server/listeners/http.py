"""Ports for HTTP, served by Granian: the one module that knows it listens."""

from __future__ import annotations

import asyncio
from typing import Any

from granian.constants import Interfaces, SSLProtocols
from granian.http import HTTP1Settings, HTTP2Settings
from granian.server.embed import Server

from asterism.limits import KIB
from asterism.server.config import StartRefused
from asterism.server.listeners.application import Application
from asterism.server.listeners.tls import CertificateFiles

# The kernel cuts this to its own limit.
BACKLOG = 4096
READY_SECONDS_MAX = 10.0
# Of a request's head. Over HTTP/1 it is what a connection buffers of a body as well, so it counts for each of them.
HEAD_BYTES_MAX = 128 * KIB


class HttpListener:
    """A Listener for HTTP/1 and HTTP/2."""

    def __init__(
        self,
        application: Application,
        *,
        address: str,
        port: int,
        certificate: CertificateFiles | None,
        connections_max: int,
        idle_seconds_max: int,
    ) -> None:
        self._address = address
        self._port = port
        self._serving: asyncio.Task[None] | None = None
        # Its methods are not annotated.
        self._server: Any = Server(
            application,
            address=address,
            port=port,
            interface=Interfaces.RSGI,
            runtime_threads=1,
            runtime_blocking_threads=1,
            # It offers no subprotocol, no close code and no limit of messages: `websocket` does.
            websockets=False,
            backlog=BACKLOG,
            backpressure=connections_max,
            # From the end of an answer to the next whole head; before the first one, the watch has the deadline.
            http1_settings=HTTP1Settings(header_read_timeout=idle_seconds_max * 1000, max_buffer_size=HEAD_BYTES_MAX),
            http2_settings=HTTP2Settings(max_headers_size=HEAD_BYTES_MAX),
            log_enabled=False,
            ssl_cert=None if certificate is None else certificate.certificate,
            ssl_key=None if certificate is None else certificate.private_key,
            # Some runtimes that official clients still support do not speak 1.3.
            ssl_protocol_min=SSLProtocols.tls12,
        )

    async def start(self) -> None:
        self._serving = asyncio.create_task(self._server.serve())
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                while not await self._accepts():
                    await asyncio.sleep(0.002)
        except TimeoutError:
            raise StartRefused(f"the listener on {self._address}:{self._port} did not come up") from None

    async def _accepts(self) -> bool:
        if self._serving is not None and self._serving.done():
            reason = self._serving.exception()
            raise StartRefused(f"cannot listen on {self._address}:{self._port}: {reason or 'it ended at once'}")
        reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._address, self._address)
        try:
            _, writer = await asyncio.open_connection(reachable, self._port)
        except OSError:
            return False
        writer.close()
        return True

    async def until(self, stopping: asyncio.Event) -> None:
        """Return when `stopping` is set; the end of the HTTP server without it is an error."""
        if self._serving is None:
            return
        asked = asyncio.create_task(stopping.wait())
        await asyncio.wait({asked, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            asked.cancel()
            raise StartRefused(f"the listener on {self._address}:{self._port} ended by itself")

    async def stop(self, *, drain_seconds_max: float) -> bool:
        """Stop accepting at once; False when requests were still under way after the time."""
        if self._serving is None:
            return True
        self._server.stop()
        done, _ = await asyncio.wait({self._serving}, timeout=drain_seconds_max)
        return bool(done)
