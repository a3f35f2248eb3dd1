"""First steps with the official clients: every language, with the address and the key of the server.

Programs in Python are run by tests/clients/test_introductions.py, those in JavaScript by `make conformance-clients`.
Those in C#, Java and Go are only looked at, here, for the parts without which their clients do not connect.
"""

from __future__ import annotations

import pytest

from asterism.apis.blob.spec import SPEC as BLOB
from asterism.apis.door_spec import Endpoint, Introduction, Surroundings
from asterism.apis.nosql.spec import SPEC as NOSQL
from asterism.apis.snippets import render_code
from asterism.apis.storage.accounts import parse_accounts
from asterism.apis.table.spec import SPEC as TABLE

KEY = "c2VjcmV0"


def surroundings(scheme: str) -> Surroundings:
    endpoints = {
        name: Endpoint("127.0.0.1", port, "http", is_encrypted=scheme == "https")
        for name, port in (("nosql", 8081), ("table", 10002), ("cosmos-table", 8902), ("blob", 10000))
    }
    return Surroundings(endpoints, is_local=True, account="asterism", key="other", key_is_public=True)


def introduction(door: str, scheme: str) -> Introduction:
    spec = {"nosql": NOSQL, "table": TABLE, "blob": BLOB}[door]
    assert spec.introduce is not None
    return spec.introduce(spec.settings(), surroundings(scheme), "devstoreaccount1", KEY)


def code(door: str, scheme: str, language: str) -> str:
    (snippet,) = (snippet for snippet in introduction(door, scheme).snippets if snippet.language == language)
    return snippet.code


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("door", ["nosql", "table", "blob"])
def test_every_official_client_has_a_program_with_the_address_and_the_key(door: str, scheme: str) -> None:
    snippets = introduction(door, scheme).snippets
    assert [snippet.language for snippet in snippets] == ["Python", "JavaScript", "C#", "Java", "Go"]
    assert [snippet.language for snippet in snippets if KEY not in snippet.code] == []
    assert [snippet.language for snippet in snippets if f"{scheme}://127.0.0.1:" not in snippet.code] == []
    assert [snippet.language for snippet in snippets if "<<" in snippet.code or "[http" in snippet.code] == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_introduction_of_items_has_their_connection_string(scheme: str) -> None:
    shown = introduction("nosql", scheme)
    assert shown.endpoints == [("Endpoint", f"{scheme}://127.0.0.1:8081/")]
    assert shown.connection_strings == [
        ("Connection string", f"AccountEndpoint={scheme}://127.0.0.1:8081/;AccountKey={KEY};")
    ]


def test_the_introduction_of_tables_has_a_connection_string_for_each_port() -> None:
    strings = dict(introduction("table", "http").connection_strings)
    assert strings["Table storage"] == (
        f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={KEY};"
        "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"
    )
    assert strings["Cosmos DB for Table"].endswith("TableEndpoint=http://127.0.0.1:8902/devstoreaccount1;")


def test_the_introduction_of_blobs_has_their_connection_string() -> None:
    assert introduction("blob", "https").connection_strings == [
        (
            "Connection string",
            f"DefaultEndpointsProtocol=https;AccountName=devstoreaccount1;AccountKey={KEY};"
            "BlobEndpoint=https://127.0.0.1:10000/devstoreaccount1;",
        )
    ]


def test_an_account_of_a_single_port_is_introduced_with_that_port_only() -> None:
    assert TABLE.introduce is not None
    settings = TABLE.settings(more_cosmos_accounts=parse_accounts([f"blue:{KEY}"]))
    shown = TABLE.introduce(settings, surroundings("http"), "blue", KEY)
    assert shown.endpoints == [("Cosmos DB for Table", "http://127.0.0.1:8902/blue")]
    assert "8902/blue" in shown.snippets[0].code


@pytest.mark.parametrize(
    ("door", "scheme", "language", "parts"),
    [
        ("nosql", "http", "C#", ["ConnectionMode.Gateway", "LimitToEndpoint = true"]),
        ("nosql", "https", "C#", ["ConnectionMode.Gateway", "DangerousAcceptAnyServerCertificateValidator"]),
        ("nosql", "http", "Java", ["HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "gatewayMode()"]),
        ("nosql", "https", "Java", ["EMULATOR_SERVER_CERTIFICATE_VALIDATION_DISABLED", "gatewayMode()"]),
        ("nosql", "http", "Go", ["NewKeyCredential", "http.StatusConflict"]),
        ("nosql", "https", "Go", ["InsecureSkipVerify: true", "crypto/tls"]),
        ("table", "http", "C#", ["new TableClient("]),
        ("table", "https", "C#", ["HttpClientTransport", "DangerousAcceptAnyServerCertificateValidator"]),
        ("table", "http", "Java", ["createTableIfNotExists"]),
        ("table", "https", "Java", ["InsecureTrustManagerFactory"]),
        ("table", "http", "Go", ["NewServiceClientFromConnectionString"]),
        ("table", "https", "Go", ["InsecureSkipVerify: true", "crypto/tls"]),
    ],
)
def test_a_program_has_the_parts_that_its_client_needs(door: str, scheme: str, language: str, parts: list[str]) -> None:
    text = code(door, scheme, language)
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize("language", ["Python", "JavaScript", "C#", "Java", "Go"])
@pytest.mark.parametrize("door", ["nosql", "table", "blob"])
def test_without_encryption_no_program_stops_checking_certificates(door: str, language: str) -> None:
    assert "certificate" not in code(door, "http", language).lower()


def test_marked_lines_are_for_their_scheme_only() -> None:
    template = "all\n[http] plain\n[https]   secret <<KEY>>\n[https]\n"
    assert render_code(template, is_encrypted=False, values={}) == "all\nplain\n"
    assert render_code(template, is_encrypted=True, values={"KEY": "k"}) == "all\n  secret k\n\n"


def test_a_placeholder_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError, match="KEY"):
        render_code("<<KEY>>", is_encrypted=False, values={})
