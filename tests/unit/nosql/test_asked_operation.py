"""The operation that a request asks for, named before its handler runs, is the one that the handler names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from asterism.apis.nosql.asked_operation import OPERATIONS, asked_operation
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.routes import BY_KEY, route_key
from asterism.apis.transports.http import Request
from tests.unit.nosql.door_at_hand import ITEMS, DoorAtHand, door_at_hand, key

CONTAINER = ITEMS.removesuffix("/docs")
DATABASE = CONTAINER.partition("/colls")[0]
QUERY = {"x-ms-documentdb-isquery": "True"}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[DoorAtHand]:
    async with door_at_hand(tmp_path) as at_hand:
        yield at_hand


@pytest.mark.parametrize(
    ("verb", "path", "headers", "expected"),
    [
        ("POST", ITEMS, key("a"), "create_item"),
        ("POST", ITEMS, {**key("a"), "x-ms-documentdb-is-upsert": "True"}, "upsert_item"),
        ("POST", ITEMS, QUERY, "query_items"),
        ("POST", ITEMS, {**QUERY, "x-ms-cosmos-is-query-plan-request": "True"}, "plan_query"),
        ("POST", ITEMS, {**key("a"), "x-ms-cosmos-is-batch-request": "True"}, "run_batch"),
        ("GET", ITEMS, {}, "list_items"),
        ("GET", ITEMS, {"a-im": "Incremental Feed"}, "read_changes"),
        ("POST", "dbs", {}, "create_database"),
        ("POST", "dbs", QUERY, "query_databases"),
        ("POST", f"{DATABASE}/colls", QUERY, "query_containers"),
        ("POST", f"{DATABASE}/users", QUERY, "query_users"),
        ("POST", f"{CONTAINER}/sprocs", QUERY, "query_sprocs"),
        ("POST", f"{CONTAINER}/triggers", QUERY, "query_triggers"),
        ("POST", f"{CONTAINER}/udfs", QUERY, "query_udfs"),
        ("POST", "offers", QUERY, "query_offers"),
    ],
)
async def test_the_name_is_that_of_the_metrics(
    door: DoorAtHand, verb: str, path: str, headers: dict[str, str], expected: str
) -> None:
    await door.send(verb, path, {"id": "new", "pk": "a"} if verb == "POST" else None, headers=headers)
    call = Call.__new__(Call)
    call.request = Request(verb, path, "", headers, b"", "http", "here")
    call.operation = BY_KEY[route_key(verb, path.split("/"))].operation
    assert asked_operation(call) == expected
    assert expected in door.requests.operations
    assert expected in OPERATIONS
