"""The echo over HTTP, as a door of a server: with a setting, and with what the server gives to its doors."""

from __future__ import annotations

from collections.abc import Callable

from asterism.apis.transports.http import Request, Response


class EchoDoor:
    def __init__(self, prefix: bytes, new_request_id: Callable[[], str]) -> None:
        self._prefix = prefix
        self._new_request_id = new_request_id

    async def answer(self, request: Request) -> Response:
        body = b"" if request.read_body is None else await request.read_body()
        return Response(200, [("x-request-id", self._new_request_id())], self._prefix + body)
