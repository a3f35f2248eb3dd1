"""Properties named by parameters or other constants are resolved to the property of that name."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.languages.cosmos_sql import CompiledQuery, compile_query, parse_query
from asterism.languages.cosmos_sql.plans.plan import QueryPlan, make_plan
from asterism.languages.cosmos_sql.plans.ranges import range_of_key
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.reading.conditions import Comparison, Prefix

DEFINITION = PartitionKeyDefinition(paths=("/pk",))
PARAMETERS: dict[str, object] = {"@pk": "pk", "@a": "a", "@b": "b", "@v": "v", "@zero": 0, "@deep": {"x": "a"}}
ITEMS: list[dict[str, object]] = [
    {"id": "1", "a": 1, "v": [0, 9], "text": "sea"},
    {"id": "2", "a": 2, "v": [0, 1]},
    {"id": "3", "a": 3, "v": [1, 1], "text": "sea and ice"},
]


def _euclidean(path: tuple[str, ...]) -> str | None:
    return "euclidean" if path == ("v",) else None


def _compiled(text: str) -> CompiledQuery:
    return compile_query(parse_query(text), PARAMETERS, distance_function_of=_euclidean)


def _results(text: str) -> list[Any]:
    collector = _compiled(text).new_collector()
    for item in ITEMS:
        collector.feed(item)
    return list(collector.results())


def _plan(text: str) -> QueryPlan:
    return make_plan(
        parse_query(text),
        text=text,
        parameters=PARAMETERS,
        partition_key_paths=DEFINITION.segments,
        range_of_key=range_of_key(DEFINITION),
        distance_function_of=_euclidean,
    )


@pytest.mark.parametrize("vector", ["c.v", "c['v']", "c[@v]", "c[LOWER('V')]", "c['' || @v]", "c[IIF(true, @v, 'w')]"])
def test_vectors_are_compared_by_their_container_policy_however_they_are_named(vector: str) -> None:
    nearest = f"SELECT VALUE VectorDistance({vector}, [0, 1]) FROM c ORDER BY VectorDistance({vector}, [0, 1])"
    assert _results(nearest) == [0, 1, 8]
    ranked = f"SELECT VALUE c.id FROM c ORDER BY RANK RRF(VectorDistance({vector}, [0, 1]), FullTextScore(c.no, 'x'))"
    assert _results(ranked) == ["2", "3", "1"]
    assert _plan(nearest).to_json()["queryInfo"]["orderBy"] == ["Ascending"]  # type: ignore[index]  # a JSON object
    search = _plan(ranked).search
    assert search is not None
    assert search.components[0].order_by == ("Ascending",)


def test_a_text_named_by_a_parameter_is_searched() -> None:
    assert _results("SELECT VALUE c.id FROM c WHERE FullTextContains(c['te' || 'xt'], 'ice')") == ["3"]


def test_an_index_serves_a_property_named_by_a_parameter() -> None:
    assert _compiled("SELECT * FROM c WHERE c[@a] > 1").index_conditions() == Comparison(("a",), ">", 1)
    assert _compiled("SELECT * FROM c WHERE c[@a][@b] = 1").index_conditions() == Comparison(("a", "b"), "=", 1)
    assert _compiled("SELECT * FROM c WHERE c.b[@a] LIKE 'x%'").index_conditions() == Prefix(("b", "a"), "x")
    assert _compiled("SELECT * FROM c ORDER BY c[@a] DESC").index_use.order_paths == ((("a",), True),)
    assert _compiled("SELECT MAX(c[@a]) FROM c").index_use.path_aggregates == (("MAX", ("a",)),)


def test_a_partition_key_named_by_a_parameter_is_pinned() -> None:
    text = "SELECT * FROM c WHERE c[@pk] = 'x'"
    assert _compiled(text).pinned_partition_keys((("pk",),)) == [("x",)]
    assert [planned.is_point for planned in _plan(text).ranges] == [True]


def test_an_element_named_by_a_parameter_is_that_element() -> None:
    assert _results("SELECT VALUE c.v[@zero] FROM c") == [0, 0, 1]


@pytest.mark.parametrize("step", ["c.id", "c[@b]", "true", "null", "1.5", "@deep"])
def test_a_step_that_is_not_a_constant_name_stays_a_step(step: str) -> None:
    assert _results(f"SELECT VALUE c[{step}] FROM c") == []
    assert _compiled(f"SELECT * FROM c ORDER BY c[{step}]").index_use.order_paths is None


def test_a_long_computed_name_is_computed_when_the_query_runs() -> None:
    compiled = _compiled("SELECT VALUE c[REPLICATE('x', 1025)] FROM c ORDER BY c[REPLICATE('x', 1025)]")
    collector = compiled.new_collector()
    collector.feed({"x" * 1025: 5})
    assert (compiled.index_use.order_paths, list(collector.results())) == (None, [5])


def test_properties_keep_the_names_that_the_text_gives_them() -> None:
    assert _results("SELECT c[@a], c.id, c[@b], c[@a] AS x FROM c WHERE c.id = '2'") == [{"$1": 2, "id": "2", "x": 2}]


def test_a_plan_keeps_the_parameter_in_its_rewritten_query() -> None:
    rewritten = _plan("SELECT c[@a] FROM c ORDER BY c[@a]").info.rewritten_query
    assert rewritten.startswith('SELECT c._rid, [{"item": c[@a]}] AS orderByItems, {"$1": c[@a]} AS payload')
