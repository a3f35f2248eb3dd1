"""Bearer tokens for storage accounts, without a directory service: a JWT signed with the account's own key (HS256).

The tokens that local tools make for emulators are not signed at all. Any client that can reach the server can make such
a token, so they are accepted only if the operator allows it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Sequence
from typing import NamedTuple

from asterism.errors import Unauthorized

_AUDIENCES = (
    "https://storage.azure.com",
    "https://storage.azure.us",
    "https://storage.azure.cn",
    "https://cosmos.azure.com",
    "https://cosmos.azure.us",
    "https://cosmos.azure.cn",
)
_ISSUERS = ("https://sts.windows.net/", "https://login.microsoftonline.com/")
# Tolerance for clock skew; the service allows five minutes too.
_SKEW_SECONDS_MAX = 300


class TokenHolder(NamedTuple):
    """The user or program that a token names, and its tenant; empty texts in a token that names none."""

    object_id: str
    tenant_id: str


def check_bearer_token(
    keys: Sequence[bytes], authorization: str, *, account: str, unsigned_allowed: bool, now_wall_seconds: float
) -> TokenHolder:
    """Return the holder; Unauthorized unless the token is for storage, currently valid, and signed with a key of the
    account."""
    token = authorization.removeprefix("Bearer ").strip()
    parts = token.split(".")
    claims = _claims(parts[1]) if len(parts) == 3 else None
    if claims is None:
        raise Unauthorized(reason="The bearer token is malformed.")
    if not unsigned_allowed:
        _check_signature(keys, token.rpartition(".")[0], parts[2])
    audience = str(claims.get("aud", "")).rstrip("/")
    if audience not in _AUDIENCES and not audience.startswith(f"https://{account}."):
        raise Unauthorized(reason="The bearer token has the wrong audience (aud).")
    if not str(claims.get("iss", "")).startswith(_ISSUERS):
        raise Unauthorized(reason="The bearer token has the wrong issuer (iss).")
    expires, begins = claims.get("exp"), claims.get("nbf")
    if not isinstance(expires, int | float) or now_wall_seconds > expires + _SKEW_SECONDS_MAX:
        raise Unauthorized(reason="The bearer token has expired.")
    if isinstance(begins, int | float) and now_wall_seconds < begins - _SKEW_SECONDS_MAX:
        raise Unauthorized(reason="The bearer token is not valid yet.")
    return TokenHolder(str(claims.get("oid", "")), str(claims.get("tid", "")))


def _check_signature(keys: Sequence[bytes], signed: str, given: str) -> None:
    digest = _decoded(given)
    if not any(hmac.compare_digest(hmac.digest(key, signed.encode(), "sha256"), digest) for key in keys):
        raise Unauthorized(reason="The bearer token is not signed with a key of the account (HS256).")


def _claims(part: str) -> dict[str, object] | None:
    try:
        claims = json.loads(_decoded(part))
    except (ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def _decoded(part: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (ValueError, binascii.Error):
        return b""
