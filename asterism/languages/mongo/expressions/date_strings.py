"""Operators between dates and text: $dateToString, $dateFromString."""

from __future__ import annotations

from typing import Any, Final

from asterism.languages.mongo.expressions import calendar
from asterism.languages.mongo.expressions.date_formats import (
    PRINTED_SPECIFIERS,
    READ_SPECIFIERS,
    check_format,
    print_date,
    read_date,
)
from asterism.languages.mongo.expressions.date_texts import DateText, DateTextProblem, read_free_text
from asterism.languages.mongo.expressions.date_values import compile_optional, compile_zone, require_date
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables, named
from asterism.languages.mongo.expressions.text import is_absent
from asterism.languages.mongo.expressions.time_zones import Zone
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import MISSING, DatetimeMS

_CONVERSION_FAILURE: Final = 241
_FORMAT_OF_UTC: Final = "%Y-%m-%dT%H:%M:%S.%LZ"
_FORMAT_ELSEWHERE: Final = "%Y-%m-%dT%H:%M:%S.%L"


def _compile_to_string(fields: dict[str, Any], context: CompileContext) -> Evaluate:
    date_closure = context.compile(fields["date"])
    format_closure = compile_optional(fields, "format", context)
    zone_closure = compile_zone(fields, context)
    null_closure = compile_optional(fields, "onNull", context)
    has_format = "format" in fields

    def evaluate(document: Any, variables: Variables) -> Any:
        date = date_closure(document, variables)
        format_text = format_closure(document, variables)
        if has_format and not is_absent(format_text):
            if type(format_text) is not str:
                raise MongoFailure(
                    18533, f"$dateToString requires 'format' to be a string, not {type_name(format_text)}"
                )
            check_format(format_text, PRINTED_SPECIFIERS)
        zone = zone_closure(document, variables)
        if is_absent(date):
            return null_closure(document, variables)
        if zone is None or (has_format and is_absent(format_text)):
            return None
        milliseconds = require_date(date)
        if not has_format:
            format_text = _FORMAT_OF_UTC if zone.is_utc else _FORMAT_ELSEWHERE
        offset = zone.offset_at(milliseconds)
        # Offsets of times before the introduction of zones have seconds; they are cut off in text.
        offset_minutes = int(offset / calendar.MILLISECONDS_PER_MINUTE)
        return print_date(calendar.moment_of(milliseconds + offset), offset_minutes, format_text)

    return evaluate


def date_of_text(text: str, zone: Zone, format_text: str | None = None) -> DatetimeMS:
    """The date that a text says, in free form or by a format. Raises DateTextProblem."""
    parts: DateText = read_free_text(text) if format_text is None else read_date(text, format_text)
    if parts.has_zone and not zone.is_utc:
        raise DateTextProblem(
            "you cannot pass in a date/time string with time zone information together with a timezone"
        )
    return DatetimeMS(parts.milliseconds(zone))


def _compile_from_string(fields: dict[str, Any], context: CompileContext) -> Evaluate:
    text_closure = context.compile(fields["dateString"])
    format_closure = compile_optional(fields, "format", context)
    zone_closure = compile_zone(fields, context)
    null_closure = compile_optional(fields, "onNull", context)
    error_closure = context.compile(fields["onError"]) if "onError" in fields else None
    has_format = "format" in fields

    def evaluate(document: Any, variables: Variables) -> Any:
        text = text_closure(document, variables)
        format_text = format_closure(document, variables)
        if has_format and not is_absent(format_text):
            if type(format_text) is not str:
                raise MongoFailure(
                    40684, f"$dateFromString requires that 'format' be a string, found: {type_name(format_text)}"
                )
            check_format(format_text, READ_SPECIFIERS)
        zone = zone_closure(document, variables)
        if is_absent(text):
            return null_closure(document, variables)
        if zone is None or (has_format and is_absent(format_text)):
            return None
        try:
            if type(text) is not str:
                raise DateTextProblem(
                    f"$dateFromString requires that 'dateString' be a string, found {type_name(text)}"
                )
            return date_of_text(text, zone, format_text)
        except DateTextProblem as problem:
            if error_closure is None:
                raise MongoFailure(_CONVERSION_FAILURE, f"Error parsing date string '{text}'; {problem}") from None
            result = error_closure(document, variables)
            return MISSING if result is MISSING else result

    return evaluate


OPERATORS: tuple[Operator, ...] = (
    named(
        "$dateToString",
        _compile_to_string,
        required=("date",),
        optional=("format", "timezone", "onNull"),
        not_an_object=18629,
        unknown_field=18534,
        missing_field=18628,
    ),
    named(
        "$dateFromString",
        _compile_from_string,
        required=("dateString",),
        optional=("format", "timezone", "onNull", "onError"),
        not_an_object=40540,
        unknown_field=40541,
        missing_field=40542,
    ),
)
