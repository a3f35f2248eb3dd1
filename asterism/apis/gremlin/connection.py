"""One connection: its login, and its requests, which run beside each other.

A request that comes before the login is challenged and kept; those that come while the challenge is open wait. The
answer to the challenge may carry another id than the request it is for, and is answered under that request's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Final

from asterism.apis.gremlin.call import Call
from asterism.apis.gremlin.errors import AUTHENTICATE, UNAUTHORIZED, UNFORESEEN, Refusal, as_refusal, malformed
from asterism.apis.gremlin.frames import Format, read_frame
from asterism.apis.gremlin.login import Login, LoginDesk
from asterism.apis.gremlin.malformed import InvalidCredentials, MalformedMessage
from asterism.apis.gremlin.requests import Request, read_request
from asterism.apis.gremlin.running import AUTHENTICATION, Runner
from asterism.apis.gremlin.sasl import read_sasl
from asterism.apis.transports.http import ClientGone
from asterism.apis.transports.websocket import WebSocket

# Of one connection at a time. Clients in JavaScript send all they have over one connection; the rest waits unread.
REQUESTS_MAX: Final = 32
# Requests that wait for the login: a stranger's, so there is room for little.
WAITING_REQUESTS_MAX: Final = 4096
WAITING_BYTES_MAX: Final = 1024 * 1024
_TOO_MANY_WAITING: Final = malformed("Too many requests wait for the login of their connection. Log in first.")


class GremlinConnection:
    """Serves one websocket from its first message to its end."""

    def __init__(self, socket: WebSocket, runner: Runner, desk: LoginDesk) -> None:
        self._socket = socket
        self._runner = runner
        self._desk = desk
        self._authority = socket.headers.get("host") or ""
        self._login: Login | None = None
        self._challenged: Request | None = None
        self._waiting: deque[Request] = deque()
        self._waiting_bytes = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(REQUESTS_MAX)

    async def serve(self) -> None:
        """Answer requests until the client goes or the server stops; then those under way end, or are cancelled."""
        socket = self._socket
        try:
            while (message := await socket.receive()) is not None:
                await self._take(_read(message))
            if socket.is_draining and self._tasks:
                # A copy: they leave the set when they end, maybe before the wait begins.
                await socket.while_connected(asyncio.wait(list(self._tasks)))
        except ClientGone:
            pass
        finally:
            await self._cancel_all()

    async def _take(self, request: Request) -> None:
        if request.operation == AUTHENTICATION and request.problem is None:
            await self._authenticate(request)
        elif self._login is not None:
            await self._start(request)
        elif request.problem is not None:
            # There is nothing to keep for the time after the login.
            await self._refuse(request, as_refusal(request.problem) or UNFORESEEN)
        elif self._challenged is None:
            await self._challenge(request)
        elif len(self._waiting) >= WAITING_REQUESTS_MAX or self._waiting_bytes + request.size_bytes > WAITING_BYTES_MAX:
            await self._refuse(request, _TOO_MANY_WAITING)
        else:
            self._waiting.append(request)
            self._waiting_bytes += request.size_bytes

    # --- login -------------------------------------------------------------------------------------------------------

    async def _challenge(self, request: Request) -> None:
        self._challenged = request
        await self._socket.send(self._runner.writer(request).finish_without_results(AUTHENTICATE))

    async def _authenticate(self, answer: Request) -> None:
        challenged, self._challenged = self._challenged, None

        async def admit(_: Call) -> Login:
            credentials = read_sasl(answer.arguments)
            if credentials is None:
                raise InvalidCredentials
            return await self._desk.check(credentials, self._authority)

        self._login, outcome = await self._runner.log_in(challenged or answer, admit)
        if self._login is None or challenged is None:
            # The client did not wait to be asked, if this is no refusal.
            await self._socket.send(outcome.message)
        else:
            await self._start(challenged)
        if self._login is None:
            await self._challenge_next()
        else:
            while self._waiting:
                await self._start(self._next_waiting())

    async def _challenge_next(self) -> None:
        """Ask again, for the next request: its client may send other credentials."""
        if self._waiting:
            await self._challenge(self._next_waiting())

    def _next_waiting(self) -> Request:
        request = self._waiting.popleft()
        self._waiting_bytes -= request.size_bytes
        return request

    async def _refuse(self, request: Request, refusal: Refusal) -> None:
        await self._socket.send(self._runner.refuse(request, refusal))

    # --- requests ----------------------------------------------------------------------------------------------------

    async def _start(self, request: Request) -> None:
        """Run a request beside the others; wait while there are too many."""
        if self._slots.locked():
            await self._socket.while_connected(self._slots.acquire())
        else:
            await self._slots.acquire()
        task = asyncio.create_task(self._run(request))
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._slots.release()

    async def _run(self, request: Request) -> None:
        with contextlib.suppress(ClientGone):
            answer = await self._runner.run(request, self._admit, self._socket.send)
            if answer.status == UNAUTHORIZED:
                self._login = None
            await self._socket.send(answer.message)

    async def _admit(self, _: Call) -> Login:
        login = self._login
        if login is None:
            # Another request has found that it holds no more.
            raise InvalidCredentials
        return await self._desk.renewed(login, self._authority)

    async def _cancel_all(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _read(message: bytes | str) -> Request:
    try:
        frame = read_frame(message)
    except MalformedMessage as problem:
        # In the format that clients with an unknown one are most likely to read.
        return Request(Format.JSON, is_untyped=True, problem=problem)
    return read_request(frame)
