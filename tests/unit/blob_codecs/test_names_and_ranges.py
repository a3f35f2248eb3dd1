"""Names of containers and blobs, and ranges of bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.blob.names import check_blob_name, check_container_name
from asterism.apis.blob.ranges import (
    ByteSpan,
    RequestedRange,
    content_range,
    page_span,
    parse_range,
    requested_range,
    span_of,
)
from asterism.apis.blob.refused_input import RefusedInput
from asterism.apis.storage.address import decode_path
from asterism.apis.storage.refusals import Refusal

# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["abc", "a-b", "0-0-0", "a" * 63, "$root", "$web", "$logs"])
def test_names_of_containers(name: str) -> None:
    check_container_name(name)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("Abc", "InvalidResourceName"),
        ("a--b", "InvalidResourceName"),
        ("-ab", "InvalidResourceName"),
        ("ab-", "InvalidResourceName"),
        ("a_b", "InvalidResourceName"),
        ("$other", "InvalidResourceName"),
        ("abc\n", "InvalidResourceName"),
    ],
)
def test_other_names_of_containers_are_refused(name: str, code: str) -> None:
    with pytest.raises(RefusedInput) as caught:
        check_container_name(name)
    assert caught.value.code == code


@pytest.mark.parametrize("name", ["a", "a/b", "/", "ünï / 🜁 ?#%", "a" * 1024, "/".join("a" * 254), "\u0001"])
def test_nearly_every_text_names_a_blob(name: str) -> None:
    check_blob_name(name)


@pytest.mark.parametrize(
    ("name", "container", "code"),
    [
        ("", "", "OutOfRangeInput"),
        ("a" * 1025, "", "OutOfRangeInput"),
        ("🜁" * 513, "", "OutOfRangeInput"),
        ("/".join("a" * 255), "", "InvalidUri"),
        ("a/b", "$root", "InvalidResourceName"),
    ],
)
def test_other_names_of_blobs_are_refused(name: str, container: str, code: str) -> None:
    with pytest.raises(RefusedInput) as caught:
        check_blob_name(name, container=container)
    assert caught.value.code == code


def test_a_path_is_decoded_once_and_a_plus_is_a_plus() -> None:
    assert decode_path("a+b/%C3%BC%2F%2520%EF%BF%BD") == "a+b/ü/%20\ufffd"


@pytest.mark.parametrize("path", ["%FF", "%C3%28", "%ED%A0%80", "a/%C3"])
def test_a_path_that_is_not_utf8_is_refused(path: str) -> None:
    with pytest.raises(Refusal) as caught:
        decode_path(path)
    assert caught.value.code == "InvalidUri"


# --- ranges ---------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**60), st.integers(0, 2**60))
def test_a_range_comes_back(first: int, length: int) -> None:
    assert parse_range(f"bytes={first}-{first + length}") == RequestedRange(first, first + length)
    assert parse_range(f"bytes={first}-") == RequestedRange(first, None)


@pytest.mark.parametrize("text", ["", "bytes=", "bytes=-5", "bytes=5-4", "bytes=1-2,4-5", "items=1-2", "bytes=\u0661-"])
def test_other_texts_are_not_ranges(text: str) -> None:
    assert parse_range(text) is None


def test_the_storage_header_goes_before_the_one_of_http() -> None:
    assert requested_range(x_ms_range="bytes=1-2", http_range="bytes=3-4") == RequestedRange(1, 2)
    assert requested_range(x_ms_range=None, http_range="bytes=3-4") == RequestedRange(3, 4)
    assert requested_range(x_ms_range=None, http_range="malformed") is None
    with pytest.raises(RefusedInput, match="x-ms-range"):
        requested_range(x_ms_range="malformed", http_range=None)


@given(st.integers(1, 1000), st.integers(0, 999), st.none() | st.integers(0, 2000))
def test_a_span_lies_within_the_blob(blob_bytes: int, first: int, beyond: int | None) -> None:
    first %= blob_bytes
    last = None if beyond is None else first + beyond
    span = span_of(RequestedRange(first, last), blob_bytes=blob_bytes)
    assert 0 <= span.start < span.end <= blob_bytes
    assert range(blob_bytes)[first : None if last is None else last + 1] == range(span.start, span.end)


@pytest.mark.parametrize("blob_bytes", [0, 10])
def test_a_range_after_the_end_is_refused(blob_bytes: int) -> None:
    with pytest.raises(RefusedInput) as caught:
        span_of(RequestedRange(blob_bytes, None), blob_bytes=blob_bytes)
    assert (caught.value.status, caught.value.code) == (416, "InvalidRange")


def test_pages_are_whole() -> None:
    assert page_span(x_ms_range="bytes=512-1535", http_range=None) == ByteSpan(512, 1536)
    assert page_span(x_ms_range=None, http_range="bytes=0-511").length == 512


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("bytes=0-510", "InvalidPageRange"),
        ("bytes=1-512", "InvalidPageRange"),
        ("bytes=0-", "InvalidHeaderValue"),
        ("bytes=512-0", "InvalidHeaderValue"),
        (None, "MissingRequiredHeader"),
    ],
)
def test_other_ranges_of_pages_are_refused(text: str | None, code: str) -> None:
    with pytest.raises(RefusedInput) as caught:
        page_span(x_ms_range=text, http_range=None)
    assert caught.value.code == code


def test_an_answer_names_its_range() -> None:
    assert content_range(ByteSpan(0, 512), blob_bytes=2000) == "bytes 0-511/2000"
