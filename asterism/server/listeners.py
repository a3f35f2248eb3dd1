"""From sockets to doors: the one module that knows which HTTP server carries the requests."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from granian.constants import Interfaces, SSLProtocols
from granian.http import HTTP1Settings, HTTP2Settings
from granian.server.embed import Server

from asterism.apis.http import BodyRefused, ClientGone, Door, HeaderList, Request
from asterism.limits import KIB
from asterism.server.config import StartRefused
from asterism.server.connection_rules import AnswerBudget, Connection, PortConnections
from asterism.server.connection_watch import ConnectionWatch, canonical_client
from asterism.server.request_bodies import BodyReading, IncomingBody
from asterism.values.json_text import dumps

LOG = logging.getLogger("asterism.server")

ADMIN_PREFIX = "/_asterism/"

# The kernel cuts this to its own limit.
BACKLOG = 4096
READY_SECONDS_MAX = 10.0
# Of a request's head. Over HTTP/1 it is what a connection buffers of a body as well, so it counts for each of them.
HEAD_BYTES_MAX = 128 * KIB

# Descriptors that connections leave to everything else: the store's files, script hosts, nodes of a fleet.
_RESERVED_DESCRIPTORS = 1024

# Methods whose requests may have a body; for the others it is not even asked for.
_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "MERGE"})
_JSON = ("content-type", "application/json")
_CLOSE = ("connection", "close")

Application = Callable[[Any, Any], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Port:
    """What the requests of one port share; `answers` and `look_soon` are those of the process."""

    connections: PortConnections
    bodies: BodyReading
    answers: AnswerBudget
    look_soon: Callable[[], None]


def make_application(*, admin: Door, door: Door, port: Port) -> Application:
    """The callback the HTTP server runs for each request of a port: its door answers, the admin door at its prefix."""

    by_client, answers = port.connections.by_client, port.answers

    async def application(scope: Any, protocol: Any) -> None:
        client = scope.client
        if client[:1] == "[":
            client = canonical_client(client)
        connection = by_client.get(client)
        if connection is None:
            connection = by_client[client] = Connection(client, is_http2=not scope.http_version.startswith("1"))
        connection.request_count += 1
        connection.under_way += 1
        try:
            if scope.method in _METHODS_WITH_BODY:
                await answer_with_body(connection, scope, protocol)
            elif answers.is_exceeded:
                _refuse(scope, protocol, _answers_exceeded())
            else:
                await answer(connection, scope, protocol, None)
        finally:
            connection.under_way -= 1

    async def answer_with_body(connection: Connection, scope: Any, protocol: Any) -> None:
        body = IncomingBody(port.bodies, protocol, scope.headers, scope.http_version)
        try:
            if answers.is_exceeded:
                raise _answers_exceeded()
            body.check_length()
            await answer(connection, scope, protocol, body)
        except BodyRefused as refused:
            _refuse(scope, protocol, refused)
        finally:
            body.close()
        if not body.is_whole:
            await body.drop_rest()

    async def answer(connection: Connection, scope: Any, protocol: Any, read_body: IncomingBody | None) -> None:
        headers = scope.headers
        method = scope.method
        try:
            path = scope.path
            request = Request(
                method=method,
                path=path,
                query_string=scope.query_string,
                headers=headers,
                body=b"",
                scheme=scope.scheme,
                authority=scope.authority or headers.get("host") or "",
                client_gone=protocol.client_disconnect,
                client_address=connection.client,
                read_body=read_body,
            )
            asked = admin if path.startswith(ADMIN_PREFIX) else door
            response = await asked.answer(request)
        except BodyRefused as refused:
            _refuse(scope, protocol, refused)
        except ClientGone:
            pass
        except Exception:
            # The path is the client's text: %r keeps line breaks in it from forging lines of the log.
            LOG.exception("a request could not be answered: %s %r", method, scope.path[:512])
            protocol.response_bytes(500, [_JSON], _INTERNAL_ERROR)
        else:
            if not response.body:
                protocol.response_empty(response.status, response.headers)
                return
            size = 0 if method == "HEAD" else len(response.body)
            if size >= _LARGE_ANSWER_BYTES:
                if answers.is_exceeded and method == "GET":
                    # Many may have begun before the bytes were exceeded. Nothing is lost: it can be read again.
                    _refuse(scope, protocol, _answers_exceeded())
                    return
                if answers.add(size):
                    port.look_soon()
            connection.answered_bytes += size
            protocol.response_bytes(response.status, response.headers, response.body)

    return application


# Smaller ones fit into the kernel's buffers, and are counted when the connections are looked at.
_LARGE_ANSWER_BYTES = 16 * KIB
_INTERNAL_ERROR = (
    b'{"code":"InternalServerError","message":"The server met an error of its own; its log has the details."}'
)


def _answers_exceeded() -> BodyRefused:
    return BodyRefused(
        429,
        "TooManyRequests",
        "Clients have not read as many bytes of answers as the server may hold. Retry after a second, or raise the "
        "limit answer-bytes-in-flight.",
        retry_after_seconds=1,
    )


def _refuse(scope: Any, protocol: Any, refused: BodyRefused) -> None:
    headers: HeaderList = [_JSON]
    if refused.retry_after_seconds is not None:
        # The second is what the official clients for items look at.
        seconds = refused.retry_after_seconds
        headers += [("retry-after", str(seconds)), ("x-ms-retry-after-ms", str(seconds * 1000))]
    elif scope.http_version.startswith("1"):
        # HTTP/2 has no such header; there only the stream ends.
        headers.append(_CLOSE)
    body = dumps({"code": refused.code, "message": refused.message})
    protocol.response_bytes(refused.status, headers, body)


def share_descriptors(connections_max: int, *, ports: int) -> list[int]:
    """Allow the process as many open files as it may have, and say how many connections each port may have.

    Every connection is an open file, and many systems start processes with 1,024 of them. Where the system's own limit
    is too low for all, the first port gets three fifths. Out of descriptors, the HTTP server would try to accept
    without a pause, and no script host could start: some are kept back.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections_max * ports + _RESERVED_DESCRIPTORS
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    available = wanted if soft == resource.RLIM_INFINITY else soft
    shared = available - min(_RESERVED_DESCRIPTORS, available // 2)
    others = ports - 1
    shares = [shared * 3 // 5, *[shared * 2 // 5 // others] * others] if others else [shared]
    return [max(1, min(connections_max, share)) for share in shares]


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
        self,
        application: Application,
        *,
        address: str,
        port: int,
        certificate: Path | None,
        private_key: Path | None,
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
            websockets=False,
            backlog=BACKLOG,
            backpressure=connections_max,
            # From the end of an answer to the next whole head; before the first one, the watch has the deadline.
            http1_settings=HTTP1Settings(header_read_timeout=idle_seconds_max * 1000, max_buffer_size=HEAD_BYTES_MAX),
            http2_settings=HTTP2Settings(max_headers_size=HEAD_BYTES_MAX),
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

    def __init__(self, listeners: Sequence[Listener], watch: ConnectionWatch | None = None) -> None:
        self._listeners = listeners
        self._watch = watch

    async def start(self) -> None:
        """One after the other, the first one last: when it answers, all of them do."""
        for listener in reversed(self._listeners):
            await listener.start()
        if self._watch is not None:
            self._watch.start()

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
        if self._watch is not None:
            await self._watch.stop()
        return all(stopped)
