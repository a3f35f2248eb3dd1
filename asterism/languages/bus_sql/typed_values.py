"""Values of rules as descriptions have them: the name of a type of XML Schema, and a text."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, cast

from asterism.languages.bus_sql.errors import MalformedRule
from asterism.languages.bus_sql.values import Span
from asterism.values.amqp.types import Byte, Char, Float, Int, Short, Timestamp, UByte, UInt, ULong, UShort, Uuid

_TEXT_SHOWN_MAX: Final = 40
_TICKS_PER_SECOND: Final = 10_000_000
# The longest time that .NET has: some 29,000 years, which stand for "without limit".
_TICKS_MAX: Final = 2**63 - 1
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_DURATION: Final = re.compile(
    r"(?P<sign>-?)P(?:(?P<days>\d{1,8})D)?"
    r"(?:T(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,10})(?P<fraction>\.\d{1,9})?S)?)?"
)
_GUID: Final = re.compile(r"\{?([0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12})\}?")


def typed_value(name: str, kind: str, text: str) -> Any:
    """Return the value of a parameter or property of a rule; MalformedRule if the text is not of the type."""
    read = _READERS.get(kind)
    if read is None:
        raise MalformedRule(reason=f"'{kind[:_TEXT_SHOWN_MAX]}' is not a type that '{name}' can have.")
    try:
        return read(text)
    except (ValueError, OverflowError):
        raise MalformedRule(
            reason=f"The value of '{name}' is not of the type {kind}: '{text[:_TEXT_SHOWN_MAX]}'."
        ) from None


def duration_ticks(text: str) -> int:
    """Return a duration of days, hours, minutes and seconds, as `P1DT2H3M4.5S`, in units of 100 ns; ValueError for any
    other text."""
    found = _DURATION.fullmatch(text)
    if found is None or text.endswith(("P", "T")):
        raise ValueError(text)
    whole = 0
    for part, seconds in (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1)):
        whole += int(found[part] or 0) * seconds
    fraction = (found["fraction"] or ".0")[1:8].ljust(7, "0")
    ticks = whole * _TICKS_PER_SECOND + int(fraction)
    if ticks > _TICKS_MAX:
        raise ValueError(text)
    return -ticks if found["sign"] else ticks


def _integer(kind: type, bits: int, *, is_signed: bool = True) -> Callable[[str], int]:
    least = -(2 ** (bits - 1)) if is_signed else 0
    most = 2 ** (bits - 1) - 1 if is_signed else 2**bits - 1

    def read(text: str) -> int:
        if _INTEGER.fullmatch(text.strip()) is None or not least <= int(text) <= most:
            raise ValueError(text)
        return cast(int, kind(int(text)))

    return read


def _boolean(text: str) -> bool:
    found = {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower())
    if found is None:
        raise ValueError(text)
    return found


def _double(text: str) -> float:
    value = float(text.replace("INF", "inf"))
    if math.isnan(value):
        raise ValueError(text)
    return value


def _moment(text: str) -> Timestamp:
    moment = datetime.fromisoformat(text.strip())
    return Timestamp(math.floor((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))


def _guid(text: str) -> Uuid:
    found = _GUID.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return Uuid(bytes.fromhex(found[1].replace("-", "")))


def _char(text: str) -> Char:
    if len(text) == 1:
        return Char(text)
    # The serializer of .NET writes the number of the character.
    if text.isascii() and text.isdigit() and len(text) <= 7:
        return Char(chr(int(text)))
    raise ValueError(text)


def _binary(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(text) from None


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "string": str,
    "anyURI": str,
    "boolean": _boolean,
    "byte": _integer(Byte, 8),
    "short": _integer(Short, 16),
    "int": _integer(Int, 32),
    "long": _integer(int, 64),
    "unsignedByte": _integer(UByte, 8, is_signed=False),
    "unsignedShort": _integer(UShort, 16, is_signed=False),
    "unsignedInt": _integer(UInt, 32, is_signed=False),
    "unsignedLong": _integer(ULong, 64, is_signed=False),
    "float": lambda text: Float(_double(text)),
    "double": _double,
    "decimal": _double,
    "dateTime": _moment,
    "duration": lambda text: Span(duration_ticks(text)),
    "guid": _guid,
    "char": _char,
    "base64Binary": _binary,
}
