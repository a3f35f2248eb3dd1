"""Page sizes, continuations and envelopes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.nosql.paging import (
    decode_position,
    encode_position,
    feed_body,
    list_page,
    page_items_max,
    position_of,
)
from asterism.errors import MalformedRequest
from asterism.values.json.text import loads


@given(st.binary(max_size=600))
def test_a_position_survives_its_token(position: bytes) -> None:
    assert decode_position(encode_position(position)) == position


@given(st.binary(max_size=320))
def test_a_token_stands_in_a_header_or_an_address_as_it_is_and_below_a_kilobyte(position: bytes) -> None:
    token = encode_position(position)
    assert re.fullmatch(r"[A-Za-z0-9._-]+", token)
    assert len(token) < 1024


@pytest.mark.parametrize("token", ["x", "a1.=", "a2.AAAA", "a1.%%%", "a1.A", "ä1.AAAA", "[1,2]"])
def test_a_token_that_the_server_did_not_issue_is_refused(token: str) -> None:
    with pytest.raises(MalformedRequest):
        decode_position(token)


def test_a_token_of_the_service_begins_anew() -> None:
    assert position_of({"x-ms-continuation": "-RID:~a0NPAOszCpOChB4AAAAAAA==#RT:1#TRC:2"}) is None


@pytest.mark.parametrize(("headers", "count"), [({}, 100), ({"x-ms-max-item-count": "-1"}, 100)])
def test_the_server_chooses_a_page_size_when_the_client_does_not(headers: dict[str, str], count: int) -> None:
    assert page_items_max(headers) == count


@pytest.mark.parametrize(("text", "count"), [("1", 1), ("7", 7), ("100000", 1000)])
def test_a_client_may_choose_a_page_size_up_to_the_servers_maximum(text: str, count: int) -> None:
    assert page_items_max({"x-ms-max-item-count": text}) == count


@pytest.mark.parametrize("text", ["0", "-2", "many", ""])
def test_an_invalid_page_size_is_refused(text: str) -> None:
    with pytest.raises(MalformedRequest):
        page_items_max({"x-ms-max-item-count": text})


def test_an_envelope_counts_what_it_holds() -> None:
    assert loads(feed_body("abc=", "Documents", [b'{"a":1}', b"2"])) == {
        "_rid": "abc=",
        "Documents": [{"a": 1}, 2],
        "_count": 2,
    }


@given(st.lists(st.text(max_size=5), unique=True), st.integers(1, 7))
def test_the_pages_of_a_list_hold_each_entry_once_and_in_order(names: list[str], items_max: int) -> None:
    entries = [(name, {"id": name}) for name in sorted(names)]
    seen: list[object] = []
    headers: dict[str, str] = {"x-ms-max-item-count": str(items_max)}
    for _ in range(len(names) // items_max + 1):
        page = list_page(headers, entries, rid="", name="Things", more_headers=[])
        body = loads(page.body)
        assert isinstance(body, dict)
        seen += body["Things"]
        headers["x-ms-continuation"] = dict(page.headers).get("x-ms-continuation", encode_position(b"\xf4\x8f\xbf\xbf"))
    assert seen[: len(entries)] == [entry for _, entry in entries]


def test_a_page_of_a_list_is_bounded_in_bytes_and_has_at_least_one_resource() -> None:
    entries = [(str(number), {"id": str(number), "body": "x" * size}) for number, size in enumerate([3, 3, 5, 1])]
    large = [(name, {**entry, "body": str(entry["body"]) * 1024 * 1024}) for name, entry in entries]
    headers: dict[str, str] = {}
    pages: list[list[str]] = []
    while not pages or "x-ms-continuation" in headers:
        page = list_page(headers, large, rid="", name="Things", more_headers=[])
        body = loads(page.body)
        assert isinstance(body, dict)
        pages.append([thing["id"] for thing in body["Things"]])
        headers = {name: value for name, value in page.headers if name == "x-ms-continuation"}
    assert pages == [["0"], ["1"], ["2"], ["3"]]
