"""Values of strings, numbers, dates and durations as texts of Gremlin spell them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from asterism.languages.gremlin.values.numbers import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    BigInteger,
    Byte,
    Float,
    Long,
    Short,
    is_number,
)

# Python refuses to print integers of more than 4,300 digits, so none may enter.
INTEGER_DIGITS_MAX = 3_000
# Java's own limit is 2**31; a decimal of that size takes gigabytes once it is added to another.
DECIMAL_EXPONENT_MAX = 1_000

# A short text must not make a list that fills the memory.
RANGE_MEMBERS_MAX = 10_000

# A single object, so that trees with NaN in them equal themselves.
NAN = math.nan

_ESCAPE = re.compile(r"\\(?:(u+[0-9a-fA-F]{4})|([0-3]?[0-7]{1,2})|(\r?\n)|(.))", re.DOTALL)
_SIMPLE_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "s": " "} | {mark: mark for mark in "\"'\\$/"}
# `"$x"` and `"${x}"`; but a dollar sign within a word, as in names of Java's inner classes, is only a character.
_INTERPOLATION = re.compile(r"(?<![\w\\$])\$(?:\{|[^\W\d])")
_SURROGATE = re.compile("[\ud800-\udfff]")

_NUMBER = re.compile(
    r"([+-]?)(?:0[xX]([0-9a-fA-F][0-9a-fA-F_]*?)([sSnNiIlL]?)"
    r"|(\d[\d_]*)([bBsSnNiIlL]?)"
    r"|((?:\d[\d_]*(?:\.\d[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?)([fFdDmM]?))",
)

_DATE = re.compile(
    r"(\d{4})-(\d{1,2})(?:-(\d{1,2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?"
    r"(Z|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?)?)?)?",
    re.IGNORECASE,
)
_DURATION = re.compile(
    r"([+-]?)P(?:([+-]?\d+)D)?(?:T(?:([+-]?\d+)H)?(?:([+-]?\d+)M)?(?:([+-]?\d+(?:[.,]\d{1,9})?)S)?)?", re.IGNORECASE
)


class LiteralFailure(Exception):
    """A token that looks like a value and is not; the parser adds its place, and a sentence if it lacks one."""


class Interpolation(Exception):
    """A string of Groovy that takes values of variables into it."""


def read_string(token: str) -> str:
    """Return the value of a string with its quotes, which may be three."""
    quote = token[0]
    marks = 3 if token[:3] == quote * 3 else 1
    if len(token) < 2 * marks or token[-marks:] != quote * marks or _ends_in_escape(token, marks):
        raise LiteralFailure(f"Missing {quote * marks}")
    body = token[marks:-marks]
    if quote == '"' and "$" in body and _INTERPOLATION.search(body):
        raise Interpolation
    return with_whole_characters(_ESCAPE.sub(_unescaped, body)) if "\\" in body else body


def _ends_in_escape(token: str, marks: int) -> bool:
    # The lexer takes an unfinished string to the end of the text; its last quote may belong to an escape.
    before = token[:-marks]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _unescaped(match: re.Match[str]) -> str:
    unicode, octal, line_break, simple = match.groups()
    if unicode:
        return chr(int(unicode.lstrip("u"), 16))
    if octal:
        return chr(int(octal, 8))
    if line_break:
        return ""
    value = _SIMPLE_ESCAPES.get(simple)
    if value is None:
        raise LiteralFailure(f"Unexpected escape: '\\{simple}'")
    return value


def with_whole_characters(value: str) -> str:
    r"""Join the halves of characters that were written as two escapes (`\ud83d\ude00`); half of one is refused."""
    if not _SURROGATE.search(value):
        return value
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise LiteralFailure("Unexpected half of a surrogate pair in a string") from None


def _integer(kind: Callable[[int], int], low: int, high: int) -> Callable[[int], int]:
    def convert(value: int) -> int:
        if not low <= value <= high:
            raise LiteralFailure(f"The number {value} is out of the range of its type")
        return kind(value)

    return convert


_INTEGERS: dict[str, Callable[[int], int]] = {
    "": int,
    "i": _integer(int, INT_MIN, INT_MAX),
    "l": _integer(Long, LONG_MIN, LONG_MAX),
    "s": _integer(Short, -(2**15), 2**15 - 1),
    "b": _integer(Byte, -(2**7), 2**7 - 1),
    "n": BigInteger,
}


def read_number(token: str) -> int | float | Decimal:
    """Return a number in the type of its suffix: none, b, s, i, l, n for integers; none, f, d, m for fractions."""
    match = _NUMBER.fullmatch(token)
    if match is None:
        raise LiteralFailure
    sign, hexadecimal, hexadecimal_kind, decimal, decimal_kind, fraction, fraction_kind = match.groups()
    if fraction is not None:
        return _fraction(sign + fraction.replace("_", ""), fraction_kind.lower())
    digits = (hexadecimal or decimal).replace("_", "")
    if len(digits) > INTEGER_DIGITS_MAX:
        raise LiteralFailure(f"A number of {len(digits)} digits is longer than the {INTEGER_DIGITS_MAX} allowed")
    if hexadecimal:
        return _INTEGERS[hexadecimal_kind.lower()](int(sign + digits, 16))
    base = 8 if digits[0] == "0" and len(digits) > 1 else 10
    try:
        value = int(sign + digits, base)
    except ValueError:
        raise LiteralFailure from None
    return _INTEGERS[decimal_kind.lower()](value)


def _fraction(digits: str, kind: str) -> float | Decimal:
    if kind == "m":
        return _decimal(digits)
    value = float(digits)
    return rounded_float(value) if kind == "f" else value


def _decimal(digits: str) -> Decimal:
    if len(digits) > INTEGER_DIGITS_MAX:
        raise LiteralFailure(f"A number of {len(digits)} digits is longer than the {INTEGER_DIGITS_MAX} allowed")
    try:
        value = Decimal(digits)
    except InvalidOperation:
        value = None
    if value is None or abs(value.adjusted()) > DECIMAL_EXPONENT_MAX:
        raise LiteralFailure(f"The exponent of {digits[:40]} is larger than the {DECIMAL_EXPONENT_MAX} allowed")
    return value


def rounded_float(value: float) -> Float:
    """Return the nearest number of 32 bits, or an infinite value if it is too large for them."""
    try:
        return Float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return Float(math.copysign(math.inf, value))


def read_datetime(text: str) -> datetime:
    """Return the date and time of an ISO text; what it leaves out is zero, and its offset that of UTC."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise LiteralFailure(f"The text '{text[:40]}' is not a date, such as '2018-03-22T00:35:44Z'")
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    try:
        moment = datetime(
            int(year),
            int(month),
            int(day or 1),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "").ljust(6, "0")[:6]),
            tzinfo=UTC,
        )
        if offset and offset not in "Zz":
            moment = moment.replace(tzinfo=datetime.strptime(_with_minutes(offset), "%z").tzinfo)
            moment.astimezone(UTC)
    except (ValueError, OverflowError) as refusal:
        raise LiteralFailure(f"The text '{text[:40]}' is not a date: {refusal}") from None
    return moment


def _with_minutes(offset: str) -> str:
    digits = offset.replace(":", "")
    return digits if len(digits) > 3 else digits + "00"


def read_uuid(text: str) -> UUID:
    """Return the UUID of its text."""
    try:
        return UUID(text)
    except ValueError:
        raise LiteralFailure(f"The text '{text[:40]}' is not a UUID") from None


def read_duration(text: str) -> timedelta:
    """Return the duration of an ISO text such as `PT1H30M`."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()[1:]):
        raise LiteralFailure(f"The text '{text[:40]}' is not a duration, such as 'PT1H30M'")
    sign, days, hours, minutes, seconds = match.groups()
    try:
        value = timedelta(
            days=int(days or 0),
            hours=int(hours or 0),
            minutes=int(minutes or 0),
            seconds=float((seconds or "0").replace(",", ".")),
        )
        return -value if sign == "-" else value
    except (ValueError, OverflowError) as refusal:
        raise LiteralFailure(f"The text '{text[:40]}' is not a duration: {refusal}") from None


def range_members(first: Any, last: Any) -> list[Any]:
    """Return the members of a range of integers or of single letters, both ends included."""
    if isinstance(first, str) and isinstance(last, str) and len(first) == len(last) == 1:
        return [chr(code) for code in _inclusive(ord(first), ord(last)) if not 0xD800 <= code <= 0xDFFF]
    if is_number(first) and is_number(last) and isinstance(first, int) and isinstance(last, int):
        return list(_inclusive(first, last))
    raise LiteralFailure("The ends of a range are two integers or two letters")


def _inclusive(first: int, last: int) -> range:
    if abs(last - first) >= RANGE_MEMBERS_MAX:
        raise LiteralFailure(f"A range has more than the {RANGE_MEMBERS_MAX} members allowed")
    return range(int(first), last + 1) if first <= last else range(int(first), last - 1, -1)
