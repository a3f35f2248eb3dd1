"""A query's explanation at the NoSQL door: in a header, when it is asked for."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.nosql.door_at_hand import CROSSING, door_at_hand

QUERY = 'SELECT VALUE c.id FROM c WHERE c["größe"] = 2'


async def test_a_query_explains_itself_when_asked_in_ascii(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        for number in range(4):
            await door.create(str(number), pk=str(number), größe=number)
        answer = await door.query(QUERY, headers={**CROSSING, "x-asterism-explain": "true"})
    text = answer.headers["x-asterism-explanation"]
    explained = json.loads(text)
    assert text.isascii()
    assert (explained["indexes"], explained["items_loaded"], explained["results"], explained["scan"]) == (
        ["/größe/?"],
        1,
        1,
        False,
    )
    assert str(explained["request_units"]) == answer.headers["x-ms-request-charge"]


async def test_a_query_that_is_not_asked_says_nothing(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        answer = await door.query(QUERY, headers=CROSSING)
    assert "x-asterism-explanation" not in answer.headers
