"""Positions in a change feed: step functions on the hash line that go forward and survive as digits."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import MalformedRequest
from asterism.partitioning.feed_position import FeedPosition
from asterism.values.identifiers import Lsn

points = st.binary(max_size=4)
lsns = st.integers(0, 2**40).map(Lsn)
moves = st.lists(st.tuples(points, points, lsns), max_size=8)


sinces = st.none() | st.integers(0, 2**40)


def moved(steps: list[tuple[bytes, bytes, Lsn]]) -> FeedPosition:
    position = FeedPosition.at(Lsn(3))
    for start, end, lsn in steps:
        position = position.advanced(start, end, lsn)
    return position


@given(moves, sinces)
def test_a_position_is_the_same_after_it_was_written_as_digits(
    steps: list[tuple[bytes, bytes, Lsn]], since: int | None
) -> None:
    position = moved(steps) if since is None else moved(steps).since(since)
    assert position.to_text().isdigit()
    assert FeedPosition.from_text(position.to_text()) == position


@given(moves, points)
def test_a_point_has_seen_the_highest_lsn_it_was_ever_taken_to(
    steps: list[tuple[bytes, bytes, Lsn]], point: bytes
) -> None:
    assert moved(steps).lsn_at(point) == max([3, *(lsn for start, end, lsn in steps if start <= point < end)])


@given(moves, points, points)
def test_the_least_of_an_interval_is_behind_no_point_in_it(
    steps: list[tuple[bytes, bytes, Lsn]], start: bytes, point: bytes
) -> None:
    position, end = moved(steps), max(start, point) + b"\x00"
    inside = max(start, point)
    assert position.least(start, end) <= position.lsn_at(inside)
    assert position.within(start, end).lsn_at(inside) == position.lsn_at(inside)


def test_one_partition_needs_one_number() -> None:
    position = FeedPosition.at(Lsn(5)).advanced(b"\x10", b"\x20", Lsn(9))
    assert position.within(b"\x10", b"\x20").to_text() == "9"
    assert position.within(b"", b"\xff").to_text() != "9"


def test_a_reader_from_a_time_stays_one() -> None:
    position = FeedPosition.at(Lsn(0)).since(1_700_000_000)
    further = position.advanced(b"\x10", b"\x20", Lsn(9)).within(b"\x10", b"\x20")
    assert FeedPosition.from_text(further.to_text()).since_wall_seconds == 1_700_000_000
    assert further.lsn_at(b"\x10") == 9


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "-1",
        "1.5",
        "٣",
        "00",
        "0000",
        "001",
        "0000310",
        "9" * 25,
        "01",
        "0102",
        "010212",
        "00" + "9" * 40,
        "1" * 70_000,
    ],
)
def test_a_text_that_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(MalformedRequest):
        FeedPosition.from_text(text)


@given(st.text(alphabet="0123456789", max_size=60))
def test_any_digits_are_a_position_or_refused(text: str) -> None:
    with suppress(MalformedRequest):
        assert FeedPosition.from_text(text).lsn_at(b"") >= 0
