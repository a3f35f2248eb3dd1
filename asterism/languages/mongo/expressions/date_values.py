"""Arguments that the operators on dates share: dates, units of time, and time zones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from asterism.languages.mongo.expressions import calendar
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate
from asterism.languages.mongo.expressions.text import is_absent
from asterism.languages.mongo.expressions.time_zones import UTC_ZONE, Zone, zone_of
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import DatetimeMS, ObjectId, Timestamp

NOT_A_DATE: Final = 16006
_FAILED_TO_PARSE: Final = 9

UNITS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
# Units whose length is the same on every day of every zone.
FIXED_UNIT_MILLISECONDS: Final = {
    "hour": calendar.MILLISECONDS_PER_HOUR,
    "minute": calendar.MILLISECONDS_PER_MINUTE,
    "second": calendar.MILLISECONDS_PER_SECOND,
    "millisecond": 1,
}
_WEEKDAY_BY_NAME: Final = {
    name: number
    for number, weekday in enumerate(calendar.WEEKDAY_NAMES, start=1)
    for name in (weekday.lower(), weekday[:3].lower())
}


def date_milliseconds(value: Any) -> int | None:
    """The time of a date, a timestamp or an object identifier; None for another type."""
    kind = type(value)
    if kind is DatetimeMS:
        return int(value)
    if kind is Timestamp:
        return int(value.time) * 1000
    if kind is ObjectId:
        # The seconds of an identifier are signed, as the reference server reads them.
        return int.from_bytes(value.binary[:4], "big", signed=True) * 1000
    return None


def require_date(value: Any, code: int = NOT_A_DATE) -> int:
    milliseconds = date_milliseconds(value)
    if milliseconds is None:
        raise MongoFailure(code, f"can't convert from BSON type {type_name(value)} to Date")
    return milliseconds


def local_moment(milliseconds: int, zone: Zone) -> calendar.Moment:
    return calendar.moment_of(milliseconds + zone.offset_at(milliseconds))


def unit_of(name: str, value: Any) -> str:
    if type(value) is not str:
        raise MongoFailure(5439013, f"{name} requires 'unit' to be a string, but got {type_name(value)}")
    if value not in UNITS:
        raise MongoFailure(
            _FAILED_TO_PARSE, f"{name} parameter 'unit' value cannot be recognized as a time unit: {value}"
        )
    return value


def start_of_week_of(name: str, value: Any) -> int:
    """The number of the day that weeks begin with; 1 is Monday."""
    if type(value) is not str:
        raise MongoFailure(5439015, f"{name} requires 'startOfWeek' to be a string, but got {type_name(value)}")
    weekday = _WEEKDAY_BY_NAME.get(value.lower())
    if weekday is None:
        raise MongoFailure(5439016, f"{name} parameter 'startOfWeek' value cannot be recognized as a day of a week")
    return weekday


def zone_or_utc(value: Any) -> Zone | None:
    """The zone of an argument, or None if it is null, in which case the result is null."""
    return None if is_absent(value) else zone_of(value)


def compile_optional(
    fields: dict[str, Any], field_name: str, context: CompileContext, *, default: Any = None
) -> Evaluate:
    """The closure of an argument, or of its default if it is not there."""
    if field_name in fields:
        return context.compile(fields[field_name])
    return lambda _document, _variables: default


def compile_zone(fields: dict[str, Any], context: CompileContext) -> Callable[[Any, Any], Zone | None]:
    """A closure that returns the zone of the argument `timezone`, UTC without one, and None for null."""
    if "timezone" not in fields:
        return lambda _document, _variables: UTC_ZONE
    closure = context.compile(fields["timezone"])
    return lambda document, variables: zone_or_utc(closure(document, variables))
