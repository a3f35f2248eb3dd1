"""Whole numbers that arrive as text, in headers and query strings, and may have any number of digits."""

from __future__ import annotations


def whole_number(text: str, *, maximum: int) -> int | None:
    """Return the number in the digits of `text`; None for any other text, and for numbers above `maximum`.

    Python refuses to read more than 4,300 digits; here they are counted before they are read.
    """
    if not text.isascii() or not text.isdigit():
        return None
    digits = text.lstrip("0")
    if len(digits) > len(str(maximum)):
        return None
    number = int(digits or "0")
    return number if number <= maximum else None
