"""Dates in free text: ISO dates first of all, and the forms that people write, such as "oct 20 2020".

The text is read from left to right by a list of patterns; each says which parts of the date it found. A text that
leaves a part of the date open is refused, as is one that says a part twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from asterism.languages.mongo.expressions import calendar
from asterism.languages.mongo.expressions.time_zones import Zone, find_zone


class DateTextProblem(Exception):
    """Raised for text that is no date."""


@dataclass(slots=True)
class DateText:
    """The parts of a date that a text has said so far."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    hour: int | None = None
    minute: int | None = None
    second: int | None = None
    millisecond: int | None = None
    day_of_year: int | None = None
    iso_year: int | None = None
    iso_week: int | None = None
    iso_weekday: int | None = None
    offset_milliseconds: int | None = None
    zone: Zone | None = None

    @property
    def has_zone(self) -> bool:
        return self.offset_milliseconds is not None or self.zone is not None

    def set_zone(self, name: str) -> None:
        if self.has_zone:
            raise DateTextProblem("double timezone specification")
        # Letters of military time mean nothing but Z here.
        zone = find_zone("UTC" if name.upper() in ("Z", "UTC", "GMT") else name) or find_zone(name.upper())
        if zone is None:
            raise DateTextProblem("the timezone could not be found in the database")
        self.zone = zone

    def milliseconds(self, default_zone: Zone) -> int:
        """The time that the text means; `default_zone` is where it is said, unless the text names a place."""
        local = (
            self._day_number() * calendar.MILLISECONDS_PER_DAY
            + self._within("hour", self.hour, 24) * calendar.MILLISECONDS_PER_HOUR
            + self._within("minute", self.minute, 59) * calendar.MILLISECONDS_PER_MINUTE
            + self._within("second", self.second, 60) * calendar.MILLISECONDS_PER_SECOND
            + (self.millisecond or 0)
        )
        if self.offset_milliseconds is not None:
            return local - self.offset_milliseconds
        return (self.zone or default_zone).to_utc(local)

    def _day_number(self) -> int:
        if self.iso_year is not None:
            if self.year is not None or self.month is not None or self.day is not None:
                raise DateTextProblem("mixing of ISO dates with natural dates is not allowed")
            week = 1 if self.iso_week is None else self.iso_week
            weekday = 1 if self.iso_weekday is None else self.iso_weekday
            if not (1 <= week <= 53 and 1 <= weekday <= 7):
                raise DateTextProblem("there is no such week or day of a week")
            return calendar.day_of_iso_week(self.iso_year, week, weekday)
        if self.year is not None and self.day_of_year is not None:
            if not 0 <= self.day_of_year <= 366:
                raise DateTextProblem("there is no such day of a year")
            # Counted from 0 by the reference server.
            return calendar.day_number(self.year, 1, 1) + self.day_of_year
        if self.year is None or self.month is None or self.day is None:
            raise DateTextProblem("an incomplete date/time string has been found, with elements missing")
        if not 1 <= self.month <= 12 or not 1 <= self.day <= calendar.days_of_month(self.year, self.month):
            raise DateTextProblem("there is no such day")
        return calendar.day_number(self.year, self.month, self.day)

    @staticmethod
    def _within(name: str, value: int | None, most: int) -> int:
        if value is not None and value > most:
            raise DateTextProblem(f"there is no such {name}")
        return value or 0


_MONTHS_BY_NAME: Final = {
    name: number
    for number, month in enumerate(calendar.MONTH_NAMES, start=1)
    for name in (month.lower(), month[:3].lower())
} | {"sept": 9}


def month_number(name: str) -> int:
    number = _MONTHS_BY_NAME.get(name.lower())
    if number is None:
        raise DateTextProblem("there is no such month")
    return number


_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_WEEKDAY: Final = (
    r"(?:mon(?:day)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:r|rs|rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
)
_CLOCK: Final = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,:](?P<fraction>\d+))?)?"
_END: Final = r"(?![0-9A-Za-z])"

# The forms that are understood, tried in this order at each place of the text.
_FORMS: Final = tuple(
    re.compile(form, re.ASCII | re.IGNORECASE)
    for form in (
        # 2017-02-08, 2017/02/08
        r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?=$|[^0-9-])T?",
        r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})(?=$|[^0-9/])T?",
        # 2017-W06-3
        r"(?P<iso_year>\d{4})-?W(?P<iso_week>\d{2})(?:-?(?P<iso_weekday>\d))?(?=$|[^0-9])T?",
        # 20170208T121040
        r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})T(?P<hour>\d{2}):?(?P<minute>\d{2}):?(?P<second>\d{2})"
        r"(?:[.,](?P<fraction>\d+))?(?=$|[^0-9])",
        # 20170208
        r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})(?=$|[^0-9:])",
        # 2/8/2017
        r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})" + _END,
        # 8-2-2017, 8.2.2017
        r"(?P<day>\d{1,2})(?P<separator>[-.])(?P<month>\d{1,2})(?P=separator)(?P<year>\d{4})" + _END,
        # 20 October 2020, 20-oct-2020
        r"(?P<day>\d{1,2})(?:st|nd|rd|th)?[ \t.-]*(?P<month_name>" + _MONTH + r")[ \t.,-]*(?P<year>\d{4})(?![0-9:])",
        # October 20, 2020
        r"(?P<month_name>" + _MONTH + r")[ \t.-]*(?P<day>\d{1,2})(?:st|nd|rd|th)?[ \t.,]+(?P<year>\d{4})(?![0-9:])",
        # 2020-oct-20
        r"(?P<year>\d{4})[ \t.-]*(?P<month_name>" + _MONTH + r")[ \t.-]*(?P<day>\d{1,2})(?![0-9:])",
        # oct 20, 20 oct
        r"(?P<month_name>" + _MONTH + r")[ \t.-]*(?P<day>\d{1,2})(?:st|nd|rd|th)?(?![0-9:])",
        r"(?P<day>\d{1,2})(?:st|nd|rd|th)?[ \t.-]*(?P<month_name>" + _MONTH + r")" + _END,
        # 12:10:40.787, 10:30 pm, 10pm
        _CLOCK + r"[ \t]*(?P<half>[ap]\.?m\.?)" + _END,
        r"(?P<hour>\d{1,2})[ \t]*(?P<half>[ap]\.?m\.?)" + _END,
        r"T?" + _CLOCK + r"(?![0-9])",
        r"(?:GMT|UTC)?(?P<zone>[+-]\d{2}(?::?\d{2})?)(?![0-9:])",
        r"(?P<nothing>" + _WEEKDAY + r")\.?" + _END,
        # The year of "WED jan 31 12:05:28 +03:30 1996".
        r"(?P<lonely_year>\d{4})" + _END,
        r"(?P<zone>[A-Za-z]+(?:/[A-Za-z_+-]+[0-9]*)*)" + _END,
    )
)
_SPACE: Final = re.compile(r"[ \t\n\r\0,\u00a0]+")


def read_free_text(text: str) -> DateText:
    """The parts of the date that a text says; raises DateTextProblem."""
    result = DateText()
    place = _skip_space(text, 0)
    while place < len(text):
        for form in _FORMS:
            found = form.match(text, place)
            if found is not None:
                break
        else:
            raise DateTextProblem("unexpected character")
        _note(result, {name: value for name, value in found.groupdict().items() if value is not None})
        place = _skip_space(text, found.end())
    return result


def _skip_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def _note(result: DateText, fields: dict[str, str]) -> None:
    for name, value in fields.items():
        note = _NOTES.get(name)
        if note is not None:
            note(result, value)
        elif name not in ("separator", "nothing"):
            _set_once(result, name, int(value))


def _set_once(result: DateText, name: str, value: int) -> None:
    if getattr(result, name) is not None:
        raise DateTextProblem(f"double specification of the {name}")
    setattr(result, name, value)


def _note_half(result: DateText, text: str) -> None:
    if result.hour is None or not 1 <= result.hour <= 12:
        raise DateTextProblem("there is no such hour")
    result.hour = result.hour % 12 + (12 if text[0] in "pP" else 0)


def _note_lonely_year(result: DateText, text: str) -> None:
    if result.month is None:
        raise DateTextProblem("a year alone is no date")
    _set_once(result, "year", int(text))


_NOTES: Final[dict[str, Callable[[DateText, str], None]]] = {
    "month_name": lambda result, text: _set_once(result, "month", month_number(text)),
    # Digits beyond milliseconds are cut off.
    "fraction": lambda result, text: _set_once(result, "millisecond", int(text[:3].ljust(3, "0"))),
    "half": _note_half,
    "lonely_year": _note_lonely_year,
    "zone": lambda result, text: result.set_zone(text),
}
