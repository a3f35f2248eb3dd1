"""Operators that take dates apart ($year, $dateToParts) and put them together ($dateFromParts)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from asterism.languages.mongo.expressions import calendar
from asterism.languages.mongo.expressions.calendar import Moment
from asterism.languages.mongo.expressions.date_values import (
    compile_optional,
    compile_zone,
    local_moment,
    require_date,
)
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables, named
from asterism.languages.mongo.expressions.string_positions import whole_number
from asterism.languages.mongo.expressions.text import is_absent
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import DatetimeMS, Int64

_PARTS: Final[tuple[tuple[str, Callable[[Moment], int]], ...]] = (
    ("$year", lambda moment: moment.year),
    ("$month", lambda moment: moment.month),
    ("$dayOfMonth", lambda moment: moment.day),
    ("$hour", lambda moment: moment.hour),
    ("$minute", lambda moment: moment.minute),
    ("$second", lambda moment: moment.second),
    ("$millisecond", lambda moment: moment.millisecond),
    ("$dayOfYear", calendar.day_of_year),
    ("$dayOfWeek", lambda moment: calendar.iso_weekday(moment.day_number) % 7 + 1),
    ("$week", calendar.week_of_year),
    ("$isoWeek", lambda moment: calendar.iso_week_of(moment.day_number).week),
    ("$isoWeekYear", lambda moment: Int64(calendar.iso_week_of(moment.day_number).year)),
    ("$isoDayOfWeek", lambda moment: calendar.iso_weekday(moment.day_number)),
)


def _part(name: str, take: Callable[[Moment], int]) -> Operator:
    """An operator that takes a date alone, in an array, or beside a time zone."""

    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        fields = _fields_of_part(name, specification)
        date_closure = context.compile(fields["date"])
        zone_closure = compile_zone(fields, context)

        def evaluate(document: Any, variables: Variables) -> Any:
            date = date_closure(document, variables)
            if is_absent(date):
                return None
            zone = zone_closure(document, variables)
            if zone is None:
                return None
            return take(local_moment(require_date(date), zone))

        return evaluate

    return Operator(name, compile_call)


def _fields_of_part(name: str, specification: Any) -> dict[str, Any]:
    if isinstance(specification, list):
        if len(specification) != 1:
            raise MongoFailure(
                40536, f"{name} accepts exactly one argument if given an array, but was given {len(specification)}"
            )
        return {"date": specification[0]}
    if not isinstance(specification, dict) or next(iter(specification), "").startswith("$"):
        return {"date": specification}
    for field_name in specification:
        if field_name not in ("date", "timezone"):
            raise MongoFailure(40535, f"unrecognized option to {name}: '{field_name}'")
    if "date" not in specification:
        raise MongoFailure(40539, f"missing 'date' argument to {name}")
    return specification


def _compile_to_parts(fields: dict[str, Any], context: CompileContext) -> Evaluate:
    date_closure = context.compile(fields["date"])
    iso_closure = compile_optional(fields, "iso8601", context, default=False)
    zone_closure = compile_zone(fields, context)

    def evaluate(document: Any, variables: Variables) -> Any:
        date = date_closure(document, variables)
        zone = zone_closure(document, variables)
        is_iso = iso_closure(document, variables)
        if zone is None or is_absent(is_iso):
            return None
        if type(is_iso) is not bool:
            raise MongoFailure(40521, f"iso8601 must evaluate to a bool, found {type_name(is_iso)}")
        if is_absent(date):
            return None
        moment = local_moment(require_date(date), zone)
        return _parts_of(moment, is_iso=is_iso)

    return evaluate


def _parts_of(moment: Moment, *, is_iso: bool) -> dict[str, int]:
    clock = {
        "hour": moment.hour,
        "minute": moment.minute,
        "second": moment.second,
        "millisecond": moment.millisecond,
    }
    if is_iso:
        week = calendar.iso_week_of(moment.day_number)
        return {"isoWeekYear": week.year, "isoWeek": week.week, "isoDayOfWeek": week.weekday, **clock}
    return {"year": moment.year, "month": moment.month, "day": moment.day, **clock}


# The parts of a date with their defaults. Those of the clock are the same for both calendars.
_CLOCK_PARTS: Final = (("hour", 0), ("minute", 0), ("second", 0), ("millisecond", 0))
_CALENDAR_PARTS: Final = (("year", 1970), ("month", 1), ("day", 1), *_CLOCK_PARTS)
_ISO_PARTS: Final = (("isoWeekYear", 1970), ("isoWeek", 1), ("isoDayOfWeek", 1), *_CLOCK_PARTS)
_YEARS: Final = range(1, 10_000)
# The parts that are kept in 16 bits; seconds and milliseconds may be larger.
_SMALL: Final = range(-(2**15), 2**15)
_SMALL_PARTS: Final = frozenset({"month", "day", "hour", "minute", "isoWeek", "isoDayOfWeek"})


def _compile_from_parts(specification: Any, context: CompileContext) -> Evaluate:
    if not isinstance(specification, dict):
        raise MongoFailure(40519, "$dateFromParts only supports an object as its argument")
    known = {name for name, _ in (*_CALENDAR_PARTS, *_ISO_PARTS)} | {"timezone"}
    for field_name in specification:
        if field_name not in known:
            raise MongoFailure(40518, f"unrecognized argument to $dateFromParts: '{field_name}'")
    is_iso = "isoWeekYear" in specification
    if "year" not in specification and not is_iso:
        raise MongoFailure(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present")
    if "year" in specification and any(name in specification for name, _ in _ISO_PARTS[:3]):
        raise MongoFailure(40489, "$dateFromParts does not allow mixing natural dates with ISO dates")
    if is_iso and any(name in specification for name, _ in _CALENDAR_PARTS[:3]):
        raise MongoFailure(40525, "$dateFromParts does not allow mixing ISO dates with natural dates")
    parts = _ISO_PARTS if is_iso else _CALENDAR_PARTS
    closures = [(name, compile_optional(specification, name, context, default=default)) for name, default in parts]
    zone_closure = compile_zone(specification, context)

    def evaluate(document: Any, variables: Variables) -> Any:
        values = []
        for name, closure in closures:
            value = closure(document, variables)
            values.append(None if is_absent(value) else _require_part(name, value))
        zone = zone_closure(document, variables)
        if zone is None:
            return None
        numbers = [value for value in values if value is not None]
        if len(numbers) < len(values):
            return None
        day = calendar.day_of_iso_week(*numbers[:3]) if is_iso else calendar.day_number(*numbers[:3])
        hour, minute, second, millisecond = numbers[3:]
        local = (
            day * calendar.MILLISECONDS_PER_DAY
            + hour * calendar.MILLISECONDS_PER_HOUR
            + minute * calendar.MILLISECONDS_PER_MINUTE
            + second * calendar.MILLISECONDS_PER_SECOND
            + millisecond
        )
        milliseconds = zone.to_utc(local)
        if not calendar.DATE_MIN <= milliseconds <= calendar.DATE_MAX:
            raise MongoFailure(15, "the parts of the date are too large for a date")
        return DatetimeMS(milliseconds)

    return evaluate


def _require_part(name: str, value: Any) -> int:
    number = whole_number(value)
    if number is None or not -(2**63) <= number < 2**63:
        raise MongoFailure(40515, f"'{name}' must evaluate to an integer, found {type_name(value)}")
    if name in ("year", "isoWeekYear") and number not in _YEARS:
        raise MongoFailure(40523, f"'{name}' must evaluate to an integer in the range 1 to 9999, found {number}")
    if name in _SMALL_PARTS and number not in _SMALL:
        raise MongoFailure(31034, f"'{name}' must evaluate to a value in the range [-32768, 32767]; got {number}")
    return number


OPERATORS: tuple[Operator, ...] = (
    *(_part(name, take) for name, take in _PARTS),
    named(
        "$dateToParts",
        _compile_to_parts,
        required=("date",),
        optional=("timezone", "iso8601"),
        not_an_object=40524,
        unknown_field=40520,
        missing_field=40522,
    ),
    Operator("$dateFromParts", _compile_from_parts),
)
