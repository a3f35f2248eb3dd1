"""Feeds, queries, plans and ranges, as the door answers them on a real store."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.nosql.door_at_hand import CROSSING, ITEMS, DoorAtHand, door_at_hand, key


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[DoorAtHand]:
    async with door_at_hand(tmp_path) as at_hand:
        yield at_hand


async def pages_of(door: DoorAtHand, headers: dict[str, str], query: str | None = None) -> list[list[str]]:
    pages: list[list[str]] = []
    sent = dict(headers)
    while True:
        answer = await (door.send("GET", ITEMS, headers=sent) if query is None else door.query(query, headers=sent))
        assert answer.status == 200
        assert answer.headers["x-ms-item-count"] == str(answer.body["_count"])
        pages.append([item["id"] for item in answer.body["Documents"]])
        if "x-ms-continuation" not in answer.headers:
            return pages
        sent["x-ms-continuation"] = answer.headers["x-ms-continuation"]


def flat(pages: list[list[str]]) -> list[str]:
    return [item_id for page in pages for item_id in page]


async def test_pages_of_a_feed_and_of_a_query_hold_every_item_once(door: DoorAtHand) -> None:
    ids = {(await door.create(f"i{number}", pk=f"p{number % 7}"))["id"] for number in range(40)}
    fed = await pages_of(door, {"x-ms-max-item-count": "6"})
    queried = await pages_of(door, {"x-ms-max-item-count": "6", **CROSSING}, "SELECT * FROM c")
    assert fed == queried
    assert sorted(flat(fed)) == sorted(ids)
    assert max(map(len, fed)) == 6


async def test_a_continuation_survives_a_split_and_old_range_ids_stay_intervals(door: DoorAtHand) -> None:
    ids = [(await door.create(f"i{number}", pk=f"p{number}"))["id"] for number in range(60)]
    first = await door.send("GET", ITEMS, headers={"x-ms-max-item-count": "25"})
    await door.split()
    rest = await pages_of(door, {"x-ms-continuation": first.headers["x-ms-continuation"]})
    seen = [item["id"] for item in first.body["Documents"]] + flat(rest)
    assert sorted(seen) == sorted(ids)
    old = await pages_of(door, {"x-ms-documentdb-partitionkeyrangeid": "0"})
    halves = [await pages_of(door, {"x-ms-documentdb-partitionkeyrangeid": text}) for text in ("1", "2")]
    assert sorted(flat(old)) == sorted(ids)
    assert sorted(flat(halves[0]) + flat(halves[1])) == sorted(ids)


async def test_the_answer_for_a_split_range_names_it_and_has_the_session_of_its_child(door: DoorAtHand) -> None:
    for number in range(20):
        await door.create(f"i{number}", pk=f"p{number}")
    await door.split()
    asked = {"x-ms-documentdb-partitionkeyrangeid": "0"}
    page = await door.query("SELECT * FROM c", headers={**asked, "x-ms-max-item-count": "15"})
    rest = await door.query(
        "SELECT * FROM c", headers={**asked, "x-ms-continuation": page.headers["x-ms-continuation"]}
    )
    whole = await door.query("SELECT * FROM c", headers=asked)
    free = await door.query("SELECT * FROM c", headers=CROSSING)
    range_ids = [answer.headers["x-ms-documentdb-partitionkeyrangeid"] for answer in (page, rest, whole, free)]
    assert range_ids == ["0", "0", "0", "2"]
    assert whole.headers["x-ms-session-token"].startswith("2:-1#")


async def test_an_interval_of_the_line_narrows_a_query(door: DoorAtHand) -> None:
    for number in range(30):
        await door.create(f"i{number}", pk=f"p{number}")
    low = {"x-ms-start-epk": "", "x-ms-end-epk": "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}
    high = {"x-ms-start-epk": "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "x-ms-end-epk": "FF"}
    parts = [flat(await pages_of(door, interval, "SELECT * FROM c")) for interval in (low, high)]
    assert len(parts[0]) + len(parts[1]) == 30
    assert parts[0]
    assert parts[1]


async def test_a_query_across_partitions_needs_permission_or_a_pinned_key(door: DoorAtHand) -> None:
    await door.create("i", n=1)
    refused = await door.query("SELECT * FROM c WHERE c.n = 1")
    pinned = await door.query("SELECT * FROM c WHERE c.pk = @pk", ("@pk", "a"))
    named = await door.query("SELECT * FROM c WHERE c.n = 1", headers=key("a"))
    allowed = await door.query("SELECT * FROM c WHERE c.n = 1", headers=CROSSING)
    assert refused.status == 400
    assert refused.body["message"].startswith("Cross partition query is required but disabled")
    assert [len(answer.body["Documents"]) for answer in (pinned, named, allowed)] == [1, 1, 1]


async def test_a_pinned_query_looks_only_into_its_logical_partitions(door: DoorAtHand) -> None:
    for number in range(20):
        await door.create(f"i{number}", pk=f"p{number}")
    headers = {"x-ms-documentdb-populatequerymetrics": "True"}
    answer = await door.query("SELECT * FROM c WHERE c.pk IN ('p1', 'p2', 'none')", headers=headers)
    assert sorted(item["id"] for item in answer.body["Documents"]) == ["i1", "i2"]
    assert "retrievedDocumentCount=2;" in answer.headers["x-ms-documentdb-query-metrics"]


async def test_a_query_projects(door: DoorAtHand) -> None:
    await door.create("i", n=5)
    answer = await door.query("SELECT c.id, c.n AS number, c.none FROM c", headers=CROSSING)
    values = await door.query("SELECT VALUE c.n FROM c", headers=CROSSING)
    assert answer.body["Documents"] == [{"id": "i", "number": 5}]
    assert values.body["Documents"] == [5]


async def test_a_query_that_does_not_compile_tells_where(door: DoorAtHand) -> None:
    answer = await door.query("SELECT * FROM c WHERE", headers=CROSSING)
    assert answer.status == 400
    assert "SC1001" in answer.body["message"]


async def test_a_plan_names_the_points_of_pinned_keys(door: DoorAtHand) -> None:
    plan = {"x-ms-cosmos-is-query-plan-request": "True"}
    pinned = await door.send("POST", ITEMS, {"query": "SELECT * FROM c WHERE c.pk = 'redmond'"}, headers=plan)
    free = await door.send("POST", ITEMS, {"query": "SELECT * FROM c"}, headers=plan)
    point = "22E342F38A486A088463DFF7838A5963"
    assert pinned.body["queryRanges"] == [{"min": point, "max": point, "isMinInclusive": True, "isMaxInclusive": True}]
    assert free.body["queryRanges"] == [{"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}]
    assert free.body["queryInfo"]["distinctType"] == "None"


async def test_ranges_answer_304_for_their_own_etag_and_only_changes_for_an_older_one(door: DoorAtHand) -> None:
    path, incremental = "dbs/d/colls/c/pkranges", {"a-im": "Incremental Feed"}
    for number in range(20):
        await door.create(f"i{number}", pk=f"p{number}")
    first = await door.send("GET", path, headers=incremental)
    same = await door.send("GET", path, headers={"if-none-match": first.headers["etag"], **incremental})
    await door.split()
    changed = await door.send("GET", path, headers={"if-none-match": first.headers["etag"], **incremental})
    assert (same.status, same.headers["etag"]) == (304, first.headers["etag"])
    assert [partition["id"] for partition in first.body["PartitionKeyRanges"]] == ["0"]
    assert [(partition["id"], partition["parents"]) for partition in changed.body["PartitionKeyRanges"]] == [
        ("1", ["0"]),
        ("2", ["0"]),
    ]
    assert changed.headers["etag"] != first.headers["etag"]


async def test_a_filter_on_the_first_level_of_a_hierarchical_key_needs_no_permission_to_cross(
    door: DoorAtHand,
) -> None:
    settings = {"id": "levels", "partitionKey": {"paths": ["/a", "/b", "/c"], "kind": "MultiHash"}}
    await door.send("POST", "dbs/d/colls", settings)
    path = "dbs/d/colls/levels/docs"
    for number in range(6):
        item = {"id": str(number), "a": str(number % 2), "b": str(number % 3), "c": "z"}
        assert (await door.send("POST", path, item)).status == 201
    headers = {"x-ms-documentdb-isquery": "True"}
    for filter_, found in (
        ("c.a = '1'", ["1", "3", "5"]),
        ("c.a = '1' AND c.b = '0'", ["3"]),
        ("c.a = '1' AND c.c = 'z'", ["1", "3", "5"]),
        ("c.a IN ('0', '1')", ["0", "1", "2", "3", "4", "5"]),
    ):
        answer = await door.send("POST", path, {"query": f"SELECT VALUE c.id FROM c WHERE {filter_}"}, headers=headers)
        assert (answer.status, sorted(answer.body["Documents"])) == (200, found)
    for filter_ in ("c.b = '0'", "c.c = 'z'", "c.a > '0'"):
        answer = await door.send("POST", path, {"query": f"SELECT VALUE c.id FROM c WHERE {filter_}"}, headers=headers)
        assert answer.body["message"].startswith("Cross partition query is required but disabled")


async def test_the_continuation_of_a_query_over_several_partitions_is_json(door: DoorAtHand) -> None:
    for number in range(12):
        await door.create(str(number), f"key {number}")
    few = {**CROSSING, "x-ms-max-item-count": "3"}
    alone = await door.query("SELECT VALUE c.id FROM c", headers=few)
    assert alone.headers["x-ms-continuation"].startswith("a1.")
    await door.split()
    found: list[str] = []
    headers = dict(few)
    while not found or "x-ms-continuation" in headers:
        page = await door.query("SELECT VALUE c.id FROM c", headers=headers)
        found += page.body["Documents"]
        headers = dict(few)
        if "x-ms-continuation" in page.headers:
            (part,) = json.loads(page.headers["x-ms-continuation"])
            assert set(part) == {"token", "range"}
            assert part["range"]["min"] < part["range"]["max"]
            headers["x-ms-continuation"] = page.headers["x-ms-continuation"]
    assert sorted(found, key=int) == [str(number) for number in range(12)]
    pinned = await door.query("SELECT VALUE c.id FROM c WHERE c.pk = 'key 1'", headers=few)
    assert "x-ms-continuation" not in pinned.headers
    in_range = {**few, "x-ms-documentdb-partitionkeyrangeid": "1", "x-ms-max-item-count": "1"}
    assert (await door.query("SELECT * FROM c", headers=in_range)).headers["x-ms-continuation"].startswith("a1.")
    before = {**few, "x-ms-continuation": alone.headers["x-ms-continuation"]}
    assert (await door.query("SELECT VALUE c.id FROM c", headers=before)).status == 200


@pytest.mark.parametrize("token", ["[", "[]", "{}", '[{"token":1}]', '[{"token":"x"}]', '[{"range":{}}]', "[1]"])
async def test_a_malformed_composite_continuation_is_400(door: DoorAtHand, token: str) -> None:
    answer = await door.query("SELECT * FROM c", headers={**CROSSING, "x-ms-continuation": token})
    assert (answer.status, answer.body["code"]) == (400, "BadRequest")


async def test_a_composite_continuation_of_the_service_begins_anew(door: DoorAtHand) -> None:
    await door.create("i")
    token = '[{"token":"+RID:~a0NPAOszCpO=#RT:1#TRC:2","range":{"min":"","max":"FF"}}]'
    answer = await door.query("SELECT VALUE c.id FROM c", headers={**CROSSING, "x-ms-continuation": token})
    assert answer.body["Documents"] == ["i"]


async def test_version_1_keys_that_share_their_first_100_characters_stay_apart(door: DoorAtHand) -> None:
    await door.send("POST", "dbs/d/colls", {"id": "one", "partitionKey": {"paths": ["/pk"]}})
    path = "dbs/d/colls/one/docs"
    keys = ["x" * 99, "x" * 100, "x" * 101, "x" * 102, "é" * 50, "é" * 100, "é" * 101]
    for number, value in enumerate(keys):
        for item_id in ("same", str(number)):
            assert (await door.send("POST", path, {"id": item_id, "pk": value}, headers=key(value))).status == 201
    headers = {"x-ms-documentdb-isquery": "True"}
    for number, value in enumerate(keys):
        feed = await door.send("GET", path, headers=key(value))
        found = await door.send("POST", path, {"query": "SELECT VALUE c.id FROM c"}, headers={**headers, **key(value)})
        changes = await door.send("GET", path, headers={"a-im": "Incremental Feed", **key(value)})
        assert sorted(item["id"] for item in feed.body["Documents"]) == [str(number), "same"]
        assert sorted(found.body["Documents"]) == [str(number), "same"]
        assert sorted(item["id"] for item in changes.body["Documents"]) == [str(number), "same"]
    deleted = await door.send("POST", "dbs/d/colls/one/operations/partitionkeydelete", headers=key("x" * 100))
    assert deleted.status == 200
    left = await door.send("POST", path, {"query": "SELECT VALUE c.pk FROM c"}, headers={**headers, **CROSSING})
    assert sorted(set(left.body["Documents"])) == sorted(value for value in keys if value != "x" * 100)
