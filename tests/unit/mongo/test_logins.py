"""Logins without a server: SCRAM by the examples of its standards, and texts that are prepared."""

from __future__ import annotations

import base64

import pytest

from asterism.apis.mongo.users import scram
from asterism.apis.mongo.users.sasl_text import ProhibitedText, prepare
from asterism.apis.mongo.users.scram import Conversation, Credentials, LoginFailed, derive, is_password, read_first


def conversation_of(credentials: list[Credentials], shown: Credentials, first: str, nonce: str) -> Conversation:
    """Return a conversation whose nonce ends as in the standard's example."""
    conversation = Conversation(read_first(first.encode()), shown, credentials, nonce=b"")
    conversation._nonce += nonce
    conversation.server_first = conversation.server_first.replace(",s=", f"{nonce},s=", 1)
    return conversation


def test_the_example_of_rfc_7677_is_a_login() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    known = derive(scram.SHA_256, b"pencil", salt, 4096)
    first = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    conversation = conversation_of([known], known, first, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    assert conversation.server_first.endswith(",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert conversation.finish(last.encode()) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_example_of_rfc_5802_is_a_login() -> None:
    known = derive(scram.SHA_1, b"pencil", base64.b64decode("QSXCR+Q6sek8bf92"), 4096)
    first = "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL"
    conversation = conversation_of([known], known, first, "3rfcNHYJY1ZVvWVs7j")
    last = "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
    assert conversation.finish(last.encode()) == b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ="


@pytest.mark.parametrize(
    "last",
    [
        b"",
        b"c=biws",
        b"\xff\xfe",
        b"c=biws,r=xy,p=not base64",
        b"c=biws,r=other,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        b"c=eSws,r=x,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        b"c=biws,r=x,p=",
        b"c=biws,r=x,p=AAAA",
    ],
)
def test_last_messages_that_prove_nothing_fail(last: bytes) -> None:
    known = derive(scram.SHA_256, b"pencil", b"salt", 1)
    first = read_first(b"n,,n=user,r=x")
    for candidates in ([known], []):
        with pytest.raises(LoginFailed):
            Conversation(first, known, candidates, nonce=b"").finish(last)


@pytest.mark.parametrize("first", [b"", b"n,,", b"n,,n=user", b"n,,r=x", b"p=tls,,n=a,r=b", b"\xff", b"n,a=x,n=a,r=b"])
def test_first_messages_without_user_or_nonce_fail(first: bytes) -> None:
    with pytest.raises(LoginFailed):
        read_first(first)


def test_names_may_contain_commas_and_equal_signs() -> None:
    assert read_first(b"n,,n=a=2Cb=3Dc,r=x").user == "a,b=c"


def test_a_password_is_checked_by_its_credentials() -> None:
    known = derive(scram.SHA_256, scram.password_text(scram.SHA_256, "u", "pässword"), b"salt", 2)
    assert is_password(known, "u", "pa\u0308ssword")
    assert not is_password(known, "u", "password")
    assert not is_password(known, "u", "\u0007")


def test_passwords_that_look_alike_are_the_same() -> None:
    # The examples of RFC 4013.
    assert [prepare(text) for text in ("I\u00adX", "user", "USER", "\u00aa", "\u2168")] == [
        "IX", "user", "USER", "a", "IX",
    ]  # fmt: skip
    assert prepare("a\u00a0b") == "a b"
    for text in ("\u0007", "\u0627\u0031", "\u0627a\u0627", "\ue000"):
        with pytest.raises(ProhibitedText):
            prepare(text)
