"""The change feed on the wire: starting points, etags, 304, and splits that clients do not notice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from email.utils import formatdate
from pathlib import Path

import pytest

from asterism.apis.nosql.items import change_feed
from tests.unit.nosql.door_at_hand import ITEMS, Answer, DoorAtHand, door_at_hand, key

LATEST = {"a-im": "Incremental Feed"}
VERSIONS = {"a-im": "Full-Fidelity Feed", "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15"}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[DoorAtHand]:
    async with door_at_hand(tmp_path) as opened:
        yield opened


async def changes(door: DoorAtHand, since: str | None = None, **more: str) -> Answer:
    headers = {**LATEST, **({} if since is None else {"if-none-match": since})}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    return await door.send("GET", ITEMS, headers=headers)


def ids(answer: Answer) -> list[str]:
    return [item["id"] for item in (answer.body or {"Documents": []})["Documents"]]


async def test_from_the_beginning_every_item_comes_with_its_lsn(door: DoorAtHand) -> None:
    await door.create("a")
    await door.create("b")
    answer = await changes(door)
    assert (answer.status, ids(answer), answer.body["_count"]) == (200, ["a", "b"], 2)
    lsns = [item["_lsn"] for item in answer.body["Documents"]]
    assert answer.headers["etag"] == f'"{lsns[-1]}"'
    assert answer.headers["x-ms-item-count"] == "2"


async def test_a_reader_that_has_caught_up_gets_304_an_etag_and_no_body(door: DoorAtHand) -> None:
    await door.create("a")
    etag = (await changes(door)).headers["etag"]
    again = await changes(door, etag)
    assert (again.status, again.body, again.headers["etag"]) == (304, None, etag)
    await door.create("b")
    for written in (etag, etag.strip('"'), f"'{etag[1:-1]}'"):
        assert ids(await changes(door, written)) == ["b"]


async def test_from_now_on_is_a_star(door: DoorAtHand) -> None:
    await door.create("a")
    now = await changes(door, "*")
    assert (now.status, now.body) == (304, None)
    await door.create("b")
    assert ids(await changes(door, now.headers["etag"])) == ["b"]


async def test_from_a_time_on(door: DoorAtHand) -> None:
    made = await door.create("a")
    assert ids(await changes(door, if_modified_since=formatdate(made["_ts"], usegmt=True))) == ["a"]
    later = await changes(door, if_modified_since=formatdate(made["_ts"] + 3600, usegmt=True))
    assert later.status == 304


async def test_the_etag_of_a_reader_from_a_time_remembers_the_time(door: DoorAtHand) -> None:
    """Clients send the time once, with the first request."""
    made = await door.create("a")
    later = await changes(door, if_modified_since=formatdate(made["_ts"] + 3600, usegmt=True))
    await door.create("b")
    assert (await changes(door, later.headers["etag"])).status == 304
    assert later.headers["etag"].strip('"').isdigit()


async def test_a_page_that_ran_out_of_time_is_empty_and_not_304(
    door: DoorAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(150):
        await door.create(f"i{number}", f"p{number}")
    since = formatdate(4_000_000_000, usegmt=True)
    monkeypatch.setattr(change_feed, "_PAGE_SECONDS_MAX", 0.0)
    first = await changes(door, if_modified_since=since)
    assert (first.status, first.body["_count"], first.headers["x-ms-item-count"]) == (200, 0, "0")
    assert (await changes(door, first.headers["etag"])).status == 304


async def test_pages_end_at_the_asked_size_and_go_on_at_the_etag(door: DoorAtHand) -> None:
    for number in range(5):
        await door.create(f"i{number}", f"p{number}")
    first = await changes(door, x_ms_max_item_count="2")
    second = await changes(door, first.headers["etag"], x_ms_max_item_count="2")
    third = await changes(door, second.headers["etag"], x_ms_max_item_count="2")
    assert [ids(page) for page in (first, second, third)] == [["i0", "i1"], ["i2", "i3"], ["i4"]]


async def test_a_partition_key_is_a_scope(door: DoorAtHand) -> None:
    await door.create("a", "x")
    await door.create("b", "y")
    answer = await door.send("GET", ITEMS, headers={**LATEST, **key("y")})
    assert ids(answer) == ["b"]


@pytest.mark.parametrize("range_id", ["0", None])
async def test_a_range_that_was_split_is_read_on_with_the_etag_of_before(
    door: DoorAtHand, range_id: str | None
) -> None:
    scope = {} if range_id is None else {"x_ms_documentdb_partitionkeyrangeid": range_id}
    for number in range(10):
        await door.create(f"i{number}", f"p{number}")
    first = await changes(door, x_ms_max_item_count="4", **scope)
    await door.split()
    for number in range(10, 20):
        await door.create(f"i{number}", f"p{number}")
    seen, etag = ids(first), first.headers["etag"]
    while (page := await changes(door, etag, x_ms_max_item_count="4", **scope)).status == 200:
        seen += ids(page)
        etag = page.headers["etag"]
        assert page.headers["x-ms-documentdb-partitionkeyrangeid"] in ("1", "2")
        assert etag.strip('"').isdigit()
    assert sorted(seen) == sorted(f"i{number}" for number in range(20))


async def test_the_etag_over_two_children_is_good_for_each_of_them(door: DoorAtHand) -> None:
    for number in range(10):
        await door.create(f"i{number}", f"p{number}")
    await door.split()
    for number in range(10, 16):
        await door.create(f"i{number}", f"p{number}")
    etag = (await changes(door)).headers["etag"]
    await door.create("last", "p0")
    found = []
    for range_id in ("1", "2"):
        found += ids(await changes(door, etag, x_ms_documentdb_partitionkeyrangeid=range_id))
    assert found == ["last"]


@pytest.mark.parametrize(
    "headers",
    [
        {"if-none-match": "abc"},
        {"if-none-match": '"-5"'},
        {"if-modified-since": "yesterday"},
        {"if-none-match": "*", "if-modified-since": "yesterday"},
        {"a-im": "Other Feed"},
        {"x-ms-documentdb-partitionkeyrangeid": "77"},
        {"x-ms-max-item-count": "0"},
    ],
)
async def test_a_malformed_request_is_refused(door: DoorAtHand, headers: dict[str, str]) -> None:
    assert (await door.send("GET", ITEMS, headers={**LATEST, **headers})).status == 400


async def test_a_scope_without_any_point_has_no_changes(door: DoorAtHand) -> None:
    await door.create("a")
    answer = await changes(door, x_ms_start_epk="20", x_ms_end_epk="10")
    assert answer.status == 304


async def test_versions_that_are_not_kept_are_refused_in_the_services_words(door: DoorAtHand) -> None:
    answer = await door.send("GET", ITEMS, headers=VERSIONS)
    assert answer.status == 400
    assert "All Versions and Deletes" in answer.body["message"]
    assert "must be enabled" in answer.body["message"]


async def test_all_versions_come_with_images_and_metadata(door: DoorAtHand) -> None:
    policy = {"id": "v", "partitionKey": {"paths": ["/pk"]}, "changeFeedPolicy": {"retentionDuration": 10}}
    assert (await door.send("POST", "dbs/d/colls", policy)).status == 201
    path = "dbs/d/colls/v/docs"
    now = await door.send("GET", path, headers={**VERSIONS, "if-none-match": "*"})
    assert now.status == 304
    await door.send("POST", path, {"id": "a", "pk": "x"}, headers=key("x"))
    await door.send("DELETE", f"{path}/a", headers=key("x"))
    headers = {**VERSIONS, "if-none-match": now.headers["etag"]}
    rows = (await door.send("GET", path, headers=headers)).body["Documents"]
    assert [row["metadata"]["operationType"] for row in rows] == ["create", "delete"]
    assert (rows[0]["current"]["id"], rows[1]["current"], rows[1]["previous"]["id"]) == ("a", {}, "a")


async def test_an_item_is_in_the_feed_once_its_write_is_answered(door: DoorAtHand) -> None:
    etag = (await changes(door, "*")).headers["etag"]
    for number in range(20):
        await door.create(f"i{number}")
        answer = await changes(door, etag)
        assert ids(answer) == [f"i{number}"]
        etag = answer.headers["etag"]
