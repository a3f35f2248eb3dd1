from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import MalformedRequest
from asterism.keyspaces.routing.families import INDEX
from asterism.models.documents.cosmos.index_rules import compile_rules
from asterism.models.documents.indexes import rules as indexes
from asterism.models.documents.indexes.paths import (
    ARRAY_ELEMENT,
    PATH_TOKEN_BYTES,
    Coverage,
    Segment,
    parse_policy_path,
    parse_property_path,
    path_token,
)
from asterism.models.documents.indexes.terms import VALUE_BYTES_MAX, Term
from asterism.values.json.key_bytes import ARRAY_START, OBJECT_START, encode
from asterism.values.value_order import is_truncated

# The terms of all arrays, and of all objects, have these values.
ARRAY_VALUE, OBJECT_VALUE = ARRAY_START, OBJECT_START
# The offset of the value in a term.
_VALUE_AT = len(INDEX) + PATH_TOKEN_BYTES

DEFAULT_POLICY = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": '/"_etag"/?'}],
}


def policy(*, included: tuple[str, ...] = (), excluded: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "indexingMode": "consistent",
        "includedPaths": [{"path": path} for path in included],
        "excludedPaths": [{"path": path} for path in excluded],
    }


def term(*segments: Segment, value: object) -> Term:
    return INDEX + path_token(segments) + term_value(value)


def term_value(value: object) -> bytes:
    match value:
        case dict():
            return OBJECT_VALUE
        case list():
            return ARRAY_VALUE
        case _:
            return encode(value, bytes_max=VALUE_BYTES_MAX)


def terms(item: dict[str, Any], *, included: tuple[str, ...] = (), excluded: tuple[str, ...] = ()) -> set[Term]:
    """Return the terms of scalars alone."""
    return of_scalars(compile_rules(policy(included=included, excluded=excluded)).terms(item))


def of_scalars(found: Iterable[Term]) -> set[Term]:
    return {term for term in found if term[_VALUE_AT:] not in (ARRAY_VALUE, OBJECT_VALUE)}


def test_every_scalar_has_a_term_under_the_default_policy() -> None:
    item = {"id": "1", "n": 5, "ok": True, "none": None, "a": {"b": {"c": "x"}}}
    assert set(compile_rules(DEFAULT_POLICY).terms(item)) == {
        term("id", value="1"),
        term("n", value=5),
        term("ok", value=True),
        term("none", value=None),
        term("a", value={}),
        term("a", "b", value={}),
        term("a", "b", "c", value="x"),
    }


def test_elements_of_an_array_share_a_path_and_equal_ones_a_term() -> None:
    found = compile_rules(DEFAULT_POLICY).terms({"tags": ["x", "y", "x"], "deep": [[1, [1.0]], {"k": [1]}]})
    assert sorted(found) == sorted(
        [
            term("tags", value=[]),
            term("tags", ARRAY_ELEMENT, value="x"),
            term("tags", ARRAY_ELEMENT, value="y"),
            term("deep", value=[]),
            term("deep", ARRAY_ELEMENT, value=[]),
            term("deep", ARRAY_ELEMENT, value={}),
            term("deep", ARRAY_ELEMENT, ARRAY_ELEMENT, value=[]),
            term("deep", ARRAY_ELEMENT, "k", value=[]),
            term("deep", ARRAY_ELEMENT, ARRAY_ELEMENT, value=1),
            term("deep", ARRAY_ELEMENT, ARRAY_ELEMENT, ARRAY_ELEMENT, value=1),
            term("deep", ARRAY_ELEMENT, "k", ARRAY_ELEMENT, value=1),
        ]
    )


def test_a_property_named_like_an_array_s_element_is_another_path() -> None:
    assert path_token(["a", "[]"]) != path_token(["a", ARRAY_ELEMENT])
    assert path_token(["a", "b"]) != path_token(["a/b"])
    assert path_token(["ab"]) != path_token(["a", "b"])


def test_of_the_system_s_properties_only_the_time_is_indexed() -> None:
    item = {"_rid": "r", "_self": "s", "_etag": "e", "_attachments": "a", "_ts": 7, "id": "1"}
    expected = {term("_ts", value=7), term("id", value="1")}
    assert terms(item, included=("/*", '/"_etag"/?', "/_rid/*")) == expected


def test_id_and_time_are_indexed_even_where_everything_is_excluded() -> None:
    assert terms({"id": "1", "_ts": 7, "a": 1}, excluded=("/*",)) == {term("id", value="1"), term("_ts", value=7)}


def test_the_system_s_names_further_down_are_names_like_others() -> None:
    assert terms({"a": {"_etag": "e"}}, included=("/*",)) == {term("a", "_etag", value="e")}


@pytest.mark.parametrize("mode", ["none", "None"])
def test_nothing_is_indexed_in_mode_none(mode: str) -> None:
    rules = compile_rules({**DEFAULT_POLICY, "indexingMode": mode})
    assert rules.terms({"id": "1", "a": [1]}) == []
    assert (rules.enabled, rules.covers_scalar(["id"])) == (False, False)


def test_long_strings_are_cut() -> None:
    [found] = compile_rules(DEFAULT_POLICY).terms({"a": "x" * 10_000})
    value = found[_VALUE_AT:]
    assert len(value) == VALUE_BYTES_MAX
    assert is_truncated(value, VALUE_BYTES_MAX)


ITEM: dict[str, Any] = {"a": {"b": {"c": 1, "d": 2}, "e": 3}, "f": 4, "list": [5, {"g": 6}]}
A_B_C, A_B_D, A_E, F = (
    term("a", "b", "c", value=1),
    term("a", "b", "d", value=2),
    term("a", "e", value=3),
    term("f", value=4),
)
LIST, LIST_G = term("list", ARRAY_ELEMENT, value=5), term("list", ARRAY_ELEMENT, "g", value=6)


@pytest.mark.parametrize(
    ("included", "excluded", "expected"),
    [
        (("/*",), (), {A_B_C, A_B_D, A_E, F, LIST, LIST_G}),
        (("/",), (), {A_B_C, A_B_D, A_E, F, LIST, LIST_G}),
        ((), ("/*",), set()),
        (("/*",), ("/a/*",), {F, LIST, LIST_G}),
        (("/*",), ("/a/?",), {A_B_C, A_B_D, A_E, F, LIST, LIST_G}),
        (("/*",), ("/f/?",), {A_B_C, A_B_D, A_E, LIST, LIST_G}),
        (("/*",), ("/f/*",), {A_B_C, A_B_D, A_E, LIST, LIST_G}),
        (("/f/?",), ("/*",), {F}),
        (("/f/*",), ("/*",), {F}),
        (("/a/b/*",), ("/*",), {A_B_C, A_B_D}),
        (("/a/b/c/?",), ("/*", "/a/b/*"), {A_B_C}),
        (("/*", "/a/b/*"), ("/a/*", "/a/b/d/?"), {A_B_C, F, LIST, LIST_G}),
        (("/a/b/c/?", "/a/*"), ("/a/b/*", "/*"), {A_B_C, A_E}),
        (("/list/*",), ("/*",), {LIST, LIST_G}),
        (("/list/?",), ("/*",), set()),
        (("/list/[]/?",), ("/*",), {LIST}),
        (("/list/[]/g/?",), ("/*",), {LIST_G}),
        (("/list/[]/*",), ("/*", "/list/[]/?"), {LIST_G}),
        (("/*",), ("/list/[]/g/?",), {A_B_C, A_B_D, A_E, F, LIST}),
        (('/"a"/"e"/?',), ("/*",), {A_E}),
        (("/'a'/'b'/*",), ("/*",), {A_B_C, A_B_D}),
        (('/list/"[]"/?',), ("/*",), set()),
        (('/"*"/?',), ("/*",), set()),
    ],
)
def test_the_most_precise_path_decides(
    included: tuple[str, ...], excluded: tuple[str, ...], expected: set[Term]
) -> None:
    assert terms(ITEM, included=included, excluded=excluded) == expected


def test_at_one_place_the_scalar_s_path_is_more_precise_than_the_subtree_s() -> None:
    assert terms({"a": 1}, included=("/a/?",), excluded=("/*", "/a/*")) == {term("a", value=1)}
    assert terms({"a": 1}, included=("/*", "/a/*"), excluded=("/a/?",)) == set()
    assert terms({"a": {"b": 1}}, included=("/*", "/a/*"), excluded=("/a/?",)) == {term("a", "b", value=1)}


@pytest.mark.parametrize("name", ["with space", "with/slash", 'with "quote"', "with 'quote'", "*", "?", "é"])
def test_a_quoted_segment_may_hold_any_name(name: str) -> None:
    escaped = name.replace('"', '\\"')
    assert terms({name: 1, "other": 2}, included=(f'/"{escaped}"/?',), excluded=("/*",)) == {term(name, value=1)}


def test_the_planner_learns_which_paths_are_covered() -> None:
    rules = compile_rules(policy(included=("/a/*", "/l/[]/?"), excluded=("/*", "/a/b/?")))
    assert rules.covers_scalar(["a", "x"])
    assert rules.covers_scalar(["a", "b", "c"])
    assert rules.covers_scalar(["l", ARRAY_ELEMENT])
    assert rules.covers_scalar(["id"])
    assert not rules.covers_scalar(["a", "b"])
    assert not rules.covers_scalar(["l"])
    assert not rules.covers_scalar(["other"])


def test_paths_are_read_into_segments() -> None:
    assert parse_policy_path("/*") == ((), Coverage.SUBTREE)
    assert parse_policy_path("/?") == ((), Coverage.SCALAR)
    assert parse_policy_path('/a/[]/"b c"/?') == (("a", ARRAY_ELEMENT, "b c"), Coverage.SCALAR)
    assert parse_property_path("/a/b") == ("a", "b")


@pytest.mark.parametrize("path", ["", "a/?", "/a", "/a/", "//?", "/a/?/b/?", "/*/a/?", '/"a/?', "/a?", '/"a"b/?'])
def test_paths_that_say_nothing_clear_are_refused(path: str) -> None:
    with pytest.raises(MalformedRequest):
        parse_policy_path(path)


def test_made_up_names_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "REMEMBERED_PATHS_MAX", 10)
    rules = compile_rules(DEFAULT_POLICY)
    found = [rules.terms({f"name-{number}": {"x": [number]}}) for number in range(30)]
    assert [of_scalars(item_terms) for item_terms in found] == [
        {term(f"name-{number}", "x", ARRAY_ELEMENT, value=number)} for number in range(30)
    ]
    assert len(rules._root.below) <= 10


# --- against a slow and simple reading of the same rules ------------------------------------------------------------

names = st.sampled_from(["a", "b", "c", "id", "_ts", "_etag"])
scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, "x", "y"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=12
)
items = st.dictionaries(names, values, max_size=4)
segments = st.lists(st.sampled_from(["a", "b", "c", "[]"]), max_size=3).map(tuple)
policy_paths = st.tuples(segments, st.sampled_from("?*"))
verdicts = st.dictionaries(policy_paths, st.booleans(), max_size=6)


def flattened(value: Any, path: tuple[Segment, ...]) -> Iterator[tuple[tuple[Segment, ...], object]]:
    if path:
        yield path, value
    match value:
        case dict():
            for name, held in value.items():
                yield from flattened(held, (*path, name))
        case list():
            for element in value:
                yield from flattened(element, (*path, ARRAY_ELEMENT))


def is_indexed(path: tuple[Segment, ...], rules: dict[tuple[tuple[str, ...], str], bool]) -> bool:
    text = tuple("[]" if segment is ARRAY_ELEMENT else str(segment) for segment in path)
    candidates = [(text, "?")] + [(text[:length], "*") for length in range(len(text), -1, -1)]
    decided = next((rules[candidate] for candidate in candidates if candidate in rules), False)
    return path[0] != "_etag" and (decided or path in (("id",), ("_ts",)))


@given(items, verdicts)
def test_terms_are_those_of_the_simple_reading(
    item: dict[str, Any], rules: dict[tuple[tuple[str, ...], str], bool]
) -> None:
    written = {"/" + "/".join((*path, end)): verdict for (path, end), verdict in rules.items()}
    compiled = compile_rules(
        policy(
            included=tuple(path for path, verdict in written.items() if verdict),
            excluded=tuple(path for path, verdict in written.items() if not verdict),
        )
    )
    expected = {
        INDEX + path_token(path) + term_value(value) for path, value in flattened(item, ()) if is_indexed(path, rules)
    }
    found = compiled.terms(item)
    assert sorted(found) == sorted(expected)
    assert compiled.count(item) == len(expected)
    assert compiled.terms(item) == found
