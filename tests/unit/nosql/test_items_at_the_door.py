"""The door on a real store: what it answers, header by header, to requests that need no client."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from pathlib import Path

import pytest

from asterism.apis.transports.http import Request
from asterism.limits import DEFAULT_LIMITS, KIB
from asterism.values.json.text import loads
from tests.unit.nosql.door_at_hand import CROSSING, ITEMS, KEYS, DoorAtHand, authorization, door_at_hand, key


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[DoorAtHand]:
    async with door_at_hand(tmp_path) as at_hand:
        yield at_hand


# --- every response -------------------------------------------------------------------------------------------------


async def test_an_item_response_tells_its_place_its_cost_and_its_version(door: DoorAtHand) -> None:
    item = await door.create("i")
    answer = await door.send("GET", f"{ITEMS}/i", headers=key("a"))
    container = await door.send("GET", "dbs/d/colls/c")
    assert answer.body == item
    assert answer.headers["etag"] == item["_etag"]
    assert answer.headers["x-ms-documentdb-partitionkeyrangeid"] == "0"
    assert answer.headers["x-ms-session-token"] == f"0:-1#{answer.headers['lsn']}"
    assert answer.headers["x-ms-alt-content-path"] == "dbs/d/colls/c"
    assert answer.headers["x-ms-content-path"] == container.body["_rid"]
    assert float(answer.headers["x-ms-request-charge"]) == 1.0
    assert answer.headers["x-ms-activity-id"] == "activity-of-the-server"


async def test_the_clients_activity_id_comes_back(door: DoorAtHand) -> None:
    answer = await door.send("GET", "dbs/d", headers={"x-ms-activity-id": "mine"})
    assert answer.headers["x-ms-activity-id"] == "mine"


async def test_each_write_raises_the_lsn_by_exactly_one(door: DoorAtHand) -> None:
    lsns = []
    for number in range(3):
        answer = await door.send("POST", ITEMS, {"id": str(number), "pk": "a"}, headers=key("a"))
        lsns.append(int(answer.headers["lsn"]))
    assert [lsn - lsns[0] for lsn in lsns] == [0, 1, 2]


async def test_the_account_sends_clients_back_to_the_address_they_came_by(door: DoorAtHand) -> None:
    answer = await door.send("GET", "")
    (location,) = answer.body["writableLocations"]
    assert location["databaseAccountEndpoint"] == "https://db.example.test:8081/"
    assert answer.body["readableLocations"] == [location]


# --- authorization --------------------------------------------------------------------------------------------------


async def test_a_request_without_authorization_is_401(door: DoorAtHand) -> None:
    answer = await door.send_as_it_is("GET", "/dbs/", {})
    assert (answer.status, answer.body["code"]) == (401, "Unauthorized")


async def test_a_request_signed_with_another_key_is_401(door: DoorAtHand) -> None:
    assert (await door.send("GET", "dbs/d", signing_key="bm90IHRoZSBrZXk=")).status == 401


async def test_a_read_only_key_reads_and_queries_and_does_not_write(door: DoorAtHand) -> None:
    await door.create("i")
    readonly = KEYS.primary_readonly
    query = {"query": "SELECT * FROM c"}
    read = await door.send("GET", f"{ITEMS}/i", headers=key("a"), signing_key=readonly)
    found = await door.send(
        "POST", ITEMS, query, headers={"x-ms-documentdb-isquery": "True", **CROSSING}, signing_key=readonly
    )
    written = await door.send("POST", ITEMS, {"id": "j", "pk": "a"}, headers=key("a"), signing_key=readonly)
    assert (read.status, found.status, written.status) == (200, 200, 403)


async def test_a_path_of_resource_ids_leads_to_the_same_item(door: DoorAtHand) -> None:
    await door.create("other")
    item = await door.create("i")
    link = item["_self"].strip("/")
    read = await door.send("GET", link, headers=key("a"))
    replaced = await door.send("PUT", link, {**item, "n": 2}, headers=key("a"))
    deleted = await door.send("DELETE", link, headers=key("a"))
    again = await door.send("GET", link, headers=key("a"))
    assert read.body == item
    assert (replaced.status, replaced.body["n"], deleted.status, again.status) == (200, 2, 204, 404)


# --- items ----------------------------------------------------------------------------------------------------------


async def test_an_upsert_says_whether_it_created(door: DoorAtHand) -> None:
    upsert = {"x-ms-documentdb-is-upsert": "True", **key("a")}
    statuses = [(await door.send("POST", ITEMS, {"id": "i", "pk": "a"}, headers=upsert)).status for _ in range(2)]
    assert statuses == [201, 200]


async def test_a_write_without_a_key_header_takes_the_key_from_the_item(door: DoorAtHand) -> None:
    await door.send("POST", ITEMS, {"id": "i", "pk": "a"})
    assert (await door.send("GET", f"{ITEMS}/i", headers=key("a"))).status == 200


async def test_a_minimal_answer_has_no_body_and_all_headers(door: DoorAtHand) -> None:
    answer = await door.send("POST", ITEMS, {"id": "i", "pk": "a"}, headers={"prefer": "return=minimal", **key("a")})
    assert (answer.status, answer.body) == (201, None)
    assert answer.headers["etag"]


async def test_an_unchanged_item_is_304_with_its_etag(door: DoorAtHand) -> None:
    item = await door.create("i")
    answer = await door.send("GET", f"{ITEMS}/i", headers={"if-none-match": item["_etag"], **key("a")})
    assert (answer.status, answer.body, answer.headers["etag"]) == (304, None, item["_etag"])


async def test_a_write_on_a_version_that_is_gone_is_412(door: DoorAtHand) -> None:
    item = await door.create("i")
    stale = {"if-match": '"another"', **key("a")}
    assert (await door.send("PUT", f"{ITEMS}/i", item, headers=stale)).status == 412
    assert (await door.send("DELETE", f"{ITEMS}/i", headers=stale)).status == 412
    assert (await door.send("DELETE", f"{ITEMS}/i", headers={**key("a"), "if-match": item["_etag"]})).status == 204


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "substatus"),
    [
        ("GET", f"{ITEMS}/i", None, {}, 400, None),
        ("GET", f"{ITEMS}/i", None, key("b"), 404, None),
        ("GET", f"{ITEMS}/i", None, key("a", "b"), 400, "1001"),
        ("GET", f"{ITEMS}/i", None, {"x-ms-documentdb-partitionkey": "a"}, 400, None),
        ("POST", ITEMS, {"id": "i", "pk": "a"}, key("a"), 409, None),
        ("POST", ITEMS, {"id": "j", "pk": "a"}, key("b"), 400, "1001"),
        ("POST", ITEMS, {"pk": "a"}, key("a"), 400, None),
        ("POST", ITEMS, {"id": "a/b", "pk": "a"}, key("a"), 400, None),
        ("POST", ITEMS, {"id": 7, "pk": "a"}, key("a"), 400, None),
        ("POST", ITEMS, [1], key("a"), 400, None),
        ("PUT", f"{ITEMS}/none", {"id": "none", "pk": "a"}, key("a"), 404, None),
        ("DELETE", f"{ITEMS}/none", None, key("a"), 404, None),
        ("GET", "dbs/d/colls/none/docs/i", None, key("a"), 404, "1003"),
        ("GET", "dbs/none/colls/c/docs/i", None, key("a"), 404, "1003"),
        ("GET", f"{ITEMS}/i", None, {"x-ms-consistency-level": "Strong", **key("a")}, 400, None),
        ("GET", f"{ITEMS}/i", None, {"x-ms-session-token": "0:-1#999", **key("a")}, 404, "1002"),
        ("GET", f"{ITEMS}/i", None, {"x-ms-session-token": "x", **key("a")}, 400, None),
        ("GET", f"{ITEMS}/i", None, {"x-ms-cosmos-intended-collection-rid": "x", **key("a")}, 400, "1024"),
        ("GET", f"{ITEMS}/i", None, {"x-ms-cosmos-throughput-bucket": "256", **key("a")}, 400, None),
        ("GET", ITEMS, None, {"x-ms-max-item-count": "0"}, 400, None),
        ("GET", ITEMS, None, {"x-ms-continuation": "x"}, 400, None),
        ("GET", ITEMS, None, {"x-ms-documentdb-partitionkeyrangeid": "77"}, 400, None),
        ("GET", ITEMS, None, {"x-ms-start-epk": "zz"}, 400, None),
        ("GET", ITEMS, None, {"a-im": "Some Feed"}, 400, None),
        ("PATCH", f"{ITEMS}/i", {"operations": []}, key("a"), 400, None),
        ("POST", ITEMS, [], {"x-ms-cosmos-is-batch-request": "True", **key("a")}, 400, None),
        ("POST", ITEMS, {"id": "t", "pk": "a"}, {"x-ms-documentdb-pre-trigger-include": "t", **key("a")}, 400, None),
    ],
)
async def test_an_impossible_request_is_refused_in_the_services_words(
    door: DoorAtHand,
    method: str,
    path: str,
    body: object,
    headers: dict[str, str],
    status: int,
    substatus: str | None,
) -> None:
    await door.create("i")
    answer = await door.send(method, path, body, headers=headers)
    assert (answer.status, answer.headers.get("x-ms-substatus")) == (status, substatus)
    assert answer.body["code"]
    assert answer.body["message"]


async def test_malformed_json_is_400(door: DoorAtHand) -> None:
    answer = await door.send("POST", ITEMS, b'{"id":', headers=key("a"))
    assert (answer.status, answer.body["code"]) == (400, "BadRequest")


async def test_an_item_above_the_limit_is_413(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path, limits=DEFAULT_LIMITS.with_changes(item_bytes_max=4 * KIB)) as door:
        answer = await door.send("POST", ITEMS, {"id": "i", "pk": "a", "x": "y" * 5000}, headers=key("a"))
    assert (answer.status, answer.body["code"]) == (413, "RequestEntityTooLarge")


async def test_a_full_logical_partition_is_403_with_its_substatus(tmp_path: Path) -> None:
    limits = DEFAULT_LIMITS.with_changes(logical_partition_bytes_max=2 * KIB)
    async with door_at_hand(tmp_path, limits=limits) as door:
        await door.create("i", x="y" * 1000)
        answer = await door.send("POST", ITEMS, {"id": "j", "pk": "a", "x": "y" * 1000}, headers=key("a"))
    assert (answer.status, answer.headers["x-ms-substatus"]) == (403, "1014")
    assert "Partition key reached maximum size of 2 KB" in answer.body["message"]


async def test_an_unexpected_failure_is_500_without_its_traceback(
    door: DoorAtHand, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(door.world.store, "list_databases", None)
    answer = await door.send("GET", "dbs")
    assert (answer.status, answer.body["code"]) == (500, "InternalServerError")
    assert "NoneType" not in answer.body["message"]
    assert "activity-of-the-server" in caplog.text


# --- ids that an address must escape --------------------------------------------------------------------------------


@pytest.mark.parametrize("item_id", ["a?b", "?", "a?b=c&d e", "tab\tbed", "line\nfeed", "\x00", "\x7f", "Test ", " "])
async def test_an_item_of_any_id_is_created_read_replaced_and_deleted(door: DoorAtHand, item_id: str) -> None:
    created = await door.create(item_id, "a")
    read = await door.send("GET", f"{ITEMS}/{item_id}", headers=key("a"))
    assert (read.status, read.body) == (200, created)
    replaced = await door.send("PUT", f"{ITEMS}/{item_id}", {"id": item_id, "pk": "a", "n": 1}, headers=key("a"))
    assert (replaced.status, replaced.body["n"]) == (200, 1)
    patch = [{"op": "incr", "path": "/n", "value": 1}]
    assert (await door.send("PATCH", f"{ITEMS}/{item_id}", patch, headers=key("a"))).body["n"] == 2
    found = await door.query("SELECT VALUE c.n FROM c WHERE c.id = @id", ("@id", item_id), headers=CROSSING)
    assert found.body["Documents"] == [2]
    assert (await door.send("DELETE", f"{ITEMS}/{item_id}", headers=key("a"))).status == 204
    assert (await door.send("GET", f"{ITEMS}/{item_id}", headers=key("a"))).status == 404


async def test_a_question_mark_that_a_client_leaves_in_the_address_belongs_to_the_id(door: DoorAtHand) -> None:
    await door.create("a", "x")
    created = await door.create("a?b=c d", "x")
    date = formatdate(time.time(), usegmt=True)
    headers = {**key("x"), "x-ms-date": date}
    headers["authorization"] = authorization("GET", f"{ITEMS}/a?b=c d", date=date)
    # As encodeURI of JavaScript leaves it.
    request = Request("GET", f"/{ITEMS}/a", "b=c%20d", headers, b"", "https", "db.example.test:8081")
    response = await door.door.answer(request)
    assert (response.status, loads(response.body)) == (200, created)
    headers["authorization"] = authorization("GET", f"{ITEMS}/a", date=date)
    assert (await door.door.answer(request)).status == 401


@pytest.mark.parametrize("item_id", [".", "..", "a/b", "a\\b", "a#b"])
async def test_an_id_that_no_client_could_address_is_400(door: DoorAtHand, item_id: str) -> None:
    answer = await door.send("POST", ITEMS, {"id": item_id, "pk": "a"}, headers=key("a"))
    assert (answer.status, answer.body["code"]) == (400, "BadRequest")
