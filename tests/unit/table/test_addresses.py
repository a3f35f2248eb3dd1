"""Which account and which resource a request is for."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.access.keys import DEVELOPMENT_KEY
from asterism.apis.storage.accounts import parse_account
from asterism.apis.storage.address import read_address
from asterism.apis.storage.refusals import Refusal
from asterism.apis.table.continuation import read_token, write_token
from asterism.apis.table.resource_paths import Kind, Resource, read_resource
from asterism.apis.table.resources.names import cosmos_name_refusal, new_cosmos_name_refusal, storage_name_refusal


@pytest.mark.parametrize(
    ("authority", "path", "account", "resource", "is_secondary"),
    [
        ("127.0.0.1:10002", "/acct/t()", "acct", "t()", False),
        ("127.0.0.1:10002", "/acct", "acct", "", False),
        ("localhost:10002", "/acct/", "acct", "", False),
        ("db:10002", "/acct/$batch", "acct", "$batch", False),
        ("acct.table.core.windows.net", "/t()", "acct", "t()", False),
        ("acct-secondary.table.core.windows.net", "/t()", "acct", "t()", True),
        ("acct.table.cosmos.azure.com:443", "/Tables", "acct", "Tables", False),
        ("127.0.0.1:10002", "/acct-secondary/t()", "acct", "t()", True),
        ("127.0.0.1:10002", "/acct-secondary/acct/t()", "acct", "t()", True),
        ("127.0.0.1:10002", "/acct/acct-secondary/acct/t()", "acct", "t()", False),
    ],
)
def test_the_account_is_in_the_host_or_in_the_path(
    authority: str, path: str, account: str, resource: str, is_secondary: bool
) -> None:
    address = read_address("table", authority, path)
    assert (address.account, address.resource, address.is_secondary) == (account, resource, is_secondary)


def test_a_mangled_secondary_is_signed_without_its_first_segment() -> None:
    assert read_address("table", "127.0.0.1", "/acct-secondary/acct/t").signed_paths[0] == "/acct/t"


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("", Resource(Kind.SERVICE)),
        ("Tables", Resource(Kind.TABLES)),
        ("Tables()", Resource(Kind.TABLES)),
        ("Tables('it''s')", Resource(Kind.TABLE, "it's")),
        ("$batch", Resource(Kind.BATCH)),
        ("t", Resource(Kind.ENTITIES, "t")),
        ("t/", Resource(Kind.ENTITIES, "t")),
        ("t()", Resource(Kind.ENTITIES, "t")),
        ("t(PartitionKey='a/b',RowKey=')')", Resource(Kind.ENTITY, "t", "PartitionKey='a/b',RowKey=')'")),
        ("t/Tables('t')", Resource(Kind.BEHIND_A_TABLE, "t", rest="Tables('t')")),
        ("t/$batch", Resource(Kind.BEHIND_A_TABLE, "t", rest="$batch")),
    ],
)
def test_a_path_names_a_resource(path: str, resource: Resource) -> None:
    assert read_resource(path) == resource


@pytest.mark.parametrize("path", ["t(", "t(PartitionKey='p'", "Tables(x)", "Tables(')"])
def test_a_path_that_is_not_closed_is_refused(path: str) -> None:
    with pytest.raises(Refusal):
        read_resource(path)


@given(st.text(max_size=40))
def test_any_path_names_something_or_is_refused(path: str) -> None:
    with suppress(Refusal):
        assert read_resource(path).kind in Kind


@pytest.mark.parametrize("name", ["abc", "A12", "a" * 63])
def test_names_of_storage_tables(name: str) -> None:
    assert storage_name_refusal(name) is None


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("1table", "InvalidResourceName"),
        ("my_table", "InvalidResourceName"),
        ("täble", "InvalidResourceName"),
        ("Tables", "InvalidInput"),
    ],
)
def test_names_that_no_storage_table_has(name: str, code: str) -> None:
    refusal = storage_name_refusal(name)
    assert refusal is not None
    assert refusal.code == code


@pytest.mark.parametrize("name", ["a", "my table", "täble_1", "-" * 254])
def test_names_of_cosmos_tables(name: str) -> None:
    assert new_cosmos_name_refusal(name) is None
    assert cosmos_name_refusal(name) is None


@pytest.mark.parametrize("name", ["\\", "a/b", "#", "?", "- ", ""])
def test_names_that_no_cosmos_table_has(name: str) -> None:
    assert new_cosmos_name_refusal(name) is not None
    assert cosmos_name_refusal(name) is not None


@given(st.text())
def test_a_continuation_token_is_plain_and_tells_its_key(key: str) -> None:
    token = write_token(key)
    assert token.isascii()
    assert " " not in token
    assert read_token(token) == key


def test_a_key_written_by_hand_is_a_token_too() -> None:
    assert read_token("order-17") == "order-17"
    assert read_token("1!x!") == "1!x!"
    assert read_token("") is None


def test_an_account_is_a_name_and_its_keys() -> None:
    account = parse_account(f"shop:{DEVELOPMENT_KEY};a2V5")
    assert (account.name, len(account.keys[0]), account.keys[1]) == ("shop", 64, b"key")


@pytest.mark.parametrize("text", ["", "shop", "shop:", "Shop:a2V5", "shop:not base64!", ":a2V5", "s p:a2V5"])
def test_what_is_no_account_is_said_so(text: str) -> None:
    with pytest.raises(ValueError, match=r"write NAME:KEY|base64|empty"):
        parse_account(text)
