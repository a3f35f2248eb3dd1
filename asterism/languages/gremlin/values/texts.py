"""The functions behind the steps of texts. Each takes a text; `on_text` and `on_texts` make steps of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.values.lists import members_of
from asterism.languages.gremlin.values.printing import bounded, text_of
from asterism.languages.gremlin.values.types import class_name

# The white space of Java, which unlike Python's has no spaces that forbid a line break.
_WHITE_SPACE = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)


def on_text(step: str, function: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Return the function of a value that must be a text or null, which stays null."""

    def apply(value: Any) -> Any:
        if isinstance(value, str):
            return function(value)
        if value is None:
            return None
        raise ExecutionFailure(f"The {step}() step can only take string as argument, encountered {class_name(value)}")

    return apply


def on_texts(step: str, function: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Return the function of a text, or of a list whose members are texts or null."""

    def apply(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, str):
            return function(value)
        members = members_of(value)
        if members is None:
            raise _refused(value, "")
        return [member if member is None else apply_member(member) for member in members]

    def apply_member(member: Any) -> Any:
        if isinstance(member, str):
            return function(member)
        raise _refused(member, " in list")

    def _refused(value: Any, place: str) -> ExecutionFailure:
        return ExecutionFailure(
            f"The {step}(local) step can only take string or list of strings, encountered {class_name(value)}{place}"
        )

    return apply


def trim(text: str) -> str:
    return text.strip(_WHITE_SPACE)


def trim_left(text: str) -> str:
    return text.lstrip(_WHITE_SPACE)


def trim_right(text: str) -> str:
    return text.rstrip(_WHITE_SPACE)


def substring(start: int, end: int | None = None) -> Callable[[str], str]:
    """Return the function that cuts a part out of a text; negative places count from its end."""

    def cut(text: str) -> str:
        first = _place(len(text), start)
        if end is None:
            return text[first:]
        return text[first : _place(len(text), end)]

    return cut


def _place(length: int, place: int) -> int:
    return max(0, length + place) if place < 0 else min(place, length)


def split(separator: str | None) -> Callable[[str], list[str]]:
    """Return the function that divides a text: at white space for null, into characters for an empty separator.

    Separators in a row count once, and one at the beginning does not; behind one at the end there is an empty text.
    """

    def divide(text: str) -> list[str]:
        if separator is None:
            return text.split()
        if separator == "":
            return list(text) or [""]
        if not text:
            return []
        *parts, last = text.split(separator)
        return [*(part for part in parts if part), last]

    return divide


def replace(old: str | None, new: str | None) -> Callable[[str], str]:
    """Return the function that replaces a text wherever it is found; null and the empty text are never found."""
    if not old or new is None:
        return lambda text: text

    def change(text: str) -> str:
        bounded(len(text) + text.count(old) * (len(new) - len(old)))
        return text.replace(old, new)

    return change


def reverse(value: Any) -> Any:
    """Return a text or a list backwards; any other value as it is."""
    if isinstance(value, str):
        return value[::-1]
    members = members_of(value)
    return value if members is None else members[::-1]


def concat(value: Any, parts: list[Any]) -> str | None:
    """Return the texts one after the other; null is passed over, and the result if all are null."""
    if value is not None and not isinstance(value, str):
        raise ExecutionFailure(f"String concat() can only take string as argument, encountered {class_name(value)}")
    texts = [] if value is None else [value]
    for part in parts:
        if part is None:
            continue
        if not isinstance(part, str):
            raise ExecutionFailure(f"String concat() can only take string as argument, encountered {class_name(part)}")
        texts.append(part)
    bounded(sum(map(len, texts)))
    return "".join(texts) if texts else None


def as_string(value: Any) -> str:
    """Return a value as a text; null has none."""
    if value is None:
        raise ExecutionFailure("Can't parse null as String.")
    return text_of(value)


def as_strings(value: Any) -> Any:
    """Return the members of a list as texts; any other value as a text."""
    members = None if value is None else members_of(value)
    return as_string(value) if members is None else [as_string(member) for member in members]
