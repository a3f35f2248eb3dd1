"""Dates: reading them, and the functions behind `asDate`, `dateAdd` and `dateDiff`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.values.numbers import Long
from asterism.languages.gremlin.values.types import class_name

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[Tt](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
    r"(?:[Zz]|([+-])(\d{2})(?::?(\d{2})(?::?(\d{2}))?)?)?)?",
    re.ASCII,
)
_YEAR_AND_MONTH = re.compile(r"(\d{4})-(\d{1,2})", re.ASCII)


def parse_date(text: str) -> datetime | None:
    """Return the date of an ISO text: a month, a day, or a time with or without its offset; None if it is not one."""
    try:
        if found := _YEAR_AND_MONTH.fullmatch(text):
            return datetime(int(found[1]), int(found[2]), 1, tzinfo=UTC)
        if found := _DATE.fullmatch(text):
            return _date_of(found)
    except ValueError:
        # A 13th month, or an hour 25.
        return None
    return None


def _date_of(found: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second, fraction, sign, *offset_parts = found.groups()
    zone = UTC
    if sign is not None:
        hours, minutes, seconds = (int(part or 0) for part in offset_parts)
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        zone = timezone(-offset if sign == "-" else offset) if offset else UTC
    microsecond = int((fraction or "").ljust(6, "0")[:6])
    return datetime(
        int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), microsecond, tzinfo=zone
    )


def as_date(value: Any) -> datetime:
    """Return a date, a text of ISO 8601 or a number of milliseconds since 1970 as a date."""
    if isinstance(value, date):
        return _moment(value)
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return EPOCH + timedelta(milliseconds=value)
        except OverflowError:
            raise _unreadable(value) from None
    if isinstance(value, str):
        found = parse_date(value)
        if found is not None:
            return found
    raise _unreadable(value if value is None or isinstance(value, str) else class_name(value))


def _unreadable(value: Any) -> ExecutionFailure:
    return ExecutionFailure(f"Can't parse {'null' if value is None else value} as OffsetDateTime.")


_UNITS: dict[str, timedelta] = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}


def add_to_date(unit: str, count: int) -> Callable[[Any], datetime]:
    """Return the function that adds a time to a date."""
    length = _UNITS.get(unit)
    if length is None:
        raise ExecutionFailure("DT tokens should only be second, minute, hour, or day.")

    def shift(value: Any) -> datetime:
        if not isinstance(value, date):
            raise ExecutionFailure("dateAdd() accept only OffsetDateTime or Date (deprecated).")
        try:
            return _moment(value) + length * count
        except OverflowError:
            raise ExecutionFailure(f"dateAdd() of {count} {unit}s leaves the years 1 to 9999.") from None

    return shift


def date_difference(value: Any, other: Any) -> Long:
    """Return the milliseconds from another date to this one; null is the beginning of 1970."""
    for moment in (value, EPOCH if other is None else other):
        if not isinstance(moment, date):
            raise ExecutionFailure(
                "DateDiff can only take OffsetDateTime or Date (deprecated) as argument, "
                f"encountered {class_name(moment)}"
            )
    return Long((_moment(value) - (EPOCH if other is None else _moment(other))) // timedelta(milliseconds=1))


def milliseconds(value: date) -> Long:
    """Return the milliseconds since 1970."""
    return date_difference(value, None)


def _moment(value: date) -> datetime:
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value
