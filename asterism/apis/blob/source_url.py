"""The URL of a blob that a request copies from, and the refusals of one that cannot be read."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, urlsplit

from asterism.apis.storage.refusals import Refusal, invalid_header_value

COPY_SOURCE: Final = "x-ms-copy-source"
# The service's limit.
SOURCE_URL_CHARACTERS_MAX: Final = 2048
_NAMING: Final = frozenset({"snapshot", "versionid"})
_SCHEMES: Final = frozenset({"http", "https"})


def check_source_url(text: str, header: str = COPY_SOURCE) -> str:
    """Return a URL as a copy may show it: of its query, which may hold a signature, only what names the blob."""
    parts = _split(text) if len(text) <= SOURCE_URL_CHARACTERS_MAX else None
    if parts is None or parts.scheme not in _SCHEMES or not parts.hostname or not parts.path.strip("/"):
        raise invalid_header_value(header, text)
    named = [pair for pair in parts.query.split("&") if pair.partition("=")[0].lower() in _NAMING]
    return parts._replace(query="&".join(named), fragment="").geturl()


def _split(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        # Reading the port checks it.
        return parts if parts.port is None or parts.port > 0 else None
    except ValueError:
        return None


def cannot_verify_source(refusal: Refusal) -> Refusal:
    """Return the refusal of a request whose source refuses to be read: it has the status of the source's refusal."""
    return Refusal(
        refusal.status,
        "CannotVerifyCopySource",
        refusal.message,
        more_headers=[
            ("x-ms-copy-source-status-code", str(refusal.status)),
            ("x-ms-copy-source-error-code", refusal.code),
        ],
    )


def foreign_source() -> Refusal:
    return Refusal(
        400,
        "CannotVerifyCopySource",
        "The source of the copy is not a blob of this server. Copies read only blobs of the accounts that it serves.",
    )
