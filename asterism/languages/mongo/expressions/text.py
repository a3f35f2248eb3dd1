"""Text as expressions see it: values that count as text, and the size that a text must stay below."""

from __future__ import annotations

import math
from typing import Any, Final

from asterism.languages.mongo.expressions import calendar
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import MISSING, Code, DatetimeMS, Decimal128, Timestamp

# Text of this many bytes or more does not fit a document, and is refused wherever it arises, constants included.
TEXT_BYTES_MAX: Final = 16 * 1024 * 1024

_TEXT_TOO_LARGE = 16493
_NOT_TEXT = 16007


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def is_too_large(text: str) -> bool:
    # No character needs more than four bytes, so that short text is not encoded.
    return len(text) * 4 >= TEXT_BYTES_MAX and byte_length(text) >= TEXT_BYTES_MAX


def checked(text: str) -> str:
    """Return the text, or refuse it for its size."""
    if is_too_large(text):
        raise MongoFailure(_TEXT_TOO_LARGE, "text of more than 16 megabytes cannot be a value")
    return text


def is_absent(value: Any) -> bool:
    return value is None or value is MISSING


def text_of(value: Any) -> str:
    """The text that string operators take a value for: numbers and times count, null is empty."""
    kind = type(value)
    if kind is str:
        return str(value)
    if is_absent(value):
        return ""
    if kind is float:
        return short_double_text(value)
    if isinstance(value, int) and kind is not bool:
        return str(int(value))
    if kind is Decimal128:
        return str(value)
    if kind is DatetimeMS:
        return date_text(int(value))
    if kind is Timestamp:
        return _timestamp_text(value)
    if kind is Code and value.scope is None:
        return str(value)
    raise MongoFailure(_NOT_TEXT, f"can't convert from BSON type {type_name(value)} to String")


def short_double_text(value: float) -> str:
    """Six significant digits, as `%g` prints them: the form that string operators see (not `$toString`)."""
    return f"{value:g}"


def exact_double_text(value: float) -> str:
    """The shortest text that reads back as the same double: the form of `$toString`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    text = repr(value)
    return text.removesuffix(".0")


def date_text(milliseconds: int) -> str:
    """A date in ISO form, in UTC."""
    moment = calendar.moment_of(milliseconds)
    if not 0 <= moment.year <= calendar.YEAR_PRINTED_MAX:
        raise MongoFailure(18537, f"$dateToString is only defined on year 0-9999, tried to use year {moment.year}")
    return (
        f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
        f"T{moment.hour:02}:{moment.minute:02}:{moment.second:02}.{moment.millisecond:03}Z"
    )


def _timestamp_text(value: Timestamp) -> str:
    moment = calendar.moment_of(value.time * 1000)
    month = calendar.MONTH_NAMES[moment.month - 1][:3]
    return f"{month} {moment.day:2} {moment.hour:02}:{moment.minute:02}:{moment.second:02}:{value.inc}"
