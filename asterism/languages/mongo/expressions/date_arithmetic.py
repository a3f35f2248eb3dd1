"""Operators that count with dates: $dateAdd, $dateSubtract, $dateDiff, $dateTrunc."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from asterism.languages.mongo.expressions import calendar
from asterism.languages.mongo.expressions.date_values import (
    FIXED_UNIT_MILLISECONDS,
    compile_optional,
    compile_zone,
    local_moment,
    require_date,
    start_of_week_of,
    unit_of,
)
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables, named
from asterism.languages.mongo.expressions.string_positions import INT64_MAX, INT64_MIN, whole_number
from asterism.languages.mongo.expressions.text import is_absent
from asterism.languages.mongo.expressions.time_zones import Zone
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import DatetimeMS, Int64

_MONTHS_OF_UNIT: Final = {"year": 12, "quarter": 3, "month": 1}
_DAYS_OF_UNIT: Final = {"week": 7, "day": 1}
_NOT_A_DATE: Final = 5166307
# As a day of the week in ISO's count; the first day of a week unless `startOfWeek` says otherwise.
_SUNDAY: Final = 7
# All times that a date can be are less than this many units apart: larger amounts are refused before they are added.
_AMOUNT_LIMIT_MILLISECONDS: Final = 2**64
_MONTH_MILLISECONDS: Final = 28 * calendar.MILLISECONDS_PER_DAY


def shift_date(milliseconds: int, unit: str, amount: int, zone: Zone) -> int:
    """The time `amount` units later. Days and longer units keep the local time of day, and a day that its month does
    not have becomes the last of the month."""
    fixed = FIXED_UNIT_MILLISECONDS.get(unit)
    if fixed is not None:
        return milliseconds + amount * fixed
    local = milliseconds + zone.offset_at(milliseconds)
    if unit in _DAYS_OF_UNIT:
        return zone.to_utc(local + amount * _DAYS_OF_UNIT[unit] * calendar.MILLISECONDS_PER_DAY)
    moment = calendar.moment_of(local)
    years, month_index = divmod(moment.month - 1 + amount * _MONTHS_OF_UNIT[unit], 12)
    year = moment.year + years
    day = min(moment.day, calendar.days_of_month(year, month_index + 1))
    moved_days = calendar.day_number(year, month_index + 1, day) - moment.day_number
    return zone.to_utc(local + moved_days * calendar.MILLISECONDS_PER_DAY)


def _is_amount_too_large(unit: str, amount: int) -> bool:
    if unit in _MONTHS_OF_UNIT:
        length = _MONTHS_OF_UNIT[unit] * _MONTH_MILLISECONDS
    elif unit in _DAYS_OF_UNIT:
        length = _DAYS_OF_UNIT[unit] * calendar.MILLISECONDS_PER_DAY
    else:
        length = FIXED_UNIT_MILLISECONDS[unit]
    return abs(amount) * length >= _AMOUNT_LIMIT_MILLISECONDS


def _addition(name: str, sign: int) -> Operator:
    def compile_fields(fields: dict[str, Any], context: CompileContext) -> Evaluate:
        date_closure = context.compile(fields["startDate"])
        unit_closure = context.compile(fields["unit"])
        amount_closure = context.compile(fields["amount"])
        zone_closure = compile_zone(fields, context)

        def evaluate(document: Any, variables: Variables) -> Any:
            date = date_closure(document, variables)
            unit_value = unit_closure(document, variables)
            amount_value = amount_closure(document, variables)
            if is_absent(date) or is_absent(unit_value) or is_absent(amount_value):
                return None
            unit = unit_of(name, unit_value)
            zone = zone_closure(document, variables)
            if zone is None:
                return None
            milliseconds = require_date(date, 5166403)
            amount = whole_number(amount_value)
            if amount is None or not INT64_MIN <= amount <= INT64_MAX:
                raise MongoFailure(5166405, f"{name} expects integer amount of time units")
            if sign < 0 and amount == INT64_MIN:
                raise MongoFailure(6045000, f"invalid {name} 'amount' parameter value: {amount}")
            amount *= sign
            if _is_amount_too_large(unit, amount):
                raise MongoFailure(5976500, f"invalid {name} 'amount' parameter value: {amount}")
            result = shift_date(milliseconds, unit, amount, zone)
            if not calendar.DATE_MIN <= result <= calendar.DATE_MAX:
                raise MongoFailure(5166406, f"{name} overflowed")
            return DatetimeMS(result)

        return evaluate

    return named(
        name,
        compile_fields,
        required=("startDate", "unit", "amount"),
        optional=("timezone",),
        not_an_object=5166400,
        unknown_field=5166401,
        missing_field=5166402,
    )


def difference(start: int, end: int, unit: str, zone: Zone, start_of_week: int) -> int:
    """The number of boundaries of the unit that are crossed from `start` to `end`."""
    if unit == "millisecond":
        return end - start
    start_offset, end_offset = zone.offset_at(start), zone.offset_at(end)
    fixed = FIXED_UNIT_MILLISECONDS.get(unit)
    if fixed is not None:
        crossed = (end + end_offset) // fixed - (start + start_offset) // fixed
        # Hours that clocks skipped or repeated in between are not crossed.
        return crossed - (end_offset - start_offset) // fixed
    first = calendar.moment_of(start + start_offset)
    last = calendar.moment_of(end + end_offset)
    if unit == "day":
        return last.day_number - first.day_number
    if unit == "week":
        return _week_number(last.day_number, start_of_week) - _week_number(first.day_number, start_of_week)
    months = _MONTHS_OF_UNIT[unit]
    return (last.year * 12 + last.month - 1) // months - (first.year * 12 + first.month - 1) // months


def _week_number(day_number: int, start_of_week: int) -> int:
    # Day 0 was a Thursday, the fourth day of a week from Monday.
    return (day_number + 4 - start_of_week) // 7


def _compile_week_start(
    name: str, specification: Any, context: CompileContext
) -> Callable[[str, Any, Variables], int | None]:
    """Compile `startOfWeek` to a function of the unit, which alone decides whether it is looked at; None for an absent
    value."""
    week_closure = compile_optional(specification, "startOfWeek", context, default="sunday")

    def week_start(unit: str, document: Any, variables: Variables) -> int | None:
        if unit != "week":
            return _SUNDAY
        value = week_closure(document, variables)
        return None if is_absent(value) else start_of_week_of(name, value)

    return week_start


def _compile_difference(specification: Any, context: CompileContext) -> Evaluate:
    name = "$dateDiff"
    if not isinstance(specification, dict):
        raise MongoFailure(5166301, "$dateDiff only supports an object as its argument")
    for field_name in specification:
        if field_name not in ("startDate", "endDate", "unit", "timezone", "startOfWeek"):
            raise MongoFailure(5166302, f"unrecognized argument to $dateDiff: {field_name}")
    for field_name, code in (("startDate", 5166303), ("endDate", 5166304), ("unit", 5166305)):
        if field_name not in specification:
            raise MongoFailure(code, f"missing '{field_name}' parameter to $dateDiff")
    start_closure = context.compile(specification["startDate"])
    end_closure = context.compile(specification["endDate"])
    unit_closure = context.compile(specification["unit"])
    week_start = _compile_week_start(name, specification, context)
    zone_closure = compile_zone(specification, context)

    def evaluate(document: Any, variables: Variables) -> Any:
        start = start_closure(document, variables)
        end = end_closure(document, variables)
        unit_value = unit_closure(document, variables)
        if is_absent(start) or is_absent(end) or is_absent(unit_value):
            return None
        unit = unit_of(name, unit_value)
        start_of_week = week_start(unit, document, variables)
        if start_of_week is None:
            return None
        zone = zone_closure(document, variables)
        if zone is None:
            return None
        first, last = require_date(start, _NOT_A_DATE), require_date(end, _NOT_A_DATE)
        result = difference(first, last, unit, zone, start_of_week)
        if not INT64_MIN <= result <= INT64_MAX:
            raise MongoFailure(5166308, "$dateDiff overflowed")
        return Int64(result)

    return evaluate


def truncate(milliseconds: int, unit: str, bin_size: int, zone: Zone, start_of_week: int) -> int:
    """The beginning of the bin that a time is in. Bins are counted from 2000-01-01 of the zone, bins of weeks from the
    first beginning of a week in that year."""
    fixed = FIXED_UNIT_MILLISECONDS.get(unit)
    if fixed is not None:
        reference = zone.to_utc(_REFERENCE_DAY * calendar.MILLISECONDS_PER_DAY)
        size = _require_size(fixed * bin_size, INT64_MAX, 5439002)
        return reference + (milliseconds - reference) // size * size
    moment = local_moment(milliseconds, zone)
    if unit in _DAYS_OF_UNIT:
        days = _require_size(_DAYS_OF_UNIT[unit] * bin_size, _BIN_DAYS_MAX, 5439005)
        first_day = _REFERENCE_DAY
        if unit == "week":
            first_day += (start_of_week - calendar.iso_weekday(_REFERENCE_DAY)) % 7
        day = first_day + (moment.day_number - first_day) // days * days
    else:
        months = _require_size(_MONTHS_OF_UNIT[unit] * bin_size, _BIN_MONTHS_MAX, 5439006)
        passed = (moment.year - _REFERENCE_YEAR) * 12 + moment.month - 1
        day = calendar.day_number(_REFERENCE_YEAR, 1 + passed // months * months, 1)
    return zone.to_utc(day * calendar.MILLISECONDS_PER_DAY)


_REFERENCE_YEAR: Final = 2000
_REFERENCE_DAY: Final = calendar.day_number(_REFERENCE_YEAR, 1, 1)
_BIN_DAYS_MAX: Final = 100_000_000_000
_BIN_MONTHS_MAX: Final = 100_000_000_000


def _require_size(size: int, most: int, code: int) -> int:
    if size > most:
        raise MongoFailure(code, "$dateTrunc parameter 'binSize' is too large")
    return size


def _compile_truncation(specification: Any, context: CompileContext) -> Evaluate:
    name = "$dateTrunc"
    if not isinstance(specification, dict):
        raise MongoFailure(5439007, "$dateTrunc only supports an object as its argument")
    for field_name in specification:
        if field_name not in ("date", "unit", "binSize", "timezone", "startOfWeek"):
            raise MongoFailure(5439008, f"unrecognized argument to $dateTrunc: {field_name}")
    for field_name, code in (("date", 5439009), ("unit", 5439010)):
        if field_name not in specification:
            raise MongoFailure(code, f"missing '{field_name}' parameter to $dateTrunc")
    date_closure = context.compile(specification["date"])
    unit_closure = context.compile(specification["unit"])
    size_closure = compile_optional(specification, "binSize", context, default=1)
    week_start = _compile_week_start(name, specification, context)
    zone_closure = compile_zone(specification, context)

    def evaluate(document: Any, variables: Variables) -> Any:
        date = date_closure(document, variables)
        unit_value = unit_closure(document, variables)
        size_value = size_closure(document, variables)
        if is_absent(date) or is_absent(unit_value) or is_absent(size_value):
            return None
        unit = unit_of(name, unit_value)
        start_of_week = week_start(unit, document, variables)
        if start_of_week is None:
            return None
        zone = zone_closure(document, variables)
        if zone is None:
            return None
        milliseconds = require_date(date, _NOT_A_DATE)
        bin_size = _require_bin_size(size_value)
        result = truncate(milliseconds, unit, bin_size, zone, start_of_week)
        if not calendar.DATE_MIN <= result <= calendar.DATE_MAX:
            raise MongoFailure(5439005, "$dateTrunc overflowed")
        return DatetimeMS(result)

    return evaluate


def _require_bin_size(value: Any) -> int:
    bin_size = whole_number(value)
    if bin_size is None or not INT64_MIN <= bin_size <= INT64_MAX:
        raise MongoFailure(5439017, f"$dateTrunc requires 'binSize' to be a 64-bit integer, but got {type_name(value)}")
    if bin_size <= 0:
        raise MongoFailure(5439018, f"$dateTrunc requires 'binSize' to be greater than 0, but got {bin_size}")
    return bin_size


OPERATORS: tuple[Operator, ...] = (
    _addition("$dateAdd", 1),
    _addition("$dateSubtract", -1),
    Operator("$dateDiff", _compile_difference),
    Operator("$dateTrunc", _compile_truncation),
)
