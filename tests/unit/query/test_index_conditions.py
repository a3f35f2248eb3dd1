from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.languages.cosmos_sql.compiling.semantics import BINARY_OPERATIONS, step_into
from asterism.reading.conditions import (
    AllOf,
    AnyOf,
    ArrayHolds,
    Comparison,
    Condition,
    Defined,
    OneOf,
    Prefix,
    Unrestricted,
    Unsatisfiable,
)
from asterism.values.json.order import values_equal
from asterism.values.undefined import UNDEFINED

A, B = ("a",), ("b", "c")


def _value(item: dict[str, Any], path: tuple[str, ...]) -> object:
    value: object = item
    for step in path:
        value = step_into(value, step)
    return value


def _meets(item: dict[str, Any], condition: Condition) -> bool:
    match condition:
        case AllOf(conditions):
            return all(_meets(item, part) for part in conditions)
        case AnyOf(conditions):
            return any(_meets(item, part) for part in conditions)
        case Comparison(path, operator, value):
            return BINARY_OPERATIONS[operator](_value(item, path), value) is True
        case OneOf(path, values):
            return any(values_equal(_value(item, path), value) for value in values)
        case Prefix(path, prefix):
            return str(_value(item, path)).startswith(prefix) and isinstance(_value(item, path), str)
        case ArrayHolds(path, value):
            elements = _value(item, path)
            return isinstance(elements, list) and any(values_equal(element, value) for element in elements)
        case Defined(path):
            return _value(item, path) is not UNDEFINED
        case Unrestricted():
            return True
        case Unsatisfiable():
            return False


def _conditions(filter_text: str, parameters: dict[str, object] | None = None) -> Condition:
    return compile_query(parse_query(f"SELECT * FROM c WHERE {filter_text}"), parameters or {}).index_conditions()


@pytest.mark.parametrize(
    ("filter_text", "expected"),
    [
        ("c.a = 1", Comparison(A, "=", 1)),
        ("1 = c.a", Comparison(A, "=", 1)),
        ("c.a = -1", Comparison(A, "=", -1)),
        ("c.a = null", Comparison(A, "=", None)),
        ("c.a = undefined", Unsatisfiable()),
        ("c.a = [1]", Defined(A)),
        ("c.a = {'k': 1}", Defined(A)),
        ("c.a != 1", Defined(A)),
        ("c.a > 1", Comparison(A, ">", 1)),
        ("1 > c.a", Comparison(A, "<", 1)),
        ("1 <= c.a", Comparison(A, ">=", 1)),
        ("c.a < 'x'", Comparison(A, "<", "x")),
        ("c.a < [1]", Unsatisfiable()),
        ("c.b.c <= 5", Comparison(B, "<=", 5)),
        ("c['b']['c'] <= 5", Comparison(B, "<=", 5)),
        ("c.a BETWEEN 1 AND 2", AllOf((Comparison(A, ">=", 1), Comparison(A, "<=", 2)))),
        ("c.a BETWEEN 1 AND c.z", AllOf((Defined(A), Comparison(A, ">=", 1)))),
        ("c.a NOT BETWEEN 1 AND 2", Defined(A)),
        ("c.a IN (1, 'x', null)", OneOf(A, (1, "x", None))),
        ("c.a IN (undefined)", Unsatisfiable()),
        ("c.a IN (1, [2])", Defined(A)),
        ("c.a IN (1, c.z)", Defined(A)),
        ("c.a NOT IN (1, 2)", Defined(A)),
        ("c.a LIKE 'ab%'", Prefix(A, "ab")),
        ("c.a LIKE 'a_c%'", Prefix(A, "a")),
        ("c.a LIKE 'a[bc]%'", Prefix(A, "a")),
        ("c.a LIKE 'a!%b%' ESCAPE '!'", Prefix(A, "a")),
        ("c.a LIKE '%x'", Prefix(A, "")),
        ("c.a NOT LIKE 'ab%'", Defined(A)),
        ("STARTSWITH(c.a, 'ab')", Prefix(A, "ab")),
        ("STARTSWITH(c.a, 'ab', false)", Prefix(A, "ab")),
        ("STARTSWITH(c.a, 'ab', true)", Defined(A)),
        ("STARTSWITH(c.a, 'ab') = true", Prefix(A, "ab")),
        ("(c.a > 1) = true", Comparison(A, ">", 1)),
        ("NOT (NOT (c.a > 1))", Comparison(A, ">", 1)),
        ("(c.a > 1) = false", Unrestricted()),
        ("NOT (c.a > 1)", Unrestricted()),
        ("STARTSWITH(c.a, c.z)", Defined(A)),
        ("STARTSWITH('ab', c.a)", Unrestricted()),
        ("IS_DEFINED(c.a)", Defined(A)),
        ("IS_STRING(c.a)", Defined(A)),
        ("IS_NULL(c.a)", Comparison(A, "=", None)),
        ("NOT IS_DEFINED(c.a)", Unrestricted()),
        ("IS_DEFINED(c.a) = false", Unrestricted()),
        ("ARRAY_CONTAINS(c.a, 'x')", ArrayHolds(A, "x")),
        ("ARRAY_CONTAINS(c.a, 'x', false)", ArrayHolds(A, "x")),
        ("ARRAY_CONTAINS(c.a, {'k': 1}, true)", Defined(A)),
        ("ARRAY_CONTAINS(['x'], c.a)", Unrestricted()),
        ("c.a", Comparison(A, "=", True)),
        ("NOT c.a", Comparison(A, "=", False)),
        ("c.a = 1 AND c.b.c > 2", AllOf((Comparison(A, "=", 1), Comparison(B, ">", 2)))),
        ("c.a = 1 AND LENGTH(c.b.c) > 2", Comparison(A, "=", 1)),
        ("c.a = 1 OR c.b.c > 2", AnyOf((Comparison(A, "=", 1), Comparison(B, ">", 2)))),
        ("c.a = 1 OR LENGTH(c.b.c) > 2", Unrestricted()),
        ("c.a = 1 OR false", Comparison(A, "=", 1)),
        ("c.a = 1 AND true", Comparison(A, "=", 1)),
        ("c.a = 1 AND false", Unsatisfiable()),
        (
            "c.a = 1 AND (c.b.c = 2 OR c.b.c = 3)",
            AllOf((Comparison(A, "=", 1), AnyOf((Comparison(B, "=", 2), Comparison(B, "=", 3))))),
        ),
        ("c.a[0] = 1", Unrestricted()),
        ("c = 1", Unrestricted()),
        ("c.a + 1 = 2", Unrestricted()),
        ("c.a ?? 1", Unrestricted()),
        ("c.a ? true : false", Unrestricted()),
        ("udf.f(c.a) = 1 OR true", Unrestricted()),
        ("EXISTS(SELECT VALUE x FROM x IN c.a WHERE x = 1)", Unrestricted()),
    ],
)
def test_a_filter_has_the_conditions_that_an_index_can_use(filter_text: str, expected: Condition) -> None:
    query = parse_query(f"SELECT * FROM c WHERE {filter_text}")
    assert compile_query(query, {}, udfs={"f": lambda value: value}).index_conditions() == expected


def test_parameters_are_constants() -> None:
    assert _conditions("c.a = @p", {"@p": "x"}) == Comparison(A, "=", "x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM c", Unrestricted()),
        ("SELECT * FROM c.b WHERE b.c = 1", Comparison(B, "=", 1)),
        ("SELECT VALUE x FROM c JOIN x IN c.arr WHERE c.a = 1 AND x = 2", Comparison(A, "=", 1)),
        ("SELECT VALUE x FROM x IN c.a WHERE x = 2", Unrestricted()),
        ("SELECT VALUE s FROM (SELECT VALUE c.a FROM c) s WHERE s = 2", Unrestricted()),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.a = 1", Comparison(A, "=", 1)),
    ],
)
def test_only_paths_of_the_item_count(text: str, expected: Condition) -> None:
    assert compile_query(parse_query(text), {}).index_conditions() == expected


_VALUES: list[object] = [
    *(None, False, True, -1, 0, 1, 1.0, 0.5, 2**53, "", "a", "ab", "abc", "A", "b%", "%"),
    *([], [1], ["a"], ["ab", 1], [[1]], [True], [None], {}, {"a": 1}, {"c": "a"}, [{"a": 1, "b": 2}]),
]
_LITERALS = [*map(json.dumps, _VALUES), "undefined"]
_TESTS_OF_A_LITERAL = [
    *(f"c.a {operator} {{0}}" for operator in ("=", "!=", "<", "<=", ">", ">=")),
    *(f"{{0}} {operator} c.a" for operator in ("=", "!=", "<", "<=", ">", ">=")),
    *("c.a IN ({0})", "c.a NOT IN ({0})", "c.a IN ({0}, 1)", "c.a IN (c.b, {0})", "{0} IN (c.a)"),
    *("c.a BETWEEN {0} AND 1", "c.a BETWEEN 'a' AND {0}", "c.a NOT BETWEEN {0} AND 1", "c.a BETWEEN {0} AND c.b"),
    *("c.a LIKE {0}", "c.a NOT LIKE {0}", "c.a LIKE {0} ESCAPE 'b'", "{0} LIKE c.a"),
    *("STARTSWITH(c.a, {0})", "STARTSWITH(c.a, {0}, true)", "STARTSWITH(c.a, {0}, false)", "STARTSWITH({0}, c.a)"),
    *("STARTSWITH(c.a, 'a', {0})", "ARRAY_CONTAINS(c.a, 1, {0})"),
    *("ARRAY_CONTAINS(c.a, {0})", "ARRAY_CONTAINS(c.a, {0}, true)", "ARRAY_CONTAINS({0}, c.a)"),
    *("IS_DEFINED(c.a) = {0}", "IS_NULL(c.a) = {0}", "IS_STRING(c.a) != {0}", "STARTSWITH(c.a, 'a') = {0}"),
    *("c.a = {0} OR c.b = {0}", "NOT (c.a = {0})", "c.a ?? {0}", "(c.a = {0}) = true", "(c.a = {0}) != true"),
]


@pytest.mark.parametrize("test", _TESTS_OF_A_LITERAL)
def test_no_value_that_passes_a_test_is_excluded(test: str) -> None:
    items: list[dict[str, Any]] = [
        {},
        *({"a": value} for value in _VALUES),
        *({"a": 1, "b": value} for value in _VALUES),
    ]
    filters = [test.format(literal) for literal in _LITERALS]
    queries = [(where, compile_query(parse_query(f"SELECT * FROM c WHERE {where}"), {})) for where in filters]
    excluded = [
        (where, item)
        for where, query in queries
        for item in items
        if query.matches(item) and not _meets(item, query.index_conditions())
    ]
    assert excluded == []


_ATOMS = st.sampled_from(
    [
        *("c.a = 1", "c.a != 1", "c.a > 0", "c.a <= 1", "c.a IN (0, 'a')", "c.a LIKE 'a%'", "c.a", "NOT c.a"),
        *("c.b.c = 1", "c.b.c > 'A'", "c.b.c BETWEEN 0 AND 1", "ARRAY_CONTAINS(c.b.c, 1)", "STARTSWITH(c.b.c, 'a')"),
        *("IS_DEFINED(c.a)", "IS_NULL(c.b.c)", "NOT IS_DEFINED(c.b.c)", "c.a = c.b.c", "true", "false", "c.a[0] = 1"),
    ]
)
_WRAPPED = _ATOMS | _ATOMS.map("NOT ({})".format) | _ATOMS.map("({}) = true".format)
_FILTERS = st.recursive(
    _ATOMS | _WRAPPED,
    lambda inner: st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map("({0[0]}) {0[1]} ({0[2]})".format),
    max_leaves=6,
)
_SMALL = st.sampled_from([None, False, True, 0, 1, "a", "ab", "A", [1], {}])
_ITEMS = st.fixed_dictionaries({}, optional={"a": _SMALL, "b": st.fixed_dictionaries({}, optional={"c": _SMALL})})


@settings(max_examples=300)
@given(_FILTERS, st.lists(_ITEMS, min_size=10, max_size=10))
def test_no_item_that_passes_the_filter_is_excluded(filter_text: str, items: list[dict[str, Any]]) -> None:
    query = compile_query(parse_query(f"SELECT * FROM c WHERE {filter_text}"), {})
    condition = query.index_conditions()
    assert [item for item in items if query.matches(item) and not _meets(item, condition)] == []


@pytest.mark.parametrize("test", _TESTS_OF_A_LITERAL)
def test_values_that_meet_exact_conditions_pass_the_test(test: str) -> None:
    items: list[dict[str, Any]] = [
        {},
        *({"a": value} for value in _VALUES),
        *({"a": 1, "b": value} for value in _VALUES),
    ]
    filters = [test.format(literal) for literal in _LITERALS]
    queries = [(where, compile_query(parse_query(f"SELECT * FROM c WHERE {where}"), {})) for where in filters]
    exact = [
        (where, query, condition) for where, query in queries if (condition := query.exact_conditions()) is not None
    ]
    assert [
        (where, item)
        for where, query, condition in exact
        for item in items
        if query.matches(item) is not _meets(item, condition)
    ] == []


@settings(max_examples=300)
@given(_FILTERS, st.lists(_ITEMS, min_size=10, max_size=10))
def test_items_that_meet_exact_conditions_pass_the_filter(filter_text: str, items: list[dict[str, Any]]) -> None:
    query = compile_query(parse_query(f"SELECT * FROM c WHERE {filter_text}"), {})
    condition = query.exact_conditions()
    if condition is not None:
        assert [item for item in items if query.matches(item) is not _meets(item, condition)] == []


@pytest.mark.parametrize(
    "where",
    [
        *("c.a > 5", "c.a = null", "c.a IN (1, 'x')", "c.a BETWEEN 1 AND 9", "STARTSWITH(c.a, 'x')", "c.a LIKE 'x%'"),
        *("c.a = 1 AND c.b.c > 2", "c.a = 1 OR c.b.c = 2", "IS_DEFINED(c.a)", "ARRAY_CONTAINS(c.a, 1)", "NOT c.a"),
    ],
)
def test_filters_that_an_index_can_answer_alone_have_exact_conditions(where: str) -> None:
    assert compile_query(parse_query(f"SELECT * FROM c WHERE {where}"), {}).exact_conditions() is not None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM c WHERE c.a != 1",
        "SELECT * FROM c WHERE c.a = 1 AND c.a + 1 = 2",
        "SELECT * FROM c WHERE c.a LIKE 'x_%'",
        "SELECT * FROM c WHERE IS_STRING(c.a)",
        "SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.a = 1",
        "SELECT * FROM c.a WHERE a = 1",
    ],
)
def test_filters_that_only_the_item_can_answer_have_no_exact_conditions(text: str) -> None:
    assert compile_query(parse_query(text), {}).exact_conditions() is None
