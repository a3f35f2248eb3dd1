"""HTTP as the doors see it: a request whose head has arrived, a response that is ready to go. No socket in sight."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

HeaderList = list[tuple[str, str]]


class Headers(Protocol):
    """Request headers, looked up by lower-case name."""

    def get(self, key: str, /) -> str | None: ...

    def __contains__(self, key: str, /) -> bool: ...


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
    """The client has closed its connection in the middle of the request; an answer would reach no reader."""


# Not frozen, because one is made for every request and freezing costs a microsecond; nobody changes one all the same.
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
    read_body: Callable[[], Awaitable[bytes]] | None = None


@dataclass(slots=True)
class Response:
    status: int
    headers: HeaderList
    body: bytes = b""


class Door(Protocol):
    """A protocol's front: turns a request into a response, and every error of the list into its own words."""

    async def answer(self, request: Request) -> Response: ...
