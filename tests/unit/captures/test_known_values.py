"""The values at paths that a filter fixes or bounds, and those of an item."""

from __future__ import annotations

import pytest

from asterism.apis.captures.known_values import (
    PATHS_MAX,
    VALUES_MAX,
    bounds,
    equalities,
    path_text,
    scalars_of,
    shown_lists,
)
from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.partitioning.key_path import parse_key_path
from asterism.reading.conditions import Condition


def condition_of(where: str) -> Condition:
    return compile_query(parse_query(f"SELECT * FROM c WHERE {where}"), {}).index_conditions()


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("c.a = 1", {("a",): (1,)}),
        ("c.a IN (1, 2) AND c.b.x = 'y'", {("a",): (1, 2), ("b", "x"): ("y",)}),
        ("c.a = 1 OR c.a = 2", {("a",): (1, 2)}),
        ("(c.a = 1 AND c.b = 2) OR (c.a = 3 AND c.d = 4)", {("a",): (1, 3)}),
        ("(c.a = 1 OR c.a = true) AND c.b > 2", {("a",): (1, True)}),
        ("c.a IN (1, 2, 3) AND c.a = 2", {("a",): (2,)}),
        ("c.a = 1 OR c.b = 2", {}),
        ("c.a > 1", {}),
        ("NOT c.a = 1", {}),
    ],
)
def test_a_filter_fixes_paths(where: str, found: object) -> None:
    assert equalities(condition_of(where)) == found


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("c.a > 1", {("a",): (1, None)}),
        ("c.a >= 1 AND c.a < 5", {("a",): (1, 5)}),
        ("c.at BETWEEN '2026-01' AND '2026-02' AND c.b = 3", {("at",): ("2026-01", "2026-02")}),
        ("STARTSWITH(c.at, '2026-01')", {("at",): ("2026-01", "2026-01\uffff")}),
        ("c.a = 1", {}),
        ("c.a > 1 OR c.a < 0", {}),
    ],
)
def test_a_filter_bounds_paths(where: str, found: object) -> None:
    assert bounds(condition_of(where)) == found


@pytest.mark.parametrize(
    "path", [("a",), ("a-b", "c_d"), ("with space",), ("a/b", 'with "quotes"', "back\\slash"), ("ü",)]
)
def test_the_text_of_a_path_is_that_of_a_partition_key(path: tuple[str, ...]) -> None:
    text = path_text(path)
    assert text is not None
    assert parse_key_path(text) == path


def test_a_path_of_any_length_is_not_kept() -> None:
    assert path_text(("a" * 300,)) is None


def test_lists_that_are_too_long_are_left_out_as_if_they_did_not_fix_their_paths() -> None:
    shown = shown_lists({("long",): range(VALUES_MAX), ("short",): (1, 2), ("one",): ("x",)})
    assert shown == {"/one": ("x",), "/short": (1, 2)}


def test_the_scalars_of_an_item_have_paths_and_those_near_its_top_come_first() -> None:
    item = {"id": "1", "_etag": "e", "deep": {"deeper": {"n": 1}, "_etag": 2}, "list": [1, {"a": 2}], "null": None}
    found = scalars_of(item, is_hidden={"_etag"}.__contains__)
    assert found == {"/id": "1", "/null": None, "/deep/_etag": 2, "/deep/deeper/n": 1}
    assert list(found)[:2] == ["/id", "/null"]


def test_an_item_with_many_properties_keeps_as_many_as_a_record_holds() -> None:
    item = {f"p{number}": number for number in range(1000)} | {"deep": {"n": 1}}
    assert len(scalars_of(item, is_hidden=lambda _: False)) == PATHS_MAX
