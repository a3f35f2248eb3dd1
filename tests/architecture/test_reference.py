"""docs/reference.md says what the code declares."""

from __future__ import annotations

from scripts.reference import PAGE, page


def test_the_reference_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make reference`"
