"""The Gremlin door: websockets with a connection's login each, and scripts over plain HTTP."""

from __future__ import annotations

from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.gremlin.connection import GremlinConnection
from asterism.apis.gremlin.http import HttpScripts
from asterism.apis.gremlin.login import LoginDesk
from asterism.apis.gremlin.running import Runner
from asterism.apis.transports.http import Request, Response
from asterism.apis.transports.websocket import WebSocket


class GremlinDoor:
    """Answers at one port, on any path: clients use `/` or `/gremlin`."""

    def __init__(self, runner: Runner, desk: LoginDesk, scripts: HttpScripts, guard: BrowserGuard | None) -> None:
        self._runner = runner
        self._desk = desk
        self._scripts = scripts
        self._guard = guard

    async def serve_websocket(self, socket: WebSocket) -> None:
        """Serve a connection, unless a web page asks for it while it could know the key of the account."""
        reason = None
        if self._guard is not None:
            reason = self._guard.refusal(socket.headers, socket.headers.get("host") or "")
        if reason is not None:
            await socket.refuse(403, reason.encode())
            return
        await socket.accept()
        await GremlinConnection(socket, self._runner, self._desk).serve()

    async def answer(self, request: Request) -> Response:
        return await self._scripts.answer(request)
