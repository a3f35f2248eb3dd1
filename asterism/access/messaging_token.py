"""Tokens for messaging: shared access signatures over a path of a namespace, and tokens of a directory service.

Tokens come through `$cbs` and in the headers of the administration's requests. The announced type of a token lies, as
clients put signatures under the name of the other kind; the content decides.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote_plus, unquote, unquote_plus, urlsplit

from asterism.errors import Unauthorized

_SIGNATURE_START: Final = "SharedAccessSignature "
_BEARER_START: Final = "Bearer "
# Several schemes mean the same.
_SCHEMES: Final = frozenset({"sb", "amqp", "amqps", "http", "https", "ws", "wss"})
_DIRECTORY_AUDIENCES: Final = frozenset(
    {"https://servicebus.azure.net", "https://eventhubs.azure.net", "https://relay.azure.net"}
)
# Tolerance for clock skew in tokens of a directory; the service allows five minutes too.
_SKEW_SECONDS_MAX: Final = 300
# More than any path of an entity with its quotes.
_TOKEN_CHARACTERS_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Resource:
    """The part of a namespace that a URI names: its host without the port, and its path without slashes at its ends.

    Both are in lower case, as hosts and names of entities are compared without it.
    """

    host: str
    path: str

    def covers(self, other: Resource) -> bool:
        """Return whether another resource is this one or lies below it."""
        return self.host == other.host and is_below(other.path, self.path)


@dataclass(frozen=True, slots=True)
class SharedAccessToken:
    """A shared access signature, taken apart and not yet checked."""

    resource: Resource
    rule_name: str
    expires_wall_seconds: float
    # The spellings of the URI that clients sign, each with the expiry behind it.
    signed_texts: tuple[bytes, ...]
    signature: bytes

    def check(self, keys: Iterable[str], *, now_wall_seconds: float) -> None:
        """Check the expiry, and the signature against the texts of a rule's keys; Unauthorized if either fails."""
        if now_wall_seconds >= self.expires_wall_seconds:
            raise Unauthorized(reason="The shared access signature has expired.")
        digests = [hmac.digest(key.encode("utf-8"), text, "sha256") for key in keys for text in self.signed_texts]
        if not any(hmac.compare_digest(digest, self.signature) for digest in digests):
            raise Unauthorized(reason="The shared access signature is not made with a key of its rule.")


def resource_of(uri: str) -> Resource:
    """Return the resource of a URI such as `sb://host:5671/queue`, or of `host/queue`; ValueError for other texts."""
    parts = urlsplit(uri if "://" in uri else f"//{uri}")
    if parts.scheme and parts.scheme not in _SCHEMES:
        raise ValueError("the scheme is not one of messaging")
    return Resource((parts.hostname or "").lower(), unquote(parts.path).strip("/").lower())


def is_below(path: str, scope: str) -> bool:
    """Return whether a path is a scope or lies below it, by whole segments; both in lower case, without slashes at
    their ends."""
    return not scope or path == scope or path.startswith(f"{scope}/")


def is_shared_access(token: str) -> bool:
    return token.startswith(_SIGNATURE_START)


def parse_shared_access(token: str) -> SharedAccessToken:
    """Take a shared access signature apart; Unauthorized if it does not have the form of one."""
    fields: dict[str, str] = {}
    if len(token) <= _TOKEN_CHARACTERS_MAX:
        for field in token.removeprefix(_SIGNATURE_START).split("&"):
            name, _, value = field.strip().partition("=")
            fields[name] = value
    try:
        raw_uri, expiry = fields["sr"], fields["se"]
        uri = unquote_plus(raw_uri)
        return SharedAccessToken(
            resource=resource_of(uri),
            rule_name=unquote(fields["skn"]),
            expires_wall_seconds=float(int(expiry)),
            signed_texts=tuple(
                f"{spelling}\n{expiry}".encode() for spelling in dict.fromkeys((raw_uri, quote_plus(uri)))
            ),
            signature=base64.b64decode(unquote(fields["sig"]), validate=True),
        )
    except (KeyError, ValueError, OverflowError, binascii.Error):
        raise Unauthorized(
            reason="The token does not have the form SharedAccessSignature sr=<uri>&sig=<text>&se=<time>&skn=<rule>."
        ) from None


def check_directory_token(token: str, *, audience: Resource, now_wall_seconds: float) -> float:
    """Return the wall time at which a token of a directory service expires; Unauthorized unless it is a JSON web token
    for messaging and currently valid.

    Its signature proves nothing here, as there is no directory to ask.
    """
    parts = token.removeprefix(_BEARER_START).strip().split(".")
    claims = _claims(parts[1]) if len(parts) == 3 and len(token) <= _TOKEN_CHARACTERS_MAX else None
    if claims is None:
        raise Unauthorized(reason="The token is neither a shared access signature nor a JSON web token.")
    if not _is_for_messaging(claims.get("aud"), audience):
        raise Unauthorized(reason="The token has the wrong audience (aud).")
    expires, begins = claims.get("exp"), claims.get("nbf")
    # A number that is not a number is below none.
    if not isinstance(expires, int | float) or not now_wall_seconds <= expires + _SKEW_SECONDS_MAX:
        raise Unauthorized(reason="The token has expired.")
    if isinstance(begins, int | float) and now_wall_seconds < begins - _SKEW_SECONDS_MAX:
        raise Unauthorized(reason="The token is not valid yet.")
    return float(min(expires, 1e15)) + _SKEW_SECONDS_MAX


def _is_for_messaging(claim: object, audience: Resource) -> bool:
    wanted = claim if isinstance(claim, list) else [claim]
    for text in wanted:
        if not isinstance(text, str):
            continue
        if text.rstrip("/").lower() in _DIRECTORY_AUDIENCES:
            return True
        try:
            if resource_of(text).covers(audience):
                return True
        except ValueError:
            continue
    return False


def _claims(part: str) -> dict[str, object] | None:
    try:
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None
