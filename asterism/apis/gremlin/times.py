"""Dates and durations in the texts and numbers of the formats."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Final

from asterism.apis.gremlin.malformed import MalformedMessage

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Java's texts of durations: PT8H6M12.345S, P2DT3M, PT-0.5S, -PT6H.
_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<days>[+-]?\d{1,12})D)?"
    r"(?:T(?:(?P<hours>[+-]?\d{1,15})H)?(?:(?P<minutes>[+-]?\d{1,15})M)?(?:(?P<seconds>[+-]?\d{1,18}(?:\.\d{0,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
# Digits of a fraction of seconds beyond those that a datetime holds, and the name of a zone behind its offset.
_BEYOND_MICROSECONDS = re.compile(r"(\.\d{6})\d+", re.ASCII)
_TEXT_CHARACTERS_MAX = 100


def from_milliseconds(milliseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise _out_of_range() from None


def from_parts(year: int, month: int, day: int, nanoseconds: int, offset_seconds: int) -> datetime:
    """Return the time of a calendar's day, nanoseconds after its midnight."""
    try:
        zone = UTC if not offset_seconds else timezone(timedelta(seconds=offset_seconds))
        return datetime(year, month, day, tzinfo=zone) + timedelta(microseconds=nanoseconds // 1000)
    except (ValueError, OverflowError):
        raise _out_of_range() from None


def from_seconds(seconds: int, nanoseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    except OverflowError:
        raise _out_of_range() from None


def nanoseconds_of_day(when: datetime) -> int:
    seconds = (when.hour * 60 + when.minute) * 60 + when.second
    return seconds * 1_000_000_000 + when.microsecond * 1000


def offset_seconds_of(when: datetime) -> int:
    offset = when.utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def parse_datetime(text: str) -> datetime:
    """Read an ISO date with or without a time; UTC unless it says otherwise."""
    if len(text) > _TEXT_CHARACTERS_MAX:
        raise _out_of_range()
    plain = _BEYOND_MICROSECONDS.sub(r"\1", text.partition("[")[0])
    try:
        found = datetime.fromisoformat(plain)
    except (ValueError, OverflowError):
        raise MalformedMessage(f"'{text}' is not an ISO 8601 date that this server can read.") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def write_datetime(when: datetime) -> str:
    """Write a date as Java does: with Z for UTC."""
    text = when.isoformat()
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def parse_duration(text: str) -> timedelta:
    found = _DURATION.fullmatch(text) if len(text) <= _TEXT_CHARACTERS_MAX else None
    if found is None or text[-1:].upper() in ("P", "T"):
        raise MalformedMessage("A duration is not in the form of ISO 8601, as in PT1H30M.")
    parts = {name: Decimal(given) for name, given in found.groupdict().items() if given and name != "sign"}
    seconds = (
        parts.get("days", Decimal(0)) * 86400
        + parts.get("hours", Decimal(0)) * 3600
        + parts.get("minutes", Decimal(0)) * 60
        + parts.get("seconds", Decimal(0))
    )
    sign = -1 if found["sign"] == "-" else 1
    try:
        return timedelta(microseconds=int(sign * seconds * 1_000_000))
    except OverflowError:
        raise _out_of_range() from None


def write_duration(duration: timedelta) -> str:
    """Write a duration as Java does: hours, minutes and seconds, each with the sign."""
    microseconds = abs(duration) // timedelta(microseconds=1)
    sign = "-" if duration < timedelta(0) else ""
    seconds, fraction = divmod(microseconds, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = "PT"
    if hours:
        text += f"{sign}{hours}H"
    if minutes:
        text += f"{sign}{minutes}M"
    if seconds or fraction or text == "PT":
        shown = f"{seconds}.{fraction:06d}".rstrip("0") if fraction else str(seconds)
        text += f"{sign if seconds or fraction else ''}{shown}S"
    return text


def duration_from(seconds: int, nanoseconds: int) -> timedelta:
    try:
        return timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    except OverflowError:
        raise _out_of_range() from None


def duration_parts(duration: timedelta) -> tuple[int, int]:
    """Return whole seconds, rounded down, and the nanoseconds after them."""
    return duration.days * 86400 + duration.seconds, duration.microseconds * 1000


def write_date(year: int, month: int, day: int) -> str:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        raise _out_of_range() from None


def write_time(nanoseconds: int) -> str:
    if not 0 <= nanoseconds < 86_400_000_000_000:
        raise _out_of_range()
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest // 1000).isoformat()


def _out_of_range() -> MalformedMessage:
    return MalformedMessage("A date or a duration is out of the range of the years 1 to 9999.")
