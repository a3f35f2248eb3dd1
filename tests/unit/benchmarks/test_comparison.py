"""Figures of two checkouts, joined and reduced."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.comparison import Compared, compare, spread
from benchmarks.measurement import Measurement, not_measured
from benchmarks.tables import comparison_table

RATES = st.lists(st.floats(1, 1e6), min_size=3, max_size=9)


def run(**rates: float) -> list[Measurement]:
    return [Measurement("create", name, rate, "/s") for name, rate in rates.items()]


def test_runs_are_joined_by_case_and_name() -> None:
    figures = compare([run(asterism=10, bare=50), run(asterism=30, bare=50), run(asterism=20, bare=50)], [run(bare=25)])
    assert figures == [
        Compared("create", "asterism", "/s", (10, 30, 20), ()),
        Compared("create", "bare", "/s", (50, 50, 50), (25,)),
    ]


def test_the_ratio_is_that_of_the_medians() -> None:
    assert Compared("create", "asterism", "/s", (10, 40, 20), (5, 10, 1000)).ratio == 2


def test_a_figure_of_one_checkout_alone_has_no_ratio() -> None:
    (figure,) = compare([run(asterism=10)], [[not_measured("create", "asterism", "the server did not answer")]])
    assert (figure.ours, figure.theirs, figure.ratio, figure.ratios) == ((10,), (), None, ())


def test_a_figure_that_is_zero_on_the_other_side_has_no_ratio() -> None:
    figure = Compared("query", "loaded", "items", (5, 5, 5), (0, 0, 0))
    assert (figure.ratio, figure.ratios) == (None, ())


def test_spread_is_the_range_as_a_share_of_the_median() -> None:
    assert (spread([90, 100, 120]), spread([0, 0, 0])) == (0.3, 0)


@given(RATES)
def test_a_checkout_compared_with_itself_has_the_ratio_one(rates: list[float]) -> None:
    figure = Compared("create", "asterism", "/s", tuple(rates), tuple(rates))
    assert figure.ratio == 1
    assert set(figure.ratios) == {1}


@given(RATES, RATES)
def test_the_ratio_turns_round_with_the_sides(ours: list[float], theirs: list[float]) -> None:
    forth = Compared("create", "asterism", "/s", tuple(ours), tuple(theirs)).ratio
    back = Compared("create", "asterism", "/s", tuple(theirs), tuple(ours)).ratio
    assert forth is not None
    assert back is not None
    assert math.isclose(forth * back, 1)


def test_the_table_says_which_figure_is_of_which_commit() -> None:
    table = comparison_table(compare([run(asterism=10)], [run(asterism=20)]), ours="aaa111", theirs="bbb222")
    shown = {str(column.header): list(column.cells) for column in table.columns}
    assert shown["this\naaa111"] == ["10 /s ±0%"]
    assert shown["against\nbbb222"] == ["20 /s ±0%"]
    assert shown["ratio"] == ["0.500"]
