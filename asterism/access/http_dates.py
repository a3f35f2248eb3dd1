"""Dates that clients sign with their requests."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache

# The service accepts dates that are at most this far from its own clock.
DATE_SKEW_SECONDS_MAX = 15 * 60
# Longer texts are not dates, and are not cached.
DATE_CHARACTERS_MAX = 64


def wall_seconds_of(date: str) -> float | None:
    """Return the seconds of an RFC 1123 date, or None for any other text."""
    return _known_wall_seconds_of(date) if len(date) <= DATE_CHARACTERS_MAX else None


# Clients date by the second, so the requests of a second share a few texts.
@lru_cache(maxsize=1024)
def _known_wall_seconds_of(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, TypeError, OverflowError):
        return None
    # A date without a zone would be taken for the machine's local time; in HTTP all dates are GMT.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
