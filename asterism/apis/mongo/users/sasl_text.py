"""SASLprep (RFC 4013): passwords that look the same are the same, however they were typed."""

from __future__ import annotations

import stringprep
import unicodedata
from typing import Final

_PROHIBITED: Final = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    # Characters that had no meaning yet when the rules were made.
    stringprep.in_table_a1,
)


class ProhibitedText(Exception):
    """The text has a character that a password cannot have."""


def prepare(text: str) -> str:
    """Return the text in the form in which it is compared; ProhibitedText if it has none."""
    if text.isascii() and text.isprintable():
        return text
    mapped = "".join(
        " " if stringprep.in_table_c12(character) else character
        for character in text
        if not stringprep.in_table_b1(character)
    )
    prepared = unicodedata.normalize("NFKC", mapped)
    if any(is_prohibited(character) for character in prepared for is_prohibited in _PROHIBITED):
        raise ProhibitedText
    _check_direction(prepared)
    return prepared


def _check_direction(text: str) -> None:
    """Refuse text that mixes directions: from right to left throughout, or not at all."""
    if not any(stringprep.in_table_d1(character) for character in text):
        return
    if any(stringprep.in_table_d2(character) for character in text):
        raise ProhibitedText
    if not (stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])):
        raise ProhibitedText
