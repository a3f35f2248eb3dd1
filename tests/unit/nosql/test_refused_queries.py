"""Queries that the service refuses: within one key, over several and as plans; and with --lenient-sql, as they run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.nosql.door_at_hand import CROSSING, ITEMS, door_at_hand, key

IS_QUERY = {"x-ms-documentdb-isquery": "True"}
PLAN = {
    **CROSSING,
    "x-ms-cosmos-is-query-plan-request": "True",
    "x-ms-cosmos-supported-query-features": "Aggregate, CompositeAggregate, OrderBy, Top, OffsetAndLimit, HybridSearch",
}
REFUSED = [
    ("SELECT VALUE ARRAY(SELECT VALUE x FROM x IN c.a ORDER BY x) FROM c", '"code":"SC2202"'),
    ("SELECT VALUE ARRAY(SELECT TOP 1 VALUE x FROM x IN c.a) FROM c", '"code":"SC2203"'),
    ("SELECT VALUE ARRAY(SELECT VALUE x FROM x IN c.a OFFSET 0 LIMIT 1) FROM c", '"code":"SC2204"'),
    ("SELECT VALUE c.id FROM c ORDER BY ABS(c.n)", '{"severity":"Error","code":2206,"message":"Unsupported ORDER BY'),
    ("SELECT VALUE c.a[c.n] FROM c", '"code":"SC2990"'),
    ("SELECT VALUE COUNT(1) + 1 FROM c", "Compositions of aggregates and other expressions are not allowed."),
    ("SELECT VALUE c.id FROM c JOIN x IN c.a ORDER BY RANK FullTextScore(c.id, '1')", '"code":"SC2224"'),
    ("SELECT VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.id, '1'))", '"code":"SC2221"'),
]
ANSWERED = [[[3, 4]], [[4]], [[4]], ["1"], [3], [2], ["1", "1"], ["1"]]


@pytest.mark.parametrize("headers", [key("a") | IS_QUERY, CROSSING | IS_QUERY, PLAN])
async def test_a_query_that_the_service_refuses_is_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("1", n=1, a=[4, 3])
        answers = [await door.send("POST", ITEMS, {"query": text}, headers=headers) for text, _ in REFUSED]
    assert [answer.status for answer in answers] == [400] * len(REFUSED)
    assert [code in answer.body["message"] for answer, (_, code) in zip(answers, REFUSED, strict=True)] == [True] * 8


async def test_a_lenient_server_answers_them(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path, lenient_sql=True) as door:
        await door.create("1", n=1, a=[4, 3])
        answers = [await door.query(text, headers=key("a")) for text, _ in REFUSED]
    assert [answer.body["Documents"] for answer in answers] == ANSWERED


async def test_the_query_of_a_script_is_refused_as_well(tmp_path: Path) -> None:
    body = """function () {
        const text = "SELECT VALUE c.a[c.n] FROM c";
        __.queryDocuments(__.getSelfLink(), text, (error) => __.response.setBody(error.message));
    }"""
    async with door_at_hand(tmp_path) as door:
        await door.create("1", n=1, a=[4, 3])
        procedures = "dbs/d/colls/c/sprocs"
        assert (await door.send("POST", procedures, {"id": "p", "body": body})).status == 201
        answer = await door.send("POST", f"{procedures}/p", [], headers=key("a"))
    assert "SC2990" in answer.body


async def test_numbers_that_json_does_not_have_are_answered_by_name(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        for item_id in ("1", "2"):
            await door.create(item_id, n=int(item_id))
        texts = [
            "SELECT VALUE {'a': [NaN, -Infinity]} FROM c WHERE c.n < Infinity AND c.id = '1'",
            "SELECT VALUE c.id FROM c WHERE c.n = NaN OR c.pk = NaN OR c.n > NaN",
            "SELECT VALUE c.id FROM c WHERE c.n BETWEEN -Infinity AND 1",
            "SELECT VALUE MAX(Infinity) FROM c",
        ]
        answers = [await door.query(text, headers=key("a")) for text in texts]
    found = [answer.body["Documents"] for answer in answers]
    assert found == [[{"a": ["NaN", "-Infinity"]}], [], ["1"], ["Infinity"]]
