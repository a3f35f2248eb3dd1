"""Tokens as clients make them."""

from __future__ import annotations

import base64
import hmac
import json
from urllib.parse import quote, quote_plus

from tests.unit.amqp_engine.toy_host import KEY, KEY_NAME

# Long after the year in which this was written, and long before.
LATER = 4_000_000_000
EARLIER = 1_000_000_000


def shared_access(uri: str, *, key: str = KEY, rule: str = KEY_NAME, expires: int = LATER) -> str:
    quoted = quote_plus(uri)
    digest = hmac.digest(key.encode(), f"{quoted}\n{expires}".encode(), "sha256")
    signature = quote(base64.b64encode(digest), safe="")
    return f"SharedAccessSignature sr={quoted}&sig={signature}&se={expires}&skn={rule}"


def directory_token(**claims: object) -> str:
    def part(content: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    given = {"aud": "https://servicebus.azure.net/", "exp": LATER, "nbf": EARLIER, **claims}
    return f"{part({'alg': 'none'})}.{part(given)}.signature"
