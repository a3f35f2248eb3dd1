"""Amounts and keys as sentences show them."""

from __future__ import annotations

import pytest

from asterism.advisor.wording import about_bytes, about_duration, about_share, key_text
from asterism.limits import GIB, KIB, MIB


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0 bytes"), (900, "900 bytes"), (1.5 * KIB, "1.5 KB"), (20 * GIB, "20 GB"), (2 * MIB, "2 MB")],
)
def test_bytes_are_rounded_to_what_a_reader_compares(amount: float, text: str) -> None:
    assert about_bytes(amount) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5, "less than a minute"), (60, "1 minute"), (7200, "2 hours"), (3.4 * 86_400, "3 days"), (4e7, "1 year")],
)
def test_durations_are_given_in_their_largest_unit(seconds: float, text: str) -> None:
    assert about_duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0 %"), (0.001, "less than 1 %"), (0.5, "50 %"), (0.999, "nearly 100 %"), (1.0, "100 %")]
)
def test_a_share_is_neither_nothing_nor_everything_if_it_is_not(share: float, text: str) -> None:
    assert about_share(share) == text


@pytest.mark.parametrize(
    ("paths", "values", "text"),
    [
        (["/date"], ["2026-11-18"], "date=2026-11-18"),
        (["/n"], [7], "n=7"),
        (["/n"], ["7"], 'n="7"'),
        (["/n"], [None], "n=null"),
        (["/n"], [True], "n=true"),
        (["/n"], [{}], "n=(absent)"),
        (["/n"], [""], 'n=""'),
        (["/a", "/b"], ["x", 2], "a=x, b=2"),
        (["/a/b"], ["x"], "a/b=x"),
        (["/n"], ["a\nb"], 'n="a\\nb"'),
    ],
)
def test_keys_are_readable_and_texts_that_look_like_other_values_are_quoted(
    paths: list[str], values: list[object], text: str
) -> None:
    assert key_text(paths, values) == text


def test_long_keys_are_cut() -> None:
    assert len(key_text(["/a", "/b", "/c"], ["x" * 500] * 3)) == 64
