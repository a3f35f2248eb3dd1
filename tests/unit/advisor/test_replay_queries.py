"""Queries that are made of what a capture keeps."""

from __future__ import annotations

import pytest

from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.replay_queries import page_items, query_body


def text_of(request: CapturedRequest) -> str:
    return str(query_body(request)["query"])


def test_conditions_and_order_become_a_query_with_parameters() -> None:
    request = CapturedRequest(
        0.0, "query", equal={"/a/b": ("x",), "/n": (1, None)}, between={"/at": ("2026", None)}, order=("/at",)
    )
    body = query_body(request)
    assert body["query"] == (
        'SELECT * FROM c WHERE c["a"]["b"] = @p0 AND c["n"] IN (@p1, @p2) AND c["at"] >= @p3 ORDER BY c["at"]'
    )
    assert [parameter["value"] for parameter in body["parameters"]] == ["x", 1, None, "2026"]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("SELECT VALUE COUNT(1) FROM c WHERE c.a = @1", "SELECT VALUE COUNT(1) FROM c"),
        ("select c.id, c.name from c", "SELECT c.id, c.name FROM c"),
        ("SELECT TOP 5 * FROM c", "SELECT * FROM c"),
        ("SELECT c.a = @1 FROM c", "SELECT * FROM c"),
        ("SELECT x.id FROM x", "SELECT * FROM c"),
        (None, "SELECT * FROM c"),
    ],
)
def test_the_select_list_is_kept_where_it_can_be(shape: str | None, expected: str) -> None:
    assert text_of(CapturedRequest(0.0, "query", shape=shape)) == expected


def test_the_direction_of_the_order_is_kept() -> None:
    request = CapturedRequest(0.0, "query", order=("/at", "/n"), shape="SELECT * FROM c ORDER BY c.at DESC, c.n DESC")
    assert text_of(request) == 'SELECT * FROM c ORDER BY c["at"] DESC'


def test_names_are_quoted() -> None:
    assert text_of(CapturedRequest(0.0, "query", equal={'/a"b': (1,)})) == 'SELECT * FROM c WHERE c["a\\"b"] = @p0'


@pytest.mark.parametrize(("results", "expected"), [(None, 100), (0, 100), (7, 100), (300, 300), (5000, 1000)])
def test_a_page_has_room_for_all_that_the_captured_one_has(results: int | None, expected: int) -> None:
    assert page_items(CapturedRequest(0.0, "query", results=results)) == expected


def test_a_page_of_a_query_with_a_limit_ends_there() -> None:
    assert page_items(CapturedRequest(0.0, "query", results=7, shape="SELECT TOP @1 * FROM c")) == 7
