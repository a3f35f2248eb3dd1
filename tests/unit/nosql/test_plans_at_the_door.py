"""Plan requests, as the clients of every age send them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.nosql.door_at_hand import CROSSING, ITEMS, DoorAtHand, door_at_hand, key

PLAN = {"x-ms-cosmos-is-query-plan-request": "True"}
QUERY = {"x-ms-documentdb-isquery": "true"}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[DoorAtHand]:
    async with door_at_hand(tmp_path) as at_hand:
        yield at_hand


@pytest.mark.parametrize(
    "more",
    [
        {},
        # azure-cosmos for Python 4.0.0 to 4.9.0: no permission to cross partitions.
        QUERY,
        {**QUERY, **CROSSING},
        {"x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "False"},
        {"x-ms-cosmos-is-batch-request": "True"},
        {"x-ms-documentdb-is-upsert": "True"},
        key("a"),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM c ORDER BY c.n",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT DISTINCT c.n FROM c",
        "SELECT TOP 2 * FROM c",
        "SELECT * FROM c OFFSET 1 LIMIT 2",
    ],
)
async def test_a_plan_request_is_one_whatever_else_it_carries(
    door: DoorAtHand, text: str, more: dict[str, str]
) -> None:
    plain = await door.send("POST", ITEMS, {"query": text}, headers=PLAN)
    answer = await door.send("POST", ITEMS, {"query": text}, headers={**PLAN, **more})
    assert answer.status == 200
    assert answer.body == plain.body
    assert answer.body["partitionedQueryExecutionInfoVersion"] == 2


async def test_a_request_that_denies_to_be_for_a_plan_is_a_query(door: DoorAtHand) -> None:
    await door.create("i")
    headers = {**QUERY, **CROSSING, "x-ms-cosmos-is-query-plan-request": "False"}
    answer = await door.send("POST", ITEMS, {"query": "SELECT VALUE c.id FROM c"}, headers=headers)
    assert answer.body["Documents"] == ["i"]
