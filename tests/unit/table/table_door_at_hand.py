"""A door for tables on a store in memory, and requests signed for it."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate
from itertools import count
from typing import Any, cast
from urllib.parse import quote, unquote

from asterism.access.shared_key import shared_key_signature
from asterism.apis.http import Request
from asterism.apis.table.accounts import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, parse_account
from asterism.apis.table.door import TableDoor
from asterism.clock import SYSTEM_CLOCK
from asterism.values.json_text import dumps, loads
from tests.support.table_store import MemoryTableStore

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
        told = self.headers["x-ms-error-code"]
        assert told.encode() in self.body
        return told


class DoorAtHand:
    def __init__(self, *, is_cosmos: bool = False) -> None:
        self.store = MemoryTableStore(SYSTEM_CLOCK.wall_seconds)
        numbers = count()
        self.door = TableDoor(
            self.store,
            accounts={ACCOUNT: parse_account(f"{ACCOUNT}:{DEVELOPMENT_KEY}")},
            clock=SYSTEM_CLOCK,
            is_cosmos=is_cosmos,
            new_request_id=lambda: f"request-{next(numbers)}",
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
        told = {"x-ms-date": formatdate(date_seconds or time.time(), usegmt=True), **(headers or {})}
        if sign:
            comp = next((f"?{one}" for one in query.split("&") if one.startswith("comp=")), "")
            content_type = told.get("content-type", "")
            text = f"{method}\n\n{content_type}\n{told['x-ms-date']}\n/{ACCOUNT}{wire_path}{comp}"
            told["authorization"] = f"SharedKey {ACCOUNT}:{shared_key_signature(KEY, text)}"
        content = body if isinstance(body, bytes) else b"" if body is None else dumps(body)
        request = Request(
            method, unquote(wire_path), query, told, content, scheme, HOST, client_address="127.0.0.1:50000"
        )
        response = await self.door.answer(request)
        return Answer(response.status, dict(response.headers), response.body)

    async def create(self, table: str = "orders") -> None:
        answer = await self.send("POST", "Tables", {"TableName": table})
        assert answer.status == 201

    async def insert(self, partition_key: str = "p", row_key: str = "r", **properties: object) -> Answer:
        told = {"PartitionKey": partition_key, "RowKey": row_key, **properties}
        return await self.send("POST", "orders", told)

    async def get(self, partition_key: str = "p", row_key: str = "r") -> Any:
        answer = await self.send("GET", one(partition_key, row_key))
        return answer.json if answer.status == 200 else None

    async def query(self, text: str = "", **more: str) -> Answer:
        parameters = {"$filter": text, **{f"${name}": value for name, value in more.items()}} if text else more
        query = "&".join(f"{quote(name)}={quote(value)}" for name, value in parameters.items())
        return await self.send("GET", "orders()", query=query)


def one(partition_key: str = "p", row_key: str = "r", table: str = "orders") -> str:
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
    return f"PUT http://{HOST}/{ACCOUNT}/{one(partition_key, row_key)} HTTP/1.1\r\n\r\n{body}"


def insertion(partition_key: str, row_key: str) -> str:
    body = dumps({"PartitionKey": partition_key, "RowKey": row_key}).decode()
    return f"POST http://{HOST}/{ACCOUNT}/orders HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{body}"
