"""Documents, headers and addresses that tables, queues and blobs share."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.storage.access_policies import load_policies, policies_for_signing, read_policies, write_policies
from asterism.apis.storage.address import ServiceName, read_address
from asterism.apis.storage.headers import bool_header, http_date, read_query, read_whole, time_text
from asterism.apis.storage.metadata import METADATA_BYTES_MAX, metadata_headers, metadata_xml, read_metadata
from asterism.apis.storage.refusals import Refusal, busy
from asterism.apis.storage.service_properties import default_properties, read_properties, write_properties
from asterism.apis.storage.settings import StorageSettings
from asterism.apis.storage.xml_errors import xml_error_body, xml_translation
from asterism.apis.storage.xml_text import leaf, read_document, text_leaf, xml_safe
from asterism.errors import RequestRateTooLarge
from asterism.limits import KIB

WRAPPED = "<StorageServiceProperties>{}</StorageServiceProperties>"


def refusal_of(body: str, service: ServiceName = "blob") -> Refusal:
    with pytest.raises(Refusal) as refused:
        read_properties(WRAPPED.format(body).encode(), service)
    return refused.value


# --- xml ------------------------------------------------------------------------------------------------------------

BOMB = '<!DOCTYPE a [<!ENTITY x "xxxxxxxxxx"><!ENTITY y "&x;&x;&x;&x;&x;&x;&x;&x;">]><a>&y;</a>'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_with_a_dtd_is_refused_in_any_encoding(encoding: str) -> None:
    declaration = f'<?xml version="1.0" encoding="{encoding}"?>'
    with pytest.raises(Refusal) as refused:
        read_document((declaration + BOMB).encode(encoding), "a")
    assert refused.value.code == "InvalidXmlDocument"


@pytest.mark.parametrize("body", [b"", b"<a", b"<b/>", b"<a/><a/>", b"\xff", b'<?xml version="1.0" encoding="x"?><a/>'])
def test_other_documents_than_asked_for_are_refused(body: bytes) -> None:
    with pytest.raises(Refusal):
        read_document(body, "a")


def test_a_document_above_the_limit_is_refused() -> None:
    assert read_document(b"<a>" + bytes(b"x" * KIB) + b"</a>", "a", bytes_max=2 * KIB).text
    with pytest.raises(Refusal):
        read_document(b"<a>" + bytes(b"x" * KIB) + b"</a>", "a", bytes_max=KIB)


@given(st.text())
def test_text_arrives_as_it_was_but_for_characters_that_xml_cannot_hold(text: str) -> None:
    read = ElementTree.fromstring(text_leaf("a", xml_safe(text)).encode()).text or ""
    assert read == xml_safe(text)


@given(st.text())
def test_any_message_makes_an_error_that_can_be_read(text: str) -> None:
    refusal = Refusal(400, "InvalidInput", text, fields=(("HeaderValue", text),))
    root = ElementTree.fromstring(xml_error_body(refusal, request_id="r", now_wall_seconds=0))
    assert [child.tag for child in root] == ["Code", "Message", "HeaderValue"]


def test_numbers_and_flags_are_written_as_xml_has_them() -> None:
    assert leaf("a", True) + leaf("b", 5) + leaf("c", "") == "<a>true</a><b>5</b><c />"


def test_a_throttled_call_is_a_503_that_says_when_to_come_again() -> None:
    error = RequestRateTooLarge(retry_after_seconds=0.25)
    refusal = xml_translation({}).row(error)(error)
    assert (refusal.status, refusal.code) == (503, "ServerBusy")
    assert refusal.more_headers == [("retry-after", "1"), ("x-ms-retry-after-ms", "250")]
    assert busy().more_headers == []


# --- properties -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("service", ["blob", "queue", "table"])
def test_written_properties_are_read_back(service: ServiceName) -> None:
    properties = default_properties(service)
    read = read_properties(write_properties(properties), service)
    assert {**properties, **read} == properties


def test_a_document_changes_the_sections_that_it_has() -> None:
    body = (
        "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days><AllowPermanentDelete>true</AllowPermanentDelete>"
        "</DeleteRetentionPolicy><StaticWebsite><Enabled>true</Enabled><IndexDocument>index.html</IndexDocument>"
        "</StaticWebsite>"
    )
    assert read_properties(WRAPPED.format(body).encode(), "blob") == {
        "DeleteRetentionPolicy": {"Enabled": True, "Days": 7, "AllowPermanentDelete": True},
        "StaticWebsite": {"Enabled": True, "IndexDocument": "index.html"},
    }


def test_sections_of_blobs_are_unknown_elsewhere() -> None:
    body = "<StaticWebsite><Enabled>false</Enabled></StaticWebsite>"
    assert read_properties(WRAPPED.format(body).encode(), "blob") == {"StaticWebsite": {"Enabled": False}}
    assert refusal_of(body, "queue").code == "InvalidXmlDocument"


@pytest.mark.parametrize("days", ["0", "366", "-1", "", "x"])
def test_data_is_kept_for_a_day_to_a_year(days: str) -> None:
    policy = f"<Enabled>true</Enabled><Days>{days}</Days>"
    assert refusal_of(f"<DeleteRetentionPolicy>{policy}</DeleteRetentionPolicy>").code == "InvalidXmlNodeValue"


def test_there_are_at_most_five_rules_of_cross_origin_requests() -> None:
    rule = (
        "<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders /></CorsRule>"
    )
    five = read_properties(WRAPPED.format(f"<Cors>{rule * 5}</Cors>").encode(), "queue")
    assert len(five["Cors"]) == 5
    assert refusal_of(f"<Cors>{rule * 6}</Cors>").code == "InvalidXmlDocument"


# --- policies -------------------------------------------------------------------------------------------------------


def test_policies_may_lack_any_part_but_their_identifier() -> None:
    body = (
        "<SignedIdentifiers><SignedIdentifier><Id>a</Id></SignedIdentifier><SignedIdentifier><Id>b</Id><AccessPolicy>"
        "<Expiry>2026-01-01</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
    read = read_policies(body.encode())
    assert read_policies(write_policies(read).encode()) == read
    signing = policies_for_signing(read)
    assert (signing["a"].expiry, signing["b"].expiry, signing["b"].permissions) == ("", "2026-01-01", "r")


def test_an_empty_body_has_no_policies_and_more_than_five_are_refused() -> None:
    assert read_policies(b" ") == load_policies(None) == {}
    named = "".join(f"<SignedIdentifier><Id>{name}</Id></SignedIdentifier>" for name in range(6))
    with pytest.raises(Refusal) as refused:
        read_policies(f"<SignedIdentifiers>{named}</SignedIdentifiers>".encode())
    assert refused.value.code == "InvalidXmlDocument"


@pytest.mark.parametrize(
    ("field", "text"), [("Start", "yesterday"), ("Expiry", "2026-13-01"), ("Permission", "zzz"), ("Permission", "R")]
)
def test_a_policy_that_no_signature_could_use_is_refused(field: str, text: str) -> None:
    policy = f"<AccessPolicy><{field}>{text}</{field}></AccessPolicy>"
    body = f"<SignedIdentifiers><SignedIdentifier><Id>a</Id>{policy}</SignedIdentifier></SignedIdentifiers>"
    with pytest.raises(Refusal) as refused:
        read_policies(body.encode())
    assert (refused.value.code, dict(refused.value.fields)["XmlNodeName"]) == ("InvalidXmlNodeValue", field)


# --- metadata -------------------------------------------------------------------------------------------------------


def test_metadata_are_the_headers_with_its_prefix() -> None:
    headers = {"x-ms-meta-b_2": " 2 ", "x-ms-meta-a": "1", "x-ms-meta": "{'val1': 'Test'}", "x-ms-version": "x"}
    metadata = read_metadata(headers)
    assert metadata == {"a": "1", "b_2": "2"}
    assert metadata_headers(metadata) == [("x-ms-meta-a", "1"), ("x-ms-meta-b_2", "2")]
    assert metadata_xml(metadata) == "<Metadata><a>1</a><b_2>2</b_2></Metadata>"


@pytest.mark.parametrize(
    ("name", "code"), [("1a", "InvalidMetadata"), ("a-b", "InvalidMetadata"), ("", "EmptyMetadataKey")]
)
def test_names_of_metadata_are_identifiers(name: str, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_metadata({f"x-ms-meta-{name}": "1"})
    assert (refused.value.status, refused.value.code) == (400, code)


class UnreadableHeaders(dict[str, str]):
    """Headers of the listener: it has the name of one whose bytes it cannot read as text, and no value."""

    def get(self, key: str, default: object = None, /) -> None:  # type: ignore[override] # as the listener does
        return None


def test_metadata_that_the_listener_cannot_read_are_refused() -> None:
    with pytest.raises(Refusal) as refused:
        read_metadata(UnreadableHeaders({"x-ms-meta-a": "?"}))
    assert refused.value.code == "InvalidMetadata"


def test_metadata_have_a_limit_together() -> None:
    assert read_metadata({"x-ms-meta-a": "x" * (METADATA_BYTES_MAX - 1)})
    with pytest.raises(Refusal) as refused:
        read_metadata({"x-ms-meta-a": "x" * METADATA_BYTES_MAX})
    assert refused.value.code == "MetadataTooLarge"


# --- parameters, headers and addresses ------------------------------------------------------------------------------


def test_a_plus_is_a_plus_but_for_tables() -> None:
    assert read_query("a=1+2%20%2B&b=&c") == {"a": "1+2 +", "b": "", "c": ""}
    assert read_query("a=1+2%20%2B", of_tables=True) == {"a": "1 2 +"}


def test_names_of_parameters_are_alike_in_any_case_but_for_tables() -> None:
    assert read_query("Comp=Metadata&%53R=b") == {"comp": "Metadata", "sr": "b"}
    assert read_query("NextRowKey=R", of_tables=True) == {"NextRowKey": "R"}


@pytest.mark.parametrize("text", ["0", "33", "-5"])
def test_a_number_out_of_its_range_is_refused_with_the_range(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_whole({"numofmessages": text}, "numofmessages", minimum=1, maximum=32)
    assert refused.value.code == "OutOfRangeQueryParameterValue"
    assert dict(refused.value.fields) == {
        "QueryParameterName": "numofmessages",
        "QueryParameterValue": text,
        "MinimumAllowed": "1",
        "MaximumAllowed": "32",
    }


def test_a_number_is_read_and_other_texts_are_refused() -> None:
    assert read_whole({"n": "32"}, "n", minimum=1, maximum=32) == 32
    assert read_whole({}, "n", minimum=1, maximum=32, default=7) == 7
    with pytest.raises(Refusal) as refused:
        read_whole({"n": "٣"}, "n", minimum=1, maximum=32)
    assert refused.value.code == "InvalidQueryParameterValue"


def test_a_flag_is_true_or_false() -> None:
    assert bool_header({"x": "True"}, "x")
    assert bool_header({}, "x", default=True)
    with pytest.raises(Refusal):
        bool_header({"x": "yes"}, "x")


def test_times_are_written_as_clients_read_them() -> None:
    assert time_text(1_700_000_000.5) == "2023-11-14T22:13:20.5000000Z"
    assert http_date(1_700_000_000.5) == "Tue, 14 Nov 2023 22:13:20 GMT"


@pytest.mark.parametrize(
    ("service", "authority", "path", "expected"),
    [
        ("blob", "127.0.0.1:10000", "/acct/c/a", ("acct", "c/a", False, "/acct", False)),
        ("blob", "acct.blob.localhost", "/c/a", ("acct", "c/a", False, "", False)),
        ("blob", "acct-secondary.blob.localhost", "/c/a", ("acct", "c/a", True, "", False)),
        ("blob", "acct.web.localhost", "/index.html", ("acct", "index.html", False, "", True)),
        ("blob", "127.0.0.1", "/acct-secondary/acct/a", ("acct", "acct/a", True, "/acct", False)),
        ("queue", "acct.queue.localhost:5", "/q", ("acct", "q", False, "", False)),
        ("queue", "acct.blob.localhost:5", "/q", ("q", "", False, "/q", False)),
        ("table", "127.0.0.1", "/acct-secondary/acct/t", ("acct", "t", True, "/acct", False)),
    ],
)
def test_an_address_names_account_and_resource(
    service: ServiceName, authority: str, path: str, expected: tuple[object, ...]
) -> None:
    address = read_address(service, authority, path)
    assert (
        address.account,
        address.resource,
        address.is_secondary,
        address.base_path,
        address.is_website,
    ) == expected


def test_without_accounts_there_is_the_development_account() -> None:
    settings = StorageSettings()
    assert (list(settings.accounts), settings.has_own_accounts) == (["devstoreaccount1"], False)
    assert list(settings.first_keys()) == ["devstoreaccount1"]
