"""Resource tokens: issued by permissions, so that a program without an account key can use one resource.

A token contains its grant, and a signature that only a holder of an account key can make. It names its permission and
the container of the resource at the time of issue, so that the door can check that both still exist. Its form is the
service's, `type=resource&ver=1.0&sig=...`, which is opaque to clients.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from asterism.access.keys import AccountKeys, Grant
from asterism.errors import Forbidden, Unauthorized

# The service's bounds for the lifetime of a token: 10 seconds to 5 hours, one hour by default.
LIFETIME_SECONDS_DEFAULT = 3600
LIFETIME_SECONDS_MIN = 10
LIFETIME_SECONDS_MAX = 5 * 3600

_TOKEN_START = "type=resource&ver=1.0&sig="
# The signing key is derived, so that the signature of a token is never valid for a request.
_KEY_LABEL = b"asterism resource token 1"


@dataclass(frozen=True, slots=True)
class ResourceGrant:
    """Permission in a token: to read, or to do everything, on a resource and its children."""

    # The link of a container or of something in one, without outer slashes, by names or by resource ids.
    resource: str
    is_read_only: bool
    # The only partition key value (or prefix of it) that the token covers; None: all of them.
    partition_key: tuple[Any, ...] | None
    expires_at_wall_seconds: int
    # Of the permission. None in tokens of older versions, which last five hours at most.
    permission_rid: bytes | None = None
    # Of the container; empty if no container had that name when the token was made.
    container_rid: bytes | None = None


def make_resource_token(keys: AccountKeys, grant: ResourceGrant) -> str:
    content: dict[str, object] = {
        "r": grant.resource,
        "m": "r" if grant.is_read_only else "a",
        "k": None if grant.partition_key is None else list(grant.partition_key),
        "e": grant.expires_at_wall_seconds,
    }
    if grant.permission_rid is not None:
        content["p"] = grant.permission_rid.hex()
    if grant.container_rid is not None:
        content["c"] = grant.container_rid.hex()
    payload = _encode(json.dumps(content, separators=(",", ":")).encode())
    return f"{_TOKEN_START}{payload}.{_encode(_signature(keys.decoded[0][0], payload))}"


def check_resource_token(keys: AccountKeys, authorization: str, *, now_wall_seconds: float) -> ResourceGrant:
    """Return the grant in a token of this account. Unauthorized if it is not one, Forbidden if it has expired."""
    token = unquote(authorization)
    payload, _, signature = token[len(_TOKEN_START) :].partition(".")
    if not token.startswith(_TOKEN_START) or not _is_signed(keys, payload, signature):
        raise Unauthorized(reason="The resource token was not issued by this account, or not with one of its keys.")
    content = json.loads(_decode(payload))
    if now_wall_seconds >= content["e"]:
        raise Forbidden(reason="The authorization token has expired. Read the permission again to get a new one.")
    key, permission, container = content["k"], content.get("p"), content.get("c")
    return ResourceGrant(
        resource=content["r"],
        is_read_only=content["m"] == "r",
        partition_key=None if key is None else tuple(key),
        expires_at_wall_seconds=content["e"],
        permission_rid=None if permission is None else bytes.fromhex(permission),
        container_rid=None if container is None else bytes.fromhex(container),
    )


def keys_agree(granted: Sequence[Any] | None, asked: Sequence[Any] | None) -> bool:
    """Return True if a request for the partition key `asked` (None: without a key) is within the granted key."""
    if granted is None:
        return True
    if asked is None or len(asked) < len(granted):
        return False
    # True equals 1 to Python, and is another key.
    return all(
        isinstance(granted_value, bool) is isinstance(asked_value, bool) and granted_value == asked_value
        for granted_value, asked_value in zip(granted, asked, strict=False)
    )


def _is_signed(keys: AccountKeys, payload: str, signature: str) -> bool:
    given = _decode(signature)
    full_keys = [key_bytes for key_bytes, grant in keys.decoded if grant is Grant.FULL]
    return any(hmac.compare_digest(_signature(key_bytes, payload), given) for key_bytes in full_keys)


def _signature(key_bytes: bytes, payload: str) -> bytes:
    signing_key = hmac.digest(key_bytes, _KEY_LABEL, "sha256")
    return hmac.digest(signing_key, payload.encode("utf-8", "surrogatepass"), "sha256")


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode("ascii").rstrip("=")


def _decode(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        return b""
