"""The way of a request through the door that blobs and queues share."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from azure.storage.blob import UserDelegationKey, generate_account_sas, generate_blob_sas

from asterism.access.keys import DEVELOPMENT_KEY
from asterism.access.sas_grants import Policy
from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.storage.cors import cors_headers
from asterism.apis.storage.service_properties import change_properties, stored_properties
from asterism.apis.transports.http import Response
from tests.unit.storage_doors.toy_storage_door import (
    ACCOUNT,
    BODY_BYTES_MAX,
    ToyDocuments,
    ToyDoor,
    signed_request,
)

TOMORROW = datetime.now(UTC) + timedelta(days=1)


def blob_sas(permission: str = "r", name: str = "a", **fields: object) -> str:
    key = {} if "user_delegation_key" in fields else {"account_key": DEVELOPMENT_KEY}
    named = {**key, "expiry": TOMORROW, **fields}
    return generate_blob_sas(ACCOUNT, "c", name, permission=permission, **named)  # type: ignore[arg-type] # any fields


def token(**claims: object) -> str:
    now = time.time()
    given = {"aud": "https://storage.azure.com", "iss": "https://sts.windows.net/t/", "exp": now + 600, **claims}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, given)]
    return f"Bearer {'.'.join(parts)}.x"


async def test_a_signed_request_reaches_its_route() -> None:
    door = ToyDoor()
    assert (await door.send("PUT", "c/a%20b", b"text")).status == 201
    answer = await door.send("GET", "c/a%20b")
    assert (answer.status, answer.body) == (200, b"text")


async def test_every_answer_names_its_request_version_and_server() -> None:
    answer = await ToyDoor().send(
        "GET", "c/a", headers={"x-ms-version": "2026-10-06", "x-ms-client-request-id": "mine"}
    )
    assert answer.headers["x-ms-request-id"] == "request-0"
    assert answer.headers["x-ms-client-request-id"] == "mine"
    assert answer.headers["x-ms-version"] == "2026-10-06"
    assert (answer.headers["server"], answer.headers["date"][-3:]) == ("Toy/1.0", "GMT")


async def test_an_error_is_xml_with_its_code_in_body_and_header() -> None:
    answer = await ToyDoor().send("GET", "c/a")
    root = ElementTree.fromstring(answer.body)
    assert (answer.status, root.tag, root.findtext("Code"), answer.code) == (
        404,
        "Error",
        "BlobNotFound",
        "BlobNotFound",
    )
    message = root.findtext("Message") or ""
    assert message.split("\n")[:2] == ["The specified blob does not exist.", "RequestId:request-0"]
    assert answer.headers["content-type"] == "application/xml"


async def test_an_error_of_the_database_has_the_words_of_storage() -> None:
    answer = await ToyDoor().send("DELETE", "c/a")
    assert (answer.status, answer.code) == (404, "ResourceNotFound")


async def test_a_head_has_no_body() -> None:
    door = ToyDoor()
    await door.send("PUT", "c/a", b"text")
    assert (await door.send("HEAD", "c/a")).body == b""
    missing = await door.send("HEAD", "c/b")
    assert (missing.status, missing.code, missing.body) == (404, "BlobNotFound", b"")


@pytest.mark.parametrize("key", [b"another key"])
async def test_a_wrong_signature_is_refused(key: bytes) -> None:
    answer = await ToyDoor().send("GET", "c/a", key=key)
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")


async def test_an_unknown_account_is_refused_like_a_wrong_signature() -> None:
    answer = await ToyDoor().send("GET", "c/a", account="other")
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")


async def test_an_old_date_is_refused() -> None:
    answer = await ToyDoor().send("GET", "c/a", headers={"x-ms-date": "Mon, 16 Nov 2015 01:33:51 GMT"})
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")


@pytest.mark.parametrize("version", ["2099-11-05", "x", "2026-13-01", "2026-1-1", ""])
async def test_a_version_that_cannot_be_is_refused(version: str) -> None:
    answer = await ToyDoor().send("GET", "c/a", headers={"x-ms-version": version})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    assert b"<HeaderName>x-ms-version</HeaderName>" in answer.body


@pytest.mark.parametrize("value", [None, "é"])
@pytest.mark.parametrize("name", ["if-match", "x-ms-lease-id", "content-md5", "authorization"])
async def test_a_header_beyond_ascii_does_not_count_as_absent(name: str, value: str | None) -> None:
    door = ToyDoor()
    request = signed_request("PUT", f"/{ACCOUNT}/c/a", b"x")
    # Listeners without a value for such bytes have the name of the header still.
    request.headers = {**cast("dict[str, str]", request.headers), name: value}  # type: ignore[dict-item]
    answer = await door.door.answer(request)
    assert isinstance(answer, Response)
    assert (answer.status, dict(answer.headers)["x-ms-error-code"]) == (400, "InvalidHeaderValue")
    assert f"<HeaderName>{name}</HeaderName>".encode() in answer.body
    assert door.context.blobs == {}


async def test_a_header_that_no_door_reads_may_have_any_bytes() -> None:
    request = signed_request("PUT", f"/{ACCOUNT}/c/a", b"x")
    request.headers = {**cast("dict[str, str]", request.headers), "cookie": None}  # type: ignore[dict-item]
    assert (await ToyDoor().door.answer(request)).status == 201


async def test_a_request_without_a_route_is_refused_by_what_is_wrong() -> None:
    door = ToyDoor()
    assert (await door.send("PATCH", "c/a")).code == "UnsupportedHttpVerb"
    unknown = await door.send("GET", "c/a", query="comp=other")
    assert (unknown.status, unknown.code) == (400, "InvalidQueryParameterValue")
    assert b"<QueryParameterValue>other</QueryParameterValue>" in unknown.body
    assert (await door.send("GET", "")).code == "InvalidUri"


async def test_a_body_above_the_limit_of_its_route_is_refused_with_the_limit() -> None:
    answer = await ToyDoor().send("PUT", "c/a", bytes(BODY_BYTES_MAX + 1))
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")
    assert b"<MaxLimit>1000</MaxLimit>" in answer.body


async def test_a_route_can_read_its_body_in_pieces() -> None:
    door = ToyDoor()
    assert (await door.send("PUT", "c/a", bytes(5000), query="comp=block")).status == 201
    assert door.context.blobs["c/a"] == bytes(5000)


async def test_a_secondary_serves_reads_only() -> None:
    door = ToyDoor()
    await door.send("PUT", "c/a", b"text")
    secondary = f"{ACCOUNT}-secondary"
    assert (await door.send("GET", "c/a", account=secondary)).status == 200
    refused = await door.send("PUT", "c/a", b"text", account=secondary)
    assert (refused.status, refused.code) == (403, "InsufficientAccountPermissions")


async def test_without_credentials_only_public_blobs_can_be_read() -> None:
    door = ToyDoor()
    door.context.blobs = {"public/a": b"x", "private/a": b"x"}
    door.context.public = {"public"}
    assert (await door.send("GET", "public/a", key=None)).status == 200
    assert (await door.send("GET", "private/a", key=None)).status == 404
    challenged = await door.send("GET", "private/a", key=None, headers={"x-ms-version": "2026-10-06"})
    assert (challenged.status, challenged.code) == (401, "NoAuthenticationInformation")
    assert challenged.headers["www-authenticate"].startswith("Bearer authorization_uri=")
    assert (await door.send("PUT", "public/a", b"y", key=None)).status == 401
    assert (await ToyDoor("queue").send("GET", "public/a", key=None)).status == 401


async def test_a_signature_in_the_address_permits_what_it_says() -> None:
    door = ToyDoor()
    door.context.blobs = {"c/a": b"x", "c/b": b"x"}
    token = blob_sas(content_type="text/html")
    answer = await door.send("GET", "c/a", query=token, key=None)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html")
    assert (await door.send("GET", "c/b", query=token, key=None)).code == "AuthenticationFailed"
    assert (await door.send("PUT", "c/a", b"y", query=token, key=None)).code == "AuthorizationPermissionMismatch"


async def test_an_accounts_signature_permits_its_kinds_of_resources() -> None:
    door = ToyDoor()
    of_objects = generate_account_sas(ACCOUNT, DEVELOPMENT_KEY, "o", "r", TOMORROW, services="b")
    door.context.blobs = {"c/a": b"x"}
    assert (await door.send("GET", "c/a", query=of_objects, key=None)).status == 200
    properties = f"restype=service&comp=properties&{of_objects}"
    assert (await door.send("GET", "", query=properties, key=None)).code == "AuthorizationResourceTypeMismatch"


async def test_a_signature_can_name_a_stored_policy() -> None:
    door = ToyDoor()
    door.context.blobs = {"c/a": b"x"}
    token = generate_blob_sas(ACCOUNT, "c", "a", account_key=DEVELOPMENT_KEY, policy_id="p")
    assert (await door.send("GET", "c/a", query=token, key=None)).status == 403
    door.context.policies["p"] = Policy(expiry=TOMORROW.strftime("%Y-%m-%dT%H:%M:%SZ"), permissions="r")
    assert (await door.send("GET", "c/a", query=token, key=None)).status == 200


async def test_bearer_tokens_are_taken_over_https_only() -> None:
    door = ToyDoor()
    door.context.blobs = {"c/a": b"x"}
    given = {"authorization": token()}
    assert (await door.send("GET", "c/a", headers=given, key=None, scheme="https")).status == 200
    assert (await door.send("GET", "c/a", headers=given, key=None)).status == 403
    assert (await door.send("GET", "c/a", headers={"authorization": "Digest x"}, key=None)).status == 400


async def test_a_token_for_another_resource_is_answered_with_a_challenge_that_names_the_right_one() -> None:
    door = ToyDoor()
    given = {"authorization": token(aud="https://badaudience.blob.core.windows.net")}
    answer = await door.send("GET", "c/a", headers=given, key=None, scheme="https")
    assert (answer.status, answer.code) == (401, "InvalidAuthenticationInfo")
    assert "resource_id=https://storage.azure.com" in answer.headers["www-authenticate"]


async def test_the_holder_of_a_token_gets_a_key_that_signs_in_its_name() -> None:
    door = ToyDoor()
    door.context.blobs = {"c/a": b"x"}
    start, expiry = datetime.now(UTC) - timedelta(minutes=1), datetime.now(UTC) + timedelta(days=2)
    times = f"<Start>{start:%Y-%m-%dT%H:%M:%SZ}</Start><Expiry>{expiry:%Y-%m-%dT%H:%M:%SZ}</Expiry>"
    answer = await door.send(
        "POST",
        "",
        f"<KeyInfo>{times}</KeyInfo>".encode(),
        query="restype=service&comp=userdelegationkey",
        headers={"authorization": token(oid="object", tid="tenant"), "x-ms-version": "2026-10-06"},
        key=None,
        scheme="https",
    )
    assert answer.status == 200
    root = ElementTree.fromstring(answer.body)
    key = UserDelegationKey()
    key.signed_oid, key.signed_tid = root.findtext("SignedOid"), root.findtext("SignedTid")
    key.signed_start, key.signed_expiry = root.findtext("SignedStart"), root.findtext("SignedExpiry")
    key.signed_service, key.signed_version = root.findtext("SignedService"), root.findtext("SignedVersion")
    key.value = root.findtext("Value")
    assert (key.signed_oid, key.signed_tid, key.signed_service) == ("object", "tenant", "b")
    signed = blob_sas(user_delegation_key=key)
    assert (await door.send("GET", "c/a", query=signed, key=None)).status == 200
    for_user = blob_sas(user_delegation_key=key, user_delegation_oid="user")
    assert (await door.send("GET", "c/a", query=for_user, key=None)).status == 403
    of_user = {"authorization": token(oid="user")}
    assert (await door.send("GET", "c/a", query=for_user, headers=of_user, key=None, scheme="https")).status == 200
    of_other = {"authorization": token(oid="other")}
    assert (await door.send("GET", "c/a", query=for_user, headers=of_other, key=None, scheme="https")).status == 403


@pytest.mark.parametrize("expiry", ["2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z", "", "soon"])
async def test_a_key_for_user_delegation_has_a_bounded_life(expiry: str) -> None:
    answer = await ToyDoor().send(
        "POST",
        "",
        f"<KeyInfo><Expiry>{expiry}</Expiry></KeyInfo>".encode(),
        query="restype=service&comp=userdelegationkey",
        headers={"authorization": token()},
        key=None,
        scheme="https",
    )
    assert answer.status == 400


async def test_the_source_of_a_copy_is_found_by_its_url() -> None:
    door = ToyDoor()
    door.context.blobs = {"c/a": b"x"}
    source = f"http://localhost:10000/{ACCOUNT}/c/a?{blob_sas()}"
    assert (await door.send("PUT", "c/b", headers={"x-ms-copy-source": source})).status == 202
    assert door.context.blobs["c/b"] == b"x"
    wrong = source.replace("/c/a", "/c/b")
    assert (await door.send("PUT", "c/b", headers={"x-ms-copy-source": wrong})).status == 403
    assert (await door.send("PUT", "c/b", headers={"x-ms-copy-source": "http://[x/c"})).status == 400


async def test_properties_that_are_set_are_read() -> None:
    door = ToyDoor()
    section = b"<DefaultServiceVersion>2019-12-12</DefaultServiceVersion>"
    body = b"<StorageServiceProperties>" + section + b"</StorageServiceProperties>"
    service = "restype=service&comp=properties"
    assert (await door.send("PUT", "", body, query=service)).status == 202
    assert b"<DefaultServiceVersion>2019-12-12" in (await door.send("GET", "", query=service)).body


async def test_sections_that_are_set_at_once_are_all_kept() -> None:
    class SlowDocuments(ToyDocuments):
        async def get_account_document(self, account: str, name: str) -> bytes | None:
            stored = await super().get_account_document(account, name)
            await asyncio.sleep(0)
            return stored

    documents = SlowDocuments()
    given = [{"DefaultServiceVersion": "2019-12-12"}, {"StaticWebsite": {"Enabled": True}}, {"Cors": [{}]}]
    changes = [change_properties(documents, ACCOUNT, "blob", properties) for properties in given]
    await asyncio.gather(*changes)
    stored = await stored_properties(documents, ACCOUNT, "blob")
    assert [{name: stored[name] for name in properties} for properties in given] == given


async def test_a_secondary_has_statistics() -> None:
    query = "restype=service&comp=stats"
    answer = await ToyDoor().send("GET", "", query=query, account=f"{ACCOUNT}-secondary")
    assert b"<Status>live</Status>" in answer.body
    assert (await ToyDoor().send("GET", "", query=query)).status == 400


CORS = (
    b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>https://shop.test</AllowedOrigins><AllowedMethods>GET"
    b"</AllowedMethods><AllowedHeaders /><ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds>"
    b"</CorsRule></Cors></StorageServiceProperties>"
)
PAGE = {"origin": "https://shop.test"}


async def test_pages_see_answers_by_the_rules_of_the_account() -> None:
    door = ToyDoor(guard=BrowserGuard())
    door.context.blobs = {"c/a": b"x"}
    assert (await door.send("GET", "c/a", headers=PAGE)).status == 403
    assert (await door.send("PUT", "", CORS, query="restype=service&comp=properties")).status == 202
    answer = await door.send("GET", "c/a", headers=PAGE)
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "https://shop.test")
    assert answer.headers["access-control-expose-headers"] == "x-ms-request-id,x-ms-version"
    assert (await door.send("GET", "c/a", headers={"origin": "https://other.test"})).status == 403
    asked = {**PAGE, "access-control-request-method": "GET"}
    assert (await door.send("OPTIONS", "c/a", headers=asked, key=None)).status == 200
    refused = await door.send("OPTIONS", "c/a", headers={**asked, "access-control-request-method": "PUT"}, key=None)
    assert (refused.status, refused.code) == (403, "CorsPreflightFailure")


@pytest.mark.parametrize(
    ("allowed", "origin", "fits"),
    [
        ("*", "https://a.shop.test", True),
        ("https://*.shop.test", "https://a.shop.test", True),
        ("https://*.shop.test", "https://a.b.shop.test", True),
        ("https://*.shop.test", "https://shop.test", False),
        ("https://*.shop.test", "https://.shop.test", False),
        ("https://*.shop.test", "http://a.shop.test", False),
        ("https://*.shop.test", "https://a.shop.test.evil", False),
        ("https://*.shop.test", "https://evil/a.shop.test", False),
        ("https://*", "https://a.shop.test", False),
        ("https://shop.test", "https://shop.test:444", False),
    ],
)
def test_an_origin_fits_itself_a_star_or_the_star_of_its_domain(allowed: str, origin: str, fits: bool) -> None:
    rule = {"AllowedOrigins": [allowed], "AllowedMethods": ["GET"], "ExposedHeaders": []}
    assert bool(cors_headers([rule], method="GET", origin=origin, answered=[])) is fits


async def test_something_missing_is_looked_for_again_where_other_processes_change_the_catalog() -> None:
    door = ToyDoor()
    door.rules.catalog.is_shared = True
    door.rules.catalog.arriving = {"c/a": b"x"}
    assert (await door.send("GET", "c/a")).status == 200
    assert door.context.handled == ["c/a", "c/a"]


async def test_the_parts_of_a_batch_have_credentials_and_answers_of_their_own() -> None:
    door = ToyDoor()
    door.context.parts = [
        signed_request("PUT", f"/{ACCOUNT}/c/a", b"x"),
        signed_request("PUT", f"/{ACCOUNT}/c/b", b"x", key=b"another key"),
        signed_request("GET", f"/{ACCOUNT}/c/a"),
        signed_request("DELETE", f"/{ACCOUNT}/c/a"),
        signed_request("PUT", "/other/c/a", b"x", account="other"),
        signed_request("PUT", f"/{ACCOUNT}/c/a", b"y", headers={"if-match": "é"}),
    ]
    assert (await door.send("POST", "", query="comp=batch")).status == 202
    codes = [(answer.status, dict(answer.headers).get("x-ms-error-code")) for answer in door.context.answers]
    assert codes == [
        (201, None),
        (403, "AuthenticationFailed"),
        (400, "InvalidInput"),
        (404, "ResourceNotFound"),
        (403, "AuthenticationFailed"),
        (400, "InvalidHeaderValue"),
    ]
    assert door.context.blobs == {"c/a": b"x"}
