"""The functions behind the steps of texts and of lists."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.gremlin.failure import ExecutionFailure, MemoryExceeded
from asterism.languages.gremlin.values import lists, texts
from asterism.languages.gremlin.values.numbers import Long
from asterism.languages.gremlin.values.results import Path
from asterism.languages.gremlin.values.structures import FrozenList, MapEntry
from asterism.languages.gremlin.values.templates import parse_template


def test_a_step_of_texts_passes_null_and_refuses_other_values() -> None:
    upper = texts.on_text("toUpper", str.upper)
    assert (upper("a"), upper(None)) == ("A", None)
    with pytest.raises(ExecutionFailure, match=r"The toUpper\(\) step can only take string as argument"):
        upper(["a"])


def test_a_local_step_of_texts_takes_lists_of_texts() -> None:
    upper = texts.on_texts("toUpper", str.upper)
    assert upper(["a", None, "b"]) == ["A", None, "B"]
    assert (upper("a"), upper(None)) == ("A", None)
    with pytest.raises(ExecutionFailure, match=r"The toUpper\(local\) step can only take string or list of strings"):
        upper(["a", 1])
    with pytest.raises(ExecutionFailure, match="encountered Integer"):
        upper(1)


@pytest.mark.parametrize(
    ("separator", "text", "parts"),
    [
        ("h", "that", ["t", "at"]),
        (None, " hello  world ", ["hello", "world"]),
        ("", "ab c", ["a", "b", " ", "c"]),
        ("", "", [""]),
        ("t", "test", ["es", ""]),
        ("--", "a----b", ["a", "b"]),
        (",", "", []),
    ],
)
def test_a_text_is_divided(separator: str | None, text: str, parts: list[str]) -> None:
    assert texts.split(separator)(text) == parts


@pytest.mark.parametrize(
    ("start", "end", "part"),
    [(1, 3, "el"), (2, None, "llo"), (-3, None, "llo"), (-99, 2, "he"), (1, -1, "ell"), (3, 1, ""), (9, None, "")],
)
def test_a_part_is_cut_out_of_a_text(start: int, end: int | None, part: str) -> None:
    assert texts.substring(start, end)("hello") == part


@given(st.text(), st.integers(-10, 10), st.integers(-10, 10))
def test_a_part_is_always_found_in_the_text(text: str, start: int, end: int) -> None:
    assert texts.substring(start, end)(text) in text


def test_white_space_is_trimmed_as_in_java() -> None:
    text = "\t \u2003x\u00a0 \n"
    assert texts.trim(text) == "x\u00a0"
    assert texts.trim_left(text) == "x\u00a0 \n"
    assert texts.trim_right(text) == "\t \u2003x\u00a0"


def test_texts_are_replaced_and_reversed() -> None:
    assert texts.replace("a", "xx")("banana") == "bxxnxxnxx"
    assert texts.replace(None, "x")("a") == "a"
    assert texts.replace("", "x")("a") == "a"
    assert texts.reverse("abc") == "cba"
    assert texts.reverse([1, "a"]) == ["a", 1]
    assert texts.reverse(Path([set(), set()], [1, 2])) == [2, 1]
    assert (texts.reverse(5), texts.reverse(None)) == (5, None)


def test_texts_are_concatenated_and_null_is_passed_over() -> None:
    assert texts.concat("a", ["b", None, "c"]) == "abc"
    assert texts.concat(None, ["b"]) == "b"
    assert texts.concat(None, [None]) is None
    for value, parts in ((1, ["a"]), ("a", [1])):
        with pytest.raises(ExecutionFailure, match=r"String concat\(\) can only take string as argument"):
            texts.concat(value, parts)


def test_values_become_texts() -> None:
    assert texts.as_string([1]) == "[1]"
    assert texts.as_strings([1, [2]]) == ["1", "[2]"]
    assert texts.as_strings({"a": 1}) == "{a=1}"
    for value in (None, [None]):
        with pytest.raises(ExecutionFailure, match="Can't parse null as String"):
            texts.as_strings(value)


@pytest.mark.parametrize(
    ("function", "left", "right", "expected"),
    [
        (lists.combine, [1, 2], [2], [1, 2, 2]),
        (lists.difference, [1, 2, 2], [1], {2}),
        (lists.difference, [1], [Long(1)], {1}),
        (lists.intersect, [1, 2, 2], [2, 3], {2}),
        (lists.disjunct, [1, 2], [2, 3], {1, 3}),
        (lists.disjunct, [], [2, 2], {2}),
        (lists.unite, [1, [2]], [[2], None], {1, FrozenList([2]), None}),
        (lists.product, [1, 2], ["a"], [[1, "a"], [2, "a"]]),
    ],
)
def test_two_lists_become_another(function: Any, left: Any, right: Any, expected: Any) -> None:
    assert function(left, right) == expected


@given(st.lists(st.integers(0, 9) | st.text(max_size=1)), st.lists(st.integers(0, 9) | st.text(max_size=1)))
def test_lists_obey_the_laws_of_sets(left: list[Any], right: list[Any]) -> None:
    assert lists.difference(left, right) == set(left) - set(right)
    assert lists.intersect(left, right) == set(left) & set(right)
    assert lists.disjunct(left, right) == set(left) ^ set(right)
    assert lists.unite(left, right) == set(left) | set(right)


def test_a_product_has_a_limit() -> None:
    with pytest.raises(ExecutionFailure, match="at most 1000000 pairs"):
        lists.product([0] * 2000, [0] * 2000)


def test_maps_are_merged() -> None:
    assert lists.merge_maps({"a": 1, "b": 1}, {"b": 2}) == {"a": 1, "b": 2}
    with pytest.raises(ExecutionFailure, match="argument to evaluate to a Map, encountered ArrayList"):
        lists.merge_maps({}, [])


def test_members_are_joined() -> None:
    join = lists.conjoin("+")
    assert join([1, None, "a"]) == "1+a"
    assert join([]) == ""
    with pytest.raises(ExecutionFailure, match="Incoming traverser for conjoin step can't be null"):
        join(None)
    with pytest.raises(ExecutionFailure, match="can only take an array or an Iterable type for incoming traversers"):
        join("text")


@pytest.mark.parametrize(
    ("read", "value", "sentence"),
    [
        (lists.argument_members, None, "Argument provided for x step can't be null"),
        (lists.argument_members, 5, "x step can only take an array or an Iterable as an argument, encountered Integer"),
        (lists.yielded_members, None, "traversal argument for x step must yield an iterable type, not null"),
        (lists.yielded_members, {}, "must yield an iterable type, encountered LinkedHashMap"),
    ],
)
def test_an_argument_without_members_is_refused(read: Any, value: Any, sentence: str) -> None:
    with pytest.raises(ExecutionFailure, match=sentence):
        read("x", value)


def test_members_are_tested() -> None:
    is_large = (3).__lt__
    assert lists.all_match(is_large)([4, 5])
    assert lists.all_match(is_large)([])
    assert not lists.any_matches(is_large)([])
    assert lists.any_matches(is_large)({1, 5})
    assert lists.none_matches(is_large)([1])
    assert not any(test(is_large)(5) for test in (lists.all_match, lists.any_matches, lists.none_matches))


def test_items_of_a_value_are_members_or_entries_or_itself() -> None:
    assert lists.items_of([1, 2]) == [1, 2]
    assert lists.items_of(7) == [7]
    assert lists.items_of({"k": 1}) == [MapEntry("k", 1)]


def test_a_template_is_filled_in_its_order() -> None:
    template = parse_template("%{name} is %{_}, %%{plain}")
    assert template.variables == ("name", "_")
    assert template.fill(lambda place, name: f"<{place}{name}>") == "<0name> is <1_>, %%{plain}"
    assert template.fill(lambda _place, _name: None) is None
    assert parse_template("plain").fill(lambda _place, _name: None) == "plain"


@given(st.text(alphabet="ab%{}_"), st.text(max_size=3))
def test_a_template_keeps_the_text_around_its_variables(text: str, value: str) -> None:
    template = parse_template(text)
    assert template.fill(lambda _place, name: "%{" + name + "}") == text
    filled = template.fill(lambda _place, _name: value)
    assert filled is not None
    assert len(filled) == sum(map(len, template.texts)) + len(value) * len(template.variables)


def test_texts_and_lists_that_grow_without_end_are_refused() -> None:
    large = "x" * 1_100_000
    for make in (
        lambda: texts.concat(large, [large]),
        lambda: texts.replace("x", "yy")(large),
        lambda: lists.conjoin("")([large, large]),
        lambda: parse_template("%{_}%{_}").fill(lambda _place, _name: large),
    ):
        with pytest.raises(MemoryExceeded, match="characters"):
            make()
    with pytest.raises(MemoryExceeded, match="members"):
        lists.combine([0] * 600_000, [0] * 600_000)
