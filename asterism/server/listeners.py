"""From sockets to doors: the one module that knows which HTTP server carries the requests."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from granian._granian import RSGIProtocolClosed as ProtocolClosed
from granian.constants import Interfaces, SSLProtocols
from granian.http import HTTP1Settings
from granian.server.embed import Server

from asterism.apis.http import Door, HeaderList, Request
from asterism.server.config import StartRefused

LOG = logging.getLogger("asterism.server")

ADMIN_PREFIX = "/_asterism/"

# Spec: ten thousand idle connections leave the server answering; twice that, so that as many again can work.
CONNECTIONS_MAX = 20_000
# The kernel cuts this to its own limit.
BACKLOG = 4096
# A connection that has sent no whole request head for this long is closed, idle ones as well; longer than the
# clients keep theirs.
HEAD_SECONDS_MAX = 180
# And one that has announced a body and does not send it.
BODY_SECONDS_MAX = 60.0
READY_SECONDS_MAX = 10.0

# Methods whose requests may have a body; for the others it is not even asked for.
_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "MERGE"})
_JSON = ("content-type", "application/json")
_CLOSE = ("connection", "close")

Application = Callable[[Any, Any], Awaitable[None]]


class _BodyRefused(Exception):
    """The body is not wanted, or did not arrive; the connection cannot be used for another request."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = b'{"code":"%b","message":"%b"}' % (code.encode(), message.encode())


def make_application(*, admin: Door, door: Door, request_bytes_max: int) -> Application:
    """The callback the HTTP server runs for each request of a port: its door answers, the admin door at its prefix."""

    slow_bodies = SlowBodies()

    async def application(scope: Any, protocol: Any) -> None:
        headers = scope.headers
        method = scope.method
        try:
            body = b""
            if method in _METHODS_WITH_BODY:
                body = await _read_body(slow_bodies, protocol, headers, request_bytes_max)
            path = scope.path
            request = Request(
                method=method,
                path=path,
                query_string=scope.query_string,
                headers=headers,
                body=body,
                scheme=scope.scheme,
                authority=scope.authority or headers.get("host") or "",
                client_gone=protocol.client_disconnect,
                client_address=scope.client,
            )
            asked = admin if path.startswith(ADMIN_PREFIX) else door
            response = await asked.answer(request)
        except _BodyRefused as refused:
            protocol.response_bytes(refused.status, _head_for_refusal(scope.http_version), refused.body)
        except ProtocolClosed:
            # The client has gone in the middle of its request; nobody is left to hear an answer.
            return
        except Exception:
            # The path is the client's text: %r keeps line breaks in it from forging lines of the log.
            LOG.exception("a request could not be answered: %s %r", method, scope.path[:512])
            protocol.response_bytes(500, [_JSON], _INTERNAL_ERROR)
        else:
            if response.body:
                protocol.response_bytes(response.status, response.headers, response.body)
            else:
                protocol.response_empty(response.status, response.headers)

    return application


_INTERNAL_ERROR = (
    b'{"code":"InternalServerError","message":"The server met an error of its own; its log has the details."}'
)


def _head_for_refusal(http_version: str) -> HeaderList:
    # HTTP/2 has no such header; there only the stream ends.
    return [_JSON, _CLOSE] if http_version.startswith("1") else [_JSON]


class SlowBodies:
    """Ends the wait for bodies that do not arrive. One timer for all of them, and only while there are any: a timer
    for each request costs more than reading its body."""

    def __init__(self, seconds_max: float = BODY_SECONDS_MAX) -> None:
        self._seconds_max = seconds_max
        self._waiting: dict[asyncio.Task[Any], float] = {}
        self._given_up: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def wait_for(self, body: Awaitable[bytes]) -> bytes:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        self._waiting[task] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._seconds_max / 4, self._look)
        try:
            return await body
        except asyncio.CancelledError:
            if task not in self._given_up:
                raise
            self._given_up.discard(task)
            task.uncancel()
            raise _BodyRefused(408, "RequestTimeout", "The body of the request did not arrive in time.") from None
        finally:
            del self._waiting[task]

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        for task, since in self._waiting.items():
            if loop.time() - since >= self._seconds_max:
                self._given_up.add(task)
                task.cancel()
        self._timer = loop.call_later(self._seconds_max / 4, self._look) if self._waiting else None


async def _read_body(slow_bodies: SlowBodies, protocol: Any, headers: Any, bytes_max: int) -> bytes:
    announced = headers.get("content-length")
    if announced is None:
        return await slow_bodies.wait_for(_read_chunks(protocol, bytes_max))
    # Only digits get here: the HTTP server refuses any other length itself.
    if int(announced) > bytes_max:
        raise _too_large(bytes_max)
    return await slow_bodies.wait_for(protocol())


async def _read_chunks(protocol: Any, bytes_max: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in protocol:
        size += len(chunk)
        if size > bytes_max:
            raise _too_large(bytes_max)
        chunks.append(chunk)
    return b"".join(chunks)


def _too_large(bytes_max: int) -> _BodyRefused:
    return _BodyRefused(
        413, "RequestEntityTooLarge", f"The size of the request exceeds the maximum allowed size of {bytes_max} bytes."
    )


def raise_open_files_limit() -> None:
    """Every connection is an open file, and many systems start processes with 1,024 of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX + 1024
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def choose_address(host: str, port: int) -> tuple[str, int]:
    """The address to listen on, after a look whether it is free.

    The HTTP server binds in a way that lets several processes share a port; here sharing is not wanted, so a plain
    bind goes first.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError, OverflowError):
        raise StartRefused(f"the host {host!r} cannot be resolved to an address to listen on") from None
    family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            reason = "another process is listening there" if error.errno == errno.EADDRINUSE else error.strerror
            raise StartRefused(f"cannot listen on {host}:{port}: {reason}") from None
        return str(address[0]), int(probe.getsockname()[1])


class Listener:
    """One listening port. `start` returns when it accepts; `stop` when every request under way is answered."""

    def __init__(
        self, application: Application, *, address: str, port: int, certificate: Path | None, private_key: Path | None
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
            websockets=False,
            backlog=BACKLOG,
            backpressure=CONNECTIONS_MAX,
            http1_settings=HTTP1Settings(header_read_timeout=HEAD_SECONDS_MAX * 1000),
            log_enabled=False,
            ssl_cert=certificate,
            ssl_key=private_key,
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
        """Returns when `stopping` is set; the end of the HTTP server without it is an error."""
        if self._serving is None:
            return
        asked = asyncio.create_task(stopping.wait())
        await asyncio.wait({asked, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            asked.cancel()
            raise StartRefused(f"the listener on {self._address}:{self._port} ended by itself")

    async def stop(self, *, drain_seconds_max: float) -> bool:
        """Stops accepting at once; False when requests were still under way after the time."""
        if self._serving is None:
            return True
        self._server.stop()
        done, _ = await asyncio.wait({self._serving}, timeout=drain_seconds_max)
        return bool(done)


class ListenerGroup:
    """The listeners of all doors, as one. The first is the one whose readiness probe is asked."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = listeners

    async def start(self) -> None:
        """One after the other, the first one last: when it answers, all of them do."""
        for listener in reversed(self._listeners):
            await listener.start()

    async def until(self, stopping: asyncio.Event) -> None:
        """Returns when `stopping` is set; the end of any of them without it is an error."""
        waiting = [asyncio.create_task(listener.until(stopping)) for listener in self._listeners]
        done, others = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
        for task in others:
            task.cancel()
        for task in done:
            task.result()

    async def stop(self, *, drain_seconds_max: float) -> bool:
        stopped = await asyncio.gather(*(one.stop(drain_seconds_max=drain_seconds_max) for one in self._listeners))
        return all(stopped)
