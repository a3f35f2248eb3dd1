"""A Gremlin client of bare messages, for those that no real client would send."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.clients.gremlin_door import Door
from tests.support.server import WAIT_SECONDS_MAX

GRAPHSON_2 = "application/vnd.gremlin-v2.0+json"
PARTIAL = 206


def framed(body: bytes, mime: str = GRAPHSON_2) -> bytes:
    return bytes([len(mime)]) + mime.encode() + body


def request(arguments: object, *, operation: object = "eval", mime: str = GRAPHSON_2, **more: object) -> bytes:
    message = {"requestId": str(uuid.uuid4()), "op": operation, "processor": "", "args": arguments, **more}
    return framed(json.dumps(message).encode(), mime)


def script(text: object, **arguments: object) -> bytes:
    return request({"gremlin": text, **arguments})


class BareSocket:
    """A websocket to the door, and its answers in JSON."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def send(self, message: bytes) -> None:
        await self.socket.send_bytes(message)

    async def receive(self) -> Any:
        """Return the last message of the next answer."""
        while True:
            data = await self.receive_bytes()
            answer = json.loads(data)
            if answer["status"]["code"] != PARTIAL:
                return answer

    async def receive_bytes(self) -> bytes:
        message = await self.socket.receive(timeout=WAIT_SECONDS_MAX)
        assert message.type is aiohttp.WSMsgType.BINARY, message
        data: bytes = message.data
        return data

    async def ask(self, message: bytes) -> Any:
        await self.send(message)
        return await self.receive()

    async def log_in(self, user: str) -> None:
        sasl = base64.b64encode(f"\0{user}\0{WELL_KNOWN_EMULATOR_KEY}".encode()).decode()
        answer = await self.ask(request({"sasl": sasl}, operation="authentication"))
        assert answer["status"]["code"] == 200


@asynccontextmanager
async def bare_socket(door: Door, *, logs_in: bool = True) -> AsyncIterator[BareSocket]:
    async with aiohttp.ClientSession() as session, session.ws_connect(door.url, max_msg_size=0) as connected:
        bare = BareSocket(connected)
        if logs_in:
            await bare.log_in(door.user)
        yield bare
