"""The URL that a request copies from."""

from __future__ import annotations

import pytest

from asterism.apis.blob.source_url import SOURCE_URL_CHARACTERS_MAX, cannot_verify_source, check_source_url
from asterism.apis.storage.refusals import Refusal, no_credentials


def test_a_signature_is_not_shown() -> None:
    assert check_source_url("https://a.blob.host/c/b%20c?sv=1&sig=secret#x") == "https://a.blob.host/c/b%20c"


def test_the_snapshot_of_a_source_is_shown() -> None:
    url = "http://host/a/c/b?snapshot=2026-11-19T02%3A00%3A00.0000000Z"
    assert check_source_url(url + "&sig=secret") == url


@pytest.mark.parametrize(
    "text",
    [
        "ftp://host/c/b",
        "no address",
        "/c/b",
        "http://host",
        "http://host/",
        "http://host:0/c/b",
        "http://host:99999/c/b",
        "http://[::1/c/b",
        "http://host/" + "b" * SOURCE_URL_CHARACTERS_MAX,
    ],
)
def test_what_is_no_url_of_a_blob_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_source_url(text)
    assert (refused.value.status, refused.value.code) == (400, "InvalidHeaderValue")


def test_a_source_that_cannot_be_read_gives_its_own_status() -> None:
    refusal = cannot_verify_source(no_credentials())
    assert (refusal.status, refusal.code) == (401, "CannotVerifyCopySource")
    assert ("x-ms-copy-source-error-code", "NoAuthenticationInformation") in refusal.more_headers
