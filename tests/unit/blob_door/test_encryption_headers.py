"""Keys and scopes of encryption in the headers of requests."""

from __future__ import annotations

import base64
import hashlib

import pytest

from asterism.apis.blob.encryption import (
    check_not_both,
    choose_scope,
    encryption_headers,
    key_digest,
    read_customer_key,
    read_source_key,
)
from asterism.apis.storage.refusals import Refusal

KEY = bytes(range(32))
SHA256 = base64.b64encode(hashlib.sha256(KEY).digest()).decode()
HEADERS = {
    "x-ms-encryption-key": base64.b64encode(KEY).decode(),
    "x-ms-encryption-key-sha256": SHA256,
    "x-ms-encryption-algorithm": "AES256",
}


def test_a_key_is_known_by_its_digest() -> None:
    assert key_digest(read_customer_key(HEADERS)) == SHA256


def test_a_request_without_a_key_has_none() -> None:
    assert read_customer_key({}) is None
    assert key_digest(None) is None


def test_the_key_of_a_source_stands_in_headers_of_its_own() -> None:
    of_source = {name.replace("x-ms-", "x-ms-source-", 1): value for name, value in HEADERS.items()}
    assert key_digest(read_source_key(of_source)) == SHA256
    assert read_source_key(HEADERS) is None


@pytest.mark.parametrize("missing", list(HEADERS))
def test_a_key_needs_all_three_headers(missing: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_customer_key({name: value for name, value in HEADERS.items() if name != missing})
    assert (refused.value.code, list(refused.value.fields)) == ("MissingRequiredHeader", [("HeaderName", missing)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"x-ms-encryption-algorithm": "AES128"},
        {"x-ms-encryption-key": "no base64!"},
        {"x-ms-encryption-key": base64.b64encode(b"short").decode()},
        {"x-ms-encryption-key-sha256": base64.b64encode(bytes(32)).decode()},
    ],
)
def test_a_wrong_key_is_refused_without_showing_it(wrong: dict[str, str]) -> None:
    with pytest.raises(Refusal) as refused:
        read_customer_key({**HEADERS, **wrong})
    assert refused.value.code == "InvalidHeaderValue"
    assert HEADERS["x-ms-encryption-key"] not in str(refused.value.fields)


def test_a_request_has_a_key_or_a_scope() -> None:
    headers = {**HEADERS, "x-ms-encryption-scope": "scope-one"}
    with pytest.raises(Refusal) as refused:
        check_not_both(headers, read_customer_key(headers))
    assert refused.value.code == "UnsupportedHeader"


def scope(
    requested: str | None, granted: str | None = None, default: str | None = None, *, denies: bool = False
) -> str | None:
    headers = {} if requested is None else {"x-ms-encryption-scope": requested}
    return choose_scope(headers, granted_scope=granted, default_scope=default, denies_override=denies)


def test_the_scope_is_that_of_the_request_the_signature_or_the_container() -> None:
    assert scope(None) is None
    assert scope("mine", default="other") == "mine"
    assert scope(None, "signed", "other") == "signed"
    assert scope(None, default="other") == "other"
    assert scope("signed", "signed") == "signed"


def test_a_signature_for_another_scope_does_not_permit_a_write() -> None:
    with pytest.raises(Refusal) as refused:
        scope("mine", "signed")
    assert refused.value.status == 403


def test_a_container_can_deny_other_scopes_than_its_own() -> None:
    assert scope("own", default="own", denies=True) == "own"
    assert scope(None, default="own", denies=True) == "own"
    with pytest.raises(Refusal) as refused:
        scope("mine", default="own", denies=True)
    assert refused.value.code == "RequestForbiddenByContainerEncryptionPolicy"


@pytest.mark.parametrize("name", ["-begins", "with space", "a" * 64, "ends-"])
def test_the_name_of_a_scope_has_rules(name: str) -> None:
    with pytest.raises(Refusal) as refused:
        scope(name)
    assert refused.value.code == "InvalidHeaderValue"


def test_answers_tell_how_data_are_encrypted() -> None:
    assert encryption_headers(None, None, is_write=True) == [("x-ms-request-server-encrypted", "true")]
    assert encryption_headers(SHA256, None, is_write=False) == [
        ("x-ms-server-encrypted", "true"),
        ("x-ms-encryption-key-sha256", SHA256),
    ]
    assert ("x-ms-encryption-scope", "s") in encryption_headers(None, "s", is_write=True)
