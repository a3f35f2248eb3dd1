"""Paths, names and operations of calls: read once, the same as the long way, and never outdated."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.nosql.auth import signed_links
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.item_paths import ItemPaths
from asterism.apis.nosql.routes import OF_FEEDS, OF_ITEMS, ROUTES, UNAVAILABLE, Route
from asterism.apis.pipeline import UNROUTED
from asterism.values.resource_ids import to_text
from tests.support.world import ACCOUNT
from tests.unit.nosql.door_at_hand import CROSSING, ITEMS, DoorAtHand, door_at_hand, key

names = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=12)
# Names that look like resource ids of databases, which clients sign in another way.
rids = st.binary(min_size=4, max_size=4).map(to_text)


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[DoorAtHand]:
    async with door_at_hand(tmp_path) as at_hand:
        yield at_hand


def counted(door: DoorAtHand) -> dict[str, dict[int | str, int]]:
    return {name: operation.by_status for name, operation in door.requests.operations.items()}


@given(names | rids, names, names | st.just("docs"))
def test_the_path_of_an_item_is_read_as_the_long_way_reads_it(database: str, container: str, item: str) -> None:
    paths = ItemPaths()
    paths.remember(database, container)
    feed = f"dbs/{database}/colls/{container}/docs"
    for path in (feed, f"{feed}/{item}"):
        parts = path.split("/")
        assert paths.find(path) == (parts, signed_links(path, parts, "docs"))


@pytest.mark.parametrize(
    "path",
    [
        "",
        "dbs",
        "dbs/d/colls/c",
        "dbs/d/colls/x/docs",
        "dbs/d/colls/c/sprocs/i",
        "dbs/d/colls/x/docs/i",
        "dbs/d/colls/c/docs/i/j",
    ],
)
def test_any_other_path_is_unknown(path: str) -> None:
    paths = ItemPaths()
    paths.remember("d", "c")
    assert paths.find(path) is None


def test_the_routes_of_items_are_those_of_the_table() -> None:
    assert set(OF_ITEMS) == {"GET", "PUT", "PATCH", "DELETE"}
    assert set(OF_FEEDS) == {"GET", "POST"}
    assert all(route in ROUTES for route in (*OF_ITEMS.values(), *OF_FEEDS.values()))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_name_in_a_route_is_a_property_of_its_call(route: Route) -> None:
    call = Call.__new__(Call)
    call.parts = route.path.split("/")
    for name in re.findall(r"\{(\w+)\}", route.path):
        assert getattr(call, f"{name}_name") == f"{{{name}}}"


def test_every_route_has_an_operation_of_its_own() -> None:
    operations = [route.operation for route in ROUTES]
    assert len(set(operations)) == len(operations)
    assert {route.operation for route in UNAVAILABLE} == {"unavailable"}
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", operation) for operation in operations)


async def test_requests_are_counted_by_what_they_ask_for(door: DoorAtHand) -> None:
    await door.create("1")
    await door.send("POST", ITEMS, {"id": "1", "pk": "a"}, headers=key("a"))
    await door.send("POST", ITEMS, {"id": "1", "pk": "a"}, headers={**key("a"), "x-ms-documentdb-is-upsert": "True"})
    await door.send("GET", f"{ITEMS}/1", headers=key("a"))
    await door.send("GET", f"{ITEMS}/2", headers=key("a"))
    await door.query("SELECT * FROM c", headers=CROSSING)
    await door.send("GET", ITEMS, headers={"a-im": "Incremental Feed"})
    assert counted(door) == {
        "create_item": {201: 1, 409: 1},
        "upsert_item": {200: 1},
        "read_item": {200: 1, 404: 1},
        "query_items": {200: 1},
        "read_changes": {200: 1},
    }
    assert door.requests.in_flight == 0


async def test_a_path_of_nothing_is_counted_as_unrouted_and_a_wrong_key_by_its_operation(door: DoorAtHand) -> None:
    await door.send_as_it_is("GET", "/nothing/here", {})
    await door.send_as_it_is("GET", f"/{ITEMS}/1", {})
    assert counted(door) == {UNROUTED: {404: 1}, "read_item": {401: 1}}


async def test_a_container_that_was_created_again_is_found_under_its_name(door: DoorAtHand) -> None:
    await door.create("1")
    assert (await door.send("GET", f"{ITEMS}/1", headers=key("a"))).status == 200
    before = door.world.store.container_for_items(ACCOUNT, "d", "c")
    assert (await door.send("DELETE", "dbs/d/colls/c")).status == 204
    gone = await door.send("GET", f"{ITEMS}/1", headers=key("a"))
    assert (gone.status, gone.headers["x-ms-substatus"]) == (404, "1003")
    properties = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    assert (await door.send("POST", "dbs/d/colls", properties)).status == 201
    missing = await door.send("GET", f"{ITEMS}/1", headers=key("a"))
    assert (missing.status, missing.headers.get("x-ms-substatus")) == (404, None)
    assert not before.is_current


async def test_other_settings_are_in_force_for_the_next_request(door: DoorAtHand) -> None:
    await door.create("a")
    assert (await door.query("SELECT VALUE c.upper FROM c", headers=CROSSING)).body["Documents"] == []
    before = door.world.store.container_for_items(ACCOUNT, "d", "c")
    assert before.is_current
    container = (await door.send("GET", "dbs/d/colls/c")).body
    computed = {**container, "computedProperties": [{"name": "upper", "query": "SELECT VALUE UPPER(c.id) FROM c"}]}
    assert (await door.send("PUT", "dbs/d/colls/c", computed)).status == 200
    assert not before.is_current
    assert (await door.query("SELECT VALUE c.upper FROM c", headers=CROSSING)).body["Documents"] == ["A"]


async def test_a_name_that_is_the_resource_id_of_another_container_comes_first(door: DoorAtHand) -> None:
    await door.create("1")
    rid = (await door.send("GET", "dbs/d/colls/c")).body["_rid"]
    by_rid = f"dbs/d/colls/{rid}/docs"
    assert (await door.send("GET", by_rid)).body["_count"] == 1
    properties = {"id": rid, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    assert (await door.send("POST", "dbs/d/colls", properties)).status == 201
    assert (await door.send("GET", by_rid)).body["_count"] == 0


async def test_the_line_of_a_slow_request_has_no_name_body_or_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with door_at_hand(tmp_path, slow_seconds=0.0) as door:
        path, body = f"{ITEMS}/secret-id", {"id": "secret-id", "pk": "secret-pk"}
        await door.send("POST", ITEMS, body, headers={**key("secret-pk"), "x-ms-activity-id": "one\nline"})
        await door.send("GET", path, headers=key("secret-pk"))
    lines = [record.getMessage() for record in caplog.records if record.name == "asterism.slow"]
    assert [re.sub(r"\d+\.\d+", "#", line) for line in lines] == [
        "slow request: door nosql, operation create_item, status 201, # ms, charge #, request 'one\\nline'",
        "slow request: door nosql, operation read_item, status 200, # ms, charge #, request 'activity-of-the-server'",
    ]
