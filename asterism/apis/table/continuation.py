"""Continuation tokens: keys as texts that headers and URLs carry unchanged. Opaque to clients."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

_TOKEN: Final = re.compile(r"1!\d+!([A-Za-z0-9_-]*)\Z")


def write_token(key: str) -> str:
    """Write a key in the service's own form: a version, a length, and the key in base64 that is safe in a URL."""
    encoded = base64.urlsafe_b64encode(key.encode("utf-8", "surrogatepass")).decode().rstrip("=")
    return f"1!{len(encoded)}!{encoded}"


def read_token(text: str | None) -> str | None:
    """Return the key in a token. A text of another form is the key itself, as some clients write it by hand."""
    if not text:
        return None
    found = _TOKEN.match(text)
    if found is None:
        return text
    try:
        return base64.urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4)).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        return text
