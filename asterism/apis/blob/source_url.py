"""The URL of a blob that a request copies from: read, and recognized as one of this server."""

from __future__ import annotations

import ipaddress
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from asterism.apis.storage.refusals import Refusal, invalid_header_value

COPY_SOURCE: Final = "x-ms-copy-source"
# The service's limit.
SOURCE_URL_CHARACTERS_MAX: Final = 2048
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
# Marks the host of a blob service in host style, as in `account.blob.example`.
_SERVICE_LABEL: Final = "blob"


class SourceUrl(NamedTuple):
    scheme: str
    authority: str
    # As written, percent-encoded.
    path: str
    query_string: str

    @property
    def text(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def read_source_url(text: str, header: str = COPY_SOURCE) -> SourceUrl:
    parts = _split(text) if len(text) <= SOURCE_URL_CHARACTERS_MAX else None
    if parts is None or parts.scheme not in _DEFAULT_PORTS or not parts.hostname or not parts.path.strip("/"):
        raise invalid_header_value(header, text[:256])
    return SourceUrl(parts.scheme, parts.netloc, parts.path, parts.query)


def _split(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        # Reading the port checks it.
        return parts if parts.port is None or parts.port > 0 else None
    except ValueError:
        return None


def is_of_this_server(source: SourceUrl, *, scheme: str, authority: str, has_account: bool) -> bool:
    """Return whether a URL leads to the server that was asked at `authority`. In host style `has_account` decides:
    the accounts of a server may have several domains, and no other server has them."""
    if source.authority.lower() == authority.lower():
        return True
    own = urlsplit(f"{scheme}://{authority}")
    other = urlsplit(source.text)
    if _port(own) == _port(other) and _is_loopback(own.hostname) and _is_loopback(other.hostname):
        return True
    labels = (other.hostname or "").split(".")
    return has_account and len(labels) > 2 and labels[1] == _SERVICE_LABEL


def _port(parts: SplitResult) -> int:
    return parts.port or _DEFAULT_PORTS[parts.scheme]


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def cannot_verify_source(status: int, code: str, message: str) -> Refusal:
    """Return the refusal of a copy whose source cannot be read, with the source's own status and code."""
    return Refusal(
        status,
        "CannotVerifyCopySource",
        message,
        more_headers=[("x-ms-copy-source-status-code", str(status)), ("x-ms-copy-source-error-code", code)],
    )


def foreign_source() -> Refusal:
    return cannot_verify_source(
        400,
        "CannotVerifyCopySource",
        "The source of the copy is not a blob of this server. Copies read only blobs of the accounts that it serves.",
    )
