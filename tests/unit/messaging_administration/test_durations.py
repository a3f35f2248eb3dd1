"""Durations as texts, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.amqp.administration.durations import UNLIMITED, read_duration, write_duration, write_moment
from asterism.errors import MalformedRequest


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1M", 60_000),
        ("PT0S", 0),
        ("P1D", 86_400_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("PT90S", 90_000),
        ("PT0.0015S", 1),
        (" PT5M ", 300_000),
        ("00:01:00", 60_000),
        ("1.02:03:04.5", 93_784_500),
        (UNLIMITED, None),
        ("P10675199DT2H48M5.477581S", None),
        ("10675199.02:48:05.4775807", None),
    ],
)
def test_a_duration_is_read(text: str, milliseconds: int | None) -> None:
    assert read_duration("Time", text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "1M", "PT1X", "-PT1M", "P1Y", "PT1M1H", "1:2", "PT" + "9" * 30 + "S"]
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(MalformedRequest):
        read_duration("Time", text)


@given(st.integers(min_value=0, max_value=10_000_000 * 86_400_000))
def test_a_written_duration_is_read_as_the_same(milliseconds: int) -> None:
    assert read_duration("Time", write_duration(milliseconds)) == milliseconds


def test_durations_and_moments_are_written_as_the_service_does() -> None:
    assert [write_duration(value) for value in (None, 0, 60_000, 660_000, 93_784_500)] == [
        UNLIMITED,
        "PT0S",
        "PT1M",
        "PT11M",
        "P1DT2H3M4.5S",
    ]
    assert write_moment(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
