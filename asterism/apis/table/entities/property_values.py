"""The values of properties in a request: read as their type says, checked, and turned into what is kept."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from typing import Final

from asterism.apis.storage.refusals import Refusal, invalid_input
from asterism.apis.table.errors import out_of_range, value_too_large
from asterism.models.tables.property_types import (
    BINARY_BYTES_MAX,
    INT32,
    INT64,
    STRING_UTF16_UNITS_MAX,
    EdmType,
    Kept,
    utf16_units,
)
from asterism.values.ticks import EARLIEST_TICKS, ticks_of, timestamp_text

_GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_SERVICE_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,7})?Z", re.ASCII)
_NOT_FINITE: Final = {
    "NaN": "NaN",
    "Infinity": "Infinity",
    "-Infinity": "-Infinity",
    "INF": "Infinity",
    "-INF": "-Infinity",
}
# Every digit fits a single part of the pattern: with two, a long text that is not a number would be tried for minutes.
_NUMBER = re.compile(r"\s*[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_WHOLE = re.compile(r"\s*[+-]?\d{1,20}\s*", re.ASCII)


def _string(name: str, value: object) -> Kept:
    if type(value) is not str:
        raise invalid_input(f"The property '{name[:64]}' is not a text, as its type says.")
    if len(value) > STRING_UTF16_UNITS_MAX // 2 and utf16_units(value) > STRING_UTF16_UNITS_MAX:
        raise value_too_large()
    return value


def _whole(name: str, value: object, allowed: range) -> int:
    if type(value) is str and _WHOLE.fullmatch(value):
        value = int(value)
    if type(value) is not int or value not in allowed:
        raise invalid_input(f"The property '{name[:64]}' is not a whole number of its type.")
    return value


def _int32(name: str, value: object) -> Kept:
    return _whole(name, value, INT32)


def _int64(name: str, value: object) -> Kept:
    return str(_whole(name, value, INT64))


def _double(name: str, value: object) -> Kept:
    if type(value) is str:
        if value in _NOT_FINITE:
            return _NOT_FINITE[value]
        if not _NUMBER.fullmatch(value):
            raise invalid_input(f"The property '{name[:64]}' is not a number.")
        value = float(value)
    if type(value) is bool or not isinstance(value, int | float):
        raise invalid_input(f"The property '{name[:64]}' is not a number.")
    number = float(value)
    if math.isfinite(number):
        return number
    return "Infinity" if number > 0 else "-Infinity"


def _boolean(name: str, value: object) -> Kept:
    if type(value) is bool:
        return value
    if type(value) is str and value.lower() in ("true", "false", "1", "0"):
        return value.lower() in ("true", "1")
    if type(value) is int and value in (0, 1):
        return bool(value)
    raise invalid_input(f"The property '{name[:64]}' is not a Boolean.")


def _datetime(name: str, value: object) -> Kept:
    ticks = ticks_of(value) if type(value) is str else None
    if type(value) is not str or ticks is None:
        raise invalid_input(f"The property '{name[:64]}' is not a DateTime.")
    if ticks < EARLIEST_TICKS:
        raise out_of_range(name, value)
    # A text in the service's own form is kept as it is; any other is rewritten in UTC.
    if _SERVICE_MOMENT.fullmatch(value):
        return value
    return timestamp_text(ticks)


def _guid(name: str, value: object) -> Kept:
    if type(value) is not str or not _GUID.fullmatch(value):
        raise invalid_input(f"The property '{name[:64]}' is not a Guid.")
    return value.lower()


def _binary(name: str, value: object) -> Kept:
    try:
        content = base64.b64decode(value, validate=True) if type(value) is str else None
    except (binascii.Error, ValueError):
        content = None
    if type(value) is not str or content is None:
        raise invalid_input(f"The property '{name[:64]}' is not base64 text.")
    if len(content) > BINARY_BYTES_MAX:
        raise value_too_large()
    return value


# The type in an annotation -> the function that turns the given value into the kept one. Texts are read as the type
# says: clients send "12345" for an Int32 that they received as a text.
READERS: Final[dict[str, Callable[[str, object], Kept]]] = {
    EdmType.STRING.value: _string,
    EdmType.INT32.value: _int32,
    EdmType.INT64.value: _int64,
    EdmType.DOUBLE.value: _double,
    EdmType.BOOLEAN.value: _boolean,
    EdmType.DATETIME.value: _datetime,
    EdmType.GUID.value: _guid,
    EdmType.BINARY.value: _binary,
}


def untyped(name: str, value: object) -> Kept:
    """Check a value without an annotation, whose type is that of the JSON value."""
    kind = type(value)
    if kind is str:
        return _string(name, value)
    if kind is bool or kind is float:
        return value  # type: ignore[return-value]  # mypy does not follow `kind is`
    if kind is int:
        # Beyond an Int32 a number of JSON is a Double, as for the service: JavaScript has no other (Date.now(), say).
        return value if value in INT32 else float(value)  # type: ignore[arg-type,return-value]  # as above
    raise invalid_input(f"The property '{name[:64]}' is neither a text nor a number nor a Boolean.")


def unknown_type(name: str, annotation: object) -> Refusal:
    return invalid_input(f"The property '{name[:64]}' has the type '{str(annotation)[:64]}', which tables do not have.")
