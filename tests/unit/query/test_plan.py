from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cmp_to_key
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.plans.features import check_features
from asterism.languages.cosmos_sql.plans.plan import QueryPlan, make_plan, needs_plan
from asterism.languages.cosmos_sql.plans.ranges import PlannedRange, planned_ranges, range_of_key
from asterism.languages.cosmos_sql.plans.rewrite import FILTER_PLACEHOLDER
from asterism.partitioning.effective_key import effective_key, to_text
from asterism.partitioning.partition_key import PartitionKeyDefinition, PartitionKeyKind
from asterism.values.json.order import sort_key
from asterism.values.undefined import UNDEFINED

ONE_PATH = PartitionKeyDefinition(paths=("/pk",))
THREE_LEVELS = PartitionKeyDefinition(paths=("/a", "/b", "/c"), kind=PartitionKeyKind.MULTI_HASH)

_CASES = json.loads(
    (Path(__file__).parents[2] / "cases" / "query" / "plans.json").read_text(encoding="utf-8"),
)["cases"]

# The plan of a query that leaves the client nothing to merge; a case of the file has only the differences.
NOTHING_TO_MERGE: dict[str, object] = {
    "distinctType": "None",
    "top": None,
    "offset": None,
    "limit": None,
    "orderBy": [],
    "orderByExpressions": [],
    "groupByExpressions": [],
    "groupByAliases": [],
    "aggregates": [],
    "groupByAliasToAggregateType": {},
    "rewrittenQuery": "",
    "hasSelectValue": False,
    "dCountInfo": None,
    "hasNonStreamingOrderBy": False,
}


def _plan(
    text: str, definition: PartitionKeyDefinition = ONE_PATH, parameters: dict[str, object] | None = None
) -> QueryPlan:
    return make_plan(
        parse_query(text),
        text=text,
        parameters=parameters or {},
        partition_key_paths=definition.segments,
        range_of_key=range_of_key(definition),
    )


def _cases(outcome: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in _CASES if outcome in case]


def _ends(ranges: Iterable[PlannedRange]) -> list[list[str]]:
    return [[planned.start, planned.end] for planned in ranges]


# --- the scenario file ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", _cases("plan"))
def test_a_query_has_the_plan_of_its_scenario(case: dict[str, Any]) -> None:
    plan = _plan(case["query"], parameters=case.get("parameters"))
    assert plan.to_json()["queryInfo"] == {**NOTHING_TO_MERGE, **case["plan"]}
    assert _ends(plan.ranges) == case.get("ranges", [["", "FF"]])
    assert list(plan.features) == case.get("features", [])


@pytest.mark.parametrize("case", _cases("refusal"))
def test_a_query_that_no_client_can_merge_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises((MalformedQuery, MalformedRequest)) as refusal:
        _plan(case["query"])
    assert repr(case["refusal"]) in str(refusal.value)


@pytest.mark.parametrize("case", _cases("plan"))
def test_a_rewritten_query_can_be_read(case: dict[str, Any]) -> None:
    rewritten = case["plan"].get("rewrittenQuery") or case["query"]
    parse_query(rewritten.replace(FILTER_PLACEHOLDER, "true"))


@pytest.mark.parametrize("case", _cases("features"))
def test_a_query_with_anything_to_merge_needs_a_plan(case: dict[str, Any]) -> None:
    assert needs_plan(parse_query(case["query"]))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM c",
        "SELECT c.a, t FROM c JOIN t IN c.tags WHERE c.b = 1",
        "SELECT VALUE 5",
        "SELECT VALUE (SELECT VALUE MAX(t) FROM t IN c.tags) FROM c",
        "SELECT TOP 1 5",
    ],
)
def test_a_query_with_nothing_to_merge_needs_no_plan(text: str) -> None:
    assert not needs_plan(parse_query(text))


def test_a_plan_has_the_shape_that_clients_read() -> None:
    assert _plan("SELECT * FROM c").to_json() == {
        "partitionedQueryExecutionInfoVersion": 2,
        "queryInfo": NOTHING_TO_MERGE,
        "queryRanges": [{"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}],
    }


def test_the_rows_of_each_partition_are_limited_to_the_largest_count() -> None:
    rewritten = _plan("SELECT * FROM c OFFSET 4294967295 LIMIT 4294967295").info.rewritten_query
    assert rewritten == "SELECT *\nFROM c\nOFFSET 0 LIMIT 4294967295"


def test_the_distance_of_the_container_decides_which_vectors_come_first() -> None:
    text = "SELECT TOP 3 * FROM c ORDER BY VectorDistance([1, 2], c.a.v)"
    plan = make_plan(
        parse_query(text),
        text=text,
        parameters={},
        partition_key_paths=ONE_PATH.segments,
        range_of_key=range_of_key(ONE_PATH),
        distance_function_of=lambda path: "euclidean" if path == ("a", "v") else None,
    )
    assert plan.info.order_by == ("Ascending",)


def test_an_order_adds_an_alias_to_a_source_without_one() -> None:
    plan = _plan("SELECT VALUE s.x FROM c.places[0] JOIN (SELECT 1 AS x) s ORDER BY s.x")
    assert plan.info.rewritten_query.startswith("SELECT _source._rid, ")
    assert "\nFROM c.places[0] AS _source\nJOIN (" in plan.info.rewritten_query


# --- ranges ---------------------------------------------------------------------------------------------------------


def _points(*values: object, definition: PartitionKeyDefinition = ONE_PATH) -> list[list[str]]:
    return sorted([range_of_key(definition)((value,)).start] * 2 for value in values)


@pytest.mark.parametrize(
    ("where", "values"),
    [
        ("c.pk = 'a'", ["a"]),
        ("c.pk IN (3, 2, 1, 2)", [1, 2, 3]),
        ("c.pk = 'a' OR c.pk = @p", ["a", "b"]),
        ("IS_BOOL(c.pk)", [False, True]),
        ("ABS(c.pk) = 4", [4, -4]),
        ("ARRAY_CONTAINS(['a', null], c.pk)", ["a", None]),
        ("ARRAY_CONTAINS([1, 2], c.pk) AND c.pk != 7", [1, 2]),
        ("c.pk LIKE 'plain'", ["plain"]),
        ("c.pk LIKE '5!%' ESCAPE '!'", ["5%"]),
        ("c.pk = ['a']", [UNDEFINED]),
        ("c.pk IN ('a', {}, [1])", ["a", UNDEFINED]),
        ("c.pk = 'a' OR UPPER('x') = 'x'", ["a"]),
        ("c.pk = 'a' AND 1 + 1 = 2", ["a"]),
    ],
)
def test_a_filter_that_fixes_the_key_sends_the_client_to_its_points(where: str, values: list[object]) -> None:
    plan = _plan(f"SELECT TOP 1 * FROM c WHERE {where}", parameters={"@p": "b"})
    assert _ends(plan.ranges) == _points(*values)
    assert plan.ranges[0].to_json()["isMaxInclusive"] is True


@pytest.mark.parametrize(
    "where",
    [
        "c.pk > 1",
        "c.pk LIKE 'a%'",
        "c.pk LIKE c.other",
        "NOT IS_BOOL(c.pk)",
        "ABS(c.pk) > 4",
        "ARRAY_CONTAINS(c.list, c.pk)",
        "ARRAY_CONTAINS([{'x': 1}], c.pk, true)",
        "c.pk = 'a' OR GetCurrentTimestamp() > 5",
        "c.pk = 'a' OR udf.lucky()",
        "UPPER('x') = 'X'",
    ],
)
def test_a_filter_that_leaves_the_key_open_sends_the_client_everywhere(where: str) -> None:
    assert _ends(_plan(f"SELECT TOP 1 * FROM c WHERE {where}").ranges) == [["", "FF"]]


@pytest.mark.parametrize("where", ["false", "1 = 2", "c.pk = 1 AND c.pk = 2", "ARRAY_CONTAINS([], c.pk)"])
def test_a_filter_that_no_item_can_match_is_sent_to_one_partition(where: str) -> None:
    ranges = _plan(f"SELECT * FROM c WHERE {where}").to_json()["queryRanges"]
    assert ranges == [{"min": "", "max": "", "isMinInclusive": True, "isMaxInclusive": True}]


def test_a_prefix_of_a_hierarchical_key_is_a_range() -> None:
    prefix = to_text(effective_key(THREE_LEVELS, ("x", 1)))
    plan = _plan("SELECT * FROM c WHERE c.a = 'x' AND c.b = 1", THREE_LEVELS)
    assert [planned.to_json() for planned in plan.ranges] == [
        {"min": prefix, "max": prefix + "FF", "isMinInclusive": True, "isMaxInclusive": False}
    ]


def test_a_full_hierarchical_key_is_a_point() -> None:
    point = to_text(effective_key(THREE_LEVELS, ("x", 1, None)))
    plan = _plan("SELECT * FROM c WHERE c.a = 'x' AND c.b = 1 AND c.c = null", THREE_LEVELS)
    assert _ends(plan.ranges) == [[point, point]]


def test_the_keys_of_a_counted_subquery_are_those_of_its_filter() -> None:
    plan = _plan("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c WHERE c.pk = 'a')")
    assert _ends(plan.ranges) == _points("a")


_COMPONENTS = st.sampled_from(["x", "y", 1, None])


@given(st.lists(st.lists(_COMPONENTS, min_size=1, max_size=3).map(tuple), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_planned_ranges_are_sorted_and_disjoint_and_hold_every_key(keys: list[tuple[object, ...]]) -> None:
    range_of = range_of_key(THREE_LEVELS)
    ranges = planned_ranges(keys, range_of)
    assert all(left.end < right.start for left, right in pairwise(ranges))
    assert all(any(planned.contains(range_of(key)) for planned in ranges) for key in keys)


# --- features -------------------------------------------------------------------------------------------------------


def test_a_client_that_knows_every_feature_is_answered() -> None:
    check_features(("OrderBy", "Top"), "Top, OrderBy,Distinct")


def test_a_client_that_lists_no_features_is_answered() -> None:
    check_features(("GroupBy",), None)


def test_a_client_without_a_feature_is_refused_with_its_name() -> None:
    with pytest.raises(MalformedRequest) as refusal:
        check_features(("Aggregate", "GroupBy"), "Aggregate,Distinct")
    assert refusal.value.reason == (
        "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does support the requested "
        "features:\r\n\tQuery contained GroupBy, which the calling client does not support."
    )


# --- plans carried out ----------------------------------------------------------------------------------------------
# A minimal client that checks the promise of a plan: the merged answers of the partitions are the answer of one
# partition with all items.


def _results(text: str, items: list[dict[str, object]]) -> list[Any]:
    collector = compile_query(parse_query(text), {}).new_collector()
    for item in items:
        collector.feed(item)
    return list(collector.results())


def _answers(plan: QueryPlan, text: str, partitions: list[list[dict[str, object]]]) -> list[Any]:
    sent = (plan.info.rewritten_query or text).replace(FILTER_PLACEHOLDER, "true")
    return [row for items in partitions for row in _results(sent, items)]


def _in_order(plan: QueryPlan, rows: list[Any]) -> list[Any]:
    signs = [-1 if direction == "Descending" else 1 for direction in plan.info.order_by]

    def compare(left: Any, right: Any) -> int:
        for sign, left_item, right_item in zip(signs, left["orderByItems"], right["orderByItems"], strict=True):
            left_key, right_key = (sort_key(item.get("item", UNDEFINED)) for item in (left_item, right_item))
            if left_key != right_key:
                return sign if left_key > right_key else -sign
        return 0

    return sorted(rows, key=cmp_to_key(compare))


def _apply_window(plan: QueryPlan, results: list[Any]) -> list[Any]:
    window = plan.info.window
    kept = results[window.offset or 0 :]
    return kept[: min(count for count in (window.top, window.limit, len(kept)) if count is not None)]


def _distinct(results: list[Any]) -> list[Any]:
    return list({json.dumps(result): result for result in reversed(results)}.values())[::-1]


def _merged_parts(operator: str, parts: list[Any]) -> Any:
    found = [part["item"] for part in parts if "item" in part]
    match operator:
        case "Average":
            return sum(part["sum"] for part in found) / sum(part["count"] for part in found)
        case "Min":
            return min(found, key=sort_key)
        case "Max":
            return max(found, key=sort_key)
        case _:
            return sum(found)


_ITEM = st.fixed_dictionaries(
    {"land": st.sampled_from(["at", "be", "cy"]), "size": st.integers(0, 4)},
    optional={"tag": st.sampled_from(["x", "y"])},
)


@st.composite
def _partitions(draw: st.DrawFn) -> list[list[dict[str, object]]]:
    partitions = draw(st.lists(st.lists(_ITEM, min_size=1, max_size=5), min_size=1, max_size=3))
    named = [[{"id": f"{place}-{index}", **item} for index, item in enumerate(p)] for place, p in enumerate(partitions)]
    return [list(items) for items in named]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT c.size, c.land FROM c ORDER BY c.size, c.land",
        "SELECT TOP 3 c.size FROM c ORDER BY c.size DESC",
        "SELECT VALUE c.size FROM c WHERE c.land != 'cy' ORDER BY c.size OFFSET 2 LIMIT 3",
        "SELECT TOP 3 VALUE c.size FROM c ORDER BY c.size OFFSET 1 LIMIT 5",
        "SELECT TOP 1 VALUE c.size FROM c ORDER BY c.size OFFSET 3 LIMIT 5",
    ],
)
@given(partitions=_partitions())
@settings(max_examples=15, deadline=None)
def test_an_order_merged_from_partitions_is_the_order_of_all_items(
    text: str, partitions: list[list[dict[str, object]]]
) -> None:
    plan = _plan(text)
    merged = [row["payload"] for row in _in_order(plan, _answers(plan, text, partitions))]
    assert _apply_window(plan, merged) == _results(text, [item for items in partitions for item in items])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT c.land FROM c ORDER BY c.land",
        "SELECT DISTINCT TOP 2 VALUE c.land FROM c ORDER BY c.land DESC",
        "SELECT DISTINCT VALUE c.land FROM c ORDER BY c.land OFFSET 1 LIMIT 1",
    ],
)
@given(partitions=_partitions())
@settings(max_examples=15, deadline=None)
def test_distinct_values_merged_from_partitions_are_those_of_all_items(
    text: str, partitions: list[list[dict[str, object]]]
) -> None:
    plan = _plan(text)
    merged = _distinct([row["payload"] for row in _in_order(plan, _answers(plan, text, partitions))])
    assert _apply_window(plan, merged) == _results(text, [item for items in partitions for item in items])


@pytest.mark.parametrize(
    "aggregate", ["COUNT(c.tag)", "COUNTIF(c.size > 1)", "SUM(c.size)", "AVG(c.size)", "MAX(c.tag)"]
)
@given(partitions=_partitions())
@settings(max_examples=15, deadline=None)
def test_an_aggregate_merged_from_partitions_is_that_of_all_items(
    aggregate: str, partitions: list[list[dict[str, object]]]
) -> None:
    tagged = [[{"tag": "w", **item} for item in items] for items in partitions]
    text = f"SELECT VALUE {aggregate} FROM c"
    plan = _plan(text)
    parts = [row[0] for row in _answers(plan, text, tagged)]
    merged = _merged_parts(plan.info.aggregates[0], parts)
    assert [merged] == pytest.approx(_results(text, [item for items in tagged for item in items]))


@given(partitions=_partitions())
@settings(max_examples=15, deadline=None)
def test_groups_merged_from_partitions_are_those_of_all_items(partitions: list[list[dict[str, object]]]) -> None:
    text = "SELECT c.land, COUNT(1) AS n, MIN(c.size) AS least FROM c GROUP BY c.land"
    plan = _plan(text)
    rows = _answers(plan, text, partitions)
    lands = sorted({row["groupByItems"][0]["item"] for row in rows})
    members = {land: [row["payload"] for row in rows if row["groupByItems"][0]["item"] == land] for land in lands}
    merged = [
        {
            "land": land,
            "n": _merged_parts("Count", [payload["n"] for payload in members[land]]),
            "least": _merged_parts("Min", [payload["least"] for payload in members[land]]),
        }
        for land in lands
    ]
    expected = _results(text, [item for items in partitions for item in items])
    assert merged == sorted(expected, key=lambda group: str(group["land"]))


@given(partitions=_partitions())
@settings(max_examples=15, deadline=None)
def test_distinct_results_counted_by_the_client_are_those_of_all_items(
    partitions: list[list[dict[str, object]]],
) -> None:
    text = "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.land, c.size FROM c)"
    plan = _plan(text)
    found = {(item["land"], item["size"]) for items in partitions for item in items}
    assert len(_distinct(_answers(plan, text, partitions))) == len(found)
