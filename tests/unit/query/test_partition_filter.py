from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.languages.cosmos_sql.compiling.partition_filter import DISJUNCTS_MAX
from asterism.values.json.order import values_equal
from asterism.values.undefined import UNDEFINED

PK = (("pk",),)
LEVELS = (("a",), ("b",), ("c",))


def _pinned(
    where: str, paths: tuple[tuple[str, ...], ...] = PK, **parameters: object
) -> list[tuple[object, ...]] | None:
    values = {f"@{name}": value for name, value in parameters.items()}
    return compile_query(parse_query(f"SELECT * FROM c WHERE {where}"), values).pinned_partition_keys(paths)


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("c.pk = 'a'", [("a",)]),
        ("'a' = c['pk']", [("a",)]),
        ("c.pk = @p", [("x",)]),
        ("c.pk = -1", [(-1,)]),
        ("c.pk = null", [(None,)]),
        ("IS_NULL(c.pk)", [(None,)]),
        ("c.pk", [(True,)]),
        ("NOT c.pk", [(False,)]),
        ("c.pk IN ('a', 'b', undefined, 'a')", [("a",), ("b",)]),
        ("c.pk = 'a' OR c.pk = 'b'", [("a",), ("b",)]),
        ("c.pk = 1 OR c.pk = 1.0 OR c.pk = true", [(1,), (True,)]),
        ("c.pk IN ('a', 'b') AND c.pk IN ('b', 'c')", [("b",)]),
        ("c.pk = 'a' AND c.n > 5 AND (c.x = 1 OR c.y = 2)", [("a",)]),
        ("(c.id = 1 AND c.pk = 'a') OR (c.id = 2 AND IS_DEFINED(c.pk) = false)", [("a",), (UNDEFINED,)]),
        ("NOT IS_DEFINED(c.pk)", [(UNDEFINED,)]),
        ("c.pk = 'a' AND c.pk = 'b'", []),
        ("c.pk = undefined", []),
        ("false", []),
        ("c.pk = 'a' AND true", [("a",)]),
        ("c.pk = 'a' OR false", [("a",)]),
    ],
)
def test_a_filter_that_fixes_the_partition_key(where: str, keys: list[tuple[object, ...]]) -> None:
    assert _pinned(where, p="x") == keys


@pytest.mark.parametrize(
    "where",
    [
        "true",
        "c.other = 'a'",
        "c.pk > 'a'",
        "c.pk != 'a'",
        "NOT (c.pk = 'a')",
        "c.pk NOT IN ('a')",
        "c.pk IN ('a', c.other)",
        "c.pk = c.other",
        "c.pk = 'a' OR c.other = 'b'",
        "c.pk.deeper = 'a'",
        "c.pk[0] = 'a'",
        "c.pk = ['a']",
        "IS_DEFINED(c.pk)",
        "IS_DEFINED(c.pk) = true",
        "IS_NULL(c.pk) = false",
        "(c.pk = 'a') = false",
        "c.pk = 'a' ? true : true",
        "c.pk LIKE 'a'",
        "c.pk BETWEEN 'a' AND 'a'",
    ],
)
def test_a_filter_that_leaves_the_partition_key_open(where: str) -> None:
    assert _pinned(where) is None


def test_no_filter_leaves_the_partition_key_open() -> None:
    assert compile_query(parse_query("SELECT * FROM c"), {}).pinned_partition_keys(PK) is None


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("c.a = 1 AND c.b = 2 AND c.c = 3", [(1, 2, 3)]),
        ("c.b = 2 AND c.a = 1", [(1, 2)]),
        ("c.a = 1 AND c.c = 3", [(1,)]),
        ("c.b = 2 AND c.c = 3", None),
        ("c.a IN (1, 2) AND c.b IN (3, 4)", [(1, 3), (1, 4), (2, 3), (2, 4)]),
        ("(c.a = 1 AND c.b = 2) OR c.a = 1", [(1,)]),
        ("c.a = 1 AND IS_DEFINED(c.b) = false", [(1, UNDEFINED)]),
    ],
)
def test_hierarchical_keys_are_fixed_from_the_front(where: str, keys: list[tuple[object, ...]] | None) -> None:
    assert _pinned(where, LEVELS) == keys


def test_paths_start_at_the_item_for_any_source() -> None:
    compiled = compile_query(parse_query("SELECT * FROM c.a x WHERE x.b = 1"), {})
    assert compiled.pinned_partition_keys((("a", "b"),)) == [(1,)]
    assert compiled.pinned_partition_keys((("b",),)) is None
    assert compiled.equalities() == [(("a", "b"), 1)]


def test_a_thousand_items_by_key_are_a_thousand_keys() -> None:
    terms = " OR ".join(f"(c.id = '{number}' AND c.pk = '{number}')" for number in range(1000))
    assert _pinned(terms) == [(str(number),) for number in range(1000)]


def test_more_disjuncts_than_the_limit_leave_the_key_open() -> None:
    assert _pinned(f"c.pk IN ({', '.join(map(str, range(DISJUNCTS_MAX + 1)))})") is None


def test_products_beyond_the_limit_use_the_first_conditions() -> None:
    many = ", ".join(map(str, range(200)))
    keys = _pinned(f"c.a IN ({many}) AND c.b IN ({many})", LEVELS)
    assert keys == [(number,) for number in range(200)]


def test_equalities_are_the_conjuncts_of_that_form() -> None:
    where = "c.a = 1 AND 'x' = c.b.d AND c.e > 2 AND c.f IN (3) AND c.g IN (4, 5) AND c.h AND IS_NULL(c.i) AND c.j = @j"
    compiled = compile_query(parse_query(f"SELECT * FROM c WHERE {where}"), {"@j": [1]})
    assert compiled.equalities() == [
        (("a",), 1),
        (("b", "d"), "x"),
        (("f",), 3),
        (("h",), True),
        (("i",), None),
        (("j",), [1]),
    ]


@pytest.mark.parametrize(
    "where", ["c.a = 1 OR c.b = 2", "NOT (c.a = 1)", "c.arr[0] = 1", "NOT IS_DEFINED(c.a)", "c = 1"]
)
def test_other_filters_have_no_equalities(where: str) -> None:
    assert compile_query(parse_query(f"SELECT * FROM c WHERE {where}"), {}).equalities() == []


_VALUES = st.sampled_from(["0", "1", "1.0", "'1'", "true", "false", "null", "undefined", "[1]", "@p"])
_PATHS = st.sampled_from(["c.a", "c.b", "c.c"])
_PREDICATES = st.one_of(
    st.builds("{} {} {}".format, _PATHS, st.sampled_from(["=", "!=", "<", ">="]), _VALUES),
    st.builds("{} = {}".format, _VALUES, _PATHS),
    st.builds("{} {} ({}, {})".format, _PATHS, st.sampled_from(["IN", "NOT IN"]), _VALUES, _VALUES),
    st.builds(
        "{}({}) {} {}".format, st.sampled_from(["IS_DEFINED", "IS_NULL"]), _PATHS, st.sampled_from(["=", "!="]), _VALUES
    ),
    _PATHS,
    _VALUES,
)
_FILTERS = st.recursive(
    _PREDICATES,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=8,
)
_ITEMS = st.dictionaries(
    st.sampled_from("abc"), st.sampled_from([0, 1, 1.0, "1", True, False, None, [1], {"k": 1}]), max_size=3
)


@settings(max_examples=500)
@given(_FILTERS, st.lists(_ITEMS, min_size=5, max_size=10))
def test_every_item_that_matches_agrees_with_the_keys_and_equalities(
    where: str, items: list[dict[str, object]]
) -> None:
    compiled = compile_query(parse_query(f"SELECT * FROM c WHERE {where}"), {"@p": "1"})
    keys = compiled.pinned_partition_keys(LEVELS)
    matching = [item for item in items if compiled.matches(item)]
    values = [[item.get(name, UNDEFINED) for name in "abc"] for item in matching]
    # Exactly one key covers each item, so that no partition is read twice.
    covering_keys = [sum(all(map(values_equal, key, levels)) for key in keys or []) for levels in values]
    assert keys is None or covering_keys == [1] * len(matching)
    assert all(values_equal(item.get(path[0]), value) for item in matching for path, value in compiled.equalities())
