"""The types of properties: what each accepts from JSON, what it is kept as, and how it is compared.

A property is kept as the protocol writes it at the usual metadata level: JSON values as they are for String, Int32,
Boolean and finite Double; a text with a type beside it for the others.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from asterism.apis.table.errors import Refusal, invalid_input, out_of_range, value_too_large
from asterism.apis.table.timestamps import EARLIEST_TICKS, ticks_of, timestamp_text
from asterism.limits import KIB

INT32 = range(-(2**31), 2**31)
INT64 = range(-(2**63), 2**63)

STRING_UTF16_UNITS_MAX: Final = 32 * KIB
BINARY_BYTES_MAX: Final = 64 * KIB

_GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_SERVICE_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,7})?Z", re.ASCII)
_NOT_FINITE: Final = {
    "NaN": "NaN",
    "Infinity": "Infinity",
    "-Infinity": "-Infinity",
    "INF": "Infinity",
    "-INF": "-Infinity",
}
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_WHOLE = re.compile(r"\s*[+-]?\d{1,20}\s*", re.ASCII)


class EdmType(StrEnum):
    STRING = "Edm.String"
    INT32 = "Edm.Int32"
    INT64 = "Edm.Int64"
    DOUBLE = "Edm.Double"
    BOOLEAN = "Edm.Boolean"
    DATETIME = "Edm.DateTime"
    GUID = "Edm.Guid"
    BINARY = "Edm.Binary"


# What a property is kept as: a JSON value.
Kept = str | int | float | bool


def utf16_units(text: str) -> int:
    """The length of a text as the service counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


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
    # A text in the service's own form comes back as it was; any other is written anew, in UTC.
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


# The type in an annotation -> what makes the kept value of what came with it. Texts are read as the type says: clients
# send "12345" for an Int32 that they were given as a text.
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

# The types that JSON itself does not tell; kept, and answered, with an annotation.
ANNOTATED: Final = frozenset({EdmType.INT64.value, EdmType.DATETIME.value, EdmType.GUID.value, EdmType.BINARY.value})


def untyped(name: str, value: object) -> Kept:
    """A value without an annotation: its type is what JSON says."""
    kind = type(value)
    if kind is str:
        return _string(name, value)
    if kind is bool or kind is float:
        return value  # type: ignore[return-value]  # mypy does not follow `kind is`
    if kind is int:
        # Beyond an Int32 a number of JSON is a Double, as for the service: JavaScript has no other (Date.now(), say).
        return value if value in INT32 else float(value)  # type: ignore[arg-type,return-value]  # as above
    raise invalid_input(f"The property '{name[:64]}' is neither a text nor a number nor a Boolean.")


def unknown_type(name: str, told: object) -> Refusal:
    return invalid_input(f"The property '{name[:64]}' has the type '{str(told)[:64]}', which is none of a table's.")


def type_of(kept: object, annotation: str | None) -> EdmType:
    """The type of a kept value."""
    if annotation is not None:
        return EdmType(annotation)
    kind = type(kept)
    if kind is str:
        return EdmType.STRING
    if kind is bool:
        return EdmType.BOOLEAN
    return EdmType.INT32 if kind is int else EdmType.DOUBLE


def size_bytes(kept: object, annotation: str | None) -> int:
    """What a value counts towards the size of its entity: strings in UTF-16, the others by their width."""
    match type_of(kept, annotation):
        case EdmType.STRING:
            return 4 + 2 * utf16_units(str(kept))
        case EdmType.BINARY:
            text = str(kept)
            return 4 + len(text) * 3 // 4 - text.count("=", -2)
        case EdmType.INT32:
            return 4
        case EdmType.BOOLEAN:
            return 1
        case EdmType.GUID:
            return 16
        case _:
            return 8
