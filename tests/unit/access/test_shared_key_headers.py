"""Signatures over the headers of requests for blobs and queues, made by the official client's own code."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from urllib.parse import quote, unquote, urlsplit

import pytest
from azure.core.pipeline import PipelineContext, PipelineRequest
from azure.core.pipeline.transport import HttpRequest
from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from asterism.access.shared_key import shared_key_signature
from asterism.access.shared_key_headers import check_signed_headers, sign_headers, wire_forms_of_names

KEY = b"a key of an account"
DATE = {"x-ms-date": "Mon, 16 Nov 2026 01:33:51 GMT", "x-ms-version": "2026-10-06"}


def sent_by_client(method: str, url: str, headers: dict[str, str]) -> dict[str, str]:
    """Return the headers of a request after the client has signed it."""
    request = HttpRequest(method, url, headers={**DATE, **headers})
    policy = SharedKeyCredentialPolicy("acct", base64.b64encode(KEY).decode())
    context = PipelineContext(SimpleNamespace())
    signing = PipelineRequest(request, context)
    text = (
        policy._get_verb(signing)
        + policy._get_headers(signing, _SIGNED)
        + policy._get_canonicalized_headers(signing)
        + policy._get_canonicalized_resource(signing)
        + policy._get_canonicalized_resource_query(signing)
    )
    policy._add_authorization_header(signing, text)
    return {name.lower(): value for name, value in request.headers.items()}


_SIGNED = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "byte_range",
]


def is_signed(method: str, url: str, headers: dict[str, str], *, keys: tuple[bytes, ...] = (b"other", KEY)) -> bool:
    parts = urlsplit(url)
    return check_signed_headers(
        keys,
        authorization=headers["authorization"],
        verb=method,
        headers=headers,
        account="acct",
        paths=(unquote(parts.path),),
        query_string=parts.query,
    )


URLS = [
    "http://h/acct",
    "http://h/acct/?comp=list&prefix=&marker=a%2Fb%20c%2B",
    "http://h/acct/cont/dir/blob%20%C3%A9?comp=block&blockid=YWI%3D&timeout=",
    "http://acct.blob.h/%24root/~tilde%27s.txt?snapshot=2026-11-15T20%3A55%3A43.5130000Z",
    "http://h/acct/queue/messages?visibilitytimeout=5&messagettl=-1",
]


@pytest.mark.parametrize("url", URLS)
def test_a_request_is_signed_as_the_client_signs_it(url: str) -> None:
    sent = sent_by_client("PUT", url, {"content-type": "text/plain", "content-length": "5", "x-ms-meta-name": "value"})
    headers = {name: value for name, value in sent.items() if name != "authorization"}
    parts = urlsplit(url)
    signed = sign_headers(KEY, verb="PUT", headers=headers, account="acct", path=parts.path, query_string=parts.query)
    assert signed == sent["authorization"]


@pytest.mark.parametrize("url", URLS)
def test_what_the_client_signs_is_recognized(url: str) -> None:
    sent = sent_by_client(
        "PUT",
        url,
        {
            "Content-Length": "11",
            "Content-Type": "text/plain",
            "Content-MD5": "XrY7u+Ae7tCTyyK7j1rNww==",
            "If-None-Match": "*",
            "x-ms-blob-type": "BlockBlob",
            "x-ms-meta-a_b": "1",
            "x-ms-meta-a1": "2",
            "x-ms-meta": "{'val1': 'Test'}",
        },
    )
    assert is_signed("PUT", url, sent)


def test_an_empty_body_is_signed_without_its_length() -> None:
    sent = sent_by_client("PUT", URLS[0], {"Content-Length": "0"})
    assert sent["content-length"] == "0"
    assert is_signed("PUT", URLS[0], sent)


@pytest.mark.parametrize("changed", ["x-ms-blob-type", "content-length", "x-ms-date", "x-ms-meta-new", "if-match"])
def test_a_changed_header_breaks_the_signature(changed: str) -> None:
    sent = sent_by_client("PUT", URLS[2], {"Content-Length": "11", "x-ms-blob-type": "BlockBlob"})
    assert not is_signed("PUT", URLS[2], {**sent, changed: "12"})


@pytest.mark.parametrize("other", ["http://h/acct/cont/dir/blob", f"{URLS[2]}&x=1", URLS[2].replace("comp", "restype")])
def test_a_changed_address_breaks_the_signature(other: str) -> None:
    assert not is_signed("PUT", other, sent_by_client("PUT", URLS[2], {}))


def test_another_key_does_not_fit() -> None:
    assert not is_signed("GET", URLS[0], sent_by_client("GET", URLS[0], {}), keys=(b"other",))


def test_a_client_that_sorts_by_ascii_is_recognized() -> None:
    headers = {**DATE, "x-ms-meta-a_b": "1", "x-ms-meta-a1": "2"}
    named = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    text = "GET\n" + "\n" * 11 + named + "/acct/acct/c\ncomp:list"
    sent = {**headers, "authorization": f"SharedKey acct:{shared_key_signature(KEY, text)}"}
    assert is_signed("GET", "http://h/acct/c?comp=list", sent)


def test_a_date_header_is_signed_where_the_services_own_is_missing() -> None:
    text = "GET\n" + "\n" * 5 + "Mon, 16 Nov 2026 01:33:51 GMT\n" + "\n" * 5 + "/acct/acct/c"
    sent = {"date": DATE["x-ms-date"], "authorization": f"SharedKey acct:{shared_key_signature(KEY, text)}"}
    assert is_signed("GET", "http://h/acct/c", sent)


def test_the_lite_form_signs_fewer_headers_and_comp() -> None:
    text = f"GET\n\ntext/plain\n\nx-ms-date:{DATE['x-ms-date']}\n/acct/acct/c?comp=list"
    signature = shared_key_signature(KEY, text)
    sent = {
        "content-type": "text/plain",
        "range": "bytes=0-1",
        "x-ms-date": DATE["x-ms-date"],
        "authorization": f"SharedKeyLite acct:{signature}",
    }
    assert is_signed("GET", "http://h/acct/c?prefix=a&comp=list", sent)


PATHS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\t"), min_size=1, max_size=40).map(
    lambda name: f"/acct/cont/{name}"
)


@given(PATHS)
def test_the_encodings_of_clients_are_among_those_tried(path: str) -> None:
    name = path.removeprefix("/acct/cont/")
    forms = set(wire_forms_of_names(path))
    assert quote(path, safe="/~") in forms
    assert f"/acct/cont/{quote(name, safe='')}" in forms
    assert quote(path, safe="/!$&'()*,;=:@") in forms


@pytest.mark.parametrize("name", ["a!$&'()*,;=:@b", "a+b", "é ü", "50%", "a//b"])
def test_the_asyncio_clients_encoding_is_among_those_tried(name: str) -> None:
    wire = str(URL(quote(f"/acct/cont/{name}", safe="/~")))
    assert wire in set(wire_forms_of_names(f"/acct/cont/{name}"))


@given(st.text(max_size=3000))
def test_the_number_of_encodings_is_bounded(path: str) -> None:
    assert len(list(wire_forms_of_names(f"/{path}"))) <= 18


@pytest.mark.parametrize("authorization", ["SharedKey acct:", "SharedKey acct:é", "SharedKey", "SharedKey a:b:c=="])
def test_other_texts_are_no_signature(authorization: str) -> None:
    assert not is_signed("GET", URLS[0], {**DATE, "authorization": authorization})
