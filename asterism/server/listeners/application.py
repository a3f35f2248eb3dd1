"""From a request of an HTTP server to the answer of its door, within the limits of the port.

The interface to the HTTP server is RSGI, which both servers speak: Granian, and the one over byte streams (`http1`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from asterism.apis.transports.chunks import close_chunks
from asterism.apis.transports.http import (
    BodyRefused,
    ClientGone,
    Door,
    RefusalWords,
    Request,
    Response,
    StreamedResponse,
)
from asterism.limits import KIB
from asterism.server.listeners.addresses import canonical_client
from asterism.server.listeners.answer_streams import AnswerStreams
from asterism.server.listeners.connection_rules import AnswerBudget, Connection, PortConnections
from asterism.server.listeners.request_bodies import BodyReader, IncomingBody
from asterism.values.json.text import dumps

LOG = logging.getLogger("asterism.server")

ADMIN_PREFIX = "/_asterism/"

# Methods whose requests may have a body; for the others it is not even asked for.
_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "MERGE"})
_JSON = ("content-type", "application/json")
_CLOSE = ("connection", "close")

Application = Callable[[Any, Any], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Port:
    """The state that the requests of one port share; `answers` and `look_soon` are those of the process."""

    connections: PortConnections
    bodies: BodyReader
    answers: AnswerBudget
    streams: AnswerStreams
    look_soon: Callable[[], None]


def make_application(*, admin: Door, door: Door, port: Port) -> Application:
    """The callback the HTTP server runs for each request of a port: its door answers, the admin door at its prefix."""

    by_client, answers = port.connections.by_client, port.answers
    refuse = partial(_refuse, door if isinstance(door, RefusalWords) else _NOSQL_REFUSALS)

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
                refuse(scope, protocol, _answers_exceeded())
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
            refuse(scope, protocol, refused)
        finally:
            body.close()
        if not body.is_whole:
            await body.drop_rest()

    async def answer(connection: Connection, scope: Any, protocol: Any, read_body: IncomingBody | None) -> None:
        method = scope.method
        try:
            request = _request_of(scope, read_body, connection.client, protocol)
            asked = admin if request.path.startswith(ADMIN_PREFIX) else door
            response = await asked.answer(request)
        except BodyRefused as refused:
            refuse(scope, protocol, refused)
        except ClientGone:
            # It may have closed its own direction alone, and still read.
            with suppress(ClientGone):
                refuse(scope, protocol, _cut_off())
        except Exception:
            # The path is the client's text: %r keeps line breaks in it from forging lines of the log.
            LOG.exception("a request could not be answered: %s %r", method, scope.path[:512])
            protocol.response_bytes(500, [_JSON], _INTERNAL_ERROR)
        else:
            if isinstance(response, StreamedResponse):
                await send_stream(connection, scope, protocol, response)
                return
            if not response.body:
                protocol.response_empty(response.status, response.headers)
                return
            size = 0 if method == "HEAD" else len(response.body)
            if size >= _LARGE_ANSWER_BYTES:
                if answers.is_exceeded and method == "GET":
                    # Many may have begun before the bytes were exceeded. Nothing is lost: it can be read again.
                    refuse(scope, protocol, _answers_exceeded())
                    return
                if answers.add(size):
                    port.look_soon()
            connection.answered_bytes += size
            protocol.response_bytes(response.status, response.headers, response.body)

    async def send_stream(connection: Connection, scope: Any, protocol: Any, response: StreamedResponse) -> None:
        if scope.method == "HEAD":
            await close_chunks(response.chunks)
            protocol.response_empty(response.status, response.headers)
        elif answers.is_exceeded and scope.method == "GET":
            await close_chunks(response.chunks)
            refuse(scope, protocol, _answers_exceeded())
        else:
            await port.streams.send(protocol, connection, response)

    return application


# Smaller ones fit into the kernel's buffers, and are counted when the connections are looked at.
_LARGE_ANSWER_BYTES = 16 * KIB
_INTERNAL_ERROR = (
    b'{"code":"InternalServerError","message":"The server met an error of its own; its log has the details."}'
)


def _request_of(scope: Any, read_body: IncomingBody | None, client: str, protocol: Any) -> Request:
    headers = scope.headers
    return Request(
        method=scope.method,
        path=scope.path,
        query_string=scope.query_string,
        headers=headers,
        body=b"",
        scheme=scope.scheme,
        authority=scope.authority or headers.get("host") or "",
        client_gone=protocol.client_disconnect,
        client_address=client,
        read_body=read_body,
    )


def _cut_off() -> BodyRefused:
    return BodyRefused(400, "BadRequest", "The connection ended before the body of the request did.")


def _answers_exceeded() -> BodyRefused:
    return BodyRefused(
        429,
        "TooManyRequests",
        "Clients have not read as many bytes of answers as the server may hold. Retry after a second, or raise the "
        "limit answer-bytes-in-flight.",
        retry_after_seconds=1,
    )


def _refuse(words: RefusalWords, scope: Any, protocol: Any, refused: BodyRefused) -> None:
    response = words.word_refusal(refused, _request_of(scope, None, scope.client, protocol))
    headers = response.headers
    if refused.retry_after_seconds is not None:
        # The second is what the official clients for items look at.
        seconds = refused.retry_after_seconds
        headers += [("retry-after", str(seconds)), ("x-ms-retry-after-ms", str(seconds * 1000))]
    elif scope.http_version.startswith("1"):
        # HTTP/2 has no such header; there only the stream ends.
        headers.append(_CLOSE)
    protocol.response_bytes(response.status, headers, response.body)


class _NosqlRefusals:
    def word_refusal(self, refused: BodyRefused, request: Request) -> Response:  # noqa: ARG002
        return Response(refused.status, [_JSON], dumps({"code": refused.code, "message": refused.message}))


_NOSQL_REFUSALS = _NosqlRefusals()
