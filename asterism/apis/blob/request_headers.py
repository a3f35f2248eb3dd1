"""The parts of a request that stand in headers: conditions, properties, tier, and checksums."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from asterism.access.http_dates import wall_seconds_of
from asterism.apis.blob.etags import read_etags
from asterism.apis.blob.tag_filter import MalformedTagFilter, TagExpression, matches, parse_condition
from asterism.apis.storage.refusals import invalid_header_value, invalid_md5, missing_header
from asterism.apis.transports.http import Headers
from asterism.models.blobs.conditions import NO_CONDITIONS, Conditions, TagCondition
from asterism.values.ticks import TICKS_PER_SECOND

LEASE_ID: Final = "x-ms-lease-id"
CONTENT_MD5: Final = "content-md5"
CONTENT_CRC64: Final = "x-ms-content-crc64"
IMMUTABLE_UNTIL: Final = "x-ms-immutability-policy-until-date"
IMMUTABILITY_MODE: Final = "x-ms-immutability-policy-mode"
LEGAL_HOLD: Final = "x-ms-legal-hold"
MD5_BYTES: Final = 16
CRC64_BYTES: Final = 8
_KEPT_MD5_BYTES_MAX: Final = 64
# The service's limit on the text of a header that it keeps.
PROPERTY_CHARACTERS_MAX: Final = 1024
_GUID_HEXADECIMALS: Final = 32
# Of a number below 2**63.
_DIGITS_MAX: Final = 19
_CONDITION_NAMES: Final = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-tags", LEASE_ID)


def read_conditions(headers: Headers) -> Conditions:
    """Return the conditions of a request on the blob or the container that its URL names."""
    tags = headers.get("x-ms-if-tags")
    match, none_match = headers.get("if-match"), headers.get("if-none-match")
    since, until = headers.get("if-modified-since"), headers.get("if-unmodified-since")
    lease_id = headers.get(LEASE_ID)
    if match is none_match is since is until is tags is lease_id is None:
        return NO_CONDITIONS
    return Conditions(
        if_match=read_etags(match),
        if_none_match=read_etags(none_match),
        modified_since=_read_date("if-modified-since", since),
        unmodified_since=_read_date("if-unmodified-since", until),
        tags=read_tag_condition("x-ms-if-tags", tags),
        lease_id=read_lease_id(headers),
    )


def read_prefixed_conditions(headers: Headers, prefix: str) -> Conditions:
    """Return the conditions on another blob than the URL's (`x-ms-source-`), or those that are not standard headers
    (`x-ms-blob-`). They have no lease."""
    values = [headers.get(prefix + name) for name in _CONDITION_NAMES[:5]]
    if not any(values):
        return NO_CONDITIONS
    match, none_match, since, until, tags = values
    return Conditions(
        if_match=read_etags(match),
        if_none_match=read_etags(none_match),
        modified_since=_read_date(prefix + "if-modified-since", since),
        unmodified_since=_read_date(prefix + "if-unmodified-since", until),
        tags=read_tag_condition(prefix + "if-tags", tags),
    )


@dataclass(frozen=True, slots=True)
class TagMatch:
    """A condition on the tags of a blob, as the model takes it."""

    expression: TagExpression

    def matches(self, tags: Mapping[str, str], /) -> bool:
        return matches(self.expression, tags)


def read_tag_condition(name: str, text: str | None) -> TagCondition | None:
    if not text:
        return None
    try:
        return TagMatch(parse_condition(text))
    except MalformedTagFilter as error:
        raise invalid_header_value(name, text, f"At character {error.position + 1}: {error.reason}") from None


def _read_date(name: str, text: str | None) -> int | None:
    if not text:
        return None
    seconds = wall_seconds_of(text)
    if seconds is None:
        raise invalid_header_value(name, text)
    return int(seconds)


def read_date_ticks(headers: Headers, name: str) -> int | None:
    """Return the moment of a header that has a date, in ticks."""
    seconds = _read_date(name, headers.get(name))
    return None if seconds is None else seconds * TICKS_PER_SECOND


def read_lease_id(headers: Headers, name: str = LEASE_ID) -> str | None:
    """Return the GUID of a lease in one form: lower case with hyphens."""
    text = headers.get(name)
    return None if not text else guid_text(name, text)


def guid_text(name: str, text: str) -> str:
    plain = text.strip().strip("{}()").replace("-", "").lower()
    if len(plain) != _GUID_HEXADECIMALS or any(character not in "0123456789abcdef" for character in plain):
        raise invalid_header_value(name, text)
    return f"{plain[:8]}-{plain[8:12]}-{plain[12:16]}-{plain[16:20]}-{plain[20:]}"


# --- properties -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HttpProperties:
    """The headers that a blob keeps and its readers get."""

    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    content_md5: bytes | None = None


def read_http_properties(headers: Headers, *, is_body_of_blob: bool) -> HttpProperties:
    """Return the properties of a new or a changed blob. `is_body_of_blob`: where the blob's own headers are absent,
    those of the request count, since its body is the blob."""

    def text(name: str, of_request: str | None = None) -> str | None:
        value = headers.get("x-ms-blob-" + name)
        if value is None and is_body_of_blob and of_request is not None:
            value = headers.get(of_request)
        if value is not None and len(value) > PROPERTY_CHARACTERS_MAX:
            raise invalid_header_value("x-ms-blob-" + name, value[:PROPERTY_CHARACTERS_MAX])
        return value or None

    return HttpProperties(
        content_type=text("content-type", "content-type"),
        content_encoding=text("content-encoding", "content-encoding"),
        content_language=text("content-language", "content-language"),
        content_disposition=text("content-disposition"),
        cache_control=text("cache-control", "cache-control"),
        content_md5=_read_kept_md5(headers),
    )


def _read_kept_md5(headers: Headers) -> bytes | None:
    """Return the MD5 that a blob keeps for its readers. It is the client's own affair: any short base64 will do."""
    text = headers.get("x-ms-blob-content-md5")
    if not text:
        return None
    try:
        digest = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise invalid_md5() from None
    if len(digest) > _KEPT_MD5_BYTES_MAX:
        raise invalid_md5()
    return digest


def read_digest(headers: Headers, name: str, length: int) -> bytes | None:
    """Return a checksum in base64; refuse another text or another length."""
    text = headers.get(name)
    if not text:
        return None
    try:
        digest = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != length:
        raise invalid_md5() if length == MD5_BYTES else invalid_header_value(name, text)
    return digest


# --- tiers ----------------------------------------------------------------------------------------------------------

BLOCK_TIERS: Final[Mapping[str, str]] = {name.lower(): name for name in ("Hot", "Cool", "Cold", "Archive", "Smart")}
PAGE_TIERS: Final[Mapping[str, str]] = {
    name.lower(): name for name in ("P4", "P6", "P10", "P15", "P20", "P30", "P40", "P50", "P60", "P70", "P80")
}


def read_tier(headers: Headers, *, is_page: bool = False, is_required: bool = False) -> str | None:
    """Return the tier that a request sets, in the service's spelling; which blob can have it is the model's rule."""
    text = headers.get("x-ms-access-tier")
    if not text:
        if is_required:
            raise missing_header("x-ms-access-tier")
        return None
    known = (PAGE_TIERS if is_page else BLOCK_TIERS).get(text.lower())
    if known is None:
        raise invalid_header_value("x-ms-access-tier", text)
    return known


def read_number(headers: Headers, name: str) -> int | None:
    """Return the whole number in a header, such as one of bytes."""
    text = headers.get(name)
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        raise invalid_header_value(name, text)
    return int(text)


def read_flag(headers: Headers, name: str) -> bool:
    text = headers.get(name)
    if not text:
        return False
    if text.lower() not in ("true", "false"):
        raise invalid_header_value(name, text)
    return text.lower() == "true"


@dataclass(frozen=True, slots=True)
class Immutability:
    until: int | None = None
    mode: str | None = None
    has_legal_hold: bool = False


_MODES: Final[Mapping[str, str]] = {"locked": "Locked", "unlocked": "Unlocked"}


def read_immutability(headers: Headers, *, now: int) -> Immutability:
    """Return the policy and the hold that a blob gets."""
    until = read_date_ticks(headers, IMMUTABLE_UNTIL)
    if until is not None and until <= now:
        raise invalid_header_value(IMMUTABLE_UNTIL, headers.get(IMMUTABLE_UNTIL) or "", "The policy ends in the past.")
    mode_text = headers.get(IMMUTABILITY_MODE)
    mode = _MODES.get(mode_text.lower()) if mode_text else None
    if mode_text and mode is None:
        raise invalid_header_value(IMMUTABILITY_MODE, mode_text)
    if mode is not None and until is None:
        raise missing_header(IMMUTABLE_UNTIL)
    if until is not None and mode is None:
        mode = "Unlocked"
    return Immutability(until, mode, read_flag(headers, LEGAL_HOLD))
