"""JSON as text: the only module that names the library that reads and writes it.

Strict both ways. Not-a-number, infinities and lone surrogates are refused; of equal keys in an object the last counts,
as in the service.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import orjson

from asterism.errors import MalformedRequest, StoredDamage

# Integers that the library writes exactly; larger ones are written as doubles, as JSON numbers are.
_WRITABLE_MIN, _WRITABLE_MAX = -(2**63), 2**64 - 1


# For loops over stored items: `loads_stored` without its call. The caller must then catch `NotJson`.
parse_stored: Callable[[bytes], Any] = orjson.loads
NotJson = orjson.JSONDecodeError


def loads(text: bytes | str) -> object:
    """Parse JSON text; MalformedRequest states the error and its position."""
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise MalformedRequest(reason=f"The text is not valid JSON: {error}.") from None
    return value


def loads_stored(text: bytes, *, key: str = "") -> object:
    """Parse JSON that this program has written; StoredDamage, with the `key` of the text, if it is not valid."""
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise unreadable(text, key=key) from None
    return value


def unreadable(text: bytes, *, key: str = "") -> StoredDamage:
    """Return the error for a damaged stored text; callers that know its key find it by the error's `value`."""
    damage = StoredDamage(what="JSON", key=key)
    damage.value = text
    return damage


def dumps(value: object) -> bytes:
    """Return compact UTF-8 JSON; MalformedRequest if `value` contains something that JSON cannot represent."""
    try:
        text = orjson.dumps(value)
    except TypeError:
        text = _dumps_with_large_integers(value)
    # The library writes null for a number that is not finite; only then is the walk worth its time.
    if b"null" in text and _holds_non_finite_number(value):
        raise MalformedRequest(reason="JSON cannot represent a number that is infinite or not a number.")
    return text


def dumps_parsed(value: object) -> bytes:
    """Return compact UTF-8 JSON of a value that was parsed from JSON, which has only finite numbers. `dumps` looks for
    others, which takes twice as long as the writing."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _dumps_with_large_integers(value)


def _dumps_with_large_integers(value: object) -> bytes:
    try:
        return orjson.dumps(_large_integers_as_doubles(value))
    except (TypeError, OverflowError) as error:
        raise MalformedRequest(reason=f"The value cannot be written as JSON: {error}.") from None


def _large_integers_as_doubles(value: object) -> object:
    match value:
        case bool():
            return value
        # No test with a `range`, which for kinds of integers compares number by number.
        case int() if not _WRITABLE_MIN <= value <= _WRITABLE_MAX:
            return float(value)
        case list():
            return [_large_integers_as_doubles(element) for element in value]
        case dict():
            return {name: _large_integers_as_doubles(held) for name, held in value.items()}
        case _:
            return value


def _holds_non_finite_number(value: object) -> bool:
    waiting: list[Any] = [value]
    while waiting:
        current = waiting.pop()
        kind = type(current)
        if kind is dict:
            waiting.extend(current.values())
        elif kind is list:
            waiting.extend(current)
        elif kind is float and not math.isfinite(current):
            return True
    return False
