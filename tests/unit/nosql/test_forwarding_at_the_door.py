"""Requests for promoted partition keys, as they look on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from asterism.keyspaces.catalog.forwarding import ForwardingRule, ForwardingState
from asterism.models.documents.container import Container
from asterism.models.documents.promotion.job import PromotionJob, PromotionPhase
from asterism.models.documents.promotion.requests import Promotion, begin_promotion
from tests.support.world import ACCOUNT
from tests.unit.nosql.door_at_hand import CROSSING, ITEMS, DoorAtHand, door_at_hand, key

BULK = {
    "x-ms-cosmos-is-batch-request": "true",
    "x-ms-cosmos-batch-atomic": "false",
    "x-ms-cosmos-batch-continue-on-error": "true",
    "x-ms-documentdb-partitionkeyrangeid": "0",
}
CHANGES = {"a-im": "Incremental Feed"}
COUNT = 6


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[DoorAtHand]:
    async with door_at_hand(tmp_path) as at_hand:
        for number in range(COUNT):
            await at_hand.create(f"i{number}", "big", n=number)
            await at_hand.create(f"i{number}", "k", n=number)
        yield at_hand


def source_of(door: DoorAtHand) -> Container:
    return door.world.store.container_for_items(ACCOUNT, "d", "c")


async def promote(door: DoorAtHand, *paths: str) -> PromotionJob:
    asked = Promotion(source_of(door), ("big",), "new", paths=paths or None)
    job = await begin_promotion(door.world.store, asked)
    async with asyncio.timeout(180):
        while job.phase is not PromotionPhase.FORWARDING:
            await asyncio.sleep(0.01)
    return job


async def set_rule(door: DoorAtHand, rule: ForwardingRule | None) -> None:
    rules = None if rule is None else (rule,)
    await door.world.catalog.change_terms(source_of(door).keyspace, lambda before: replace(before, forwarding=rules))


@pytest.mark.parametrize("paths", [(), ("/pk", "/id")])
async def test_operations_of_a_bulk_request_go_to_the_container_of_their_key(
    door: DoorAtHand, paths: tuple[str, ...]
) -> None:
    await promote(door, *paths)
    operations = [
        {"operationType": "Create", "resourceBody": {"id": "new", "pk": "big"}, "partitionKey": '["big"]'},
        {"operationType": "Create", "resourceBody": {"id": "new", "pk": "k"}, "partitionKey": '["k"]'},
        {"operationType": "Read", "id": "i1", "partitionKey": '["big"]'},
        {"operationType": "Delete", "id": "i2", "partitionKey": '["big"]'},
        {"operationType": "Read", "id": "missing", "partitionKey": '["big"]'},
    ]
    answer = await door.send("POST", ITEMS, operations, headers=BULK)
    assert [result["statusCode"] for result in answer.body] == [201, 201, 200, 204, 404]
    assert (await door.send("GET", f"{ITEMS}/new", headers=key("big"))).status == 200


async def test_a_session_of_the_old_container_is_no_obstacle_and_is_not_changed(door: DoorAtHand) -> None:
    await promote(door)
    session = {"x-ms-session-token": "0:-1#999999"}
    for headers in (key("big"), {**key("big"), "x-ms-consistency-level": "Eventual"}):
        answer = await door.send("GET", f"{ITEMS}/i1", headers={**headers, **session})
        assert answer.status == 200
        assert "x-ms-session-token" not in answer.headers
        assert answer.headers["x-ms-alt-content-path"] == "dbs/d/colls/c"
        assert answer.headers["x-ms-documentdb-partitionkeyrangeid"] == "0"
    assert (await door.send("GET", f"{ITEMS}/i1", headers={**key("k"), **session})).status == 404


async def test_a_reader_of_changes_begins_again_in_the_new_container(door: DoorAtHand) -> None:
    first = await door.send("GET", ITEMS, headers={**CHANGES, **key("big")})
    assert len(first.body["Documents"]) == COUNT
    await promote(door)
    known = {"if-none-match": first.headers["etag"]}
    again = await door.send("GET", ITEMS, headers={**CHANGES, **key("big"), **known})
    assert len(again.body["Documents"]) == COUNT
    known = {"if-none-match": again.headers["etag"]}
    assert (await door.send("GET", ITEMS, headers={**CHANGES, **key("big"), **known})).status == 304
    await door.create("later", "big")
    last = await door.send("GET", ITEMS, headers={**CHANGES, **key("big"), **known})
    assert [item["id"] for item in last.body["Documents"]] == ["later"]


async def test_a_query_by_its_filter_and_a_range_id_is_forwarded(door: DoorAtHand) -> None:
    await promote(door)
    in_range = {**CROSSING, "x-ms-documentdb-partitionkeyrangeid": "0"}
    answer = await door.query("SELECT * FROM c WHERE c.pk = 'big' ORDER BY c.n", headers=in_range)
    assert [item["n"] for item in answer.body["Documents"]] == list(range(COUNT))
    assert answer.headers["x-ms-documentdb-partitionkeyrangeid"] == "0"
    others = await door.query("SELECT * FROM c", headers=in_range)
    assert {item["pk"] for item in others.body["Documents"]} == {"k"}


async def test_writes_wait_for_the_end_of_a_hand_over_and_reads_do_not(door: DoorAtHand) -> None:
    job = await promote(door)
    (rule,) = source_of(door).keyspace.record.forwarding or ()
    assert rule.number == job.number
    await set_rule(door, replace(rule, state=ForwardingState.HANDED_OVER))
    write = asyncio.create_task(door.create("waited", "big"))
    read = await door.send("GET", f"{ITEMS}/i1", headers=key("big"))
    assert read.status == 200
    assert not write.done()
    await set_rule(door, rule)
    await write
    assert (await door.send("GET", "dbs/d/colls/new/docs/waited", headers=key("big"))).status == 200


async def test_writes_that_waited_for_a_hand_over_that_was_given_up_stay(door: DoorAtHand) -> None:
    source = source_of(door)
    prefix = source.planner.point(("big",))
    rule = ForwardingRule(1, prefix, ["big"], source.record.rid, "new", ForwardingState.FENCED)
    await set_rule(door, rule)
    write = asyncio.create_task(door.create("waited", "big"))
    assert (await door.send("GET", f"{ITEMS}/i1", headers=key("big"))).status == 200
    assert not write.done()
    await set_rule(door, None)
    await write
    assert (await door.send("GET", f"{ITEMS}/waited", headers=key("big"))).status == 200


async def test_without_the_new_container_requests_say_that_it_is_missing(door: DoorAtHand) -> None:
    source = source_of(door)
    prefix = source.planner.point(("big",))
    rule = ForwardingRule(1, prefix, ["big"], bytes(8), "gone", ForwardingState.FORWARDING)
    await set_rule(door, rule)
    assert (await door.send("GET", f"{ITEMS}/i1", headers=key("big"))).status == 404
    assert (await door.send("GET", f"{ITEMS}/i1", headers=key("k"))).status == 200
