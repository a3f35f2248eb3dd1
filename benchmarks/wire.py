"""Requests as bytes, signed with the account key, built once and sent many times."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

# The emulator's published key; every server of the benchmark is started with it.
ACCOUNT_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

ANSWER_SECONDS_MAX = 30.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class UnexpectedAnswer(Exception):
    """A server said something else than the benchmark needs to go on."""


def signed_headers(verb: str, *, resource_type: str, link: str) -> dict[str, str]:
    """A signature covers verb, type, link and date; not the body. One of them serves many requests."""
    date = formatdate(usegmt=True)
    text = f"{verb.lower()}\n{resource_type}\n{link}\n{date.lower()}\n\n"
    digest = hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
    token = quote(f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}", safe="")
    return {"authorization": token, "x-ms-date": date, "x-ms-version": "2020-07-15"}


def request_head(verb: str, path: str, headers: dict[str, str], *, body_length: int = 0) -> bytes:
    lines = [f"{verb} {path} HTTP/1.1", "host: 127.0.0.1", "accept: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body_length or verb in ("POST", "PUT"):
        lines += ["content-type: application/json", f"content-length: {body_length}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def signed_request(
    verb: str,
    path: str,
    *,
    resource_type: str,
    link: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> bytes:
    content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    sent = signed_headers(verb, resource_type=resource_type, link=link) | (headers or {})
    return request_head(verb, path, sent, body_length=len(content)) + content


def answer_length(data: bytes) -> int:
    """How many bytes of `data` are the first answer; 0 while it is not complete."""
    head_end = data.find(b"\r\n\r\n")
    if head_end < 0:
        return 0
    head = data[: head_end + 2].lower()
    start = head.find(b"\r\ncontent-length: ")
    if start >= 0:
        length = head_end + 4 + int(head[start + 18 : head.index(b"\r", start + 18)])
        return length if len(data) >= length else 0
    if b"\r\ntransfer-encoding: chunked" in head:
        # One request at a time per connection: what ends the data ends the answer.
        return len(data) if data.endswith(b"0\r\n\r\n") else 0
    return head_end + 4


def parse_answer(data: bytes) -> Answer:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    if "chunked" in headers.get("transfer-encoding", ""):
        body = join_chunks(body)
    return Answer(int(first.split(" ")[1]), headers, body)


def join_chunks(data: bytes) -> bytes:
    chunks = []
    while data:
        size, _, rest = data.partition(b"\r\n")
        length = int(size, 16)
        chunks.append(rest[:length])
        data = rest[length + 2 :]
    return b"".join(chunks)


class Caller:
    """One connection for the calls around a measurement: set-up, administration, checking."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, request: bytes) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(request)
        data = b""
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            while not answer_length(data):
                part = await reader.read(1 << 20)
                if not part:
                    self._streams = None
                    raise UnexpectedAnswer(f"the connection ended after {len(data)} bytes")
                data += part
        answer = parse_answer(data)
        if answer.headers.get("connection") == "close":
            await self.close()
        return answer

    async def expect(self, request: bytes, *statuses: int) -> Answer:
        answer = await self.call(request)
        if answer.status not in statuses:
            raise UnexpectedAnswer(f"{answer.status} instead of {statuses}: {answer.body[:300]!r}")
        return answer

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
