"""Queries that run here and that the service refuses: the codes, spans and messages that its own tests record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.plans.plan import make_plan
from asterism.languages.cosmos_sql.plans.ranges import range_of_key
from asterism.languages.cosmos_sql.service_refusals import check_as_service, check_text_as_service
from asterism.partitioning.partition_key import PartitionKeyDefinition

DEFINITION = PartitionKeyDefinition(paths=("/pk",))
SCENARIOS = Path(__file__).parent.parent.parent / "cases" / "query"

ORDER_IN_SUBQUERY = "'ORDER BY' is not supported in subqueries."
TOP_IN_SUBQUERY = "'TOP' is not supported in subqueries."
OFFSET_IN_SUBQUERY = "'OFFSET LIMIT' clause is not supported in subqueries."
NO_PATH = "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path."
INDEXER = "The specified query includes 'member indexer' which is currently not supported."
JOIN_WITH_RANK = "The JOIN operator is not allowed with the ORDER BY RANK clause."
IN_WITH_RANK = "The FROM clause with the IN operator is not allowed with the ORDER BY RANK clause."
SUBQUERY_WITH_RANK = "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause."
RANK_IN_SUBQUERY = "The ORDER BY RANK clause is not supported in subqueries."
NO_SCORE = "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call."
WEIGHTS = (
    "The last parameter of the RRF function is an optional array of weights. When present, it must be a literal array "
    "of numbers, one for each of the component scores used for the RRF function. The length of this array must be the "
    "same as the number of the component scores."
)
LIST_SIZE = (
    "The 'searchListSizeMultiplier' value -100 specified in the VectorDistance function is outside the supported "
    "range. The value must be between 1 and 100."
)


def _check(text: str, parameters: dict[str, object] | None = None) -> None:
    query = parse_query(text)
    compile_query(query, parameters or {})
    check_as_service(query, parameters or {})
    check_text_as_service(text, parameters or {})


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        (
            "SELECT VALUE ARRAY(SELECT VALUE x FROM x IN c.a «ORDER BY x») FROM c",
            "SC2202",
            ORDER_IN_SUBQUERY,
        ),
        (
            "SELECT VALUE r FROM (SELECT VALUE c FROM c «ORDER BY c.a, c.b DESC») r",
            "SC2202",
            ORDER_IN_SUBQUERY,
        ),
        (
            "SELECT VALUE r FROM (SELECT «TOP 10» VALUE c FROM c) AS r",
            "SC2203",
            TOP_IN_SUBQUERY,
        ),
        (
            "SELECT VALUE r FROM (SELECT DISTINCT «TOP @n» * FROM c) AS r",
            "SC2203",
            TOP_IN_SUBQUERY,
        ),
        (
            "SELECT * FROM c WHERE EXISTS(SELECT «TOP 1» VALUE x FROM x IN c.a)",
            "SC2203",
            TOP_IN_SUBQUERY,
        ),
        (
            "SELECT VALUE 1 FROM c JOIN (SELECT VALUE x FROM x IN c.a «OFFSET 1 LIMIT 5»)",
            "SC2204",
            OFFSET_IN_SUBQUERY,
        ),
        (
            "SELECT VALUE FIRST(SELECT VALUE x FROM x IN c.a «OFFSET 0 LIMIT 1») FROM c",
            "SC2204",
            OFFSET_IN_SUBQUERY,
        ),
        (
            "SELECT VALUE «[1, 2, 3][c.x]» FROM c",
            "SC2990",
            INDEXER,
        ),
        (
            "SELECT VALUE «c.a[ARRAY_LENGTH(c.a) - 1]» FROM c",
            "SC2990",
            INDEXER,
        ),
        (
            "SELECT * FROM c WHERE «c[c.name]» = 1",
            "SC2990",
            INDEXER,
        ),
        (
            "SELECT * FROM c ORDER BY «LOWER(c.a)»",
            "2206",
            NO_PATH,
        ),
        (
            "SELECT * FROM c WHERE c.pk = 'a' ORDER BY «c.a * 2 DESC», c.b",
            "2206",
            NO_PATH,
        ),
        (
            "SELECT * FROM c ORDER BY c.b, «(SELECT VALUE COUNT(1) FROM x IN c.a)»",
            "2206",
            NO_PATH,
        ),
        (
            "SELECT VALUE c FROM c JOIN (SELECT VALUE COUNT(1) FROM x IN c.a) AS n ORDER BY «n ASC»",
            "2206",
            NO_PATH,
        ),
        (
            "SELECT VALUE c FROM c JOIN (SELECT VALUE EXISTS(SELECT 1)) AS n ORDER BY c.a, «n»",
            "2206",
            NO_PATH,
        ),
        (
            "SELECT VALUE r FROM (SELECT VALUE {'n': ABS(c.a)} FROM c) AS r ORDER BY «r.n»",
            "2206",
            NO_PATH,
        ),
        (
            "SELECT VALUE r FROM (SELECT ABS(c.a) AS n FROM c) AS r ORDER BY «r.n»",
            "2206",
            NO_PATH,
        ),
        (
            "SELECT VALUE x FROM «c JOIN x IN c.a» ORDER BY RANK FullTextScore(c.t, 'a')",
            "SC2224",
            JOIN_WITH_RANK,
        ),
        (
            "SELECT VALUE x FROM «x IN c.a» ORDER BY RANK FullTextScore(x.t, 'a')",
            "SC2223",
            IN_WITH_RANK,
        ),
        (
            "SELECT VALUE r FROM «(SELECT VALUE c FROM c)» AS r ORDER BY RANK FullTextScore(r.t, 'a')",
            "SC2225",
            SUBQUERY_WITH_RANK,
        ),
        (
            "SELECT VALUE 1 FROM (SELECT * FROM c «ORDER BY RANK FullTextScore(c.t, 'a')») AS r",
            "SC2228",
            RANK_IN_SUBQUERY,
        ),
        (
            "SELECT * FROM c «ORDER BY RANK RRF(FullTextScore(c.t, 'a'))»",
            "SC2221",
            NO_SCORE,
        ),
        (
            "SELECT * FROM c «ORDER BY RANK LOWER(c.t)»",
            "SC2221",
            NO_SCORE,
        ),
        (
            "SELECT * FROM c «ORDER BY RANK RRF(c.t, c.u)»",
            "SC2221",
            NO_SCORE,
        ),
        (
            "SELECT * FROM c «ORDER BY RANK RRF(FullTextScore(c.t, 'a'), FullTextScore(c.u, 'b'), [1])»",
            "SC2229",
            WEIGHTS,
        ),
        (
            "SELECT * FROM c «ORDER BY RANK RRF(FullTextScore(c.t, 'a'), FullTextScore(c.u, 'b'), [1, c.n])»",
            "SC2229",
            WEIGHTS,
        ),
        (
            "SELECT VALUE VectorDistance(c.v, [1], true, «{'searchListSizeMultiplier': -100}») FROM c",
            "SC2213",
            LIST_SIZE,
        ),
    ],
)
def test_a_query_that_the_service_refuses_is_refused_as_there(text: str, code: str, reason: str) -> None:
    """The span of the error is marked in the text."""
    before, part, _ = text.replace("»", "«").split("«")
    with pytest.raises(MalformedQuery) as refusal:
        _check(text.replace("«", "").replace("»", ""), {"@n": 1})
    error = refusal.value
    assert (error.code, error.reason) == (code, reason)
    assert (error.start, error.end) == (len(before), len(before) + len(part))


def test_all_errors_are_named() -> None:
    """The errors are in the order that the service's tests record."""
    inner = "(SELECT TOP 2 VALUE x FROM x IN c.a ORDER BY x)"
    text = f"SELECT VALUE r FROM (SELECT VALUE ARRAY{inner} FROM c ORDER BY c.n OFFSET 1 LIMIT 2) AS r"
    with pytest.raises(MalformedQuery) as refusal:
        _check(text)
    faults = (refusal.value, *refusal.value.more)
    assert [fault.code for fault in faults] == ["SC2202", "SC2203", "SC2202", "SC2204"]
    assert [text[fault.start : fault.end] for fault in faults] == [
        "ORDER BY x",
        "TOP 2",
        "ORDER BY c.n",
        "OFFSET 1 LIMIT 2",
    ]


def test_a_search_over_a_join_is_refused_for_both() -> None:
    with pytest.raises(MalformedQuery) as refusal:
        _check("SELECT VALUE x FROM c JOIN x IN c.a ORDER BY RANK FullTextScore(c.t, 'a')")
    assert [fault.code for fault in (refusal.value, *refusal.value.more)] == ["SC2224", "SC2223"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(1) + 5 FROM c",
        "SELECT VALUE MIN(c.a) / 2 FROM c",
        "SELECT VALUE {'n': ABS(SUM(c.a))} FROM c",
        "SELECT c.g, IS_DEFINED(MAX(c.a)) AS has FROM c GROUP BY c.g",
    ],
)
def test_compositions_of_aggregates_are_refused(text: str) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        _check(text)
    assert refusal.value.reason == "Compositions of aggregates and other expressions are not allowed."


def test_ordered_groups_are_refused() -> None:
    with pytest.raises(MalformedRequest) as refusal:
        _check("SELECT c.g FROM c GROUP BY c.g ORDER BY c.g")
    assert refusal.value.reason == "'ORDER BY' is not supported in presence of GROUP BY."


@pytest.mark.parametrize(
    "text",
    [
        "SELECT TOP 1 * FROM c ORDER BY c.a, c['b'].d[0] DESC",
        "SELECT TOP @n VALUE c[@n] FROM c ORDER BY c[@name] OFFSET 1 LIMIT 2",
        "SELECT VALUE c.a[0 + 1] FROM c WHERE c[CONCAT('a', 'b')] = 1",
        "SELECT VALUE x FROM c JOIN x IN c.a ORDER BY x.b",
        "SELECT VALUE c FROM c JOIN (SELECT VALUE COUNT(1) FROM x IN c.a) AS n WHERE n > 1 ORDER BY c.a",
        "SELECT VALUE r FROM (SELECT VALUE c FROM c) AS r ORDER BY r.a",
        "SELECT VALUE r FROM (SELECT * FROM c) AS r ORDER BY r.a.b",
        "SELECT VALUE r FROM (SELECT VALUE {'n': c.a} FROM c) AS r ORDER BY r.n",
        "SELECT VALUE r FROM (SELECT c.a.b, c.d AS n FROM c) AS r ORDER BY r.b, r.n.x",
        "SELECT * FROM c ORDER BY VectorDistance(c.v, [1])",
        "SELECT * FROM c ORDER BY RANK FullTextScore(c.t, 'a')",
        "SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), VectorDistance(c.v, [1]), [1, -2])",
        "SELECT VALUE VectorDistance(c.v, [1], true, {'searchListSizeMultiplier': 100}) FROM c",
        "SELECT COUNT(1) AS n, [{'sum': SUM(c.a)}] AS list FROM c",
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.a FROM c)",
        "SELECT VALUE SUM((SELECT VALUE MAX(x) + 1 FROM x IN c.a)) FROM c",
        "SELECT VALUE ARRAY(SELECT DISTINCT VALUE x FROM x IN c.a) FROM c",
        "SELECT VALUE 1",
    ],
)
def test_a_query_that_the_service_answers_passes(text: str) -> None:
    _check(text, {"@n": 1, "@name": "a"})


def _rewritten_cases() -> list[Any]:
    cases = json.loads((SCENARIOS / "plans.json").read_text(encoding="utf-8"))["cases"]
    return [pytest.param(case, id=case["name"]) for case in cases if case.get("plan", {}).get("rewrittenQuery")]


@pytest.mark.parametrize("case", _rewritten_cases())
def test_a_rewritten_query_of_a_plan_passes(case: dict[str, Any]) -> None:
    rewritten = case["plan"]["rewrittenQuery"].replace("{documentdb-formattableorderbyquery-filter}", "true")
    _check(rewritten, case.get("parameters"))


def test_the_queries_of_a_search_pass() -> None:
    text = "SELECT TOP 3 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), VectorDistance(c.v, [1]), [1, -1])"
    plan = make_plan(
        parse_query(text),
        text=text,
        parameters={},
        partition_key_paths=DEFINITION.segments,
        range_of_key=range_of_key(DEFINITION),
    )
    assert plan.search is not None
    _check(plan.search.statistics_query)
    for component in plan.search.components:
        query = component.rewritten_query.replace("{documentdb-formattableorderbyquery-filter}", "true")
        for name in ("totaldocumentcount", "totalwordcount-0"):
            query = query.replace(f"{{documentdb-formattablehybridsearchquery-{name}}}", "3")
        _check(query.replace("{documentdb-formattablehybridsearchquery-hitcountsarray-0}", "[1]"))


def test_a_text_that_passed_is_checked_again_if_parameters_decide() -> None:
    text = "SELECT VALUE VectorDistance(c.v, [1], true, @options) FROM c"
    check_text_as_service(text, {"@options": {"searchListSizeMultiplier": 5}})
    with pytest.raises(MalformedQuery):
        check_text_as_service(text, {"@options": {"searchListSizeMultiplier": 0}})


def test_a_text_that_was_refused_is_refused_again() -> None:
    for _ in range(2):
        with pytest.raises(MalformedQuery):
            check_text_as_service("SELECT * FROM c ORDER BY ABS(c.a)", {})
