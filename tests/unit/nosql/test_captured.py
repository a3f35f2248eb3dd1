"""Requests that a capture keeps although the door refused them, and those that it does not keep."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import cast

import pytest

from asterism.advisor.captured_request import CapturedRequest, read_capture
from asterism.apis.nosql.door import NoSqlDoor
from asterism.apis.transports.http import Request
from asterism.clock import Clock
from asterism.server.assemble import Assembly, assembled
from asterism.server.config import ServerConfig
from asterism.server.data_directory import DataDirectory
from asterism.values.json.text import dumps
from tests.unit.nosql.door_at_hand import ITEMS, authorization, key

# Budgets do not fill again.
STANDING_STILL = Clock(time.time, lambda: 1000.0)


@dataclass(frozen=True)
class Captured:
    """A server that captures every request on d/c."""

    assembly: Assembly

    async def send(self, method: str, path: str, body: object = None, *, headers: dict[str, str] | None = None) -> int:
        date = formatdate(usegmt=True)
        sent = {"x-ms-date": date, "authorization": authorization(method, path, date=date), **(headers or {})}
        content = body if isinstance(body, bytes) else b"" if body is None else dumps(body)
        door = cast(NoSqlDoor, self.assembly.doors["nosql"])
        return (await door.answer(Request(method, f"/{path}/", "", sent, content, "http", "localhost"))).status

    async def create(self, item_id: str, **more: object) -> int:
        return await self.send("POST", ITEMS, {"id": item_id, "pk": "a", **more}, headers=key("a"))

    async def kept(self) -> list[CapturedRequest]:
        captures = self.assembly.services.captures
        documents = self.assembly.services.documents
        database = documents.database(self.assembly.services.account, "d")
        content = b"".join([piece async for piece in captures.pieces(documents.container(database, "c").keyspace)])
        entries = read_capture(content.splitlines(keepends=True))
        return [entry for entry in entries if isinstance(entry, CapturedRequest)]


@pytest.fixture
async def captured(tmp_path: Path) -> AsyncIterator[Captured]:
    async with assembled(ServerConfig(), DataDirectory(tmp_path), clock=STANDING_STILL) as assembly:
        at_hand = Captured(assembly)
        await at_hand.send("POST", "dbs", {"id": "d"})
        await at_hand.send("POST", "dbs/d/colls", {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}})
        documents = assembly.services.documents
        container = documents.container(documents.database(assembly.services.account, "d"), "c")
        await assembly.services.captures.start(
            container.keyspace, sampling=1.0, bytes_max=1_000_000, seconds_max=600.0, keeps_values=True
        )
        yield at_hand


async def test_throttled_requests_are_kept_with_what_they_named(captured: Captured) -> None:
    statuses = [await captured.create(str(number), text="x" * 300_000) for number in range(40)]
    kept = await captured.kept()
    assert {201, 429} == set(statuses)
    assert [request.status for request in kept] == statuses
    assert (kept[-1].operation, kept[-1].item_id, kept[-1].key, kept[-1].status) == ("create", "39", ("a",), 429)


async def test_conflicts_and_failed_conditions_are_kept(captured: Captured) -> None:
    await captured.create("1")
    await captured.create("1")
    await captured.send("DELETE", f"{ITEMS}/1", headers=key("a") | {"if-match": '"another"'})
    assert [request.status for request in await captured.kept()] == [201, 409, 412]


async def test_malformed_requests_are_not_kept(captured: Captured) -> None:
    assert await captured.send("POST", ITEMS, b"{nonsense", headers=key("a")) == 400
    assert await captured.send("GET", f"{ITEMS}/1") == 400
    assert await captured.send("POST", ITEMS, {"id": "1", "pk": "b"}, headers=key("a")) == 400
    assert await captured.kept() == []


async def test_requests_on_the_container_itself_are_not_kept(captured: Captured) -> None:
    assert await captured.send("GET", "dbs/d/colls/c") == 200
    assert await captured.send("GET", "dbs/d/colls/c/pkranges") == 200
    assert await captured.kept() == []


async def test_operations_of_a_bulk_request_stand_alone(captured: Captured) -> None:
    operations = [
        {"operationType": "Create", "partitionKey": f'["{key_value}"]', "resourceBody": {"id": "1", "pk": key_value}}
        for key_value in ("a", "b")
    ]
    sent = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-continue-on-error": "True"}
    assert await captured.send("POST", ITEMS, operations, headers=sent) == 200
    kept = await captured.kept()
    assert [(request.operation, request.key, request.batch) for request in kept] == [
        ("create", ("a",), None),
        ("create", ("b",), None),
    ]
