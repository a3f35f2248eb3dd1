"""Keys and scopes of encryption: keys that a client provides with each request, and scopes that it names.

The server remembers the digest of a provided key with the blob, and then asks for that key; it never keeps the key
itself. A scope is a name that is kept with the blob and shown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass, field
from typing import Final

from asterism.apis.storage.refusals import (
    Refusal,
    invalid_header_value,
    missing_header,
    not_permitted,
    unsupported_header,
)
from asterism.apis.transports.http import HeaderList, Headers

ENCRYPTION_SCOPE: Final = "x-ms-encryption-scope"
KEY_SHA256: Final = "x-ms-encryption-key-sha256"
_ALGORITHM: Final = "AES256"
_KEY_BYTES: Final = 32
_OF_BLOB: Final = "x-ms-encryption-"
_OF_SOURCE: Final = "x-ms-source-encryption-"
# The service's rule for the name of a scope.
_SCOPE: Final = re.compile(r"[A-Za-z0-9$](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class CustomerKey:
    """A key that a client provided with its request."""

    key: bytes = field(repr=False)
    # In base64, as headers and records have it.
    sha256: str


def read_customer_key(headers: Headers) -> CustomerKey | None:
    return _read_key(headers, _OF_BLOB)


def read_source_key(headers: Headers) -> CustomerKey | None:
    """Return the key of the blob that a request copies from."""
    return _read_key(headers, _OF_SOURCE)


def key_digest(key: CustomerKey | None) -> str | None:
    return None if key is None else key.sha256


def _read_key(headers: Headers, prefix: str) -> CustomerKey | None:
    text = headers.get(prefix + "key")
    digest = headers.get(prefix + "key-sha256")
    algorithm = headers.get(prefix + "algorithm")
    if not text and not digest and not algorithm:
        return None
    for name, value in (("key", text), ("key-sha256", digest), ("algorithm", algorithm)):
        if not value:
            raise missing_header(prefix + name)
    if algorithm != _ALGORITHM:
        raise invalid_header_value(prefix + "algorithm", algorithm or "")
    try:
        key = base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        # The key stays out of the answer, which logs may keep.
        raise invalid_header_value(prefix + "key", "")
    sha256 = base64.b64encode(hashlib.sha256(key).digest()).decode()
    if sha256 != digest:
        raise invalid_header_value(prefix + "key-sha256", digest or "")
    return CustomerKey(key, sha256)


def check_not_both(headers: Headers, key: CustomerKey | None) -> None:
    """Refuse a request that provides a key and names a scope."""
    if key is not None and headers.get(ENCRYPTION_SCOPE):
        raise unsupported_header(ENCRYPTION_SCOPE)


def choose_scope(
    headers: Headers, *, granted_scope: str | None, default_scope: str | None, denies_override: bool
) -> str | None:
    """Return the scope of a write: that of the request, or of its shared access signature, or the container's own."""
    requested = headers.get(ENCRYPTION_SCOPE) or None
    if requested is not None and _SCOPE.fullmatch(requested) is None:
        raise invalid_header_value(ENCRYPTION_SCOPE, requested)
    if granted_scope and requested is not None and requested != granted_scope:
        raise not_permitted("Its signature is for another encryption scope.")
    chosen = requested or granted_scope or None
    if chosen is None:
        return default_scope
    if denies_override and chosen != default_scope:
        raise Refusal(
            403,
            "RequestForbiddenByContainerEncryptionPolicy",
            "The container does not permit another encryption scope than its own.",
        )
    return chosen


def encryption_headers(sha256: str | None, scope: str | None, *, is_write: bool) -> HeaderList:
    """Return the headers that tell a client how its data are encrypted."""
    answer: HeaderList = [("x-ms-request-server-encrypted" if is_write else "x-ms-server-encrypted", "true")]
    if sha256 is not None:
        answer.append((KEY_SHA256, sha256))
    if scope is not None:
        answer.append((ENCRYPTION_SCOPE, scope))
    return answer
