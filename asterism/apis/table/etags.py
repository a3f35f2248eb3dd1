"""Etags and dates as the protocol writes them."""

from __future__ import annotations

import re

from asterism.values.ticks import ticks_of, timestamp_text

_ETAG = re.compile(r"""W/"datetime'([^'"]+)'"\Z""")


def etag_of_timestamp(timestamp: str) -> str:
    """Return the etag of a Timestamp, exactly as clients derive it from an answer that brings no etag."""
    return f"W/\"datetime'{timestamp.replace(':', '%3A')}'\""


def etag_text(ticks: int) -> str:
    return etag_of_timestamp(timestamp_text(ticks))


def ticks_of_etag(etag: str) -> int | None:
    """Return the ticks of an etag; None for a text in another form than ours."""
    found = _ETAG.match(etag)
    return ticks_of(found[1].replace("%3A", ":").replace("%3a", ":")) if found else None
