"""JSON as text: the one place that knows which library reads and writes it.

Strict both ways. Not-a-number, infinities and lone surrogates are refused; of two equal keys in an object the last one
counts, as in the service.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import orjson

from asterism.errors import MalformedRequest, StoredDamage

# What the library can write as it is; larger whole numbers are written as the doubles that JSON numbers are.
_WRITABLE_INTEGERS = range(-(2**63), 2**64)


# For loops over stored items: what `loads_stored` does, without its call. `NotJson` is then the caller's to catch.
parse_stored: Callable[[bytes], Any] = orjson.loads
NotJson = orjson.JSONDecodeError


def loads(text: bytes | str) -> object:
    """The value that `text` spells; MalformedRequest says what is wrong and at which character."""
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise MalformedRequest(reason=f"The text is not valid JSON: {error}.") from None
    return value


def loads_stored(text: bytes, *, key: str = "") -> object:
    """The value of JSON that this program has written; StoredDamage, with the `key` it lies under, if it is none."""
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise unreadable(text, key=key) from None
    return value


def unreadable(text: bytes, *, key: str = "") -> StoredDamage:
    """The damage of a stored text; callers that know its key find it by the error's `value`."""
    damage = StoredDamage(what="JSON", key=key)
    damage.value = text
    return damage


def dumps(value: object) -> bytes:
    """Compact UTF-8 JSON of `value`; MalformedRequest when it holds something that JSON cannot say."""
    try:
        text = orjson.dumps(value)
    except TypeError:
        text = _dumps_with_large_integers(value)
    # The library writes null for a number that is not finite; only then is the walk worth its time.
    if b"null" in text and _holds_non_finite_number(value):
        raise MalformedRequest(reason="JSON has no text for a number that is infinite or not a number.")
    return text


def _dumps_with_large_integers(value: object) -> bytes:
    try:
        return orjson.dumps(_large_integers_as_doubles(value))
    except (TypeError, OverflowError) as error:
        raise MalformedRequest(reason=f"The value cannot be written as JSON: {error}.") from None


def _large_integers_as_doubles(value: object) -> object:
    match value:
        case bool():
            return value
        case int() if value not in _WRITABLE_INTEGERS:
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
