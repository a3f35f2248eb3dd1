"""Batches, bulk requests, patches and deletion by partition key, as they look on the wire."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.nosql.door_at_hand import ITEMS, Answer, DoorAtHand, door_at_hand, key

BATCH = {
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-atomic": "True",
    "x-ms-cosmos-batch-continue-on-error": "False",
}
BULK = {
    "x-ms-cosmos-is-batch-request": "true",
    "x-ms-cosmos-batch-atomic": "false",
    "x-ms-cosmos-batch-continue-on-error": "true",
    "x-ms-documentdb-partitionkeyrangeid": "0",
}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[DoorAtHand]:
    async with door_at_hand(tmp_path) as at_hand:
        yield at_hand


async def batch(door: DoorAtHand, *operations: object, headers: dict[str, str] | None = None) -> Answer:
    return await door.send("POST", ITEMS, list(operations), headers={**BATCH, **key("a"), **(headers or {})})


async def bulk(door: DoorAtHand, *operations: object, headers: dict[str, str] | None = None) -> Answer:
    return await door.send("POST", ITEMS, list(operations), headers={**BULK, **(headers or {})})


def create(item_id: str, pk: str = "a", **more: Any) -> dict[str, Any]:
    return {"operationType": "Create", "resourceBody": {"id": item_id, "pk": pk, **more}}


def statuses(answer: Answer) -> list[int]:
    return [result["statusCode"] for result in answer.body]


# --- batches --------------------------------------------------------------------------------------------------------


async def test_a_batch_tells_of_each_operation_what_it_did(door: DoorAtHand) -> None:
    before = await door.create("old", n=1)
    answer = await batch(
        door,
        create("a"),
        {"operationType": "Upsert", "resourceBody": {"id": "b", "pk": "a"}},
        {"operationType": "Upsert", "resourceBody": {"id": "b", "pk": "a", "n": 2}},
        {"operationType": "Read", "id": "old"},
        {"operationType": "Replace", "id": "old", "resourceBody": {**before, "n": 2}, "ifMatch": before["_etag"]},
        {
            "operationType": "Patch",
            "id": "old",
            "resourceBody": {"operations": [{"op": "incr", "path": "/n", "value": 5}]},
        },
        {"operationType": "Read", "id": "old", "ifNoneMatch": "*"},
        {"operationType": "Delete", "id": "a"},
    )
    assert answer.status == 200
    assert statuses(answer) == [201, 201, 200, 200, 200, 200, 304, 204]
    assert answer.body[3]["resourceBody"] == before
    assert answer.body[5]["resourceBody"]["n"] == 7
    assert answer.body[5]["eTag"] == answer.body[5]["resourceBody"]["_etag"]
    assert "resourceBody" not in answer.body[6]
    assert set(answer.body[7]) == {"statusCode", "requestCharge"}
    charged = sum(result["requestCharge"] for result in answer.body)
    assert float(answer.headers["x-ms-request-charge"]) == pytest.approx(charged)
    assert answer.headers["x-ms-session-token"] == f"0:-1#{answer.headers['lsn']}"


async def test_one_that_fails_takes_the_others_with_it(door: DoorAtHand) -> None:
    await door.create("there")
    answer = await batch(door, create("a"), create("there"), {"operationType": "Read", "id": "a"})
    assert answer.status == 207
    assert statuses(answer) == [424, 409, 424]
    assert (await door.send("GET", f"{ITEMS}/a", headers=key("a"))).status == 404


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        (create("x", pk="b"), 400),
        (create("x/y"), 400),
        (create("x", ttl=0), 400),
        ({"operationType": "Read", "id": "none"}, 404),
        ({"operationType": "Delete", "id": "none"}, 404),
        ({"operationType": "Delete", "id": "there", "ifMatch": '"x"'}, 412),
        ({"operationType": "Delete", "id": "there", "ifNoneMatch": "*"}, 412),
        ({"operationType": "Patch", "id": "there", "resourceBody": [{"op": "remove", "path": "/none"}]}, 400),
        (
            {
                "operationType": "Patch",
                "id": "there",
                "resourceBody": {
                    "operations": [{"op": "set", "path": "/n", "value": 1}],
                    "condition": "from c where c.n=9",
                },
            },
            412,
        ),
    ],
)
async def test_why_an_operation_failed_is_told_in_its_own_status(
    door: DoorAtHand, operation: dict[str, Any], status: int
) -> None:
    await door.create("there", n=1)
    answer = await batch(door, operation)
    assert (answer.status, statuses(answer)) == (207, [status])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "Batch request has no operations."),
        ([create(str(number)) for number in range(101)], "more operations than what is supported"),
        ({}, "array"),
        ([5], "operationType"),
        ([{"operationType": "Truncate"}], "operationType"),
        ([{"operationType": "Create"}], "resourceBody"),
        ([{"operationType": "Create", "resourceBody": {"pk": "a"}}], "'id'"),
        ([{"operationType": "Read"}], "'id'"),
        ([{"operationType": "Patch", "id": "x"}], "operations"),
    ],
)
async def test_a_malformed_batch_is_refused_whole(door: DoorAtHand, body: object, words: str) -> None:
    answer = await door.send("POST", ITEMS, body, headers={**BATCH, **key("a")})
    assert answer.status == 400
    assert words in answer.body["message"]


async def test_a_batch_above_two_megabytes_is_413(door: DoorAtHand) -> None:
    answer = await batch(door, create("a", pad="x" * 1_100_000), create("b", pad="x" * 1_100_000))
    assert (answer.status, answer.body["code"]) == (413, "RequestEntityTooLarge")
    assert 'Message: {"Errors":["Request size is too large"]}' in answer.body["message"]


async def test_a_batch_needs_its_key(door: DoorAtHand) -> None:
    answer = await door.send("POST", ITEMS, [create("a")], headers=BATCH)
    assert answer.status == 400


async def test_minimal_answers_leave_out_what_was_written(door: DoorAtHand) -> None:
    answer = await batch(door, create("a"), {"operationType": "Read", "id": "a"}, headers={"prefer": "return=minimal"})
    assert ["resourceBody" in result for result in answer.body] == [False, True]


async def test_a_batch_in_a_container_without_a_key_works(door: DoorAtHand) -> None:
    made = await door.send("POST", "dbs/d/colls", {"id": "fixed"})
    assert made.status == 201
    operations = [{"operationType": "Create", "resourceBody": {"id": "a"}}, {"operationType": "Read", "id": "a"}]
    answer = await door.send("POST", "dbs/d/colls/fixed/docs", operations, headers={**BATCH, **key()})
    assert answer.status == 200


_texts = st.text(max_size=4)
_values = st.none() | st.booleans() | st.integers(-9, 9) | _texts
_names = st.sampled_from(["operationType", "id", "resourceBody", "ifMatch", "ifNoneMatch", "partitionKey"])
_bodies = st.lists(
    st.dictionaries(
        _names,
        _values
        | st.sampled_from(["Create", "Upsert", "Read", "Replace", "Delete", "Patch", "upsert"])
        | st.dictionaries(st.sampled_from(["id", "pk", "ttl", "operations", "condition"]), _values | st.lists(_values)),
    )
    | _values,
    max_size=4,
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=150
)
@given(body=_bodies, is_bulk=st.booleans())
async def test_any_body_of_a_batch_is_answered_without_a_failure(
    door: DoorAtHand, body: list[Any], is_bulk: bool
) -> None:
    headers = {**(BULK if is_bulk else BATCH), **key("a")}
    answer = await door.send("POST", ITEMS, body, headers=headers)
    assert answer.status in (200, 207, 400)


# --- bulk -----------------------------------------------------------------------------------------------------------


async def test_in_a_bulk_request_each_operation_stands_for_itself(door: DoorAtHand) -> None:
    await door.create("there")
    answer = await bulk(
        door,
        {**create("a", "x"), "partitionKey": json.dumps(["x"])},
        {**create("there"), "partitionKey": json.dumps(["a"])},
        {"operationType": "Read", "id": "a", "partitionKey": json.dumps(["x"])},
        {"operationType": "Delete", "id": "none", "partitionKey": json.dumps(["q"])},
        {"operationType": "Upsert", "resourceBody": {"id": "b", "pk": "y"}},
        {"operationType": "Nonsense"},
        {"operationType": "Read", "id": "there"},
    )
    assert answer.status == 207
    assert statuses(answer) == [201, 409, 200, 404, 201, 400, 400]
    assert answer.body[2]["resourceBody"]["id"] == "a"


async def test_batches_and_bulk_requests_do_not_look_at_triggers(door: DoorAtHand) -> None:
    named = {"x-ms-documentdb-pre-trigger-include": "none", "x-ms-documentdb-post-trigger-include": "none"}
    assert statuses(await bulk(door, create("x"), headers=named)) == [201]
    assert statuses(await batch(door, create("y"), headers=named)) == [201]
    alone = await door.send("POST", ITEMS, {"id": "z", "pk": "a"}, headers={**named, **key("a")})
    assert alone.status == 400


async def test_a_bulk_request_without_failures_is_200_and_keeps_the_order_for_one_item(door: DoorAtHand) -> None:
    writes = [{"operationType": "Upsert", "resourceBody": {"id": "a", "pk": "a", "n": number}} for number in range(20)]
    answer = await bulk(door, *writes)
    assert answer.status == 200
    assert statuses(answer) == [201] + [200] * 19
    read = await door.send("GET", f"{ITEMS}/a", headers=key("a"))
    assert read.body["n"] == 19


async def test_a_bulk_request_goes_on_after_its_range_was_split(door: DoorAtHand) -> None:
    for number in range(40):
        await door.create(f"i{number}", f"p{number}")
    await door.split()
    reads = [
        {"operationType": "Read", "id": f"i{number}", "partitionKey": json.dumps([f"p{number}"])}
        for number in range(40)
    ]
    answer = await bulk(door, *reads)
    assert statuses(answer) == [200] * 40
    assert [result["resourceBody"]["id"] for result in answer.body] == [f"i{number}" for number in range(40)]
    assert answer.headers["x-ms-session-token"].count(":") == 2


async def test_an_operation_of_a_bulk_request_stays_within_the_key_of_the_request(door: DoorAtHand) -> None:
    other = {"operationType": "Upsert", "resourceBody": {"id": "a", "pk": "b"}, "partitionKey": json.dumps(["b"])}
    answer = await bulk(door, other, headers=key("a"))
    assert (statuses(answer), answer.body[0]["subStatusCode"]) == ([400], 1001)


async def test_without_permission_to_go_on_what_follows_a_failure_is_left(door: DoorAtHand) -> None:
    stopping = {"x-ms-cosmos-batch-continue-on-error": "false", **key("a")}
    answer = await bulk(door, create("a"), create("a"), create("b"), headers=stopping)
    assert statuses(answer) == [201, 409, 424]


# --- patches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"operations": [{"op": "incr", "path": "/n", "value": 4}], "condition": "from c where c.n = 1"},
        {"operations": [{"op": "incr", "path": "/n", "value": 4}]},
        [{"op": "incr", "path": "/n", "value": 4}],
    ],
)
async def test_a_patch_may_be_an_object_or_a_list(door: DoorAtHand, body: object) -> None:
    before = await door.create("i", n=1)
    answer = await door.send("PATCH", f"{ITEMS}/i", body, headers=key("a"))
    assert (answer.status, answer.body["n"]) == (200, 5)
    assert answer.body["_etag"] != before["_etag"]
    assert answer.headers["etag"] == answer.body["_etag"]


@pytest.mark.parametrize(
    ("item_id", "body", "headers", "status"),
    [
        ("i", {"operations": [{"op": "set", "path": "/n", "value": 1}], "condition": "from c where c.n = 2"}, {}, 412),
        ("i", {"operations": [{"op": "set", "path": "/n", "value": 1}], "condition": "where"}, {}, 400),
        ("i", {"operations": [{"op": "set", "path": "/n", "value": 1}], "condition": 5}, {}, 400),
        ("i", [{"op": "set", "path": "/n", "value": 1}], {"if-match": '"other"'}, 412),
        ("none", [{"op": "set", "path": "/n", "value": 1}], {}, 404),
        ("i", [{"op": "set", "path": "/pk", "value": 1}], {}, 400),
        ("i", [{"op": "set", "path": "/ttl", "value": 0}], {}, 400),
        ("i", b"nonsense", {}, 400),
    ],
)
async def test_a_patch_that_cannot_be_changes_nothing(
    door: DoorAtHand, item_id: str, body: object, headers: dict[str, str], status: int
) -> None:
    before = await door.create("i", n=1)
    answer = await door.send("PATCH", f"{ITEMS}/{item_id}", body, headers={**key("a"), **headers})
    read = await door.send("GET", f"{ITEMS}/i", headers=key("a"))
    assert (answer.status, read.body) == (status, before)


async def test_patches_cannot_nest_an_item_deeper_than_items_may_be(door: DoorAtHand) -> None:
    await door.create("i", box={})
    deep: object = {}
    for _ in range(100):
        deep = {"a": deep}
    first = await door.send("PATCH", f"{ITEMS}/i", [{"op": "set", "path": "/box", "value": deep}], headers=key("a"))
    below = [{"op": "set", "path": "/box" + "/a" * 90, "value": deep}]
    second = await door.send("PATCH", f"{ITEMS}/i", below, headers=key("a"))
    assert (first.status, second.status) == (200, 400)


async def test_a_batch_with_an_item_nested_too_deeply_is_refused(door: DoorAtHand) -> None:
    deep = b"[" * 900 + b"]" * 900
    body = b'[{"operationType":"Create","resourceBody":{"id":"i","pk":"a","x":' + deep + b"}}]"
    answer = await door.send("POST", ITEMS, body, headers={**BATCH, **key("a")})
    assert answer.status == 400


# --- deletion by partition key --------------------------------------------------------------------------------------


async def test_all_items_of_a_key_go(door: DoorAtHand) -> None:
    for number in range(5):
        await door.create(f"i{number}", "a")
        await door.create(f"i{number}", "b")
    path = "dbs/d/colls/c/operations"
    answer = await door.send("POST", f"{path}/partitionkeydelete", headers=key("a"))
    left = await door.send("GET", ITEMS)
    assert answer.status == 200
    assert [item["pk"] for item in left.body["Documents"]] == ["b"] * 5
    assert (await door.send("POST", f"{path}/partitionkeydelete")).status == 400
    assert (await door.send("POST", f"{path}/other", headers=key("a"))).status == 404
