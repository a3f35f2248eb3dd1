"""Dates as text by a format of `%` specifiers, in both directions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from asterism.languages.mongo.expressions import calendar
from asterism.languages.mongo.expressions.calendar import Moment
from asterism.languages.mongo.expressions.date_texts import DateText, DateTextProblem, month_number
from asterism.languages.mongo.failure import MongoFailure

_BAD_FORMAT: Final = 18536
_YEAR_NOT_PRINTABLE: Final = 18537


class Printed(NamedTuple):
    moment: Moment
    offset_minutes: int


def _four_digits(year: int) -> str:
    if not 0 <= year <= calendar.YEAR_PRINTED_MAX:
        raise MongoFailure(_YEAR_NOT_PRINTABLE, f"$dateToString is only defined on year 0-9999, tried to use {year}")
    return f"{year:04}"


def _offset_text(minutes: int) -> str:
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}{rest:02}"


_PRINTERS: Final[dict[str, Callable[[Printed], str]]] = {
    "%": lambda printed: "%",
    "d": lambda printed: f"{printed.moment.day:02}",
    "m": lambda printed: f"{printed.moment.month:02}",
    "Y": lambda printed: _four_digits(printed.moment.year),
    "H": lambda printed: f"{printed.moment.hour:02}",
    "M": lambda printed: f"{printed.moment.minute:02}",
    "S": lambda printed: f"{printed.moment.second:02}",
    "L": lambda printed: f"{printed.moment.millisecond:03}",
    "j": lambda printed: f"{calendar.day_of_year(printed.moment):03}",
    "b": lambda printed: calendar.MONTH_NAMES[printed.moment.month - 1][:3],
    "B": lambda printed: calendar.MONTH_NAMES[printed.moment.month - 1],
    "w": lambda printed: str(calendar.iso_weekday(printed.moment.day_number) % 7 + 1),
    "u": lambda printed: str(calendar.iso_weekday(printed.moment.day_number)),
    "U": lambda printed: f"{calendar.week_of_year(printed.moment):02}",
    "V": lambda printed: f"{calendar.iso_week_of(printed.moment.day_number).week:02}",
    "G": lambda printed: _four_digits(calendar.iso_week_of(printed.moment.day_number).year),
    "z": lambda printed: _offset_text(printed.offset_minutes),
    "Z": lambda printed: str(printed.offset_minutes),
}


def check_format(text: str, specifiers: str) -> None:
    """Refuse a format with a specifier that is not one of those given, or with a lonely `%` at its end."""
    for specifier in re.findall(r"%(.?)", text, re.DOTALL):
        if specifier == "":
            raise MongoFailure(_BAD_FORMAT, "Unmatched '%' at end of format string")
        if specifier not in specifiers:
            raise MongoFailure(_BAD_FORMAT, f"Invalid format character '%{specifier}' in format string")


PRINTED_SPECIFIERS: Final = "".join(_PRINTERS)


def print_date(moment: Moment, offset_minutes: int, format_text: str) -> str:
    """The text of a date by a format that `check_format` has seen."""
    printed = Printed(moment, offset_minutes)
    return re.sub(r"%(.)", lambda found: _PRINTERS[found[1]](printed), format_text, flags=re.DOTALL)


# Specifiers that are read, as patterns. The name of a group is the field of `DateText` that it fills.
_READERS: Final = {
    "%": "%",
    "d": r"(?P<day>\d{1,2})",
    "m": r"(?P<month>\d{1,2})",
    "Y": r"(?P<year>\d{4})",
    "H": r"(?P<hour>\d{1,2})",
    "M": r"(?P<minute>\d{1,2})",
    "S": r"(?P<second>\d{1,2})",
    "L": r"(?P<fraction>\d{1,3})",
    "j": r"(?P<day_of_year>\d{1,3})",
    "b": r"(?P<month_name>[A-Za-z]+)",
    "B": r"(?P<month_name>[A-Za-z]+)",
    "G": r"(?P<iso_year>\d{4})",
    "V": r"(?P<iso_week>\d{1,2})",
    "u": r"(?P<iso_weekday>\d)",
    "z": r"(?P<offset>[+-]\d{2}:?\d{2}|Z)",
    "Z": r"(?P<offset_minutes>[+-]\d{1,4})",
}
READ_SPECIFIERS: Final = "".join(_READERS)


def read_date(text: str, format_text: str) -> DateText:
    """The date that a text says by a format that `check_format` has seen; raises DateTextProblem."""
    pattern = re.sub(
        r"%(.)|([^%]+)",
        lambda found: _READERS[found[1]] if found[1] else re.escape(found[2]),
        format_text,
        flags=re.DOTALL,
    )
    try:
        compiled = re.compile(pattern, re.ASCII | re.DOTALL)
    except re.error:
        raise DateTextProblem("a part of the date occurs twice in the format") from None
    found = compiled.fullmatch(text)
    if found is None:
        raise DateTextProblem(f"the text does not match the format '{format_text}'")
    fields = {name: value for name, value in found.groupdict().items() if value is not None}
    result = DateText()
    for name in (
        "day",
        "month",
        "year",
        "hour",
        "minute",
        "second",
        "day_of_year",
        "iso_year",
        "iso_week",
        "iso_weekday",
    ):
        if name in fields:
            setattr(result, name, int(fields[name]))
    if "month_name" in fields:
        result.month = month_number(fields["month_name"])
    if "fraction" in fields:
        result.millisecond = int(fields["fraction"].ljust(3, "0"))
    if "offset_minutes" in fields:
        result.offset_milliseconds = int(fields["offset_minutes"]) * calendar.MILLISECONDS_PER_MINUTE
    if "offset" in fields:
        result.set_zone(fields["offset"])
    return result
