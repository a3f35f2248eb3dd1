"""The pipeline of doors over HTTP: request ids, the guard against web pages, and the listener's own errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.pipeline import UNROUTED, Pipeline, RequestMeter, Words
from asterism.apis.transports.http import Request, RequestUnread, Response
from asterism.errors import Forbidden

# Of a client's own name for its request: a GUID has 36, and an answer does not carry back any length.
REQUEST_ID_CHARACTERS_MAX: Final = 64
_SHOWN_PATH_CHARACTERS_MAX: Final = 512


class HttpCall:
    """A request on its way to its route. Doors that know more of a call derive from it."""

    __slots__ = ("operation", "request", "request_id")

    def __init__(self, request: Request, request_id: str) -> None:
        self.request = request
        self.request_id = request_id
        self.operation = UNROUTED


AnyHttpCall = TypeVar("AnyHttpCall", bound=HttpCall)


def describe(call: HttpCall) -> str:
    # The path is the client's text: repr keeps line breaks in it from forging lines of the log.
    return f"{call.request.method} {call.request.path[:_SHOWN_PATH_CHARACTERS_MAX]!r}"


async def read_body(request: Request) -> None:
    """Read the body, now that route and sender are known; until then a stranger's bytes cost no memory."""
    if request.read_body is not None:
        request.body = await request.read_body()


def make_pipeline(
    name: str,
    words: Words[AnyHttpCall, Response],
    handle: Callable[[AnyHttpCall], Awaitable[Response]],
    meter: RequestMeter,
    guard: BrowserGuard | None = None,
) -> Pipeline[AnyHttpCall, Response]:
    """`guard`: given while every web page knows the key of the door's only account."""
    chosen = handle if guard is None else _guarded(guard, handle)
    return Pipeline(name, words, chosen, meter, transport_errors=(RequestUnread,))


def _guarded(
    guard: BrowserGuard, handle: Callable[[AnyHttpCall], Awaitable[Response]]
) -> Callable[[AnyHttpCall], Awaitable[Response]]:
    # Not a coroutine function: a coroutine around another would cost every request.
    def handle_guarded(call: AnyHttpCall) -> Awaitable[Response]:
        reason = guard.refusal(call.request.headers, call.request.authority)
        if reason is not None:
            raise Forbidden(reason=reason)
        return handle(call)

    return handle_guarded
