"""A door on a real store in this process, and requests signed for it."""

from __future__ import annotations

import base64
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, AccountKeys
from asterism.access.master_key import signature
from asterism.apis.nosql.auth import signed_links
from asterism.apis.nosql.door import NoSqlDoor
from asterism.apis.nosql.routes import BY_KEY, route_key
from asterism.apis.pipeline import RequestMeter
from asterism.apis.transports.http import Request, Response
from asterism.clock import SYSTEM_CLOCK
from asterism.limits import DEFAULT_LIMITS, Limits
from asterism.metrics import DoorRequests
from asterism.reading import execute, source_page, turns
from asterism.scripts.runtime import ScriptRuntime
from asterism.values.json.text import dumps, loads
from tests.support.world import ACCOUNT, World, open_world

KEYS = AccountKeys.complete(primary=WELL_KNOWN_EMULATOR_KEY)
ITEMS = "dbs/d/colls/c/docs"
CROSSING = {"x-ms-documentdb-query-enablecrosspartition": "True"}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: Any


def key(*components: object) -> dict[str, str]:
    return {"x-ms-documentdb-partitionkey": dumps(list(components)).decode()}


def authorization(method: str, path: str, *, date: str, signing_key: str = WELL_KNOWN_EMULATOR_KEY) -> str:
    parts = path.split("/")
    route = BY_KEY[route_key(method, parts)]
    link = signed_links(path, parts, route.resource_type)[0]
    signed = signature(
        base64.b64decode(signing_key), verb=method, resource_type=route.resource_type, link=link, date=date
    )
    return quote(f"type=master&ver=1.0&sig={signed}", safe="")


@dataclass(frozen=True)
class DoorAtHand:
    door: NoSqlDoor
    world: World
    requests: DoorRequests

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: dict[str, str] | None = None,
        signing_key: str = WELL_KNOWN_EMULATOR_KEY,
    ) -> Answer:
        date = formatdate(time.time(), usegmt=True)
        sent = {
            "x-ms-date": date,
            "authorization": authorization(method, path, date=date, signing_key=signing_key),
            **(headers or {}),
        }
        content = body if isinstance(body, bytes) else b"" if body is None else dumps(body)
        return await self.send_as_it_is(method, f"/{path}/", sent, content)

    async def send_as_it_is(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Answer:
        response: Response = await self.door.answer(
            Request(method, path, "", headers, body, "https", "db.example.test:8081")
        )
        parsed = cast(Any, loads(response.body)) if response.body else None
        return Answer(response.status, dict(response.headers), parsed)

    async def create(self, item_id: str, pk: object = "a", **more: object) -> dict[str, Any]:
        answer = await self.send("POST", ITEMS, {"id": item_id, "pk": pk, **more}, headers=key(pk))
        assert answer.status == 201
        return cast("dict[str, Any]", answer.body)

    async def split(self) -> None:
        """Split the only partition of the container and wait for its children."""
        container = self.world.store.container_for_items(ACCOUNT, "d", "c")
        await self.world.reshaper.finished(await self.world.reshaper.split(container.keyspace, 0))

    async def query(self, text: str, *parameters: tuple[str, object], headers: dict[str, str] | None = None) -> Answer:
        given = [{"name": name, "value": value} for name, value in parameters]
        sent = {"x-ms-documentdb-isquery": "True", **(headers or {})}
        return await self.send("POST", ITEMS, {"query": text, "parameters": given}, headers=sent)


@asynccontextmanager
async def door_at_hand(
    directory: Path,
    *,
    limits: Limits = DEFAULT_LIMITS,
    consistency: str = "Session",
    lenient_sql: bool = False,
    slow_seconds: float = math.inf,
) -> AsyncIterator[DoorAtHand]:
    """With the database `d` and the container `c`, partitioned by /pk. No page ends because the machine is busy."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (execute, source_page):
            patch.setattr(module, "PAGE_SECONDS_MAX", 3600.0)
        async with _open_door(directory, limits, consistency, lenient_sql, slow_seconds) as door:
            yield door


@asynccontextmanager
async def _open_door(
    directory: Path, limits: Limits, consistency: str, lenient_sql: bool, slow_seconds: float
) -> AsyncIterator[DoorAtHand]:
    async with open_world(directory, limits=limits) as world:
        await world.container()
        scripts = ScriptRuntime(wait=turns.wait)
        meter = RequestMeter(SYSTEM_CLOCK.monotonic_seconds, slow_seconds=slow_seconds)
        door = NoSqlDoor(
            world.store,
            account=ACCOUNT,
            keys=KEYS,
            clock=SYSTEM_CLOCK,
            consistency=consistency,
            limits=limits,
            scripts=scripts,
            lenient_sql=lenient_sql,
            new_activity_id=lambda: "activity-of-the-server",
            meter=meter,
        )
        try:
            yield DoorAtHand(door, world, meter.counts.of_door("nosql"))
        finally:
            scripts.close()
