"""Resource tokens: what a permission hands out, so that a program without an account key can use one resource.

A token carries all it grants, and a signature that only a holder of an account key can make. It names the permission
that it was made for and the container that the resource was in at that time, so that the door can tell whether both are
still there. Its form is the service's, `type=resource&ver=1.0&sig=...`, of which
clients read nothing.
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

# The service's bounds for how long a token lives: 10 seconds to 5 hours, an hour when nobody says.
LIFETIME_SECONDS_DEFAULT = 3600
LIFETIME_SECONDS_MIN = 10
LIFETIME_SECONDS_MAX = 5 * 3600

_TOKEN_START = "type=resource&ver=1.0&sig="
# The signing key is derived, so that no signature of a token can ever be taken for one of a request.
_KEY_LABEL = b"asterism resource token 1"


@dataclass(frozen=True, slots=True)
class ResourceGrant:
    """What a token permits: reading, or everything, on a resource and what lives in it."""

    # The link of a container or of something in one, without outer slashes, by names or by resource ids.
    resource: str
    is_read_only: bool
    # The only partition key value (or prefix of one) that the token is good for; None: all of them.
    partition_key: tuple[Any, ...] | None
    expires_at_wall_seconds: int
    # Of the permission. None in tokens of before these two were written: they last five hours at most.
    permission_rid: bytes | None = None
    # Of the container; empty when there was none of that name when the token was made.
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
    """The grant in a token of this account. Unauthorized when it is none, Forbidden when its time is over."""
    token = unquote(authorization)
    payload, _, signature = token[len(_TOKEN_START) :].partition(".")
    if not token.startswith(_TOKEN_START) or not _is_signed(keys, payload, signature):
        raise Unauthorized(reason="The resource token was not made by this account, or not with one of its keys.")
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
    """Whether a request for the partition key `asked` (None: it names none) stays within what was granted."""
    if granted is None:
        return True
    if asked is None or len(asked) < len(granted):
        return False
    # True equals 1 to Python, and is another key.
    return all(
        isinstance(one, bool) is isinstance(other, bool) and one == other
        for one, other in zip(granted, asked, strict=False)
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
