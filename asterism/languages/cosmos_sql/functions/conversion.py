"""Conversion of strings to values and back. Strings are read as strict JSON; values are written as in JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql.compiling.semantics import is_number, json_number
from asterism.languages.cosmos_sql.functions.arguments import RESULT_CHARACTERS_MAX
from asterism.languages.cosmos_sql.functions.function import Function
from asterism.limits import ITEM_NESTING_LEVELS_MAX
from asterism.values.item import check_nesting
from asterism.values.json import text as json_text
from asterism.values.number_text import number_text
from asterism.values.undefined import UNDEFINED


def _parse(text: object, accepts: Callable[[object], bool]) -> object:
    if type(text) is not str:
        return UNDEFINED
    try:
        value = json_text.loads(text)
        check_nesting(value, levels_max=ITEM_NESTING_LEVELS_MAX)
    except MalformedRequest:
        return UNDEFINED
    return value if accepts(value) else UNDEFINED


def _parser(accepts: Callable[[object], bool]) -> Function:
    return Function(1, 1, lambda text: _parse(text, accepts))


def _to_number(text: object) -> object:
    number = _parse(text, is_number)
    return json_number(number) if type(number) is float else number


class _TooLarge(Exception):
    """The text would be longer, or the value is nested deeper, than an item can be."""


class _Writer:
    """Writes one value. Parts of a value may be shared, so its text can be far larger than the value in memory."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = RESULT_CHARACTERS_MAX

    def text(self) -> str:
        return "".join(self._parts)

    def write(self, value: object, level: int = 0) -> None:
        kind = type(value)
        if level > ITEM_NESTING_LEVELS_MAX:
            raise _TooLarge
        if kind is dict:
            members = cast("dict[str, object]", value).items()
            self._write_all("{", "}", [(f"{_quote(name)}:", member) for name, member in members], level)
        elif kind is list:
            self._write_all("[", "]", [("", member) for member in cast("list[object]", value)], level)
        else:
            self._add(_quote(value) if isinstance(value, str) else scalar_text(value))

    def _write_all(self, opening: str, closing: str, members: list[tuple[str, object]], level: int) -> None:
        self._add(opening)
        for index, (label, member) in enumerate(members):
            self._add(f",{label}" if index else label)
            self.write(member, level + 1)
        self._add(closing)

    def _add(self, part: str) -> None:
        self._room -= len(part)
        if self._room < 0:
            raise _TooLarge
        self._parts.append(part)


def _quote(text: str) -> str:
    return json_text.dumps(text).decode()


def scalar_text(value: object) -> str:
    """Return the text of null, a boolean or a number."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(cast(float, value))


def _to_string(value: object) -> object:
    if value is UNDEFINED or type(value) is str:
        return value
    writer = _Writer()
    try:
        writer.write(value)
    except (_TooLarge, MalformedRequest, OverflowError):
        return UNDEFINED
    return writer.text()


CONVERSION_FUNCTIONS: Final[dict[str, Function]] = {
    "STRINGTOARRAY": _parser(lambda value: type(value) is list),
    "STRINGTOBOOLEAN": _parser(lambda value: type(value) is bool),
    "STRINGTONULL": _parser(lambda value: value is None),
    "STRINGTONUMBER": Function(1, 1, _to_number),
    "STRINGTOOBJECT": _parser(lambda value: type(value) is dict),
    "TOSTRING": Function(1, 1, _to_string),
}
