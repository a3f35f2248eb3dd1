"""A clock that a test suite shifts."""

from __future__ import annotations

from asterism.clock import Clock, ClockSkew


def test_a_shift_moves_the_wall_time_and_nothing_else() -> None:
    skew = ClockSkew()
    clock = skew.shift(Clock(wall_seconds=lambda: 1000.0, monotonic_seconds=lambda: 5.0))
    assert clock.wall_seconds() == 1000
    skew.seconds = 3600
    assert (clock.wall_seconds(), clock.stored_seconds()) == (4600, 4600)
    assert (clock.monotonic_seconds(), clock.date_seconds()) == (5, 1000)


def test_no_shift_leads_to_a_time_before_1970() -> None:
    clock = ClockSkew(-5000).shift(Clock(lambda: 1000.0, lambda: 5.0))
    assert clock.wall_seconds() == 0


def test_signed_dates_go_by_the_wall_time_of_a_clock_that_is_not_shifted() -> None:
    assert Clock(lambda: 1000.0, lambda: 5.0).date_seconds() == 1000
