"""HTTP/1.1 over a byte stream, for ports that speak other protocols as well, and for websockets.

It speaks RSGI with the application, as Granian does, so that limits, refusals and doors are the same.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from email.utils import formatdate

import h11

from asterism.apis.transports.http import ClientGone, HeaderList
from asterism.apis.transports.websocket import WebSocketDoor
from asterism.limits import KIB
from asterism.server.listeners.application import Application
from asterism.server.listeners.tcp_stream import TcpStream
from asterism.server.listeners.websocket import UpgradeRequest, is_upgrade, serve_websocket

HEAD_BYTES_MAX = 128 * KIB
_NO_BODY_STATUSES = frozenset({204, 304})


class Scope:
    """The head of a request, with the names that RSGI gives its parts."""

    __slots__ = ("authority", "client", "headers", "http_version", "method", "path", "query_string", "scheme")

    def __init__(self, request: h11.Request, stream: TcpStream) -> None:
        path, query_string = _split_target(request.target.decode("latin-1"))
        self.method = request.method.decode("ascii")
        self.path = urllib.parse.unquote(path, errors="replace")
        self.query_string = query_string
        self.http_version = request.http_version.decode("ascii")
        self.scheme = "https" if stream.is_tls else "http"
        self.authority: str | None = None
        self.client = stream.peer_address
        self.headers: dict[str, str] = {}
        for name, value in request.headers:
            # Of a name that comes twice the first counts, as with Granian.
            self.headers.setdefault(name.decode("ascii"), value.decode("latin-1"))
        if "transfer-encoding" in self.headers:
            # Then a length says nothing, and h11 does not look at it either.
            self.headers.pop("content-length", None)


def _split_target(target: str) -> tuple[str, str]:
    """Return path and query string of a request's target, which may be a whole URL."""
    if not target.startswith("/") and "://" in target:
        parts = urllib.parse.urlsplit(target)
        return parts.path or "/", parts.query
    path, _, query_string = target.partition("?")
    return path, query_string


class HttpFront:
    """The HTTP side of a port: requests by its application, upgrades by its door for websockets."""

    def __init__(
        self,
        application: Application,
        *,
        websocket_door: WebSocketDoor | None,
        message_bytes_max: int,
        wall_seconds: Callable[[], float],
    ) -> None:
        self._application = application
        self._websocket_door = websocket_door
        self._message_bytes_max = message_bytes_max
        self._wall_seconds = wall_seconds

    async def serve(self, stream: TcpStream) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        while True:
            exchange = Exchange(connection, stream, self._wall_seconds)
            try:
                request = await _next_request(connection, stream)
            except h11.RemoteProtocolError as error:
                exchange.refuse(error.error_status_hint, str(error))
                return
            if request is None:
                return
            scope = Scope(request, stream)
            if self._websocket_door is not None and is_upgrade(scope.method, scope.headers):
                upgrade = UpgradeRequest(scope.path, scope.query_string, scope.headers, scope.scheme)
                await serve_websocket(
                    self._websocket_door, upgrade, connection, stream, message_bytes_max=self._message_bytes_max
                )
                return
            exchange.method = scope.method
            await self._application(scope, exchange)
            if not await exchange.finish():
                return
            connection.start_next_cycle()


async def _next_request(connection: h11.Connection, stream: TcpStream) -> h11.Request | None:
    """Return the head of the next request; None when there will not be one."""
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            return None
        data = await stream.read(pending_bytes=len(connection.trailing_data[0]))
        if not data:
            return None
        connection.receive_data(data)


class Exchange:
    """One request and its answer: the protocol object of RSGI."""

    def __init__(self, connection: h11.Connection, stream: TcpStream, wall_seconds: Callable[[], float]) -> None:
        self.method = "GET"
        self._connection = connection
        self._stream = stream
        self._wall_seconds = wall_seconds
        self._is_answered = False
        self._is_cut = False

    # --- the body of the request -------------------------------------------------------------------------------------

    async def __call__(self) -> bytes:
        return b"".join([piece async for piece in self])

    def __aiter__(self) -> Exchange:
        return self

    async def __anext__(self) -> bytes:
        while True:
            try:
                event = self._connection.next_event()
            except h11.RemoteProtocolError:
                # The framing of the body is broken, or the client has closed in the middle of it.
                raise ClientGone from None
            if isinstance(event, h11.Data):
                return bytes(event.data)
            if event is not h11.NEED_DATA:
                raise StopAsyncIteration
            if self._connection.they_are_waiting_for_100_continue and not self._is_answered:
                self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._connection.receive_data(await self._stream.read(pending_bytes=1))

    async def client_disconnect(self) -> None:
        await self._stream.gone()

    # --- the answer --------------------------------------------------------------------------------------------------

    def response_empty(self, status: int, headers: HeaderList) -> None:
        self.response_bytes(status, headers, b"")

    def response_bytes(self, status: int, headers: HeaderList, body: bytes) -> None:
        # Nothing is known of the length when a HEAD request is answered without the body that a GET would get.
        is_silent = status in _NO_BODY_STATUSES or (self.method == "HEAD" and not body)
        has_length = is_silent or any(name.lower() == "content-length" for name, _ in headers)
        self._begin(status, headers if has_length else [*headers, ("content-length", str(len(body)))])
        if body and self.method != "HEAD" and status not in _NO_BODY_STATUSES:
            self._send(h11.Data(data=body))
        self._send(h11.EndOfMessage())

    def response_stream(self, status: int, headers: HeaderList) -> ResponseStream:
        self._begin(status, headers)
        return ResponseStream(self)

    async def send_piece(self, piece: bytes) -> None:
        self._send(h11.Data(data=piece))
        await self._stream.flushed()

    def refuse(self, status: int, message: str) -> None:
        """Answer bytes that are not HTTP, as far as the protocol allows it."""
        if self._connection.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.response_bytes(status, [("content-type", "text/plain"), ("connection", "close")], message.encode())

    def cut(self) -> None:
        """Close without an end of the answer, which cannot be made whole."""
        self._is_cut = True
        self._stream.abort()

    async def finish(self) -> bool:
        """Send the rest of the answer; False when the connection cannot serve another request."""
        if self._is_cut or not self._is_answered:
            # Without an answer: the client went away before there was one.
            return False
        if self._connection.our_state is h11.SEND_BODY:
            self._end()
        await self._stream.flushed()
        return self._connection.our_state is h11.DONE and self._is_request_over()

    def _is_request_over(self) -> bool:
        """Pass over the end of a request whose body was not asked for; a body that is still to come stays there."""
        try:
            while self._connection.their_state is h11.SEND_BODY:
                if self._connection.next_event() is h11.NEED_DATA:
                    return False
        except h11.RemoteProtocolError:
            return False
        return self._connection.their_state is h11.DONE

    def _end(self) -> None:
        try:
            self._send(h11.EndOfMessage())
        except h11.LocalProtocolError:
            # Fewer bytes than the head has promised.
            self.cut()

    def _begin(self, status: int, headers: HeaderList) -> None:
        self._is_answered = True
        sent = [*headers]
        if not any(name.lower() == "date" for name, _ in headers):
            sent.append(("date", formatdate(self._wall_seconds(), usegmt=True)))
        if self._stream.is_draining:
            sent.append(("connection", "close"))
        self._send(h11.Response(status_code=status, headers=sent))

    def _send(self, event: h11.Event) -> None:
        data = self._connection.send(event)
        if data:
            self._stream.send(data)


class ResponseStream:
    """The transport of RSGI for an answer in pieces. It waits for clients that read slowly."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def send_bytes(self, piece: bytes) -> None:
        await self._exchange.send_piece(piece)
