"""Moments as the protocol writes them, from ticks of 100 nanoseconds and back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from asterism.apis.table.stored import TICKS_PER_SECOND

# The service's own form has a Z; other clients' texts may have an offset, or nothing for UTC.
_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,7})\d*)?)?)?(Z|[+-]\d\d:?\d\d)?",
    re.ASCII | re.IGNORECASE,
)
# Far beyond any form of a moment. Whatever is longer is not looked at, and above all not remembered.
_MOMENT_CHARACTERS_MAX = 64
_EPOCH = datetime(1970, 1, 1)
# No place on Earth is further from UTC.
_OFFSET_MAX = timedelta(hours=14)
_ETAG = re.compile(r"""W/"datetime'([^'"]+)'"\Z""")

# The service keeps no DateTime before this year (a file time's zero).
EARLIEST_TICKS = -11_644_473_600 * TICKS_PER_SECOND


# Every request of a second shares its text.
@lru_cache(maxsize=4096)
def _second_text(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).isoformat()


def timestamp_text(ticks: int) -> str:
    second, fraction = divmod(ticks, TICKS_PER_SECOND)
    return f"{_second_text(second)}.{fraction:07d}Z"


def etag_of_timestamp(timestamp: str) -> str:
    """The client makes the same text from a Timestamp when an answer brings no etag, so it must be exactly this."""
    return f"W/\"datetime'{timestamp.replace(':', '%3A')}'\""


def etag_text(ticks: int) -> str:
    return etag_of_timestamp(timestamp_text(ticks))


def ticks_of_etag(etag: str) -> int | None:
    """None for a text that no etag of ours has."""
    found = _ETAG.match(etag)
    return ticks_of(found[1].replace("%3A", ":").replace("%3a", ":")) if found else None


def ticks_of(text: str) -> int | None:
    """Ticks since 1970 of a moment or a date, in UTC within the years 1 to 9999; None when the text is none."""
    return _read_ticks(text) if len(text) <= _MOMENT_CHARACTERS_MAX else None


@lru_cache(maxsize=4096)
def _read_ticks(text: str) -> int | None:
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        moment = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
        if zone and zone not in "Zz":
            offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
            if offset > _OFFSET_MAX:
                return None
            moment = moment - offset if zone[0] == "+" else moment + offset
    except (ValueError, OverflowError):
        return None
    return (moment - _EPOCH) // timedelta(seconds=1) * TICKS_PER_SECOND + int((fraction or "0").ljust(7, "0"))


def http_date(wall_seconds: float) -> str:
    return datetime.fromtimestamp(wall_seconds, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
