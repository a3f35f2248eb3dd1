"""Calls for tables: how they are counted, what an error costs, and when the catalog is looked at again."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from asterism.apis.table.routes import ROUTES
from asterism.models.tables.store import TableStore
from asterism.storage.contract import EngineFailed
from tests.unit.table.table_door_at_hand import DoorAtHand, entity_path, open_door


class CatchingUp:
    """Another process that has done something by the time when its changes are taken over."""

    def __init__(self, door: DoorAtHand, monkeypatch: pytest.MonkeyPatch, *, newest_lsn: int) -> None:
        self.looks = 0
        self.newest_lsn = newest_lsn
        self._store = door.store
        self._monkeypatch = monkeypatch
        find_table = door.store.find_table
        monkeypatch.setattr(TableStore, "is_shared", True)
        monkeypatch.setattr(TableStore, "known_lsn", 0)
        monkeypatch.setattr(door.store, "catch_up", self._catch_up)
        monkeypatch.setattr(
            door.store, "find_table", lambda *name: find_table(*name) if self._store.known_lsn else None
        )

    async def _catch_up(self) -> int:
        self.looks += 1
        self._monkeypatch.setattr(TableStore, "known_lsn", self.newest_lsn)
        return self._store.known_lsn


@pytest.fixture
async def door() -> AsyncIterator[DoorAtHand]:
    async with open_door() as at_hand:
        yield at_hand


async def test_requests_are_counted_by_what_they_ask_for(door: DoorAtHand) -> None:
    await door.create()
    await door.insert()
    await door.insert()
    await door.send("PUT", entity_path(), {"n": 1})
    await door.send("PATCH", entity_path(), {"n": 2})
    await door.send("GET", entity_path())
    await door.send("GET", entity_path(row_key="other"))
    await door.query()
    await door.send("GET", entity_path(), sign=False)
    await door.send("GET", "orders", query="comp=nothing")
    counted = {name: operation.by_status for name, operation in door.requests.operations.items()}
    assert counted == {
        "create_table": {201: 1},
        "insert_entity": {201: 1, 409: 1},
        "replace_entity": {204: 1},
        "merge_entity": {204: 1},
        "read_entity": {200: 1, 404: 1},
        "query_entities": {200: 1},
        "unrouted": {401: 1, 400: 1},
    }
    assert door.requests.in_flight == 0


def test_every_route_has_a_plain_name_for_its_operation() -> None:
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", route.operation) for route in ROUTES)


async def test_a_table_that_another_process_has_made_is_found_at_a_second_look(
    door: DoorAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    await door.create()
    await door.insert()
    others = CatchingUp(door, monkeypatch, newest_lsn=7)
    assert (await door.send("GET", entity_path())).status == 200
    assert others.looks == 1


async def test_an_entity_that_is_missing_costs_a_look_and_no_second_search(
    door: DoorAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    await door.create()
    others = CatchingUp(door, monkeypatch, newest_lsn=7)
    monkeypatch.setattr(TableStore, "known_lsn", 7)
    searches = []
    table = door.store.find_table
    monkeypatch.setattr(door.store, "find_table", lambda *name: searches.append(name) or table(*name))
    assert (await door.send("GET", entity_path())).status == 404
    assert (others.looks, len(searches)) == (1, 1)


def failing(door: DoorAtHand, monkeypatch: pytest.MonkeyPatch) -> DoorAtHand:
    def fail(*_: object) -> None:
        raise EngineFailed("node-7 does not answer")

    monkeypatch.setattr(door.store, "find_table", fail)
    return door


@pytest.mark.parametrize(("query", "content_type"), [("", "application/json"), ("comp=acl", "application/xml")])
async def test_a_store_that_fails_is_answered_in_the_form_of_the_request(
    door: DoorAtHand, monkeypatch: pytest.MonkeyPatch, query: str, content_type: str
) -> None:
    answer = await failing(door, monkeypatch).send("GET", "orders", query=query)
    assert (answer.status, answer.code) == (503, "ServerBusy")
    assert answer.headers["content-type"].startswith(content_type)
    assert b"node-7" not in answer.body


async def test_an_error_of_a_cosmos_table_tells_what_was_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_door(is_cosmos=True) as door:
        answer = await failing(door, monkeypatch).send("GET", "orders")
    assert (answer.status, answer.headers["x-ms-request-charge"]) == (503, "0.00")
