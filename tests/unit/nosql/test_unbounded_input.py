"""Numbers of thousands of digits, nesting and a clock before 1970: refused or served, never a failure of the server."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from asterism.apis.nosql import headers as header_names
from tests.unit.nosql.door_at_hand import CROSSING, ITEMS, DoorAtHand, door_at_hand, key

# Python reads at most 4,300 digits as a number.
DIGITS = "9" * 5000
HEADERS = sorted(
    value
    for name, value in vars(header_names).items()
    if name.isupper() and isinstance(value, str) and value not in ("authorization", "x-ms-date")
)


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[DoorAtHand]:
    async with door_at_hand(tmp_path) as at_hand:
        yield at_hand


@pytest.mark.parametrize("name", HEADERS)
async def test_a_header_of_thousands_of_digits_is_answered_without_a_failure(door: DoorAtHand, name: str) -> None:
    item = await door.create("i")
    etag = (await door.send("GET", "dbs/d/colls/c/pkranges")).headers["etag"]
    query = {"query": "SELECT * FROM c"}
    for value in (DIGITS, f"[{DIGITS}]", f"0:-1#{DIGITS}", etag.replace("-", f"-{DIGITS}"), "[" * 5000):
        headers = {**key("a"), name: value}
        asked = {"x-ms-documentdb-isquery": "True", **CROSSING, name: value}
        feed = {"a-im": "Incremental Feed", name: value}
        for answer in (
            await door.send("GET", f"{ITEMS}/i", headers=headers),
            await door.send("GET", ITEMS, headers={name: value}),
            await door.send("GET", ITEMS, headers=feed),
            await door.send("GET", "dbs/d/colls/c/pkranges", headers=feed),
            await door.send("POST", ITEMS, item, headers={"x-ms-documentdb-is-upsert": "True", **headers}),
            await door.send("POST", ITEMS, query, headers=asked),
            await door.send("POST", "dbs", {"id": "d"}, headers={name: value}),
            await door.send("POST", "dbs/d/users/u/permissions", {"id": "p"}, headers={name: value}),
        ):
            assert answer.status < 500, (name, answer)


@pytest.mark.parametrize(
    "body", [b'{"id":"i","pk":"a","n":%b}', b'{"id":"i","pk":%b}', b'{"id":"i","pk":"a","ttl":%b}']
)
async def test_a_number_of_thousands_of_digits_in_a_body_is_400(door: DoorAtHand, body: bytes) -> None:
    assert (await door.send("POST", ITEMS, body % DIGITS.encode(), headers=key("a"))).status == 400


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT VALUE {DIGITS}",
        f"SELECT TOP {DIGITS} * FROM c",
        f"SELECT * FROM c OFFSET {DIGITS} LIMIT 1",
        f"SELECT * FROM c WHERE c.a[{DIGITS}] = 1",
        f"SELECT VALUE 1e{DIGITS}",
        f'SELECT VALUE StringToNumber("{DIGITS}")',
        f"SELECT VALUE -{DIGITS}.5",
        f'SELECT VALUE REPLICATE("a", {DIGITS})',
    ],
)
async def test_a_number_of_thousands_of_digits_in_a_query_is_answered_without_a_failure(
    door: DoorAtHand, text: str
) -> None:
    await door.create("i")
    assert (await door.query(text, headers=CROSSING)).status < 500
    assert (await door.query("SELECT * FROM c WHERE c.n = @n", ("@n", DIGITS), headers=CROSSING)).status == 200


async def test_a_clock_before_1970_stands_at_1970(door: DoorAtHand, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"id": "t", "partitionKey": {"paths": ["/pk"]}, "defaultTtl": 5}
    versions = {"changeFeedPolicy": {"retentionDuration": 5}}
    monkeypatch.setattr(time, "time", lambda: -1e6)
    # Requests are dated by the same clock, and a minute makes no difference to a signature.
    monkeypatch.setattr("tests.unit.nosql.door_at_hand.formatdate", lambda *_, **__: "Thu, 01 Jan 1970 00:01:00 GMT")
    assert (await door.send("POST", "dbs/d/colls", settings | versions)).status == 201
    written = await door.send("POST", "dbs/d/colls/t/docs", {"id": "i", "pk": "a"}, headers=key("a"))
    assert (written.status, written.body["_ts"]) == (201, 0)
    assert (await door.send("DELETE", "dbs/d/colls/t/docs/i", headers=key("a"))).status == 204
