"""Dates formatted by a pattern: `yyyy-MM-dd [HH:mm:ss.fff]`, with a backslash before literal characters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from asterism.languages.cosmos_sql.functions.date_text import DateTimeParts


def _fraction(digits: int) -> Callable[[DateTimeParts], str]:
    return lambda at: f"{at.fraction:07}"[:digits]


def _fraction_without_zeros(digits: int) -> Callable[[DateTimeParts], str]:
    return lambda at: f"{at.fraction:07}"[:digits].rstrip("0")


# A run of letters is read as its longest prefix among these.
_SPECIFIERS: Final[dict[str, Callable[[DateTimeParts], str]]] = {
    "yyyy": lambda at: f"{at.year:04}",
    "yy": lambda at: f"{at.year % 100:02}",
    "y": lambda at: f"{at.year % 100}",
    "MM": lambda at: f"{at.month:02}",
    "M": lambda at: f"{at.month}",
    "dd": lambda at: f"{at.day:02}",
    "d": lambda at: f"{at.day}",
    "HH": lambda at: f"{at.hour:02}",
    "H": lambda at: f"{at.hour}",
    "hh": lambda at: f"{at.hour % 12 or 12:02}",
    "h": lambda at: f"{at.hour % 12 or 12}",
    "mm": lambda at: f"{at.minute:02}",
    "m": lambda at: f"{at.minute}",
    "ss": lambda at: f"{at.second:02}",
    "s": lambda at: f"{at.second}",
    "tt": lambda at: "AM" if at.hour < 12 else "PM",
    **{"f" * digits: _fraction(digits) for digits in range(1, 8)},
    **{"F" * digits: _fraction_without_zeros(digits) for digits in range(1, 8)},
}
_LONGEST = max(map(len, _SPECIFIERS))
_FIRST_LETTERS = frozenset(specifier[0] for specifier in _SPECIFIERS)


def format_date_time(at: DateTimeParts, pattern: str) -> str:
    written: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            written.append(pattern[position + 1 : position + 2])
            position += 2
            continue
        specifier = _specifier(pattern, position) if character in _FIRST_LETTERS else ""
        written.append(_SPECIFIERS[specifier](at) if specifier else character)
        position += len(specifier) or 1
    return "".join(written)


def _specifier(pattern: str, position: int) -> str:
    run = pattern[position : position + _LONGEST]
    return next((run[:length] for length in range(len(run), 0, -1) if run[:length] in _SPECIFIERS), "")
