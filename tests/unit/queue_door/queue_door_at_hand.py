"""A door for queues on the engine in memory, and requests signed for it."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import formatdate
from itertools import count
from urllib.parse import parse_qsl, unquote
from xml.etree import ElementTree

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asterism.access.shared_key import shared_key_signature
from asterism.apis.pipeline import RequestMeter
from asterism.apis.queue.context import QueueContext
from asterism.apis.queue.rules import QueueRules
from asterism.apis.storage.accounts import parse_account
from asterism.apis.storage.door import StorageDoor
from asterism.apis.transports.http import Request, Response
from asterism.clock import SYSTEM_CLOCK
from tests.support.queues import QueueWorld, open_queues

KEY = base64.b64decode(DEVELOPMENT_KEY)
HOST = "127.0.0.1:10001"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def xml(self) -> ElementTree.Element:
        return ElementTree.fromstring(self.body)

    @property
    def code(self) -> str:
        """The code of an error; both places that have it must agree."""
        code = self.headers["x-ms-error-code"]
        assert f"<Code>{code}</Code>".encode() in self.body
        return code


class QueueDoorAtHand:
    def __init__(self, world: QueueWorld) -> None:
        self.world = world
        numbers = count()
        self.door: StorageDoor[QueueContext] = StorageDoor(
            QueueRules(world.queues),
            accounts={DEVELOPMENT_ACCOUNT: parse_account(f"{DEVELOPMENT_ACCOUNT}:{DEVELOPMENT_KEY}")},
            clock=SYSTEM_CLOCK,
            new_request_id=lambda: f"request-{next(numbers)}",
            meter=RequestMeter(SYSTEM_CLOCK.monotonic_seconds),
        )

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        secondary: bool = False,
    ) -> Reply:
        """`path` as it is on the wire, behind the account, with its query."""
        account = f"{DEVELOPMENT_ACCOUNT}-secondary" if secondary else DEVELOPMENT_ACCOUNT
        path, _, query = path.partition("?")
        wire_path = f"/{account}/{path}"
        sent = {"x-ms-date": formatdate(time.time(), usegmt=True), "host": HOST, **(headers or {})}
        sent["authorization"] = _authorization(method, wire_path, query, sent)
        request = Request(method, unquote(wire_path), query, sent, body, "http", HOST, client_address="127.0.0.1:50000")
        answer = await self.door.answer(request)
        assert isinstance(answer, Response)
        return Reply(answer.status, dict(answer.headers), answer.body)


def _authorization(method: str, path: str, query: str, headers: Mapping[str, str]) -> str:
    named = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers) if name.startswith("x-ms-"))
    parameters = sorted((name.lower(), unquote(value)) for name, value in parse_qsl(query, keep_blank_values=True))
    resource = f"/{DEVELOPMENT_ACCOUNT}{path}" + "".join(f"\n{name}:{value}" for name, value in parameters)
    text = f"{method}\n\n\n\n\n{headers.get('content-type', '')}\n\n\n\n\n\n\n{named}{resource}"
    return f"SharedKey {DEVELOPMENT_ACCOUNT}:{shared_key_signature(KEY, text)}"


@asynccontextmanager
async def open_door() -> AsyncIterator[QueueDoorAtHand]:
    async with open_queues(None) as world:
        yield QueueDoorAtHand(world)
