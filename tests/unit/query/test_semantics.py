from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.languages.cosmos_sql.compiling.path_access import equality_test, membership_test
from asterism.languages.cosmos_sql.compiling.semantics import (
    BINARY_OPERATIONS,
    UNARY_OPERATIONS,
    between,
    equal,
    step_into,
    to_int32,
)
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.like import like_pattern
from asterism.values.json.order import values_equal
from asterism.values.undefined import UNDEFINED

_PRIMITIVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(
    _PRIMITIVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
VALUES = JSON | st.just(UNDEFINED)
ORDERS = ["<", "<=", ">", ">="]


@given(VALUES, VALUES, st.sampled_from(sorted(BINARY_OPERATIONS)))
def test_every_operator_accepts_every_value(left: object, right: object, operator: str) -> None:
    result = BINARY_OPERATIONS[operator](left, right)
    assert result is UNDEFINED or type(result) in (bool, int, float, str)


@given(VALUES, st.sampled_from(sorted(BINARY_OPERATIONS)))
def test_every_operator_propagates_undefined(value: object, operator: str) -> None:
    operation = BINARY_OPERATIONS[operator]
    assert [operation(value, UNDEFINED), operation(UNDEFINED, value)] == [UNDEFINED, UNDEFINED]


@given(VALUES, st.sampled_from(sorted(UNARY_OPERATIONS)))
def test_every_prefix_accepts_every_value(value: object, operator: str) -> None:
    result = UNARY_OPERATIONS[operator](value)
    assert result is UNDEFINED or type(result) in (bool, int, float)


@given(VALUES, VALUES)
def test_the_four_orders_agree_with_each_other(left: object, right: object) -> None:
    less, at_most, greater, at_least = (BINARY_OPERATIONS[operator](left, right) for operator in ORDERS)
    undecided = [result is UNDEFINED for result in (less, at_most, greater, at_least)]
    assert undecided in ([True] * 4, [False] * 4)
    assert less is UNDEFINED or (less, greater) == (not at_least, not at_most)


@given(VALUES, VALUES, VALUES)
def test_between_is_two_comparisons(value: object, low: object, high: object) -> None:
    written = compile_query(parse_query("SELECT VALUE c.v >= c.low AND c.v <= c.high FROM c"), {})
    operands = {"v": value, "low": low, "high": high}
    item = {name: operand for name, operand in operands.items() if operand is not UNDEFINED}
    assert between(value, low, high) is written.project(item)


@given(VALUES, VALUES)
def test_the_fast_equality_is_the_general_one(value: object, constant: object) -> None:
    item = {"a": {"b": value}, "p": value}
    assert equality_test(("p",), constant)(item) is equal(value, constant)
    assert equality_test(("a", "b"), constant)(item) is equal(value, constant)


@given(JSON, st.lists(VALUES, max_size=5))
def test_membership_is_equality_with_any(value: object, constants: list[object]) -> None:
    assert membership_test(constants)(value) is any(values_equal(value, constant) for constant in constants)


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (100, 100),
        (-100, -100),
        (2.9, 2),
        (-2.9, -2),
        (2**31, -(2**31)),
        (2**31 + 1, 1 - 2**31),
        (2**32 + 5, 5),
        (float("inf"), 0),
    ],
)
def test_bits_are_those_of_32_bit_integers(value: float, bits: int) -> None:
    assert to_int32(value) == bits


@given(VALUES, VALUES)
def test_a_step_into_anything_gives_a_value(target: object, step: object) -> None:
    assert step_into(target, step) is UNDEFINED or isinstance(target, (dict, list))


@given(st.text("ab", max_size=12), st.lists(st.sampled_from("ab_%"), max_size=6))
def test_like_agrees_with_a_slow_search(text: str, pattern: list[str]) -> None:
    def fits(at: int, wanted: int) -> bool:
        rest = pattern[wanted:]
        return (
            at == len(text)
            if not rest
            else any(fits(further, wanted + 1) for further in range(at, len(text) + 1))
            if rest[0] == "%"
            else at < len(text) and rest[0] in ("_", text[at]) and fits(at + 1, wanted + 1)
        )

    assert like_pattern("".join(pattern), None).matches(text) is fits(0, 0)


@given(st.text(), st.text(), st.none() | st.characters())
def test_every_pattern_of_like_can_be_tried(text: str, pattern: str, escape: str | None) -> None:
    assert like_pattern(pattern, escape).matches(text) in (True, False)


def test_a_pattern_of_many_parts_is_not_slow() -> None:
    assert like_pattern("%a" * 50 + "%b", None).matches("a" * 20_000) is False


def test_the_projection_of_star_is_the_item_itself() -> None:
    item: dict[str, object] = {"id": "1"}
    compiled = compile_query(parse_query("SELECT * FROM c"), {})
    assert compiled.project(item) is item
    assert (compiled.answers_whole, compiled.has_filter, compiled.reads_items) == (True, False, True)


def test_a_compiled_query_describes_itself() -> None:
    compiled = compile_query(parse_query("SELECT c.id FROM c WHERE c.a = 1"), {})
    assert (compiled.answers_whole, compiled.has_filter, compiled.reads_items) == (False, True, True)
    assert compile_query(parse_query("SELECT 1"), {}).reads_items is False


def test_children_are_found_in_lists_and_properties() -> None:
    query = parse_query('SELECT VALUE [1, {"k": @p}]')
    selection = query.select.selection
    assert isinstance(selection, tree.SelectValue)
    inner = [type(child) for child in tree.children(selection.expression)]
    assert inner == [tree.Literal, tree.ObjectLiteral]
