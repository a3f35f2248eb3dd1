"""The functions of queries. A function of NULL is NULL, except for COALESCE and NULLIF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from asterism.languages.blob_sql.comparison import compare
from asterism.languages.blob_sql.conversion import to_number, to_text
from asterism.languages.blob_sql.errors import invalid_conversion
from asterism.languages.blob_sql.tree import Value


@dataclass(frozen=True, slots=True)
class Function:
    """`counts` are the numbers of arguments that it takes."""

    counts: range
    apply: Callable[[Sequence[Value]], Value]
    takes_null: bool = False


def _text(value: Value) -> str:
    if isinstance(value, (list, dict)):
        raise invalid_conversion()
    return to_text(value)


def _whole(value: Value) -> int:
    number = to_number(value)
    if number != number // 1:
        raise invalid_conversion("A whole number is needed.")
    return int(number)


def _substring(arguments: Sequence[Value]) -> Value:
    """Return a part of a text; the first character is number 1, and a start before it takes from the length."""
    text, start = _text(arguments[0]), _whole(arguments[1])
    end = start + _whole(arguments[2]) if len(arguments) == 3 else len(text) + 1
    if end < start:
        raise invalid_conversion("The length of SUBSTRING is negative.")
    return text[max(start - 1, 0) : max(end - 1, 0)]


def _trim(arguments: Sequence[Value]) -> Value:
    side, characters, text = (_text(argument) for argument in arguments)
    if side != "TRAILING":
        text = text.lstrip(characters)
    return text if side == "LEADING" else text.rstrip(characters)


def _coalesce(arguments: Sequence[Value]) -> Value:
    return next((argument for argument in arguments if argument is not None), None)


def _null_if(arguments: Sequence[Value]) -> Value:
    left, right = arguments
    return None if compare("=", left, right) else left


FUNCTIONS: Final[dict[str, Function]] = {
    "LOWER": Function(range(1, 2), lambda arguments: _text(arguments[0]).lower()),
    "UPPER": Function(range(1, 2), lambda arguments: _text(arguments[0]).upper()),
    "CHAR_LENGTH": Function(range(1, 2), lambda arguments: len(_text(arguments[0]))),
    "CHARACTER_LENGTH": Function(range(1, 2), lambda arguments: len(_text(arguments[0]))),
    "SUBSTRING": Function(range(2, 4), _substring),
    "TRIM": Function(range(3, 4), _trim),
    "COALESCE": Function(range(1, 101), _coalesce, takes_null=True),
    "NULLIF": Function(range(2, 3), _null_if, takes_null=True),
}
