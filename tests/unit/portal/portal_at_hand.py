"""The portal and the doors that it asks, in this process, over a store in memory."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.apis.transports.http import Door, Request, Response
from asterism.server.assemble import Assembly, assembled
from asterism.server.configure import configured
from asterism.server.data_directory import in_memory

HOST = "127.0.0.1:8090"
_CSRF = re.compile(r'<meta name="csrf" content="([^"]*)">')


@dataclass
class Visitor:
    """A browser's side of the portal: it keeps the cookie, and takes the token from the pages."""

    door: Door
    cookie: str = ""
    csrf: str = ""
    host: str = HOST
    sent: dict[str, str] = field(default_factory=dict)

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        with_csrf: bool = True,
    ) -> Response:
        given = {**self.sent, **(headers or {})}
        if self.cookie:
            given["cookie"] = self.cookie
        if self.csrf and with_csrf and method != "GET":
            given.setdefault("x-csrf-token", self.csrf)
        request = Request(
            method=method,
            path=path,
            query_string=urlencode(query or {}),
            headers=given,
            body=body,
            scheme="http",
            authority=self.host,
        )
        response = await self.door.answer(request)
        assert isinstance(response, Response)
        for name, value in response.headers:
            if name == "set-cookie":
                self.cookie = value.partition(";")[0]
        found = _CSRF.search(response.body.decode(errors="replace"))
        if found is not None and found[1]:
            self.csrf = found[1]
        return response

    async def sign_in(self, key: str = WELL_KNOWN_EMULATOR_KEY, *, next: str = "/") -> Response:
        answer = await self.send("POST", "/sign-in", body=urlencode({"key": key, "next": next}).encode())
        if answer.status == 303:
            await self.send("GET", "/")
        return answer

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """Send a request of a script; return status and JSON."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = b"" if body is None else json.dumps(body).encode()
        answer = await self.send(
            method, f"/api/{path}", body=content, headers={"content-type": "application/json", **named}
        )
        return answer.status, json.loads(answer.body) if answer.body else None


def header_of(response: Response, name: str) -> str:
    return next((value for key, value in response.headers if key.lower() == name), "")


@asynccontextmanager
async def assembled_portal(**options: Any) -> AsyncIterator[Assembly]:
    """Open a server without listeners; `options` are those of `asterism serve`."""
    config = configured({"data": ":memory:", "apis": "nosql,table,portal", **options})
    with in_memory(https=False) as directory:
        async with assembled(config, directory) as assembly:
            yield assembly


def visitor(assembly: Assembly, **about: Any) -> Visitor:
    door = assembly.doors["portal"]
    return Visitor(door, **about)  # type: ignore[arg-type]
