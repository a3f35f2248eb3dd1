"""AMQP values and bodies as JSON for people: readable first, exact where they cannot be."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Any, Final

from asterism.errors import AsterismError
from asterism.values.amqp.types import Described, Timestamp, Uuid
from asterism.values.json.text import dumps, loads

# Of a body in an answer: a page of messages stays readable, and its size bounded.
BODY_CHARACTERS_MAX: Final = 32 * 1024
# Characters that hold no text apart from these make a body binary.
_WHITE: Final = "\t\n\r"
_DEPTH_MAX: Final = 32
# Of JSON, whose readers keep doubles.
_EXACT_INTEGER_MAX: Final = 2**53


def describe_value(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON: numbers and texts as they are, moments and ids as text, bytes as hexadecimal digits."""
    if depth > _DEPTH_MAX:
        return "…"
    match value:
        case None | bool():
            return value
        case Timestamp():
            return moment_text(int(value))
        case Uuid():
            return uuid_text(bytes(value))
        case Described(descriptor, inner):
            return {
                "descriptor": describe_value(descriptor, depth + 1),
                "value": describe_value(inner, depth + 1),
            }
        case str():
            return str(value)
        case int():
            return int(value) if abs(value) <= _EXACT_INTEGER_MAX else str(int(value))
        case float():
            return float(value) if math.isfinite(value) else str(float(value))
        case bytes() | bytearray() | memoryview():
            return {"hex": bytes(value).hex()}
        case Mapping():
            return {_key_text(key): describe_value(each, depth + 1) for key, each in value.items()}
        case list() | tuple():
            return [describe_value(each, depth + 1) for each in value]
        case _:
            return str(value)


def _key_text(key: Any) -> str:
    if isinstance(key, str):
        return str(key)
    shown = describe_value(key)
    return shown if isinstance(shown, str) else dumps(shown).decode()


def moment_text(milliseconds: int) -> str:
    """Return a moment as ISO 8601 in UTC; one beyond the calendar as its milliseconds."""
    try:
        moment = datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def uuid_text(value: bytes) -> str:
    digits = value.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def describe_body(body: Any) -> dict[str, Any]:
    """Return a body with its kind: `json`, `text`, `hex`, or `empty`; long ones are cut."""
    if body is None:
        return _body("empty", "", 0)
    if isinstance(body, bytes | bytearray | memoryview) and not isinstance(body, Uuid):
        return _describe_bytes(bytes(body))
    if isinstance(body, str):
        return _describe_text(str(body), len(body.encode("utf-8", "surrogatepass")))
    text = dumps(describe_value(body)).decode()
    return _body("json", text, len(text.encode()))


def _describe_bytes(data: bytes) -> dict[str, Any]:
    if not data:
        return _body("empty", "", 0)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _body("hex", data[: BODY_CHARACTERS_MAX // 2 + 1].hex(), len(data))
    if all(character.isprintable() or character in _WHITE for character in text[:BODY_CHARACTERS_MAX]):
        return _describe_text(text, len(data))
    return _body("hex", data[: BODY_CHARACTERS_MAX // 2 + 1].hex(), len(data))


def _describe_text(text: str, size: int) -> dict[str, Any]:
    return _body("json" if _is_json_container(text) else "text", text, size)


def _is_json_container(text: str) -> bool:
    """Return True for an object or a list; a lone number or word is a text like others."""
    if text.lstrip()[:1] not in ("{", "[") or len(text) > BODY_CHARACTERS_MAX:
        return False
    try:
        loads(text)
    except AsterismError:
        return False
    return True


def _body(kind: str, text: str, size: int) -> dict[str, Any]:
    return {
        "kind": kind,
        "text": text[:BODY_CHARACTERS_MAX],
        "bytes": size,
        "is_cut": len(text) > BODY_CHARACTERS_MAX,
    }
