"""Shared access signatures for blobs and queues, made by the official clients."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pytest
from azure.storage.blob import UserDelegationKey, generate_account_sas, generate_blob_sas, generate_container_sas
from azure.storage.queue import UserDelegationKey as QueueDelegationKey
from azure.storage.queue import generate_queue_sas

from asterism.access.sas_grants import Policy, SasGrant
from asterism.access.shared_access import check_shared_access
from asterism.access.shared_key import shared_key_signature
from asterism.access.user_delegation import DelegationFields, user_delegation_key
from asterism.errors import Forbidden, Unauthorized

KEY = b"a key of an account"
KEY_TEXT = base64.b64encode(KEY).decode()
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
MORNING = datetime(2026, 11, 16, 6, tzinfo=UTC)
EVENING = datetime(2026, 11, 16, 18, tzinfo=UTC)


def fields_of(token: str) -> dict[str, str]:
    return {name: unquote(value) for name, _, value in (pair.partition("=") for pair in token.split("&"))}


def check(
    token: str,
    service: str,
    path: str,
    *,
    now: datetime = NOON,
    more: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    policies: Mapping[str, Policy] | None = None,
    scheme: str = "https",
    client_address: str = "127.0.0.1",
) -> SasGrant:
    return check_shared_access(
        (b"an older key", KEY),
        {**fields_of(token), **(more or {})},
        service=service,
        account="acct",
        path=path,
        headers=dict(headers or {}),
        policies=policies or {},
        scheme=scheme,
        client_address=client_address,
        now_wall_seconds=now.timestamp(),
    )


def blob_sas(name: str = "dir/blob é", **fields: Any) -> str:
    named = {"account_key": KEY_TEXT, "permission": "rw", "expiry": EVENING, **fields}
    return generate_blob_sas("acct", "cont", name, **named)


def container_sas(**fields: Any) -> str:
    named = {"account_key": KEY_TEXT, "permission": "rl", "expiry": EVENING, **fields}
    return generate_container_sas("acct", "cont", **named)


def queue_sas(**fields: Any) -> str:
    named = {"account_key": KEY_TEXT, "permission": "ap", "expiry": EVENING, **fields}
    return generate_queue_sas("acct", "jobs", **named)


def account_sas(**fields: Any) -> str:
    named = {"resource_types": "co", "permission": "rl", "expiry": EVENING, **fields}
    return generate_account_sas("acct", KEY_TEXT, **named)


def test_a_blobs_signature_is_for_that_blob_only() -> None:
    grant = check(blob_sas(), "blob", "cont/dir/blob é")
    assert (grant.permissions, grant.resource, grant.is_of_account) == ("rw", "b", False)
    for other in ("cont/dir/blob", "cont", "other/dir/blob é", ""):
        with pytest.raises(Unauthorized):
            check(blob_sas(), "blob", other)


def test_a_containers_signature_is_for_all_its_blobs() -> None:
    for path in ("cont", "cont/a", "cont/a/b"):
        assert check(container_sas(), "blob", path).resource == "c"
    with pytest.raises(Unauthorized):
        check(container_sas(), "blob", "container/a")


def test_a_snapshots_signature_is_not_for_its_blob_or_another_snapshot() -> None:
    moment = "2026-11-15T20:55:43.5130000Z"
    token = blob_sas(snapshot=moment)
    assert check(token, "blob", "cont/dir/blob é", more={"snapshot": moment}).resource == "bs"
    for more in ({}, {"snapshot": "2026-11-15T20:55:43.5130001Z"}, {"versionid": moment}):
        with pytest.raises(Unauthorized):
            check(token, "blob", "cont/dir/blob é", more=more)


def test_a_versions_signature_is_for_that_version() -> None:
    moment = "2026-11-15T20:55:43.5130000Z"
    token = blob_sas(version_id=moment)
    assert check(token, "blob", "cont/dir/blob é", more={"versionid": moment}).resource == "bv"
    with pytest.raises(Unauthorized):
        check(token, "blob", "cont/dir/blob é")


def test_a_directorys_signature_is_for_what_lies_below_it() -> None:
    token = blob_sas("a/b", is_directory=True, permission="rl")
    for path in ("cont/a/b", "cont/a/b/c", "cont/a/b/c/d"):
        grant = check(token, "blob", path)
        assert (grant.resource, grant.directory) == ("d", "a/b")
    assert check(token, "blob", "cont", more={"comp": "list", "prefix": "a/b/x"}).directory == "a/b"
    with pytest.raises(Unauthorized):
        check(token, "blob", "cont", more={"comp": "blobs", "prefix": "a/b/x"})
    for path, prefix in (("cont/a/bc", ""), ("cont/a", ""), ("cont", "a/b"), ("cont", "a/bc/"), ("cont", "")):
        with pytest.raises(Unauthorized):
            check(token, "blob", path, more={"comp": "list", "prefix": prefix})


def test_an_old_signature_for_a_blob_is_none_for_a_directory() -> None:
    text = "rw\n\n2026-11-16T18:00:00Z\n/blob/acct/cont/a/b\n\n\n\n2017-11-09\n\n\n\n\n"
    signed = f"sv=2017-11-09&sr=b&sp=rw&se=2026-11-16T18:00:00Z&sig={shared_key_signature(KEY, text)}"
    assert check(signed, "blob", "cont/a/b").resource == "b"
    with pytest.raises(Unauthorized):
        check(signed.replace("sr=b", "sr=d&sdd=2"), "blob", "cont/a/b/c")


def test_headers_of_the_answer_are_signed() -> None:
    token = blob_sas(cache_control="no-store", content_type="text/html", content_disposition="inline")
    grant = check(token, "blob", "cont/dir/blob é")
    assert dict(grant.response_headers) == {
        "cache-control": "no-store",
        "content-type": "text/html",
        "content-disposition": "inline",
    }
    with pytest.raises(Unauthorized):
        check(token, "blob", "cont/dir/blob é", more={"rsct": "text/plain"})


def test_headers_of_the_answer_cannot_break_its_lines() -> None:
    with pytest.raises(Unauthorized):
        check(blob_sas(content_type="text/plain\r\nx: y"), "blob", "cont/dir/blob é")


def test_an_encryption_scope_is_signed() -> None:
    token = blob_sas(encryption_scope="scope1")
    assert check(token, "blob", "cont/dir/blob é").encryption_scope == "scope1"
    with pytest.raises(Unauthorized):
        check(token, "blob", "cont/dir/blob é", more={"ses": "scope2"})


def test_a_queues_signature_is_for_that_queue() -> None:
    assert check(queue_sas(), "queue", "jobs").permissions == "ap"
    for other in ("job", "", "other"):
        with pytest.raises(Unauthorized):
            check(queue_sas(), "queue", other)


@pytest.mark.parametrize("service", ["blob", "queue"])
def test_an_accounts_signature_is_for_the_services_it_names(service: str) -> None:
    token = account_sas(services=service[0])
    grant = check(token, service, "x")
    assert (grant.permissions, grant.resource_types, grant.is_of_account) == ("rl", "co", True)
    others = {"blob", "queue", "table"} - {service}
    for other in others:
        with pytest.raises(Forbidden):
            check(token, other, "x")


def test_times_addresses_and_protocols_are_enforced() -> None:
    token = queue_sas(start=MORNING, ip="10.0.0.1-10.0.0.9", protocol="https")
    assert check(token, "queue", "jobs", client_address="10.0.0.4").permissions == "ap"
    for now in (datetime(2026, 11, 16, 5, tzinfo=UTC), EVENING):
        with pytest.raises(Unauthorized):
            check(token, "queue", "jobs", client_address="10.0.0.4", now=now)
    with pytest.raises(Forbidden):
        check(token, "queue", "jobs", client_address="10.0.0.10")
    with pytest.raises(Forbidden):
        check(token, "queue", "jobs", client_address="10.0.0.4", scheme="http")


def test_a_stored_policy_fills_the_fields_that_the_signature_leaves_out() -> None:
    token = container_sas(permission=None, expiry=None, policy_id="readers")
    policies = {"readers": Policy(expiry="2026-11-16T18:00:00Z", permissions="r")}
    assert check(token, "blob", "cont/a", policies=policies).permissions == "r"
    with pytest.raises(Unauthorized):
        check(token, "blob", "cont/a")
    with pytest.raises(Unauthorized):
        check(container_sas(policy_id="readers"), "blob", "cont/a", policies=policies)


FIELDS = DelegationFields("object", "tenant", "2026-11-16T06:00:00Z", "2026-11-17T06:00:00Z", "b", "2026-10-06")


def delegation_key(kind: type[Any], fields: DelegationFields = FIELDS, *, account_key: bytes = KEY) -> Any:
    key = kind()
    key.signed_oid, key.signed_tid = fields.object_id, fields.tenant_id
    key.signed_start, key.signed_expiry = fields.start, fields.expiry
    key.signed_service, key.signed_version = fields.service, fields.version
    key.signed_delegated_user_tid = fields.delegated_tenant_id or None
    key.value = base64.b64encode(user_delegation_key(account_key, fields)).decode()
    return key


def delegated(name: str = "a", *, key: Any = None, **fields: Any) -> str:
    chosen = key or delegation_key(UserDelegationKey)
    named = {"permission": "r", "expiry": EVENING, **fields}
    return generate_blob_sas("acct", "cont", name, user_delegation_key=chosen, **named)


def test_a_key_for_user_delegation_signs_for_blobs() -> None:
    grant = check(delegated(), "blob", "cont/a")
    assert (grant.permissions, grant.is_delegated, grant.delegated_object_id) == ("r", True, "")
    named = generate_container_sas(
        "acct", "cont", user_delegation_key=delegation_key(UserDelegationKey), permission="l", expiry=EVENING
    )
    assert check(named, "blob", "cont").resource == "c"


def test_a_key_for_user_delegation_signs_for_queues() -> None:
    key = delegation_key(QueueDelegationKey, FIELDS._replace(service="q", delegated_tenant_id="other"))
    token = generate_queue_sas(
        "acct", "jobs", user_delegation_key=key, user_delegation_oid="user", permission="p", expiry=EVENING
    )
    grant = check(token, "queue", "jobs")
    assert (grant.permissions, grant.delegated_object_id) == ("p", "user")


@pytest.mark.parametrize("changed", ["skoid", "sktid", "skt", "ske", "sks", "skv"])
def test_a_changed_field_of_the_key_breaks_the_signature(changed: str) -> None:
    with pytest.raises(Unauthorized):
        check(delegated(), "blob", "cont/a", more={changed: "2026-11-18T06:00:00Z"})


def test_a_key_of_another_account_or_service_or_time_is_refused() -> None:
    with pytest.raises(Unauthorized):
        check(delegated(key=delegation_key(UserDelegationKey, account_key=b"other")), "blob", "cont/a")
    with pytest.raises(Forbidden):
        check(delegated(key=delegation_key(UserDelegationKey, FIELDS._replace(service="q"))), "blob", "cont/a")
    late = FIELDS._replace(start="2026-11-16T13:00:00Z")
    with pytest.raises(Unauthorized):
        check(delegated(key=delegation_key(UserDelegationKey, late)), "blob", "cont/a")


def test_parts_of_the_request_can_be_bound() -> None:
    token = delegated(request_headers={"x-ms-foo": "1", "x-ms-bar": "2"}, request_query_params={"timeout": "5"})
    right = {"x-ms-foo": "1", "x-ms-bar": "2"}
    assert check(token, "blob", "cont/a", headers=right, more={"timeout": "5"}).permissions == "r"
    with pytest.raises(Unauthorized):
        check(token, "blob", "cont/a", headers={**right, "x-ms-bar": "3"}, more={"timeout": "5"})
    with pytest.raises(Unauthorized):
        check(token, "blob", "cont/a", headers=right, more={"timeout": "6"})
    # The door reads names of parameters in lower case.
    token = delegated(request_query_params={"firstName": "Ada"})
    assert check(token, "blob", "cont/a", more={"firstname": "Ada"}).permissions == "r"


def test_further_fields_of_user_delegation_are_signed() -> None:
    token = delegated(preauthorized_agent_object_id="agent", correlation_id="c1", user_delegation_oid="user")
    assert check(token, "blob", "cont/a").delegated_object_id == "user"
    with pytest.raises(Unauthorized):
        check(token, "blob", "cont/a", more={"saoid": "other"})
    with pytest.raises(Unauthorized):
        check(token, "blob", "cont/a", more={"sduoid": "other"})


@pytest.mark.parametrize(
    "more", [{"sig": "é"}, {"sig": ""}, {"sr": "x"}, {"sr": ""}, {"sr": "d", "sdd": "²"}, {"se": "x"}, {"skoid": "x"}]
)
def test_malformed_fields_are_refused(more: dict[str, str]) -> None:
    with pytest.raises(Unauthorized):
        check(blob_sas(), "blob", "cont/dir/blob é", more=more)
