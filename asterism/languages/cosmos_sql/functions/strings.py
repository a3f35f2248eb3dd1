"""Functions of strings. A character is a Unicode code point; case is changed character by character."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from asterism.languages.cosmos_sql.compiling.semantics import is_number
from asterism.languages.cosmos_sql.functions.arguments import (
    RESULT_CHARACTERS_MAX,
    Run,
    all_hold,
    any_holds,
    bounded_text,
    integer_of,
    of_strings,
)
from asterism.languages.cosmos_sql.functions.function import ANY_NUMBER, Function
from asterism.reading.turns import pause
from asterism.values.undefined import UNDEFINED

# The service documents this limit: longer results are undefined.
_REPLICATE_CHARACTERS_MAX = 10_000
_CHARACTERS_BETWEEN_PAUSES = 10_000


# --- case -----------------------------------------------------------------------------------------------------------


def lower(text: str) -> str:
    changed = text.lower()
    # Python maps some characters to two, and a sigma by its neighbors; the service does not.
    if len(changed) == len(text) and "Σ" not in text:
        return changed
    return _each_character(text, str.lower)


def upper(text: str) -> str:
    changed = text.upper()
    if len(changed) == len(text):
        return changed
    return _each_character(text, str.upper)


def _each_character(text: str, change: Callable[[str], str]) -> str:
    parts = []
    for start in range(0, len(text), _CHARACTERS_BETWEEN_PAUSES):
        pause()
        characters = text[start : start + _CHARACTERS_BETWEEN_PAUSES]
        parts.append("".join([_single(change(character), character) for character in characters]))
    return "".join(parts)


def _single(changed: str, character: str) -> str:
    return changed if len(changed) == 1 else character


# --- search ---------------------------------------------------------------------------------------------------------


def _search(holds: Callable[[str, str], bool]) -> Function:
    """Return a test of two strings, with an optional third argument that makes it ignore case."""

    def run(text: object, sought: object, ignore_case: object = False) -> object:
        if type(text) is not str or type(sought) is not str or type(ignore_case) is not bool:
            return UNDEFINED
        return holds(lower(text), lower(sought)) if ignore_case else holds(text, sought)

    return Function(2, 3, run)


def _search_each(combine: Callable[[list[object]], object], *, ignore_case: bool) -> Function:
    """Return CONTAINS for several strings, combined by AND or OR."""

    def run(text: object, *sought: object) -> object:
        if type(text) is not str:
            return UNDEFINED
        searched = lower(text) if ignore_case else text
        found = []
        for part in sought:
            pause()
            found.append(_is_within(searched, part, ignore_case=ignore_case))
        return combine(found)

    return Function(2, ANY_NUMBER, run)


def _is_within(text: str, sought: object, *, ignore_case: bool) -> object:
    if type(sought) is not str:
        return UNDEFINED
    return (lower(sought) if ignore_case else sought) in text


def _index_of(text: object, sought: object, start: object = 0) -> object:
    first = integer_of(start)
    if type(text) is not str or type(sought) is not str or first is None:
        return UNDEFINED
    return text.find(sought, max(first, 0))


def _last_index_of(text: object, sought: object, end: object = RESULT_CHARACTERS_MAX) -> object:
    """Return the last occurrence that ends at or before the position `end`."""
    last = integer_of(end)
    if type(text) is not str or type(sought) is not str or last is None:
        return UNDEFINED
    return text.rfind(sought, 0, max(last + 1, 0))


# --- parts ----------------------------------------------------------------------------------------------------------


def _substring(text: object, start: object, length: object) -> object:
    if type(text) is not str or not is_number(start) or not is_number(length):
        return UNDEFINED
    if not text:
        return ""
    first, count = integer_of(start), integer_of(length)
    if first is None or count is None:
        return UNDEFINED
    return text[first : first + count] if first >= 0 and count > 0 else ""


def _left(text: object, length: object) -> object:
    return _substring(text, 0, length)


def _right(text: object, length: object) -> object:
    count = integer_of(length)
    if type(text) is not str or count is None:
        return UNDEFINED
    return text[max(len(text) - count, 0) :]


def _part(find: Callable[[str, str], int], *, before: bool) -> Function:
    """Return a function of the text before or after a delimiter; undefined if the delimiter is not found."""

    def run(text: str, delimiter: str) -> object:
        position = find(text, delimiter)
        if position < 0:
            return UNDEFINED
        return text[:position] if before else text[position + len(delimiter) :]

    return Function(2, 2, of_strings(run))


def _trim(strip: Callable[[str, str | None], str]) -> Function:
    """Return a function whose second argument is a set of characters to strip; by default, white space."""

    def run(text: str, characters: str | None = None) -> object:
        return strip(text, characters)

    return Function(1, 2, of_strings(run))


def _split(text: str, separator: str) -> object:
    return text.split(separator) if separator else [text]


# --- new strings ----------------------------------------------------------------------------------------------------


def _replace(text: str, sought: str, replacement: str) -> object:
    if not sought:
        return UNDEFINED
    growth = max(len(replacement) - len(sought), 0)
    if growth and len(text) + text.count(sought) * growth > RESULT_CHARACTERS_MAX:
        return UNDEFINED
    return text.replace(sought, replacement)


def _replicate(text: object, count: object) -> object:
    """Repeat a text; the fraction of `count` is dropped."""
    if type(text) is not str or not isinstance(count, int | float) or type(count) is bool:
        return UNDEFINED
    # Also false for NaN.
    if not 0 <= count * len(text) <= _REPLICATE_CHARACTERS_MAX or not 0 <= count < float("inf"):
        return UNDEFINED
    return text * int(count) if text else ""


def _join(elements: object, separator: object) -> object:
    if type(elements) is not list or type(separator) is not str:
        return UNDEFINED
    return bounded_text(elements, separator) if all(type(element) is str for element in elements) else UNDEFINED


def _texts(low: int, high: int, run: Run) -> Function:
    return Function(low, high, of_strings(run))


STRING_FUNCTIONS: Final[dict[str, Function]] = {
    "CONCAT": _texts(2, ANY_NUMBER, lambda *parts: bounded_text(list(parts))),
    "CONTAINS": _search(lambda text, sought: sought in text),
    "CONTAINS_ALL_CI": _search_each(all_hold, ignore_case=True),
    "CONTAINS_ALL_CS": _search_each(all_hold, ignore_case=False),
    "CONTAINS_ANY_CI": _search_each(any_holds, ignore_case=True),
    "CONTAINS_ANY_CS": _search_each(any_holds, ignore_case=False),
    "ENDSWITH": _search(str.endswith),
    "INDEX_OF": Function(2, 3, _index_of),
    "LASTINDEXOF": Function(2, 3, _last_index_of),
    "LASTSUBSTRINGAFTER": _part(str.rfind, before=False),
    "LASTSUBSTRINGBEFORE": _part(str.rfind, before=True),
    "LEFT": Function(2, 2, _left),
    "LENGTH": _texts(1, 1, len),
    "LOWER": _texts(1, 1, lower),
    "LTRIM": _trim(str.lstrip),
    "REPLACE": _texts(3, 3, _replace),
    "REPLICATE": Function(2, 2, _replicate),
    "REVERSE": _texts(1, 1, lambda text: text[::-1]),
    "RIGHT": Function(2, 2, _right),
    "RTRIM": _trim(str.rstrip),
    "STARTSWITH": _search(str.startswith),
    "STRINGEQUALS": _search(str.__eq__),
    "STRINGJOIN": Function(2, 2, _join),
    "STRINGSPLIT": _texts(2, 2, _split),
    "SUBSTRING": Function(3, 3, _substring),
    "SUBSTRINGAFTER": _part(str.find, before=False),
    "SUBSTRINGBEFORE": _part(str.find, before=True),
    "TRIM": _trim(str.strip),
    "UPPER": _texts(1, 1, upper),
}
