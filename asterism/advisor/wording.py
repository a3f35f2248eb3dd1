"""Amounts and keys in the words of a sentence: rounded, because a reader compares them and does not add them up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

_KEY_CHARACTERS_MAX: Final = 64
_TEXT_CHARACTERS_MAX: Final = 40
_DURATIONS: Final = (
    ("year", 365 * 86_400.0),
    ("month", 30 * 86_400.0),
    ("day", 86_400.0),
    ("hour", 3_600.0),
    ("minute", 60.0),
)


def about_bytes(amount: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if amount < 1024:
            return f"{_rounded(amount)} {unit}"
        amount /= 1024
    return f"{_rounded(amount)} PB"


def about_duration(seconds: float) -> str:
    for unit, length in _DURATIONS:
        if seconds >= length:
            count = round(seconds / length)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a minute"


def about_share(share: float) -> str:
    """Return a share in percent: never 0 % of something, nor 100 % of all but a rest."""
    percent = round(100 * share)
    if percent == 0 and share > 0:
        return "less than 1 %"
    return "nearly 100 %" if percent == 100 and share < 1 else f"{percent} %"


def _rounded(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 10 else f"{amount:.1f}".removesuffix(".0")


def key_text(paths: Sequence[str], values: Sequence[object]) -> str:
    """Return a partition key as `date=2026-11-18`. Texts stand as they are, unless they look like another value."""
    parts = [f"{path.strip('/')}={_value_text(value)}" for path, value in zip(paths, values, strict=False)]
    return _cut(", ".join(parts), _KEY_CHARACTERS_MAX)


def _value_text(value: object) -> str:
    if isinstance(value, Mapping) and not value:
        return "(absent)"
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    text = _cut(value, _TEXT_CHARACTERS_MAX)
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return text if value.strip() == value and value.isprintable() and value else json.dumps(text)
    return f'"{text}"'


def _cut(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else f"{text[: characters_max - 1]}…"
