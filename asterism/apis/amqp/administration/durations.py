"""Durations and moments as texts of XML Schema; durations in milliseconds, moments in milliseconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from asterism.errors import MalformedRequest

# The longest time of .NET, which stands for "without limit".
UNLIMITED: Final = "P10675199DT2H48M5.4775807S"
# Clients that round it come back with a little less.
_UNLIMITED_DAYS_MIN: Final = 10_675_199
_DAY_MS: Final = 86_400_000
_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,10})(?:\.(?P<fraction>\d{1,9}))?S)?)?",
    re.ASCII,
)
# `[days.]hours:minutes:seconds[.fraction]`, as programs for .NET write it.
_TIME_SPAN: Final = re.compile(
    r"(?:(?P<days>\d{1,8})\.)?(?P<hours>\d{1,2}):(?P<minutes>\d{1,2}):(?P<seconds>\d{1,2})(?:\.(?P<fraction>\d{1,7}))?",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def read_duration(name: str, text: str) -> int | None:
    """Return a duration in milliseconds, None if it is the one without limit; MalformedRequest for any other text."""
    found = _DURATION.fullmatch(text.strip()) or _TIME_SPAN.fullmatch(text.strip())
    if found is None or text.strip().endswith(("P", "T")):
        raise MalformedRequest(reason=f"The value of {name} is not a duration such as PT1M: '{text[:40]}'.")
    days = int(found["days"] or 0)
    if days >= _UNLIMITED_DAYS_MIN:
        return None
    seconds = int(found["hours"] or 0) * 3_600 + int(found["minutes"] or 0) * 60 + int(found["seconds"] or 0)
    fraction_ms = int((found["fraction"] or "0")[:3].ljust(3, "0"))
    return days * _DAY_MS + seconds * 1_000 + fraction_ms


def write_duration(milliseconds: int | None) -> str:
    if milliseconds is None:
        return UNLIMITED
    days, rest = divmod(milliseconds, _DAY_MS)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds, fraction = divmod(rest, 1_000)
    second_text = f"{seconds}.{fraction:03}".rstrip("0") if fraction else str(seconds)
    time = "".join(
        f"{amount}{letter}"
        for amount, letter in ((hours, "H"), (minutes, "M"), (second_text, "S"))
        if str(amount) != "0"
    )
    date = f"{days}D" if days else ""
    if not date and not time:
        return "PT0S"
    return f"P{date}{f'T{time}' if time else ''}"


def write_moment(milliseconds: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=milliseconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"
