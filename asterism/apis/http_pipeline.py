"""The pipeline of doors over HTTP: request ids, the guard against web pages, and the listener's own errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Final, TypeVar

from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.injected_faults import InjectedFaults
from asterism.apis.pipeline import UNROUTED, AnyAnswer, Pipeline, RequestMeter, Words
from asterism.apis.transports.http import Request, RequestBody, RequestUnread
from asterism.errors import AsterismError, Forbidden

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


def _routed_operation(call: HttpCall) -> str:
    return call.operation


def make_pipeline(
    name: str,
    words: Words[AnyHttpCall, AnyAnswer],
    handle: Callable[[AnyHttpCall], Awaitable[AnyAnswer]],
    meter: RequestMeter,
    guard: BrowserGuard | None = None,
    *,
    operations: Collection[str] = (),
    asked_operation: Callable[[AnyHttpCall], str] = _routed_operation,
) -> Pipeline[AnyHttpCall, AnyAnswer]:
    """`guard`: given while every web page knows the key of the door's only account. `operations` are those that a test
    suite can make fail: none for a door that is not for data. `asked_operation` names the operation of a call whose
    route is known, where its handler would name it only later."""
    chosen = handle if guard is None else _guarded(guard, handle)
    if meter.faults is not None and operations:
        meter.faults.know_door(name, operations)
        chosen = _failing(meter.faults, name, chosen, asked_operation)
    return Pipeline(name, words, chosen, meter, transport_errors=(RequestUnread,))


def _guarded(
    guard: BrowserGuard, handle: Callable[[AnyHttpCall], Awaitable[AnyAnswer]]
) -> Callable[[AnyHttpCall], Awaitable[AnyAnswer]]:
    # Not a coroutine function: a coroutine around another would cost every request.
    def handle_guarded(call: AnyHttpCall) -> Awaitable[AnyAnswer]:
        reason = guard.refusal(call.request.headers, call.request.authority)
        if reason is not None:
            raise Forbidden(reason=reason)
        return handle(call)

    return handle_guarded


def _failing(
    faults: InjectedFaults,
    door: str,
    handle: Callable[[AnyHttpCall], Awaitable[AnyAnswer]],
    asked_operation: Callable[[AnyHttpCall], str],
) -> Callable[[AnyHttpCall], Awaitable[AnyAnswer]]:
    def handle_or_fail(call: AnyHttpCall) -> Awaitable[AnyAnswer]:
        request = call.request
        request.read_body = _FaultPoint(request, request.read_body, lambda: faults.take(door, asked_operation(call)))
        return handle(call)

    return handle_or_fail


class _FaultPoint:
    """Stand in for the body of a request: doors read it when route and sender are known, and nothing is done yet."""

    def __init__(
        self, request: Request, body: RequestBody | None, take_fault: Callable[[], AsterismError | None]
    ) -> None:
        self._request = request
        self._body = body
        self._take_fault = take_fault

    async def __call__(self, bytes_max: int | None = None) -> bytes:
        self._fail_if_asked()
        return self._request.body if self._body is None else await self._body(bytes_max)

    async def chunks(self, bytes_max: int | None = None) -> AsyncIterator[bytes]:
        self._fail_if_asked()
        self._request.read_body = self._body
        async for chunk in self._request.body_chunks(bytes_max=bytes_max):
            yield chunk

    def _fail_if_asked(self) -> None:
        fault = self._take_fault()
        if fault is not None:
            raise fault
