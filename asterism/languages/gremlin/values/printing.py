"""Values as texts in the form of Java's `toString`, as `asString`, `concat`, `format` and keys of maps show them."""

from __future__ import annotations

import math
import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from asterism.languages.gremlin.failure import MemoryExceeded
from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.numbers import Float
from asterism.languages.gremlin.values.results import Path
from asterism.languages.gremlin.values.structures import MapEntry

# Java shows fractions from this size on, and below the other, with an exponent.
_PLAIN_BELOW, _PLAIN_FROM = 1e7, 1e-3

# About the size of the largest document; a few steps can double a text many times.
TEXT_CHARACTERS_MAX = 2_000_000


def bounded(length: int) -> None:
    """Refuse to make a text that is longer than any that can be stored."""
    if length > TEXT_CHARACTERS_MAX:
        raise MemoryExceeded(f"A text of {length} characters is longer than the {TEXT_CHARACTERS_MAX} allowed.")


def text_of(value: Any) -> str:
    """Return a value as a text."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _fraction_text(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, date):
        return date_text(value)
    return _text_of_composite(value)


def _text_of_composite(value: Any) -> str:
    if isinstance(value, list | tuple | set | frozenset):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text_of(key)}={text_of(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, MapEntry):
        return f"{text_of(value.key)}={text_of(value.value)}"
    if isinstance(value, Path):
        return f"path[{', '.join(map(text_of, value.objects))}]"
    if isinstance(value, VertexProperty):
        return f"vp[{value.label}->{_abbreviated(text_of(value.value))}]"
    if isinstance(value, Property):
        return f"p[{value.key}->{_abbreviated(text_of(value.value))}]"
    if isinstance(value, Vertex | Edge):
        return repr(value)
    if isinstance(value, Token):
        return value.name
    return str(value)


def _abbreviated(text: str) -> str:
    # As TinkerPop cuts the values of properties.
    return text if len(text) <= 20 else text[:17] + "..."


def round_to_float(value: float) -> Float:
    """Return the nearest number of 32 bits; infinite if it is too large for them."""
    try:
        return Float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return Float(math.copysign(math.inf, value))


def shortest_digits(value: float) -> str:
    """Return the shortest text that reads back as the number, in Python's notation; a Float has 32 bits."""
    if isinstance(value, Float) and math.isfinite(value):
        for digits in range(1, 10):
            text = f"{float(value):.{digits}g}"
            if round_to_float(float(text)) == value:
                return float.__repr__(float(text))
    return float.__repr__(value)


def _fraction_text(value: float) -> str:
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    digits = shortest_digits(value)
    size = abs(value)
    if value == 0 or _PLAIN_FROM <= size < _PLAIN_BELOW:
        return digits
    sign, figures, exponent = Decimal(digits).normalize().as_tuple()
    assert isinstance(exponent, int), "a finite number"
    text = "".join(map(str, figures))
    power = exponent + len(text) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"


def date_text(value: date) -> str:
    """Return a date in ISO 8601, as short as it can be: seconds and their fraction are left out if they are 0."""
    if not isinstance(value, datetime):
        return f"{value.isoformat()}T00:00Z"
    text = f"{value.date().isoformat()}T{value.hour:02d}:{value.minute:02d}"
    if value.second or value.microsecond:
        text += f":{value.second:02d}"
    if value.microsecond:
        text += f".{value.microsecond:06d}" if value.microsecond % 1000 else f".{value.microsecond // 1000:03d}"
    offset = value.utcoffset()
    if not offset:
        return text + "Z"
    minutes = int(offset / timedelta(minutes=1))
    return f"{text}{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
