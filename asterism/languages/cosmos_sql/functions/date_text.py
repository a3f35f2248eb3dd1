"""Dates as text and as ticks: hundreds of nanoseconds since 1970 began, UTC.

The parser accepts a date, or a date and a time after `T` or a space, with up to seven digits of the second's fraction,
and `Z` or nothing at the end. The output always has all parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

TICKS_PER_SECOND: Final = 10_000_000
TICKS_PER_MILLISECOND: Final = 10_000
_TICKS_PER_DAY: Final = 86_400 * TICKS_PER_SECOND
_FRACTION_DIGITS = 7

_EPOCH_DAY = date(1970, 1, 1).toordinal()
TICKS_MIN: Final = (date.min.toordinal() - _EPOCH_DAY) * _TICKS_PER_DAY
TICKS_MAX: Final = (date.max.toordinal() - _EPOCH_DAY + 1) * _TICKS_PER_DAY - 1

_DATE_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,7}))?)?Z?"
)
# The longest text of the form above; longer texts need no check.
_CHARACTERS_MAX = 28


@dataclass(frozen=True, slots=True)
class DateTimeParts:
    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    # Ticks after the second.
    fraction: int


def ticks_of_parts(parts: DateTimeParts) -> int | None:
    """Return the ticks, or None if the calendar or the clock has no such moment."""
    in_range = (
        0 <= parts.hour < 24
        and 0 <= parts.minute < 60
        and 0 <= parts.second < 60
        and 0 <= parts.fraction < TICKS_PER_SECOND
    )
    if not in_range:
        return None
    try:
        day = date(parts.year, parts.month, parts.day).toordinal() - _EPOCH_DAY
    except (ValueError, OverflowError):
        return None
    seconds = parts.hour * 3600 + parts.minute * 60 + parts.second
    return day * _TICKS_PER_DAY + seconds * TICKS_PER_SECOND + parts.fraction


def parts_of_ticks(ticks: int) -> DateTimeParts:
    """Return the parts of `ticks`, which are from TICKS_MIN to TICKS_MAX."""
    day, of_day = divmod(ticks, _TICKS_PER_DAY)
    when = date.fromordinal(day + _EPOCH_DAY)
    seconds, fraction = divmod(of_day, TICKS_PER_SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return DateTimeParts(when.year, when.month, when.day, hour, minute, second, fraction)


def parse_date_time(text: str) -> int | None:
    """Return the ticks of a date as text, or None if it is not a date."""
    found = _DATE_TIME.fullmatch(text) if len(text) <= _CHARACTERS_MAX else None
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction = found.groups(default="0")
    return ticks_of_parts(
        DateTimeParts(
            int(year),
            int(month),
            int(day),
            int(hour),
            int(minute),
            int(second),
            int(fraction.ljust(_FRACTION_DIGITS, "0")),
        )
    )


def date_time_text(ticks: int) -> str:
    """Return the text of `ticks`, which are from TICKS_MIN to TICKS_MAX, with all seven digits."""
    at = parts_of_ticks(ticks)
    return f"{at.year:04}-{at.month:02}-{at.day:02}T{at.hour:02}:{at.minute:02}:{at.second:02}.{at.fraction:07}Z"
