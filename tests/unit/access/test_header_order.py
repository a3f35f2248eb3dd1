"""The order in which the services sort the names of headers."""

from __future__ import annotations

from functools import cmp_to_key

from azure.storage.blob._shared.authentication import compare
from hypothesis import given
from hypothesis import strategies as st

from asterism.access.header_order import service_order

NAMES = st.lists(st.text("abz019-_.!#$%&'*+^`|~", min_size=1, max_size=12), unique=True)


@given(NAMES)
def test_names_are_sorted_as_the_official_client_sorts_them(names: list[str]) -> None:
    assert service_order(sorted(names)) == sorted(sorted(names), key=cmp_to_key(compare))


def test_an_underscore_stands_before_digits_and_a_hyphen_decides_last() -> None:
    assert service_order(["x-ms-meta-a1", "x-ms-meta-a_b", "x-ms-meta-ab", "x-ms-meta-a-b"]) == [
        "x-ms-meta-a_b",
        "x-ms-meta-a1",
        "x-ms-meta-ab",
        "x-ms-meta-a-b",
    ]
