from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import MalformedRequest
from asterism.partitioning.key_range import FULL, KeyRange

points = st.binary(max_size=3)
ranges = st.tuples(points, points).map(lambda pair: KeyRange(min(pair), max(pair)))


@given(ranges, ranges, points)
def test_a_point_is_in_the_intersection_exactly_if_it_is_in_both(left: KeyRange, right: KeyRange, point: bytes) -> None:
    shared = left.intersection(right) or KeyRange(b"", b"")
    assert shared.contains(point) == (left.contains(point) and right.contains(point))


@given(ranges, ranges)
def test_an_intersection_is_the_same_from_both_sides(left: KeyRange, right: KeyRange) -> None:
    assert left.intersection(right) == right.intersection(left)


@given(ranges, ranges)
def test_the_intersection_is_within_both(left: KeyRange, right: KeyRange) -> None:
    shared = left.intersection(right) or KeyRange(max(left.start, right.start), max(left.start, right.start))
    assert shared.is_within(left) or shared.start == shared.end
    assert shared.is_within(right) or shared.start == shared.end


def test_a_range_holds_its_start_and_not_its_end() -> None:
    middle = KeyRange(b"\x10", b"\x20")
    assert middle.contains(b"\x10")
    assert middle.contains(b"\x1f\xff\xff")
    assert not middle.contains(b"\x20")


def test_a_range_cannot_end_before_it_starts() -> None:
    with pytest.raises(ValueError, match="ends before"):
        KeyRange(b"\x02", b"\x01")
    with pytest.raises(MalformedRequest):
        KeyRange.from_texts("02", "01")


def test_texts_are_the_services() -> None:
    assert FULL.to_texts() == ("", "FF")
    assert KeyRange.from_texts("", "ff") == FULL
    assert KeyRange.from_texts("1FAB", "3F").to_texts() == ("1FAB", "3F")
