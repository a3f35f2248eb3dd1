"""Recognize the time stamps among an item's values: ISO 8601 text, and seconds or milliseconds since 1970."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from asterism.advisor.value_digests import Scalar
from asterism.partitioning.key_parts import Bucket, KeyPart, Unit

_ISO: Final = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:?\d{2}(:?\d{2}([.,]\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")
# From 2001 to 2096: counts and prices are hardly ever within, and never all of them.
_SECONDS_MIN, _SECONDS_MAX = 1_000_000_000, 4_000_000_000
_LOOKED_AT_MAX: Final = 500
BUCKET_SECONDS: Final[dict[Bucket, float]] = {"hour": 3_600.0, "day": 86_400.0, "month": 30 * 86_400.0}


@dataclass(frozen=True, slots=True)
class TimeShape:
    """How the time stamps at a path are written."""

    unit: Unit = "s"
    is_text: bool = True
    # Without one only days can be told apart.
    has_time_of_day: bool = True

    def seconds(self, value: Scalar) -> float | None:
        """Return the seconds since 1970 of a value; None if it is no time stamp."""
        if isinstance(value, str):
            return _seconds_of_text(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value / 1_000 if self.unit == "ms" else float(value)

    def part(self, path: str, bucket: Bucket) -> KeyPart:
        return KeyPart(path, bucket=bucket, unit=self.unit)


def shape_of(values: Sequence[Scalar]) -> TimeShape | None:
    """Return how time stamps are written at a path with these values; None if one of them is no time stamp."""
    looked_at = [value for value in values[:_LOOKED_AT_MAX] if value is not None]
    if not looked_at:
        return None
    if all(type(value) is str and _ISO.fullmatch(value) for value in looked_at):
        readable = all(_seconds_of_text(str(value)) is not None for value in looked_at)
        has_time = any(len(str(value)) > len("2026-01-31") for value in looked_at)
        return TimeShape(has_time_of_day=has_time) if readable else None
    for unit, factor in (("s", 1), ("ms", 1_000)):
        low, high = _SECONDS_MIN * factor, _SECONDS_MAX * factor
        if all(type(value) in (int, float) and low <= float(value) <= high for value in looked_at):
            return TimeShape("ms" if unit == "ms" else "s", is_text=False)
    return None


def _seconds_of_text(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def iso_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
