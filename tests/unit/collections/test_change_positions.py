"""Positions of readers of changes: their bytes, and the part of a batch that they have seen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import MalformedRequest
from asterism.models.collections.change_position import ChangePosition, SeenInBatch
from asterism.partitioning.feed_position import FeedPosition
from asterism.values.identifiers import Lsn

numbers = st.integers(0, 2**63 - 2)


@st.composite
def feed_positions(draw: st.DrawFn) -> FeedPosition:
    starts = sorted(draw(st.sets(st.binary(min_size=1, max_size=16), max_size=4)))
    return FeedPosition(tuple((start, Lsn(draw(numbers))) for start in (b"", *starts)))


positions = st.builds(
    ChangePosition,
    st.dictionaries(st.binary(min_size=8, max_size=8), feed_positions(), max_size=3),
    st.lists(
        st.builds(
            SeenInBatch, st.binary(max_size=8), st.binary(max_size=9), st.binary(max_size=9), numbers, numbers, numbers
        ),
        max_size=2,
    ).map(tuple),
    numbers,
)


@given(positions)
def test_a_position_comes_back_from_its_bytes(position: ChangePosition) -> None:
    assert ChangePosition.from_bytes(position.to_bytes()) == position


@given(positions, st.data())
def test_cut_bytes_are_refused(position: ChangePosition, data: st.DataObject) -> None:
    whole = position.to_bytes()
    with pytest.raises(MalformedRequest):
        ChangePosition.from_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])


def test_only_entries_of_the_batch_and_of_the_range_that_was_read_count_as_seen() -> None:
    seen = SeenInBatch(b"k", b"\x10", b"\x20", 7, 3, 50)
    assert seen.covers(b"k", b"\x10", (7, 3, 50))
    assert seen.covers(b"k", b"\x1f", (7, 2, 99))
    assert not seen.covers(b"k", b"\x10", (7, 3, 51))
    assert not seen.covers(b"k", b"\x20", (7, 1, 1))
    assert not seen.covers(b"k", b"\x10", (6, 1, 1))
    assert not seen.covers(b"other", b"\x10", (7, 1, 1))


def test_an_lsn_that_no_partition_has_is_refused() -> None:
    forged = ChangePosition({b"k": FeedPosition(((b"", Lsn(2**63)),))}).to_bytes()
    with pytest.raises(MalformedRequest):
        ChangePosition.from_bytes(forged)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_position_or_refused(data: bytes) -> None:
    try:
        position = ChangePosition.from_bytes(data)
    except MalformedRequest:
        return
    assert ChangePosition.from_bytes(position.to_bytes()) == position
