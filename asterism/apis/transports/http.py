"""HTTP as the doors see it: a request whose head has arrived, a response that is ready to go. No socket in sight."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

HeaderList = list[tuple[str, str]]


class Headers(Protocol):
    """Request headers, looked up by lower-case name."""

    def get(self, key: str, /) -> str | None: ...

    def __contains__(self, key: str, /) -> bool: ...

    def keys(self) -> Iterable[str]: ...


class RequestUnread(Exception):
    """The body of a request cannot be had; the listener knows the answer, doors let this pass."""


class BodyRefused(RequestUnread):
    """The body is not wanted, or does not arrive in time."""

    def __init__(self, status: int, code: str, message: str, *, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after_seconds = retry_after_seconds


class ClientGone(RequestUnread):
    """The client has closed its connection; an answer would reach no reader."""


class RequestBody(Protocol):
    """The body of a request that the listener has not read yet; it can be read once, in one of two ways.

    Without `bytes_max` the limit is the door's. A larger body raises BodyRefused, as does one that arrives too slowly;
    one that ends early raises ClientGone.
    """

    def __call__(self, bytes_max: int | None = None) -> Awaitable[bytes]:
        """Return the whole body."""
        ...

    def chunks(self, bytes_max: int | None = None) -> AsyncIterator[bytes]:
        """Return the body piece by piece. The client sends no faster than the pieces are taken."""
        ...


# Not frozen: one is made for every request, and freezing costs a microsecond. Treat it as if it were.
@dataclass(slots=True)
class Request:
    method: str
    # Percent-decoded by the listener (an encoded slash has become a slash), without the query string.
    path: str
    query_string: str
    headers: Headers
    body: bytes
    scheme: str
    # The `Host` (or :authority) the client used, port included.
    authority: str
    # Comes to its end when the client closes its connection; long work asks for it.
    client_gone: Callable[[], Awaitable[None]] | None = None
    # Address and port of the client, as `127.0.0.1:54321`.
    client_address: str = ""
    # Reads the body, for methods that may have one. Doors call it when they know route and sender of the request:
    # until then `body` is empty, and a stranger's bytes cost no memory.
    read_body: RequestBody | None = None

    def body_chunks(self, *, bytes_max: int | None = None) -> AsyncIterator[bytes]:
        """Return the body piece by piece, for routes whose bodies are too large for memory."""
        return _whole(self.body) if self.read_body is None else self.read_body.chunks(bytes_max)


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body


@dataclass(slots=True)
class Response:
    status: int
    headers: HeaderList
    body: bytes = b""


@dataclass(slots=True)
class StreamedResponse:
    """A response whose body is made while it is sent, no faster than the client reads it.

    `chunks` is closed when the client goes away, wherever it waits. If it raises, the connection is cut, so that the
    client does not take what it got for the whole. Give `content-length` where it is known.
    """

    status: int
    headers: HeaderList
    chunks: AsyncIterator[bytes]
    # Set for a stream that has no end of its own, such as events: the server then ends it when it stops, and does not
    # wait for it.
    is_endless: bool = False


Answer = Response | StreamedResponse


class Door(Protocol):
    """A protocol's front: turns a request into a response, and every error of the list into its own words."""

    async def answer(self, request: Request) -> Answer: ...


@runtime_checkable
class RefusalWords(Protocol):
    """A door that words what the listener refuses on its own; for the others it has the form of the NoSQL protocol."""

    def word_refusal(self, refused: BodyRefused, request: Request) -> Response: ...
