"""Bearer tokens, signed with a key of the account."""

from __future__ import annotations

import base64
import hmac
import json

import pytest

from asterism.access.bearer_token import check_bearer_token
from asterism.errors import Unauthorized

KEY = b"a key of an account"
NOW = 1_800_000_000.0
CLAIMS = {
    "aud": "https://storage.azure.com",
    "iss": "https://sts.windows.net/tenant/",
    "nbf": NOW - 60,
    "exp": NOW + 600,
}


def part(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def token(claims: object = CLAIMS, *, key: bytes = KEY) -> str:
    signed = f"{part(b'{}')}.{part(json.dumps(claims).encode())}"
    return f"Bearer {signed}.{part(hmac.digest(key, signed.encode(), 'sha256'))}"


def check(authorization: str, *, unsigned_allowed: bool = False) -> None:
    check_bearer_token((KEY,), authorization, account="acct", unsigned_allowed=unsigned_allowed, now_wall_seconds=NOW)


def test_a_token_signed_with_the_accounts_key_is_accepted() -> None:
    check(token())
    check(token({**CLAIMS, "aud": "https://cosmos.azure.com/"}))
    check(token({**CLAIMS, "aud": "https://acct.table.core.windows.net"}))


def test_a_token_of_another_key_is_accepted_only_if_unsigned_ones_are() -> None:
    with pytest.raises(Unauthorized):
        check(token(key=b"another"))
    check(token(key=b"another"), unsigned_allowed=True)


@pytest.mark.parametrize(
    "claims",
    [
        {**CLAIMS, "aud": "https://vault.azure.net"},
        {**CLAIMS, "iss": "https://example.test/"},
        {**CLAIMS, "exp": NOW - 600},
        {**CLAIMS, "nbf": NOW + 600},
        {name: value for name, value in CLAIMS.items() if name != "exp"},
        [],
    ],
)
def test_claims_are_checked_with_any_signature(claims: object) -> None:
    with pytest.raises(Unauthorized):
        check(token(claims), unsigned_allowed=True)


@pytest.mark.parametrize("authorization", ["Bearer", "Bearer x", "Bearer a.b.c", "Bearer ....", "Bearer é.é.é"])
def test_other_texts_are_refused(authorization: str) -> None:
    with pytest.raises(Unauthorized):
        check(authorization, unsigned_allowed=True)
