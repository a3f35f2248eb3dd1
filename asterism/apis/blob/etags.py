"""Etags, dates and moments as the blob protocol writes them. An etag is the ticks of the change that made it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal

from asterism.values.ticks import TICKS_PER_SECOND, ticks_of, timestamp_text

AnyEtag = Literal["*"]
# Between the year 1, from which the service counts in its etags, and 1970.
_ETAG_EPOCH_TICKS: Final = 62_135_596_800 * TICKS_PER_SECOND
_ETAG: Final = re.compile(r'(?:W/)?"?0x([0-9A-Fa-f]{1,16})"?', re.ASCII)
# Equal to no etag of a blob: a text in another form than ours names no state.
_NO_ETAG: Final = -1


def etag_in_list(ticks: int) -> str:
    """Return an etag without its quotes, as listings have it."""
    return f"0x{ticks + _ETAG_EPOCH_TICKS:X}"


def etag_text(ticks: int) -> str:
    return f'"0x{ticks + _ETAG_EPOCH_TICKS:X}"'


def read_etags(text: str | None) -> tuple[int | AnyEtag, ...] | None:
    """Return the etags of `If-Match` or `If-None-Match`; None if the header is absent or empty."""
    if not text or not text.strip():
        return None
    return tuple(_read_etag(part.strip()) for part in text.split(","))


def _read_etag(text: str) -> int | AnyEtag:
    if text == "*":
        return "*"
    found = _ETAG.fullmatch(text)
    return _NO_ETAG if found is None else int(found[1], 16) - _ETAG_EPOCH_TICKS


# Blobs of one second share their text, and a page of a listing has many of them.
@lru_cache(maxsize=4096)
def _second_text(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")


def http_date(ticks: int) -> str:
    return _second_text(ticks // TICKS_PER_SECOND)


def read_moment(text: str) -> int | None:
    """Return the ticks of a snapshot or a version, whose texts have seven digits after the second; None for any other
    text, and for a moment before 1970."""
    ticks = ticks_of(text)
    return None if ticks is None or ticks < 0 else ticks


moment_text = timestamp_text
