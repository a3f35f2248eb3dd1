"""Credentials of a login: SASL PLAIN, in base64, or the header of HTTP's Basic scheme."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

_NAME = "sasl"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The link of a graph as the user, and a key or a resource token as the password."""

    user: str
    password: str = field(repr=False)


def read_sasl(arguments: Mapping[Any, Any]) -> Credentials | None:
    """Return the credentials of an authentication request; None if there are none in the form of SASL PLAIN."""
    given = next((held for name, held in arguments.items() if isinstance(name, str) and name.lower() == _NAME), None)
    if isinstance(given, str):
        decoded = _decode(given)
    elif isinstance(given, bytes):
        # GraphBinary may have the bytes themselves.
        decoded = given
    else:
        return None
    if decoded is None:
        return None
    # An identity to act as, the user, and the password, each behind the other.
    parts = decoded.split(b"\0", 2)
    return _credentials(parts[1], parts[2]) if len(parts) == 3 else None


def read_basic(header: str | None) -> Credentials | None:
    """Return the credentials of an Authorization header; None if it has none in the Basic scheme."""
    scheme, _, given = (header or "").partition(" ")
    decoded = _decode(given.strip()) if scheme.lower() == "basic" else None
    if decoded is None:
        return None
    user, separator, password = decoded.partition(b":")
    return _credentials(user, password) if separator else None


def _decode(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return None


def _credentials(user: bytes, password: bytes) -> Credentials | None:
    try:
        return Credentials(user.decode(), password.decode())
    except UnicodeDecodeError:
        return None


def read_graph_link(user: str) -> tuple[str, str] | None:
    """Return database and graph of a user name, `/dbs/<database>/colls/<graph>`; None for any other."""
    parts = user.strip("/").split("/")
    if len(parts) != 4 or parts[0].lower() != "dbs" or parts[2].lower() != "colls" or not all(parts):
        return None
    return unquote(parts[1]), unquote(parts[3])
