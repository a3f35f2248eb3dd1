from __future__ import annotations

from typing import Any

import pytest

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql import parse_query
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.plans.plan import QueryPlan, make_plan, needs_plan
from asterism.languages.cosmos_sql.plans.ranges import range_of_key
from asterism.partitioning.partition_key import PartitionKeyDefinition

DEFINITION = PartitionKeyDefinition(paths=("/pk",))
STATISTIC = "{documentdb-formattablehybridsearchquery-%s}"
FILTER = "({documentdb-formattableorderbyquery-filter})"


def _plan(text: str, *, distance: str | None = None, **parameters: object) -> QueryPlan:
    return make_plan(
        parse_query(text),
        text=text,
        parameters={f"@{name}": value for name, value in parameters.items()},
        partition_key_paths=DEFINITION.segments,
        range_of_key=range_of_key(DEFINITION),
        distance_function_of=lambda _path: distance,
    )


def _search(text: str, *, distance: str | None = None, **parameters: object) -> dict[str, Any]:
    search: Any = _plan(text, distance=distance, **parameters).to_json()["hybridSearchQueryInfo"]
    return dict(search)


def _text_score(path: str, terms: str, index: int) -> str:
    numbers = ("totaldocumentcount", f"totalwordcount-{index}", f"hitcountsarray-{index}")
    return f"_FullTextScore({path}, [{terms}], {', '.join(STATISTIC % name for name in numbers)})"


def test_a_rank_by_text_is_one_component() -> None:
    text = "SELECT TOP 3 c.id FROM c WHERE c.old ORDER BY RANK FullTextScore(c.story, 'sea', 'ice')"
    score = _text_score("c.story", '"sea", "ice"', 0)
    assert _plan(text).to_json() == {
        "partitionedQueryExecutionInfoVersion": 2,
        "hybridSearchQueryInfo": {
            "globalStatisticsQuery": (
                'SELECT COUNT(1) AS documentCount, [{"totalWordCount": SUM(_FullTextWordCount(c.story)), "hitCounts": '
                '[COUNTIF(FullTextContains(c.story, "sea")), COUNTIF(FullTextContains(c.story, "ice"))]}] '
                "AS fullTextStatistics\nFROM c"
            ),
            "componentQueryInfos": [
                {
                    "distinctType": "None",
                    "top": 120,
                    "offset": None,
                    "limit": None,
                    "orderBy": ["Descending"],
                    "orderByExpressions": [score],
                    "groupByExpressions": [],
                    "groupByAliases": [],
                    "aggregates": [],
                    "groupByAliasToAggregateType": {},
                    "rewrittenQuery": (
                        f'SELECT TOP 120 c._rid, [{{"item": {score}}}] AS orderByItems, {{"payload": {{"id": c.id}}, '
                        f'"componentScores": [({score} ?? -1)]}} AS payload\nFROM c\nWHERE (c.old AND {FILTER})\n'
                        f"ORDER BY {score} DESC"
                    ),
                    "hasSelectValue": False,
                    "dCountInfo": None,
                    "hasNonStreamingOrderBy": True,
                }
            ],
            "componentWithoutPayloadQueryInfos": [],
            "projectionQueryInfo": None,
            "componentWeights": [],
            "skip": None,
            "take": 3,
            "requiresGlobalStatistics": True,
        },
        "queryRanges": [{"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}],
    }


def test_a_fused_rank_selects_every_score_in_every_component() -> None:
    rank = "RRF(VectorDistance(c.v, [1, 2]), FullTextScore(c.story, 'sea'))"
    search = _search(f"SELECT * FROM c ORDER BY RANK {rank} OFFSET 90 LIMIT 10")
    text_score, vector_score = _text_score("c.story", '"sea"', 0), "_VectorScore(c.v, [1, 2])"
    scores = f'"componentScores": [({vector_score} ?? -1.79769e+308), ({text_score} ?? -1)]'
    queries = [component["rewrittenQuery"] for component in search["componentQueryInfos"]]
    assert [scores in query for query in queries] == [True, True]
    assert [query.split("\n")[-2:] for query in queries] == [
        [f"ORDER BY {vector_score}", "OFFSET 0 LIMIT 200"],
        [f"ORDER BY {text_score} DESC", "OFFSET 0 LIMIT 200"],
    ]
    assert [(info["offset"], info["limit"]) for info in search["componentQueryInfos"]] == [(0, 200), (0, 200)]
    assert (search["skip"], search["take"]) == (90, 10)


def test_each_text_has_statistics_of_its_own() -> None:
    search = _search("SELECT TOP 1 * FROM c ORDER BY RANK RRF(FullTextScore(c.a, 'x'), FullTextScore(c.b, @term))")
    scores = [component["orderByExpressions"] for component in search["componentQueryInfos"]]
    assert scores == [[_text_score("c.a", '"x"', 0)], [_text_score("c.b", "@term", 1)]]


def test_vectors_alone_need_no_statistics() -> None:
    search = _search("SELECT TOP 1 * FROM c ORDER BY RANK RRF(VectorDistance(c.a, [1]), VectorDistance(c.b, [1]))")
    assert search["requiresGlobalStatistics"] is False
    assert search["globalStatisticsQuery"] == "SELECT COUNT(1) AS documentCount, [] AS fullTextStatistics\nFROM c"


@pytest.mark.parametrize("weights", ["[2, -0.5]", "@weights"])
def test_a_negative_weight_reverses_its_score(weights: str) -> None:
    text = f"SELECT TOP 1 * FROM c ORDER BY RANK RRF(VectorDistance(c.a, [1]), VectorDistance(c.b, [1]), {weights})"
    search = _search(text, weights=[2, -0.5])
    assert search["componentWeights"] == [2.0, 0.5]
    assert [component["orderBy"] for component in search["componentQueryInfos"]] == [["Descending"], ["Ascending"]]
    last = search["componentQueryInfos"][1]["rewrittenQuery"]
    assert last.endswith("ORDER BY _VectorScore(c.b, [1]) ASC")
    assert "(_VectorScore(c.b, [1]) ?? 1.79769e+308)" in last


def test_the_distance_of_the_container_decides_the_direction_of_a_vector_score() -> None:
    text = "SELECT TOP 1 * FROM c ORDER BY RANK RRF(VectorDistance(c.a, [1]), FullTextScore(c.b, 'x'))"
    search = _search(text, distance="euclidean")
    assert search["componentQueryInfos"][0]["orderBy"] == ["Ascending"]


def test_the_rows_of_each_score_are_limited_to_the_largest_count() -> None:
    search = _search("SELECT TOP 4294967295 * FROM c ORDER BY RANK FullTextScore(c.a, 'x')")
    assert search["componentQueryInfos"][0]["top"] == 4294967295


def test_a_search_needs_a_plan_and_a_client_that_knows_it() -> None:
    text = "SELECT TOP 1 * FROM c ORDER BY RANK RRF(VectorDistance(c.a, [1]), VectorDistance(c.b, [1]), [1, 2])"
    assert needs_plan(parse_query(text))
    assert _plan(text).features == ("HybridSearch", "WeightedRankFusion")


@pytest.mark.parametrize(
    ("rank", "reason"),
    [
        ("FullTextScore(c.a, 'x') DESC", "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause"),
        ("LOWER(c.a)", "The ORDER BY RANK clause must be followed"),
        ("FullTextScore(c.a)", "The ORDER BY RANK clause must be followed"),
        ("RRF()", "The ORDER BY RANK clause must be followed"),
        ("udf.RRF(c.a)", "The ORDER BY RANK clause must be followed"),
        ("RRF(FullTextScore(c.a, 'x'), [1], [1])", "The ORDER BY RANK clause must be followed"),
        ("RRF(FullTextScore(c.a, 'x'), [1, 2])", "The last parameter of the RRF function"),
        ("RRF(FullTextScore(c.a, 'x'), ['1'])", "The last parameter of the RRF function"),
        ("RRF(FullTextScore(c.a, 'x'), LOWER(c.b))", "The last parameter of the RRF function"),
        ("RRF(FullTextScore(c.a, 'x'), @missing)", "The last parameter of the RRF function"),
    ],
)
def test_an_order_that_is_not_a_rank_is_refused(rank: str, reason: str) -> None:
    with pytest.raises((MalformedQuery, MalformedRequest)) as refusal:
        _plan(f"SELECT TOP 1 * FROM c ORDER BY RANK {rank}")
    assert refusal.value.reason.startswith(reason)


@pytest.mark.parametrize("text", ["SELECT TOP 1 VALUE COUNT(1) FROM c", "SELECT TOP 1 c.a FROM c GROUP BY c.a"])
def test_a_rank_of_groups_is_refused(text: str) -> None:
    with pytest.raises(MalformedRequest):
        _plan(f"{text} ORDER BY RANK FullTextScore(c.a, 'x')")
