"""Values as the shell writes them, for messages."""

from __future__ import annotations

import json
from typing import Any

from asterism.values.bson.types import Binary, DatetimeMS, Decimal128, ObjectId, Timestamp

_TEXT_CHARACTERS_MAX = 200


def shell_text(value: Any) -> str:
    """Return a value as text, cut where it is long."""
    text = _text(value)
    return text if len(text) <= _TEXT_CHARACTERS_MAX else text[:_TEXT_CHARACTERS_MAX] + "..."


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, ObjectId):
        return f"ObjectId('{value}')"
    if isinstance(value, Decimal128):
        return f'Decimal128("{value}")'
    if isinstance(value, DatetimeMS):
        return f"new Date({int(value)})"
    if isinstance(value, Timestamp):
        return f"Timestamp({value.time}, {value.inc})"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name}: {_text(member)}" for name, member in value.items()) + " }"
    if isinstance(value, list):
        return "[ " + ", ".join(_text(member) for member in value) + " ]"
    if isinstance(value, (bytes, Binary)):
        return f"BinData({getattr(value, 'subtype', 0)}, {bytes(value).hex().upper()})"
    return str(value)
