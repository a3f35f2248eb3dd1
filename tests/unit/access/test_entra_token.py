"""Tokens of Microsoft Entra ID in the emulator's form."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from asterism.access.entra_token import check_entra_token
from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, AccountKeys, Grant
from asterism.errors import Unauthorized

KEYS = AccountKeys.complete(primary=WELL_KNOWN_EMULATOR_KEY)
CLAIMS: dict[str, object] = {"nbf": 1000, "exp": 5000}


def token(claims: object = None, signature: str = WELL_KNOWN_EMULATOR_KEY) -> str:
    texts = ('{"alg":"RS256"}', json.dumps(CLAIMS if claims is None else claims), signature)
    parts = [base64.urlsafe_b64encode(text.encode()).decode().rstrip("=") for text in texts]
    return "type=aad&ver=1.0&sig=" + ".".join(parts)


def test_a_token_signed_with_the_key_may_do_what_the_key_may_do() -> None:
    assert check_entra_token(KEYS, token(), now_wall_seconds=2000) is Grant.FULL
    assert check_entra_token(KEYS, quote(token(), safe=""), now_wall_seconds=2000) is Grant.FULL
    assert check_entra_token(KEYS, token(signature=KEYS.primary_readonly), now_wall_seconds=2000) is Grant.READ_ONLY


def test_a_token_may_leave_out_its_times() -> None:
    assert check_entra_token(KEYS, token({}), now_wall_seconds=2000) is Grant.FULL


@pytest.mark.parametrize("now", [0, 6000])
def test_a_token_is_valid_only_in_its_time(now: int) -> None:
    with pytest.raises(Unauthorized):
        check_entra_token(KEYS, token(), now_wall_seconds=now)


@pytest.mark.parametrize(
    "bad",
    [
        token(signature="another key"),
        token(signature=""),
        token([]),
        "type=aad&ver=1.0&sig=a.b",
        "type=aad&ver=1.0&sig=a.b.c.d",
        "type=aad&ver=1.0&sig=é.é.é",
        "type=aad",
    ],
)
def test_any_other_token_is_refused(bad: str) -> None:
    with pytest.raises(Unauthorized):
        check_entra_token(KEYS, bad, now_wall_seconds=2000)
