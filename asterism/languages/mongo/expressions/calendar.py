"""The proleptic Gregorian calendar over all dates that 64 bits of milliseconds can name.

Python's own dates end with the years 1 and 9999, those of the protocol do not. Days are counted from 1970-01-01.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MILLISECONDS_PER_SECOND: Final = 1000
MILLISECONDS_PER_MINUTE: Final = 60 * MILLISECONDS_PER_SECOND
MILLISECONDS_PER_HOUR: Final = 60 * MILLISECONDS_PER_MINUTE
MILLISECONDS_PER_DAY: Final = 24 * MILLISECONDS_PER_HOUR
# Years are printed with four digits; others are refused.
YEAR_PRINTED_MAX: Final = 9999
DATE_MIN: Final = -(2**63)
DATE_MAX: Final = 2**63 - 1

# After this many years the calendar repeats itself, days of the week included.
CYCLE_YEARS: Final = 400
CYCLE_DAYS: Final = 146_097
# 0000-03-01, the day that the arithmetic below counts from.
_DAY_OF_MARCH_OF_YEAR_0: Final = -719_468

MONTH_NAMES: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAY_NAMES: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Moment(NamedTuple):
    """A time on the clock and calendar of some place."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    millisecond: int
    # Days since 1970-01-01.
    day_number: int


class IsoWeek(NamedTuple):
    year: int
    week: int
    # 1 is Monday.
    weekday: int


def day_number(year: int, month: int, day: int) -> int:
    """The number of a date. Months and days beyond their range count on into the neighboring years and months."""
    extra_years, month_index = divmod(month - 1, 12)
    year += extra_years
    # Years that begin in March have the leap day at their end.
    shifted_year = year if month_index >= 2 else year - 1
    cycle, year_of_cycle = divmod(shifted_year, CYCLE_YEARS)
    day_of_year = (153 * ((month_index + 10) % 12) + 2) // 5
    day_of_cycle = year_of_cycle * 365 + year_of_cycle // 4 - year_of_cycle // 100 + day_of_year
    return cycle * CYCLE_DAYS + day_of_cycle + _DAY_OF_MARCH_OF_YEAR_0 + day - 1


def date_of_day(number: int) -> tuple[int, int, int]:
    """The year, month and day of a day's number."""
    cycle, day_of_cycle = divmod(number - _DAY_OF_MARCH_OF_YEAR_0, CYCLE_DAYS)
    year_of_cycle = (day_of_cycle - day_of_cycle // 1460 + day_of_cycle // 36_524 - day_of_cycle // 146_096) // 365
    day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle // 4 - year_of_cycle // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = cycle * CYCLE_YEARS + year_of_cycle + (1 if month <= 2 else 0)
    return year, month, day


def moment_of(milliseconds: int) -> Moment:
    """The clock and calendar at `milliseconds` after 1970-01-01T00:00:00 of the same place."""
    number, rest = divmod(milliseconds, MILLISECONDS_PER_DAY)
    year, month, day = date_of_day(number)
    hour, rest = divmod(rest, MILLISECONDS_PER_HOUR)
    minute, rest = divmod(rest, MILLISECONDS_PER_MINUTE)
    second, millisecond = divmod(rest, MILLISECONDS_PER_SECOND)
    return Moment(year, month, day, hour, minute, second, millisecond, number)


def is_leap_year(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_of_month(year: int, month: int) -> int:
    return day_number(year, month + 1, 1) - day_number(year, month, 1)


def day_of_year(moment: Moment) -> int:
    return moment.day_number - day_number(moment.year, 1, 1) + 1


def iso_weekday(number: int) -> int:
    """The day of the week: 1 is Monday, 7 Sunday. The day 0 was a Thursday."""
    return (number + 3) % 7 + 1


def iso_week_of(number: int) -> IsoWeek:
    """The week that a day belongs to: the one of its Thursday."""
    weekday = iso_weekday(number)
    thursday = number - weekday + 4
    year = date_of_day(thursday)[0]
    return IsoWeek(year, (thursday - day_number(year, 1, 1)) // 7 + 1, weekday)


def day_of_iso_week(year: int, week: int, weekday: int) -> int:
    """The number of a day that is given by its week."""
    fourth_of_january = day_number(year, 1, 4)
    first_monday = fourth_of_january - iso_weekday(fourth_of_january) + 1
    return first_monday + (week - 1) * 7 + weekday - 1


def week_of_year(moment: Moment) -> int:
    """The number of the week that begins on Sunday; days before the first Sunday are in week 0."""
    weekday_from_sunday = iso_weekday(moment.day_number) % 7
    return (day_of_year(moment) + 6 - weekday_from_sunday) // 7
