"""Shared access signatures, made by the official client and by hand."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableSasPermissions,
    generate_account_sas,
    generate_table_sas,
)
from hypothesis import given
from hypothesis import strategies as st

from asterism.access.sas_grants import Policy, ResourceType, SasGrant
from asterism.access.shared_access import address_within, check_shared_access, is_shared_access, moment_of
from asterism.access.shared_key import shared_key_signature
from asterism.errors import Forbidden, Unauthorized

KEY = b"a key of an account"
CREDENTIAL = AzureNamedKeyCredential("acct", base64.b64encode(KEY).decode())
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
EVENING = datetime(2026, 11, 16, 18, tzinfo=UTC)


def table_sas(**fields: Any) -> dict[str, str]:
    named = {"permission": TableSasPermissions(read=True, add=True), "expiry": EVENING, **fields}
    return dict(parse_qsl(generate_table_sas(CREDENTIAL, "Orders", **named)))


def account_sas(**fields: Any) -> dict[str, str]:
    named = {
        "resource_types": ResourceTypes(object=True),
        "permission": AccountSasPermissions(read=True, list=True),
        "expiry": EVENING,
        **fields,
    }
    return dict(parse_qsl(generate_account_sas(CREDENTIAL, **named)))


def check(
    parameters: dict[str, str],
    *,
    now: datetime = NOON,
    policies: dict[str, Policy] | None = None,
    scheme: str = "https",
    client_address: str = "127.0.0.1",
) -> SasGrant:
    return check_shared_access(
        (b"an older key", KEY),
        parameters,
        service="table",
        account="acct",
        policies=policies or {},
        scheme=scheme,
        client_address=client_address,
        now_wall_seconds=now.timestamp(),
    )


def test_a_tables_signature_permits_what_it_says_on_its_table_only() -> None:
    grant = check(table_sas())
    assert grant.allows("r", ResourceType.OBJECT, "orders")
    assert grant.allows("a", ResourceType.OBJECT, "ORDERS")
    assert not grant.allows("au", ResourceType.OBJECT, "orders")
    assert not grant.allows("r", ResourceType.OBJECT, "customers")
    assert not grant.allows("r", ResourceType.CONTAINER, None)


def test_an_accounts_signature_permits_what_it_says_on_its_kinds_of_resources() -> None:
    grant = check(account_sas())
    assert grant.allows("r", ResourceType.OBJECT, "orders")
    assert not grant.allows("l", ResourceType.CONTAINER, None)
    assert not grant.allows("w", ResourceType.OBJECT, "orders")


def test_the_range_of_keys_includes_its_ends() -> None:
    grant = check(table_sas(start_pk="b", start_rk="2", end_pk="c", end_rk="7"))
    assert grant.has_range
    inside = [("b", "2"), ("b", "9"), ("c", ""), ("c", "7")]
    outside = [("a", "9"), ("b", "1"), ("c", "8"), ("d", "")]
    assert [grant.covers(key) for key in (*inside, *outside)] == [True] * 4 + [False] * 4


def test_a_range_of_partition_keys_alone_includes_all_rows_of_the_last() -> None:
    grant = check(table_sas(start_pk="b", end_pk="c"))
    assert grant.covers(("c", "zzz"))
    assert not grant.covers(("ca", ""))


@pytest.mark.parametrize("name", ["sp", "se", "sv", "tn", "spk"])
def test_no_field_can_be_changed(name: str) -> None:
    parameters = table_sas(start_pk="b", end_pk="c")
    with pytest.raises(Unauthorized):
        check({**parameters, name: parameters[name] + "x"})


@pytest.mark.parametrize("hours", [0, 5, 18, 23])
def test_a_signature_is_valid_from_its_start_to_its_expiry(hours: int) -> None:
    parameters = account_sas(start=datetime(2026, 11, 16, 6, tzinfo=UTC))
    with pytest.raises(Unauthorized):
        check(parameters, now=datetime(2026, 11, 16, hours, tzinfo=UTC))


def test_a_signature_for_https_is_refused_over_http() -> None:
    parameters = account_sas(protocol="https")
    check(parameters)
    with pytest.raises(Forbidden):
        check(parameters, scheme="http")


def test_a_signature_for_addresses_is_refused_from_others() -> None:
    parameters = account_sas(ip_address_or_range="10.0.0.1-10.0.0.9")
    check(parameters, client_address="10.0.0.5")
    with pytest.raises(Forbidden):
        check(parameters, client_address="10.0.0.10")


def test_a_policy_gives_what_the_signature_leaves_out() -> None:
    parameters = table_sas(permission=None, expiry=None, policy_id="readers")
    grant = check(parameters, policies={"readers": Policy(expiry="2026-11-16T18:00:00Z", permissions="r")})
    assert grant.allows("r", ResourceType.OBJECT, "orders")


@pytest.mark.parametrize(
    "policies",
    [
        {},
        {"readers": Policy(expiry="2026-11-16T11:00:00Z", permissions="r")},
        {"readers": Policy(permissions="r")},
        {"readers": Policy(expiry="soon", permissions="r")},
    ],
)
def test_a_missing_or_expired_policy_grants_nothing(policies: dict[str, Policy]) -> None:
    parameters = table_sas(permission=None, expiry=None, policy_id="readers")
    with pytest.raises(Unauthorized):
        check(parameters, policies=policies)


def test_a_field_in_the_signature_and_in_its_policy_is_refused() -> None:
    parameters = table_sas(policy_id="readers")
    with pytest.raises(Unauthorized):
        check(parameters, policies={"readers": Policy(expiry="2026-11-16T18:00:00Z", permissions="r")})


def test_newer_versions_of_an_accounts_signature_cover_the_encryption_scope() -> None:
    fields = {"sp": "r", "ss": "t", "srt": "o", "se": "2026-11-16T18:00:00Z", "sv": "2021-06-08"}
    text = "acct\nr\nt\no\n\n2026-11-16T18:00:00Z\n\n\n2021-06-08\n\n"
    assert check({**fields, "sig": shared_key_signature(KEY, text)}).permissions == "r"


def test_a_signature_for_other_services_is_refused() -> None:
    fields = {"sp": "r", "ss": "bq", "srt": "o", "se": "2026-11-16T18:00:00Z", "sv": "2019-02-02"}
    text = "acct\nr\nbq\no\n\n2026-11-16T18:00:00Z\n\n\n2019-02-02\n"
    with pytest.raises(Forbidden):
        check({**fields, "sig": shared_key_signature(KEY, text)})


@pytest.mark.parametrize(
    ("text", "hour"),
    [("2026-11-16", 0), ("2026-11-16T12:00Z", 12), ("2026-11-16T12:00:00Z", 12), ("2026-11-16T12:00:00.0000000Z", 12)],
)
def test_times_are_read_in_every_form_the_service_takes(text: str, hour: int) -> None:
    assert moment_of(text) == datetime(2026, 11, 16, hour, tzinfo=UTC).timestamp()


@given(st.text(max_size=20))
def test_a_text_that_is_not_a_time_is_refused_and_breaks_nothing(text: str) -> None:
    try:
        moment_of(text)
    except Unauthorized:
        return


@given(st.ip_addresses(), st.ip_addresses(), st.ip_addresses())
def test_an_address_is_within_a_range_that_ends_on_it(address: Any, other: Any, third: Any) -> None:
    assert address_within(str(address), str(address))
    assert address_within(str(address), f"{address}-{address}")
    assert not address_within(str(address), "nonsense")
    address_within(str(address), f"{other}-{third}")


def test_only_a_query_with_a_signature_is_shared_access() -> None:
    assert is_shared_access({"sig": "x", "sv": "y"})
    assert not is_shared_access({"$filter": "sig eq 'x'"})
