from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.errors import AsterismError
from asterism.languages.cosmos_sql import CompiledQuery, compile_query, parse_query
from asterism.languages.cosmos_sql.compiling.grouping import has_aggregates, has_composed_aggregates
from asterism.languages.cosmos_sql.functions import EvaluationContext
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax.tree import Query
from asterism.reading.limits import JOINS_MAX
from asterism.reading.window import Window
from asterism.values.undefined import UNDEFINED


def _compiled(text: str, **options: Any) -> CompiledQuery:
    return compile_query(parse_query(text), {}, **options)


def _results(query: CompiledQuery, *items: dict[str, object]) -> list[object]:
    collector = query.new_collector()
    for item in items:
        collector.feed(item)
    return list(collector.results())


# --- for the executor -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("SELECT * FROM c", True),
        ("SELECT TOP 1 c.a FROM c WHERE c.a > 1", True),
        ("SELECT * FROM c.a", True),
        ("SELECT VALUE ARRAY(SELECT VALUE x FROM x IN c.a) FROM c", True),
        ("SELECT 1", True),
        ("SELECT * FROM x IN c.a", False),
        ("SELECT VALUE x FROM c JOIN x IN c.a", False),
        ("SELECT * FROM (SELECT VALUE c.a FROM c)", False),
        ("SELECT DISTINCT * FROM c", False),
        ("SELECT * FROM c ORDER BY c.a", False),
        ("SELECT VALUE COUNT(1) FROM c", False),
    ],
)
def test_a_plain_query_needs_no_more_than_filter_and_projection(text: str, is_plain: bool) -> None:
    assert _compiled(text).is_plain is is_plain


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM c WHERE c.n > 1",
        "SELECT c.n FROM c",
        "SELECT VALUE c.a FROM c",
        "SELECT VALUE x FROM c JOIN x IN c.a",
        "SELECT VALUE [x, y] FROM c JOIN x IN c.a JOIN y IN c.a WHERE x < y",
        "SELECT * FROM x IN c.a",
        "SELECT VALUE s FROM (SELECT VALUE c.n FROM c) s",
    ],
)
def test_the_rows_of_items_are_the_results_of_a_streaming_query(text: str) -> None:
    items: list[dict[str, object]] = [{"n": 1, "a": [3, 1]}, {"n": 2, "a": []}, {"n": 3}, {"a": [5]}]
    query = _compiled(text)
    assert [result for item in items for result in query.rows(item)] == _results(query, *items)


def test_an_item_matches_when_any_of_its_rows_does() -> None:
    query = _compiled("SELECT VALUE x FROM c JOIN x IN c.a WHERE x = 2")
    assert [query.matches({"a": [1, 2]}), query.matches({"a": [1]}), query.matches({})] == [True, False, False]
    assert [query.project({"a": [1, 2]}), query.project({})] == [2, UNDEFINED]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("SELECT * FROM c ORDER BY c.a", ((("a",), False),)),
        ("SELECT * FROM c ORDER BY c.a.b DESC, c['x y']", ((("a", "b"), True), (("x y",), False))),
        ("SELECT * FROM c.a ORDER BY a.b", ((("a", "b"), False),)),
        ("SELECT VALUE x FROM c JOIN x IN c.a ORDER BY c.n", ((("n",), False),)),
        ("SELECT VALUE x FROM c JOIN x IN c.a ORDER BY x.n", None),
        ("SELECT * FROM c ORDER BY c.a[0]", None),
        ("SELECT * FROM c ORDER BY c", None),
        ("SELECT * FROM c ORDER BY LOWER(c.a)", None),
        ("SELECT * FROM c ORDER BY c.a, 1", None),
        ("SELECT c.a FROM c GROUP BY c.a ORDER BY c.a", None),
        ("SELECT * FROM c", None),
    ],
)
def test_an_order_by_paths_can_be_read_from_an_index(text: str, paths: object) -> None:
    assert _compiled(text).index_use.order_paths == paths


def test_a_compiled_query_has_its_window() -> None:
    query = compile_query(parse_query("SELECT TOP @n * FROM c OFFSET 2 LIMIT @m"), {"@n": 5, "@m": 3.0})
    assert query.window == Window(top=5, offset=2, limit=3)
    bare = _compiled("SELECT * FROM c")
    assert bare.window == Window()


@pytest.mark.parametrize(
    ("text", "is_star", "has_filter", "reads_items"),
    [
        ("SELECT * FROM c", True, False, True),
        ("SELECT * FROM c WHERE c.a = 1 ORDER BY c.a", True, True, True),
        ("SELECT * FROM c.a", False, True, True),
        ("SELECT * FROM x IN c.a", False, True, True),
        ("SELECT VALUE c FROM c", False, False, True),
        ("SELECT 1", False, False, False),
    ],
)
def test_a_compiled_query_knows_its_use_of_items(text: str, is_star: bool, has_filter: bool, reads_items: bool) -> None:
    query = _compiled(text)
    assert (query.answers_whole, query.has_filter, query.reads_items) == (is_star, has_filter, reads_items)


def test_partition_keys_are_pinned_through_joins_and_aggregates() -> None:
    paths = (("pk",),)
    texts = [
        "SELECT VALUE x FROM c JOIN x IN c.a WHERE c.pk = 'k' AND x = 1",
        "SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'k'",
        "SELECT c.a FROM c WHERE c.pk = 'k' GROUP BY c.a",
        "SELECT * FROM c WHERE c.pk = 'k' AND EXISTS(SELECT VALUE x FROM x IN c.a WHERE x.pk = 'z') ORDER BY c.a",
    ]
    assert [_compiled(text).pinned_partition_keys(paths) for text in texts] == [[("k",)]] * 4


def test_an_element_does_not_pin_a_partition_key() -> None:
    query = _compiled("SELECT VALUE x FROM x IN c.a WHERE x.pk = 'k'")
    assert query.pinned_partition_keys((("pk",),)) is None
    assert query.equalities() == []


_NESTED = st.lists(st.lists(st.integers(0, 3), max_size=3) | st.integers(0, 3) | st.none(), max_size=3)


@given(st.dictionaries(st.sampled_from("ab"), _NESTED | st.just("no array"), max_size=2))
def test_joins_are_loops_within_loops(item: dict[str, Any]) -> None:
    def elements(value: object) -> list[object]:
        return value if isinstance(value, list) else []

    query = _compiled("SELECT VALUE [x, y, z] FROM c JOIN x IN c.a JOIN y IN x JOIN z IN c.b WHERE y != 2")
    expected = [
        [x, y, z] for x in elements(item.get("a")) for y in elements(x) for z in elements(item.get("b")) if y != 2
    ]
    assert list(query.rows(item)) == expected


def test_a_single_item_can_be_projected_by_any_query() -> None:
    texts = [
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE c.a FROM c GROUP BY c.a",
        "SELECT VALUE c.a FROM c ORDER BY c.a",
    ]
    assert [_compiled(text).project({"a": 7}) for text in texts] == [1, 7, 7]


# --- for the planner ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "has_any", "is_composed"),
    [
        ("SELECT VALUE COUNT(1) FROM c", True, False),
        ("SELECT c.name, AVG(c.age) FROM c GROUP BY c.name", True, False),
        ("SELECT MIN(c.a), MAX(c.a) FROM c", True, False),
        ("SELECT c.name, ABS(AVG(c.age)) AS a FROM c GROUP BY c.name", True, True),
        ("SELECT VALUE {'sum': SUM(c)} FROM c", True, True),
        ("SELECT VALUE [SUM(c)] FROM c", True, True),
        ("SELECT MIN(c.a), MAX(c.a) / 2 FROM c", True, True),
        ("SELECT VALUE (SELECT VALUE COUNT(1) FROM x IN c.a) FROM c", False, False),
        ("SELECT VALUE (SELECT VALUE COUNT(1) / 2 FROM x IN c.a) FROM c", False, False),
        ("SELECT udf.COUNT(1) FROM c", False, False),
        ("SELECT * FROM c", False, False),
    ],
)
def test_plain_aggregates_are_distinguished_from_composed_ones(text: str, has_any: bool, is_composed: bool) -> None:
    query: Query = parse_query(text)
    assert (has_aggregates(query), has_composed_aggregates(query)) == (has_any, is_composed)


# --- functions ------------------------------------------------------------------------------------------------------


def test_a_users_function_gets_the_values_of_its_arguments() -> None:
    seen: list[object] = []

    def remember(*values: object) -> object:
        seen.extend(values)
        return len(values)

    query = _compiled("SELECT VALUE udf.count(c.a, c.nothing, 'x') FROM c", udfs={"count": remember})
    assert (_results(query, {"a": 1}), seen) == ([3], [1, UNDEFINED, "x"])


def test_users_functions_may_come_from_a_resolver_that_looks_empty() -> None:
    class Resolver(dict[str, Any]):
        def get(self, name: str, default: object = None) -> Any:
            return lambda: name

    assert _results(_compiled("SELECT VALUE udf.anything() FROM c", udfs=Resolver()), {}) == ["anything"]


def test_a_users_function_may_have_no_arguments_and_no_value() -> None:
    query = _compiled("SELECT VALUE udf.nothing() FROM c", udfs={"nothing": lambda: UNDEFINED})
    assert _results(query, {}) == []


@pytest.mark.parametrize("text", ["SELECT VALUE udf.f(1) FROM c", "SELECT * FROM c WHERE ARRAY(SELECT VALUE udf.f())"])
def test_a_users_function_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(MalformedQuery):
        _compiled(text, udfs={"F": lambda: 1})


def test_functions_of_time_are_given_the_time() -> None:
    context = EvaluationContext(now_wall_seconds=1.5, random=lambda: 0.25)
    query = _compiled("SELECT VALUE [GetCurrentTimestamp(), RAND()] FROM c", context=context)
    assert _results(query, {}) == [[1500, 0.25]]


def test_functions_of_time_are_refused_without_the_time() -> None:
    with pytest.raises(MalformedQuery):
        _compiled("SELECT VALUE RAND()")


# --- limits ---------------------------------------------------------------------------------------------------------


def _deepest(before: str, middle: str, after: str) -> Query:
    """Return the query with the most levels that the parser accepts."""
    found = parse_query(before + middle + after)
    for depth in range(2, 200):
        try:
            found = parse_query(before * depth + middle + after * depth)
        except MalformedQuery:
            break
    return found


@pytest.mark.parametrize(
    ("before", "middle", "after"),
    [
        ("SELECT VALUE (", "SELECT VALUE 1", ")"),
        ("SELECT VALUE ARRAY(", "SELECT VALUE 1", " ) FROM c"),
        ("SELECT * FROM (", "SELECT * FROM c", ")"),
        ("SELECT VALUE 1 FROM c WHERE EXISTS(", "SELECT VALUE 1", ")"),
        ("SELECT VALUE COUNT(1) FROM x IN (", "SELECT VALUE [1]", ")"),
        ("SELECT VALUE [(", "SELECT VALUE 1", ")] ORDER BY 1"),
        ("SELECT VALUE c FROM c WHERE ALL(", "SELECT VALUE 1", ") GROUP BY c ORDER BY c"),
        ("SELECT VALUE MAX(1) + (", "SELECT VALUE 1", ") FROM c GROUP BY c ORDER BY c"),
        ("SELECT VALUE [1] FROM w IN (", "SELECT VALUE [1]", ") JOIN w AS x JOIN x AS y JOIN y AS z"),
    ],
)
def test_the_deepest_nest_of_queries_can_be_compiled_and_run(before: str, middle: str, after: str) -> None:
    query = compile_query(_deepest(before, middle, after), {})
    assert len(_results(query, {})) == 1


def test_as_many_joins_as_allowed_can_be_run() -> None:
    joins = " ".join(f"JOIN x{number} IN c.a" for number in range(JOINS_MAX))
    assert _results(_compiled(f"SELECT VALUE COUNT(1) FROM c {joins}"), {"a": [1]}) == [1]


def test_more_joins_than_allowed_are_refused() -> None:
    joins = " ".join(f"JOIN x{number} IN c.a" for number in range(JOINS_MAX + 1))
    with pytest.raises(MalformedQuery):
        _compiled(f"SELECT VALUE COUNT(1) FROM c {joins}")


_OF_ROWS = [
    *("c", "c.a", "x", "x.b", "1", "'a'", "@p", "[c.a]", '{"k": x}', "c.nothing"),
    "(SELECT VALUE 1)",
    "ARRAY(SELECT VALUE y FROM y IN c.a)",
    "EXISTS(SELECT VALUE c.a WHERE x = 1)",
    "FIRST(SELECT VALUE y FROM y IN c.a ORDER BY y)",
    "LAST(SELECT DISTINCT VALUE [x, y] FROM y IN c.a)",
    "ALL(SELECT VALUE x FROM y IN c.a WHERE y != x)",
    "(SELECT VALUE SUM(1) FROM c JOIN y IN c.a)",
    "ARRAY(SELECT y, COUNT(1) AS n FROM y IN c.a GROUP BY y ORDER BY COUNT(1) OFFSET 0 LIMIT 2)",
]
_OF_GROUPS = ["COUNT(1)", "SUM(c.a)", "MAX(x)", "MAKESET(x.b)", "AVG(x)", "1", "x", "c.a", "x.b", "[x, COUNT(x)]"]
_OPERATORS = st.sampled_from(["=", "+", "AND", "<", "??", "||"])
_SOURCES = st.sampled_from(
    [
        "c JOIN x IN c.a",
        "c JOIN x IN c.a JOIN z IN c.a",
        "(SELECT * FROM c) c JOIN x IN c.a",
        "c JOIN (SELECT VALUE c.a) x",
        "c JOIN c.a AS x",
        "c JOIN x IN (SELECT VALUE ARRAY(SELECT VALUE y FROM y IN c.a WHERE IS_DEFINED(y.b)))",
    ]
)


def _expressions(terms: list[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(terms) | st.tuples(st.sampled_from(terms), _OPERATORS, st.sampled_from(terms)).map(" ".join)


_MODIFIERS = st.sampled_from(["", "DISTINCT ", "TOP 2 ", "DISTINCT TOP @p "])
_WINDOWS = st.sampled_from(["", " OFFSET 1 LIMIT 2", " OFFSET 0 LIMIT @p"])
_ITEM: dict[str, object] = {"a": [1, {"b": 2}, None, "a", 1], "b": {"a": 1}}


@settings(max_examples=300)
@given(_MODIFIERS, _expressions(_OF_ROWS), _SOURCES, *[_expressions(_OF_ROWS)] * 2, _WINDOWS)
def test_any_query_of_rows_runs(modifier: str, selected: str, source: str, where: str, order: str, window: str) -> None:
    filters = ["", f" WHERE {where}", f" WHERE NOT ({where})", f" WHERE ({where}) != 7"]
    texts = [f"SELECT {modifier}VALUE {selected} FROM {source}{filter_text}" for filter_text in filters]
    outcomes = [_outcome(text + ending + window) for text in texts for ending in ("", f" ORDER BY {order}, c.a DESC")]
    assert all(isinstance(outcome, list) for outcome in outcomes)


@settings(max_examples=300)
@given(_MODIFIERS, _expressions(_OF_GROUPS), _SOURCES, _expressions(_OF_ROWS), _expressions(_OF_GROUPS), _WINDOWS)
def test_any_query_of_groups_runs_or_is_refused(
    modifier: str, selected: str, source: str, group: str, order: str, window: str
) -> None:
    text = f"SELECT {modifier}VALUE {selected} FROM {source} GROUP BY {group}, x"
    outcomes = [_outcome(text + ending + window) for ending in ("", f" ORDER BY {order}")]
    assert all(isinstance(outcome, list | MalformedQuery) for outcome in outcomes)


def _outcome(text: str) -> object:
    """Return the results or the refusal; other errors, such as a KeyError, are raised."""
    try:
        return _results(compile_query(parse_query(text), {"@p": 1}), _ITEM, {}, _ITEM)
    except AsterismError as refusal:
        return refusal
