"""Tokens of Microsoft Entra ID in the form that the vendor's emulator takes: a JWT whose signature is an account key.

Such a token proves no identity. Its maker holds the key anyway, so the token grants what the key grants.
"""

from __future__ import annotations

import base64
import binascii
import json
from urllib.parse import unquote

from asterism.access.keys import AccountKeys, Grant
from asterism.errors import Unauthorized

_TOKEN_START = "type=aad&ver=1.0&sig="
# Tolerance for clock skew; the service allows five minutes too.
_SKEW_SECONDS_MAX = 300


def check_entra_token(keys: AccountKeys, authorization: str, *, now_wall_seconds: float) -> Grant:
    """Return the grant of the account key in the token; Unauthorized if it has none, or has expired."""
    token = authorization if authorization.startswith(_TOKEN_START) else unquote(authorization)
    parts = token.removeprefix(_TOKEN_START).split(".")
    if not token.startswith(_TOKEN_START) or len(parts) != 3:
        raise Unauthorized(reason="The authorization header does not have the form type=aad&ver=1.0&sig=<token>.")
    grant = keys.grant_of(_decode(parts[2]))
    if grant is None:
        raise Unauthorized(
            reason="This server takes tokens of Microsoft Entra ID only in the emulator's form: its signature must be "
            "a key of the account, in base64."
        )
    _check_times(_decode(parts[1]), now_wall_seconds)
    return grant


def _check_times(claims_text: bytes, now_wall_seconds: float) -> None:
    try:
        claims = json.loads(claims_text)
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise Unauthorized(reason="The claims of the token are not a JSON object.")
    expires, begins = claims.get("exp"), claims.get("nbf")
    if isinstance(expires, int | float) and now_wall_seconds > expires + _SKEW_SECONDS_MAX:
        raise Unauthorized(reason="The token has expired.")
    if isinstance(begins, int | float) and now_wall_seconds < begins - _SKEW_SECONDS_MAX:
        raise Unauthorized(reason="The token is not valid yet.")


def _decode(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        return b""
