"""A door for tables on the engine in memory, and requests signed for it."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import formatdate
from itertools import count
from typing import Any, cast
from urllib.parse import quote, unquote

import pytest

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asterism.access.shared_key import shared_key_signature
from asterism.apis.pipeline import RequestMeter
from asterism.apis.storage.accounts import parse_account
from asterism.apis.table.door import TableDoor
from asterism.apis.transports.http import Request
from asterism.clock import SYSTEM_CLOCK
from asterism.languages.odata import search
from asterism.models.tables.store import TableStore
from asterism.values.json.text import dumps, loads
from tests.support.tables import open_tables

ACCOUNT = DEVELOPMENT_ACCOUNT
KEY = base64.b64decode(DEVELOPMENT_KEY)
HOST = "127.0.0.1:10002"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error; both places that tell it must agree."""
        code = self.headers["x-ms-error-code"]
        assert code.encode() in self.body
        return code


class DoorAtHand:
    def __init__(self, store: TableStore, *, is_cosmos: bool) -> None:
        self.store = store
        numbers = count()
        meter = RequestMeter(SYSTEM_CLOCK.monotonic_seconds)
        self.requests = meter.counts.of_door("cosmos-table" if is_cosmos else "table")
        self.door = TableDoor(
            self.store,
            accounts={ACCOUNT: parse_account(f"{ACCOUNT}:{DEVELOPMENT_KEY}")},
            clock=SYSTEM_CLOCK,
            is_cosmos=is_cosmos,
            new_request_id=lambda: f"request-{next(numbers)}",
            meter=meter,
        )

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        sign: bool = True,
        scheme: str = "http",
        date_seconds: float | None = None,
    ) -> Answer:
        """`path` as it is on the wire, behind the account."""
        wire_path = f"/{ACCOUNT}/{path}"
        sent = {"x-ms-date": formatdate(date_seconds or time.time(), usegmt=True), **(headers or {})}
        if sign:
            comp = next((f"?{parameter}" for parameter in query.split("&") if parameter.startswith("comp=")), "")
            content_type = sent.get("content-type", "")
            text = f"{method}\n\n{content_type}\n{sent['x-ms-date']}\n/{ACCOUNT}{wire_path}{comp}"
            sent["authorization"] = f"SharedKey {ACCOUNT}:{shared_key_signature(KEY, text)}"
        content = body if isinstance(body, bytes) else b"" if body is None else dumps(body)
        request = Request(
            method, unquote(wire_path), query, sent, content, scheme, HOST, client_address="127.0.0.1:50000"
        )
        response = await self.door.answer(request)
        return Answer(response.status, dict(response.headers), response.body)

    async def create(self, table: str = "orders") -> None:
        answer = await self.send("POST", "Tables", {"TableName": table})
        assert answer.status == 201

    async def insert(self, partition_key: str = "p", row_key: str = "r", **properties: object) -> Answer:
        entity = {"PartitionKey": partition_key, "RowKey": row_key, **properties}
        return await self.send("POST", "orders", entity)

    async def get(self, partition_key: str = "p", row_key: str = "r") -> Any:
        answer = await self.send("GET", entity_path(partition_key, row_key))
        return answer.json if answer.status == 200 else None

    async def query(self, text: str = "", **more: str) -> Answer:
        parameters = {"$filter": text, **{f"${name}": value for name, value in more.items()}} if text else more
        query = "&".join(f"{quote(name)}={quote(value)}" for name, value in parameters.items())
        return await self.send("GET", "orders()", query=query)


@asynccontextmanager
async def open_door(*, is_cosmos: bool = False) -> AsyncIterator[DoorAtHand]:
    """No page ends because the machine is busy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "PAGE_SECONDS_MAX", 3600.0)
        async with open_tables(None) as tables:
            yield DoorAtHand(tables.tables, is_cosmos=is_cosmos)


def entity_path(partition_key: str = "p", row_key: str = "r", table: str = "orders") -> str:
    return f"{table}(PartitionKey='{quote(partition_key, safe='')}',RowKey='{quote(row_key, safe='')}')"


def rows(answer: Answer) -> list[tuple[str, str]]:
    return [(row["PartitionKey"], row["RowKey"]) for row in cast("list[dict[str, str]]", answer.json["value"])]


def change_set(*operations: str) -> tuple[bytes, dict[str, str]]:
    """A batch of operations, each a request as text; and its headers."""
    head = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    inner = "".join(f"--changeset_1\r\n{head}{operation}\r\n" for operation in operations)
    body = f"--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n{inner}--changeset_1--\r\n"
    return f"{body}\r\n--batch_1--\r\n".encode(), {"content-type": "multipart/mixed; boundary=batch_1"}


def upsert(partition_key: str, row_key: str, body: str = "{}") -> str:
    return f"PUT http://{HOST}/{ACCOUNT}/{entity_path(partition_key, row_key)} HTTP/1.1\r\n\r\n{body}"


def insertion(partition_key: str, row_key: str) -> str:
    body = dumps({"PartitionKey": partition_key, "RowKey": row_key}).decode()
    return f"POST http://{HOST}/{ACCOUNT}/orders HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{body}"
