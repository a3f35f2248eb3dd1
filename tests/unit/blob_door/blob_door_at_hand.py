"""A door for blobs on the engine in memory, and requests signed for it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import formatdate
from itertools import count
from urllib.parse import unquote
from xml.etree import ElementTree

from azure.storage.blob._shared import sign_string

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asterism.apis.blob.account_rules import AccountRuleBook
from asterism.apis.blob.context import BlobContext
from asterism.apis.blob.rules import BlobRules
from asterism.apis.blob.spec import BlobSettings
from asterism.apis.pipeline import RequestMeter
from asterism.apis.storage.accounts import parse_account
from asterism.apis.storage.door import StorageDoor
from asterism.apis.transports.http import Request, Response
from asterism.clock import SYSTEM_CLOCK
from tests.support.blobs import BlobWorld, open_blobs

HOST = "127.0.0.1:10000"
_SIGNED_HEADERS = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)


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
        return self.headers["x-ms-error-code"]

    @property
    def outcome(self) -> tuple[int, str]:
        return self.status, self.code


class BlobDoorAtHand:
    def __init__(self, world: BlobWorld, settings: BlobSettings) -> None:
        self.world = world
        requests, leases = count(), count(1)
        book = AccountRuleBook(settings, world.blobs, SYSTEM_CLOCK.monotonic_seconds)
        context = BlobContext(
            world.blobs, settings, book, SYSTEM_CLOCK, lambda: f"00000000-0000-4000-8000-{next(leases):012d}"
        )
        self.door: StorageDoor[BlobContext] = StorageDoor(
            BlobRules(context),
            accounts={DEVELOPMENT_ACCOUNT: parse_account(f"{DEVELOPMENT_ACCOUNT}:{DEVELOPMENT_KEY}")},
            clock=SYSTEM_CLOCK,
            new_request_id=lambda: f"request-{next(requests)}",
            meter=RequestMeter(SYSTEM_CLOCK.monotonic_seconds),
        )

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        signed: bool = True,
    ) -> Reply:
        """`path` as it is on the wire, behind the account, with its query."""
        path, _, query = path.partition("?")
        wire_path = f"/{DEVELOPMENT_ACCOUNT}/{path}"
        sent = {"x-ms-date": formatdate(time.time(), usegmt=True), "x-ms-version": "2026-10-06", **(headers or {})}
        sent["content-length"] = str(len(body))
        if signed:
            sent["authorization"] = _authorization(method, wire_path, query, sent)
        request = Request(method, unquote(wire_path), query, sent, body, "http", HOST, client_address="127.0.0.1:50000")
        answer = await self.door.answer(request)
        if isinstance(answer, Response):
            return Reply(answer.status, dict(answer.headers), answer.body)
        return Reply(answer.status, dict(answer.headers), b"".join([piece async for piece in answer.chunks]))

    async def put(self, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Reply:
        return await self.send("PUT", path, body, {"x-ms-blob-type": "BlockBlob", **(headers or {})})

    async def make_container(self, name: str, headers: Mapping[str, str] | None = None) -> None:
        assert (await self.send("PUT", f"{name}?restype=container", headers=headers)).status == 201


def _authorization(method: str, path: str, query: str, headers: Mapping[str, str]) -> str:
    named = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers) if name.startswith("x-ms-"))
    parameters = sorted(pair.partition("=")[::2] for pair in query.split("&") if pair)
    resource = f"/{DEVELOPMENT_ACCOUNT}{path}" + "".join(
        f"\n{name.lower()}:{unquote(value)}" for name, value in parameters
    )
    # An empty body has no length in the signed text.
    given = {name: "" if (name, value) == ("content-length", "0") else value for name, value in headers.items()}
    values = "".join(f"{given.get(name, '')}\n" for name in _SIGNED_HEADERS)
    text = f"{method}\n{values}{named}{resource}"
    return f"SharedKey {DEVELOPMENT_ACCOUNT}:{sign_string(DEVELOPMENT_KEY, text)}"


@asynccontextmanager
async def open_door(settings: BlobSettings | None = None) -> AsyncIterator[BlobDoorAtHand]:
    async with open_blobs(None) as world:
        yield BlobDoorAtHand(world, settings or BlobSettings())
