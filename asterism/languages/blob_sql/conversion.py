"""Conversions between the types of values. The fields of delimited text are text until an operator needs a number."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Final

from asterism.languages.blob_sql.errors import RecordFault, invalid_conversion
from asterism.languages.blob_sql.tree import Type, Value
from asterism.values.json.text import dumps_parsed

_INTEGER: Final = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")
_FLOAT: Final = re.compile(r"\s*[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?\s*")
_INT64_MAX: Final = 2**63 - 1
_TRUTHS: Final = {"true": True, "false": False, "1": True, "0": False}


def to_number(value: Value) -> int | float:
    if isinstance(value, bool):
        raise invalid_conversion("A boolean stands where a number is needed.")
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        if _INTEGER.fullmatch(value):
            return checked_integer(int(value))
        if _FLOAT.fullmatch(value):
            return float(value)
    raise invalid_conversion()


def checked_integer(value: int) -> int:
    """Return an integer of 64 bits, so that no chain of products takes memory without limit."""
    if not -_INT64_MAX - 1 <= value <= _INT64_MAX:
        raise RecordFault("ArithmeticOverflow", "The number does not fit into 64 bits.")
    return value


def to_boolean(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return value != 0
    if isinstance(value, str) and value.strip().lower() in _TRUTHS:
        return _TRUTHS[value.strip().lower()]
    raise invalid_conversion()


def to_timestamp(value: Value) -> datetime:
    """Return a time of ISO 8601; one without offset is in UTC."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value.strip())
        except ValueError:
            raise invalid_conversion() from None
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found
    raise invalid_conversion()


def to_text(value: Value) -> str:
    """Return the text of a value, as casts make it and as delimited text shows it. NULL has the empty text."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
        case int():
            return str(value)
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case _:
            return dumps_parsed(value).decode("utf-8")


def cast(value: Value, target: Type) -> Value:
    if value is None:
        return None
    match target:
        case Type.INTEGER:
            return _to_integer(value)
        case Type.FLOAT:
            return _to_float(value)
        case Type.STRING:
            return to_text(value)
        case Type.BOOLEAN:
            return to_boolean(value)
        case Type.TIMESTAMP:
            return to_timestamp(value)


def _to_integer(value: Value) -> int:
    number = int(value) if isinstance(value, bool) else to_number(value)
    if isinstance(number, float) and not math.isfinite(number):
        raise invalid_conversion()
    return checked_integer(int(number))


def _to_float(value: Value) -> float:
    try:
        return float(value if isinstance(value, bool) else to_number(value))
    except OverflowError:
        raise invalid_conversion() from None
