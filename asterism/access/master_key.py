"""Signatures made with an account key: HMAC-SHA256 over verb, resource type, link and date."""

from __future__ import annotations

import binascii
import hmac
from collections.abc import Sequence
from urllib.parse import unquote

from asterism.access.http_dates import DATE_SKEW_SECONDS_MAX, wall_seconds_of
from asterism.access.keys import AccountKeys, Grant
from asterism.errors import Unauthorized

_TOKEN_START = "type=master&ver=1.0&sig="
# The form that the official clients send: percent-encoded, with upper-case digits.
_TOKEN_START_ENCODED = "type%3Dmaster%26ver%3D1.0%26sig%3D"
_TOKEN_START_ENCODED_LENGTH = len(_TOKEN_START_ENCODED)


def signature(key_bytes: bytes, *, verb: str, resource_type: str, link: str, date: str) -> str:
    """Return the signature that a client puts into its authorization header, as base64 text."""
    payload = _payload(verb=verb, resource_type=resource_type, link=link, date=date)
    digest = hmac.digest(key_bytes, payload.encode(), "sha256")
    return binascii.b2a_base64(digest, newline=False).decode("ascii")


def check_master_key(
    keys: AccountKeys,
    *,
    authorization: str,
    verb: str,
    resource_type: str,
    links: Sequence[str],
    date: str,
    now_wall_seconds: float,
) -> Grant:
    """Return the grant of the key that signed this request; Unauthorized if none of the account's keys did.

    `links` are the possible forms of the signed link, the likeliest first: a path by names signs the path, a path by
    resource ids signs the last id alone, and a name can look like an id.
    """
    _check_date(date, now_wall_seconds=now_wall_seconds)
    checked = (authorization, verb, resource_type, links[0], date)
    grant = keys.checked.get(checked)
    if grant is not None:
        return grant
    grant = _check_signature(keys, authorization, verb=verb, resource_type=resource_type, links=links, date=date)
    keys.checked.remember(checked, grant)
    return grant


def _check_signature(
    keys: AccountKeys, authorization: str, *, verb: str, resource_type: str, links: Sequence[str], date: str
) -> Grant:
    given_digest = _given_digest(authorization)
    # All payloads are tried with one key before the next: nearly all requests are signed with the first.
    payloads = [
        _payload(verb=verb, resource_type=resource_type, link=link, date=date).encode("utf-8", "surrogatepass")
        for link in links
    ]
    for key_bytes, grant in keys.decoded:
        for payload in payloads:
            if hmac.compare_digest(hmac.digest(key_bytes, payload, "sha256"), given_digest):
                return grant
    raise Unauthorized(reason=_mismatch_reason(payloads))


def _payload(*, verb: str, resource_type: str, link: str, date: str) -> str:
    # The last, empty line is for the HTTP date, which clients do not sign if they send x-ms-date.
    return f"{verb.lower()}\n{resource_type.lower()}\n{link}\n{date.lower()}\n\n"


def _given_digest(authorization: str) -> bytes:
    if authorization.startswith(_TOKEN_START_ENCODED):
        encoded = authorization[_TOKEN_START_ENCODED_LENGTH:]
        text = encoded.replace("%2B", "+").replace("%2F", "/").replace("%3D", "=")
    else:
        text = _signature_of_unusual_token(authorization)
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        raise Unauthorized(reason="The signature in the authorization header is not base64 text.") from None


def _signature_of_unusual_token(authorization: str) -> str:
    if not authorization:
        raise Unauthorized(reason="The request has no authorization header.")
    token = unquote(authorization)
    if token[: len(_TOKEN_START)].lower() != _TOKEN_START:
        raise Unauthorized(
            reason="The authorization header does not have the form type=master&ver=1.0&sig=<signature>, URL-encoded."
        )
    return token[len(_TOKEN_START) :]


def _check_date(date: str, *, now_wall_seconds: float) -> None:
    if not date:
        raise Unauthorized(reason="The request has no x-ms-date header.")
    signed_wall_seconds = wall_seconds_of(date)
    if signed_wall_seconds is None:
        raise Unauthorized(reason=f"The x-ms-date header is not an RFC 1123 date: '{date[:64]}'.")
    if abs(now_wall_seconds - signed_wall_seconds) > DATE_SKEW_SECONDS_MAX:
        raise Unauthorized(
            reason="The authorization token is not valid at the current time: its date is more than "
            f"{DATE_SKEW_SECONDS_MAX // 60} minutes from the server's clock (signed '{date}')."
        )


def _mismatch_reason(payloads: Sequence[bytes]) -> str:
    # The signed text is not a secret, and clients find the cause of a wrong signature by comparing it with their own.
    shown = " or ".join(repr(payload.decode("utf-8", "replace")) for payload in payloads)
    return f"No key of the account gives the signature of this request. The server signed {shown}."
