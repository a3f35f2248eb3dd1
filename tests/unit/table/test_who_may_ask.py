"""Signatures, shared access, secondary locations, policies, properties and cross-origin requests at the door."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableSasPermissions,
    generate_account_sas,
    generate_table_sas,
)

from asterism.access.keys import DEVELOPMENT_KEY
from asterism.access.shared_key import shared_key_signature
from asterism.apis.transports.http import Request
from asterism.models.tables.store import TableStore
from tests.unit.table.table_door_at_hand import (
    ACCOUNT,
    DoorAtHand,
    change_set,
    entity_path,
    insertion,
    open_door,
    rows,
    upsert,
)

CREDENTIAL = AzureNamedKeyCredential(ACCOUNT, DEVELOPMENT_KEY)
TOMORROW = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
async def door() -> AsyncIterator[DoorAtHand]:
    async with open_door() as at_hand:
        await at_hand.create()
        await at_hand.create("others")
        for key in "abc":
            await at_hand.insert(key, key)
        yield at_hand


def table_sas(permissions: str, **fields: Any) -> str:
    permission = TableSasPermissions(_str=permissions)
    return str(generate_table_sas(CREDENTIAL, "orders", permission=permission, expiry=TOMORROW, **fields))


def account_sas(permissions: str, kinds: str, **fields: Any) -> str:
    return str(
        generate_account_sas(
            CREDENTIAL,
            resource_types=ResourceTypes.from_string(kinds),
            permission=AccountSasPermissions.from_string(permissions),
            expiry=TOMORROW,
            **fields,
        )
    )


async def test_a_request_without_a_signature_is_challenged(door: DoorAtHand) -> None:
    answer = await door.send("GET", "orders()", sign=False)
    assert (answer.status, answer.code) == (401, "NoAuthenticationInformation")
    assert answer.headers["www-authenticate"].startswith("Bearer authorization_uri=")


@pytest.mark.parametrize(
    ("authorization", "status", "code"),
    [
        ("SharedKey devstoreaccount1:d3Jvbmc=", 403, "AuthenticationFailed"),
        ("SharedKey someone:d3Jvbmc=", 403, "AuthenticationFailed"),
        ("SharedKey", 400, "InvalidAuthenticationInfo"),
        ("Basic eDp5", 400, "InvalidAuthenticationInfo"),
        ("Bearer a.b.c", 403, "AuthenticationFailed"),
    ],
)
async def test_a_wrong_signature_is_refused(door: DoorAtHand, authorization: str, status: int, code: str) -> None:
    answer = await door.send("GET", "orders()", sign=False, headers={"authorization": authorization})
    assert (answer.status, answer.code) == (status, code)


async def test_a_signature_that_was_good_is_good_for_the_same_request_only(door: DoorAtHand) -> None:
    date = formatdate(usegmt=True)
    text = f"POST\n\napplication/json\n{date}\n/{ACCOUNT}/{ACCOUNT}/orders"
    signature = shared_key_signature(base64.b64decode(DEVELOPMENT_KEY), text)
    sent = {
        "x-ms-date": date,
        "content-type": "application/json",
        "authorization": f"SharedKey {ACCOUNT}:{signature}",
    }

    async def insert(row_key: str, path: str = "orders", query: str = "", **changed: str) -> int:
        headers = {**sent, **{name.replace("_", "-"): value for name, value in changed.items()}}
        body = {"PartitionKey": "x", "RowKey": row_key}
        return (await door.send("POST", path, body, query=query, headers=headers, sign=False)).status

    assert [await insert(row_key) for row_key in "123"] == [201, 201, 201]
    assert await insert("4", "others") == 403
    assert await insert("4", query="comp=acl") == 403
    assert await insert("4", content_type="application/json;odata=nometadata") == 403
    assert await insert("4", content_md5="x") == 403
    assert await insert("4", x_ms_date=formatdate(time.time() + 1, usegmt=True)) == 403
    assert await insert("4", authorization=f"SharedKey {ACCOUNT}:d3Jvbmc=") == 403
    assert (await door.send("GET", "orders", headers=sent, sign=False)).status == 403
    assert await door.get("x", "4") is None


@pytest.mark.parametrize("minutes", [-16, 16])
async def test_a_date_far_from_the_servers_clock_is_refused(door: DoorAtHand, minutes: int) -> None:
    answer = await door.send("GET", "orders()", date_seconds=time.time() + minutes * 60)
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")


async def test_a_signature_of_a_table_permits_its_operations_only(door: DoorAtHand) -> None:
    reading, adding = table_sas("r"), table_sas("a")
    assert (await door.send("GET", entity_path("a", "a"), query=reading, sign=False)).status == 200
    assert rows(await door.send("GET", "orders()", query=reading, sign=False)) == [("a", "a"), ("b", "b"), ("c", "c")]
    refused = [
        await door.send("GET", "orders()", query=adding, sign=False),
        await door.send("GET", "others()", query=reading, sign=False),
        await door.send("GET", "Tables", query=reading, sign=False),
        await door.send("POST", "orders", {"PartitionKey": "x", "RowKey": "x"}, query=reading, sign=False),
        await door.send("PUT", entity_path("x", "x"), {}, query=adding, sign=False),
        await door.send("DELETE", entity_path("a", "a"), query=adding, sign=False, headers={"if-match": "*"}),
        await door.send("GET", "orders", query=f"comp=acl&{reading}", sign=False),
    ]
    assert {(answer.status, answer.code) for answer in refused} == {(403, "AuthorizationFailure")}
    added = await door.send("POST", "orders", {"PartitionKey": "x", "RowKey": "x"}, query=adding, sign=False)
    assert added.status == 201


async def test_a_signature_with_a_range_sees_and_writes_that_range_only(door: DoorAtHand) -> None:
    sas = table_sas("raud", start_pk="b", start_rk="a", end_pk="b", end_rk="z")
    assert rows(await door.send("GET", "orders()", query=sas, sign=False)) == [("b", "b")]
    assert (await door.send("GET", entity_path("b", "b"), query=sas, sign=False)).status == 200
    assert (await door.send("GET", entity_path("a", "a"), query=sas, sign=False)).status == 403
    assert (await door.send("PUT", entity_path("c", "c"), {}, query=sas, sign=False)).status == 403
    inside, headers = change_set(upsert("b", "c"), insertion("b", "d"))
    assert (await door.send("POST", "$batch", inside, query=sas, headers=headers, sign=False)).status == 202
    outside, headers = change_set(upsert("b", "e"), insertion("c", "e"))
    assert (await door.send("POST", "$batch", outside, query=sas, headers=headers, sign=False)).status == 403
    assert await door.get("b", "e") is None


async def test_a_range_is_one_of_the_order_in_which_keys_lie(door: DoorAtHand) -> None:
    for key in ("\U0001f600", "\ue000"):
        await door.insert(key, "1")
    sas = table_sas("r", start_pk="\U0001f600", end_pk="\U0001f600", start_rk="", end_rk="9")
    assert rows(await door.send("GET", "orders()", query=sas, sign=False)) == [("\U0001f600", "1")]
    both = table_sas("r", start_pk="\U0001f600", end_pk="\ue000", start_rk="", end_rk="9")
    assert len(rows(await door.send("GET", "orders()", query=both, sign=False))) == 2


async def test_a_signature_of_a_table_does_not_tell_which_others_there_are(door: DoorAtHand) -> None:
    sas = table_sas("raud")
    for path in ("others()", "nothing()", "nothing(PartitionKey='a',RowKey='a')"):
        assert (await door.send("GET", path, query=sas, sign=False)).code == "AuthorizationFailure"
    entity = {"PartitionKey": "a", "RowKey": "b"}
    assert (await door.send("POST", "nothing", entity, query=sas, sign=False)).code == "AuthorizationFailure"


async def test_a_range_of_rows_without_a_partition_grants_nothing(door: DoorAtHand) -> None:
    for half in ({"start_rk": "b"}, {"end_rk": "b"}):
        refused = await door.send("GET", "orders()", query=table_sas("r", **half), sign=False)
        assert (refused.status, refused.code) == (403, "AuthenticationFailed")


async def test_a_signature_of_the_account_permits_kinds_of_resources(door: DoorAtHand) -> None:
    assert (await door.send("GET", "orders()", query=account_sas("rl", "o"), sign=False)).status == 200
    assert (await door.send("GET", "Tables", query=account_sas("rl", "o"), sign=False)).status == 403
    assert (await door.send("GET", "Tables", query=account_sas("rl", "c"), sign=False)).status == 200
    create = await door.send("POST", "Tables", {"TableName": "made"}, query=account_sas("c", "c"), sign=False)
    assert create.status == 201


async def test_an_expired_or_changed_signature_is_refused(door: DoorAtHand) -> None:
    expired = generate_table_sas(
        CREDENTIAL, "orders", permission=TableSasPermissions(read=True), expiry=datetime(2020, 1, 1, tzinfo=UTC)
    )
    changed = table_sas("r").replace("sp=r", "sp=raud")
    for sas in (expired, changed):
        answer = await door.send("GET", "orders()", query=sas, sign=False)
        assert (answer.status, answer.code) == (403, "AuthenticationFailed")


async def test_a_stored_policy_stands_behind_signatures_until_it_is_taken_away(door: DoorAtHand) -> None:
    expiry = TOMORROW.strftime("%Y-%m-%dT%H:%M:%SZ")
    policies = (
        "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>"
        f"<Expiry>{expiry}</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier>"
        "<SignedIdentifier><Id>nobody</Id></SignedIdentifier></SignedIdentifiers>"
    )
    sas = generate_table_sas(CREDENTIAL, "orders", policy_id="readers")
    assert (await door.send("GET", "orders()", query=sas, sign=False)).status == 403
    assert (await door.send("PUT", "orders", policies.encode(), query="comp=acl")).status == 204
    assert (await door.send("GET", "orders()", query=sas, sign=False)).status == 200
    answer = await door.send("GET", "orders", query="comp=acl")
    assert f"<Expiry>{expiry}</Expiry>".encode() in answer.body
    assert b"<Id>nobody</Id></SignedIdentifier>" in answer.body
    assert (await door.send("PUT", "orders", b"", query="comp=acl")).status == 204
    assert (await door.send("GET", "orders()", query=sas, sign=False)).status == 403


async def test_a_policy_of_a_table_that_another_process_has_made_is_looked_for(
    door: DoorAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    expiry = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = f"<AccessPolicy><Expiry>{expiry}</Expiry><Permission>r</Permission></AccessPolicy>"
    body = f"<SignedIdentifiers><SignedIdentifier><Id>p</Id>{fields}</SignedIdentifier></SignedIdentifiers>"
    assert (await door.send("PUT", "orders", body.encode(), query="comp=acl")).status == 204
    sas = generate_table_sas(CREDENTIAL, "orders", policy_id="p")
    find_table = door.store.find_table
    known = False

    async def catch_up() -> int:
        nonlocal known
        known = True
        return 1

    monkeypatch.setattr(TableStore, "is_shared", True)
    monkeypatch.setattr(door.store, "catch_up", catch_up)
    monkeypatch.setattr(door.store, "find_table", lambda *name: find_table(*name) if known else None)
    assert (await door.send("GET", "orders()", query=sas, sign=False)).status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"<SignedIdentifiers>%b</SignedIdentifiers>"
        % b"".join(b"<SignedIdentifier><Id>%d</Id></SignedIdentifier>" % number for number in range(6)),
        b"<SignedIdentifiers><SignedIdentifier /></SignedIdentifiers>",
        b"<Other />",
        b"<broken",
        b'<!DOCTYPE x [<!ENTITY a "b">]><SignedIdentifiers />',
    ],
)
async def test_policies_that_are_none_are_refused(door: DoorAtHand, body: bytes) -> None:
    answer = await door.send("PUT", "orders", body, query="comp=acl")
    assert (answer.status, answer.code) == (400, "InvalidXmlDocument")


CORS = (
    b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>https://shop.test</AllowedOrigins>"
    b"<AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders />"
    b"<MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>"
)


async def test_properties_keep_what_a_request_leaves_out(door: DoorAtHand) -> None:
    logging = (
        b"<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read>"
        b"<Write>false</Write><RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy></Logging>"
        b"</StorageServiceProperties>"
    )
    for body in (logging, CORS):
        assert (await door.send("PUT", "", body, query="restype=service&comp=properties")).status == 202
    body = (await door.send("GET", "", query="restype=service&comp=properties")).body
    assert b"<Delete>true</Delete>" in body
    assert b"<Days>5</Days>" in body
    assert b"<AllowedOrigins>https://shop.test</AllowedOrigins>" in body


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (CORS.replace(b"<Cors>", b"<Cors>" + b"<CorsRule />" * 5), "InvalidXmlDocument"),
        (CORS.replace(b"GET,PUT", b"FETCH"), "InvalidXmlNodeValue"),
        (CORS.replace(b"https://shop.test", b"https://shop.test," * 10_000), "InvalidXmlDocument"),
        (b"<StorageServiceProperties><Other /></StorageServiceProperties>", "InvalidXmlDocument"),
        (
            b"<StorageServiceProperties><HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy>"
            b"<Enabled>true</Enabled><Days>366</Days></RetentionPolicy></HourMetrics></StorageServiceProperties>",
            "InvalidXmlNodeValue",
        ),
    ],
)
async def test_properties_that_are_none_are_refused(door: DoorAtHand, body: bytes, code: str) -> None:
    assert (await door.send("PUT", "", body, query="restype=service&comp=properties")).code == code


async def test_a_browser_may_do_what_a_rule_says(door: DoorAtHand) -> None:
    asked = {
        "origin": "https://shop.test",
        "access-control-request-method": "PUT",
        "access-control-request-headers": "x-ms-date",
    }
    assert (await door.send("OPTIONS", "orders", headers=asked, sign=False)).code == "CorsPreflightFailure"
    await door.send("PUT", "", CORS, query="restype=service&comp=properties")
    allowed = await door.send("OPTIONS", "orders", headers=asked, sign=False)
    assert (allowed.status, allowed.headers["access-control-allow-origin"]) == (200, "https://shop.test")
    elsewhere = {**asked, "origin": "https://other.test"}
    assert (await door.send("OPTIONS", "orders", headers=elsewhere, sign=False)).status == 403
    answer = await door.send("GET", "orders()", headers={"origin": "https://shop.test"})
    assert answer.headers["access-control-allow-origin"] == "https://shop.test"


async def test_a_browser_sees_refusals_too(door: DoorAtHand) -> None:
    assert (await door.send("PUT", "", CORS, query="restype=service&comp=properties")).status == 202
    origin = {"origin": "https://shop.test"}
    missing = await door.send("GET", entity_path("p", "nothing"), headers=origin)
    assert (missing.code, missing.headers["access-control-allow-origin"]) == ("ResourceNotFound", "https://shop.test")
    unsigned = await door.send("GET", "orders", headers=origin, sign=False)
    assert (unsigned.status, unsigned.headers["access-control-allow-origin"]) == (401, "https://shop.test")


async def test_whoever_asks_for_json_is_refused_in_json(door: DoorAtHand) -> None:
    wrong = {"authorization": "SharedKey devstoreaccount1:AAAA"}
    answer = await door.send(
        "GET", "orders", headers={**wrong, "accept": "application/json;odata=minimalmetadata"}, sign=False
    )
    assert (answer.status, answer.json["odata.error"]["code"]) == (403, "AuthenticationFailed")
    assert (await door.send("GET", "orders", headers=wrong, sign=False)).body.startswith(b"<?xml")


async def test_the_secondary_location_is_for_reading(door: DoorAtHand) -> None:
    async def send(method: str, path: str, query: str = "") -> tuple[int, bytes]:
        sas = account_sas("rwdlacu", "sco")
        request = Request(method, f"/{ACCOUNT}-secondary/{path}", f"{query}&{sas}", {}, b"", "http", "h")
        response = await door.door.answer(request)
        return response.status, response.body

    assert (await send("GET", "orders()"))[0] == 200
    status, body = await send("DELETE", "Tables('others')")
    assert (status, b"Write operations are not allowed." in body) == (403, True)
    status, body = await send("GET", "", "restype=service&comp=stats")
    assert (status, b"<Status>live</Status>" in body) == (200, True)
    primary = await door.send("GET", "", query="restype=service&comp=stats")
    assert primary.status == 400


async def test_an_unknown_account_is_not_told_from_a_wrong_key(door: DoorAtHand) -> None:
    response = await door.door.answer(Request("GET", "/nobody/orders()", "", {}, b"", "http", "h"))
    assert response.status == 403
    assert ("x-ms-error-code", "AuthenticationFailed") in response.headers
