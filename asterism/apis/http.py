"""HTTP as the doors see it: a request that has arrived whole, a response that is ready to go. No socket in sight."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

HeaderList = list[tuple[str, str]]


class Headers(Protocol):
    """Request headers, looked up by lower-case name."""

    def get(self, key: str, /) -> str | None: ...

    def __contains__(self, key: str, /) -> bool: ...


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


@dataclass(slots=True)
class Response:
    status: int
    headers: HeaderList
    body: bytes = b""


class Door(Protocol):
    """A protocol's front: turns a request into a response, and every error of the list into its own words."""

    async def answer(self, request: Request) -> Response: ...
