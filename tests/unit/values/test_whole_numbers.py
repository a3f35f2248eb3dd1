from __future__ import annotations

import pytest

from asterism.values.whole_numbers import whole_number


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("7", 7), ("1000", 1000), ("0001000", 1000), ("0" * 9000, 0)])
def test_digits_are_a_number(text: str, number: int) -> None:
    assert whole_number(text, maximum=1000) == number


@pytest.mark.parametrize(
    "text", ["", "1001", "00000000019999", "9" * 5000, "0" * 9000 + "1001", "-1", "+1", "1.0", "²", " 1", "1_0"]
)
def test_other_texts_and_larger_numbers_give_none(text: str) -> None:
    assert whole_number(text, maximum=1000) is None
