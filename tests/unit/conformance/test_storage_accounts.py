"""Accounts and addresses of the clients' tests of queues and blobs."""

from __future__ import annotations

import base64
import re

import pytest

from conformance import transport
from conformance.storage.accounts import ROLES, all_accounts, environment_of


def test_names_of_accounts_differ_and_are_legal() -> None:
    names = [account.name for account in all_accounts(workers=10)]
    assert len(set(names)) == 10 * len(ROLES)
    assert all(re.fullmatch("[a-z0-9]{3,24}", name) for name in names)


def test_keys_have_the_length_of_the_product_and_differ() -> None:
    keys = [account.key for account in all_accounts(workers=10)]
    assert len(set(keys)) == len(keys)
    assert {len(base64.b64decode(key)) for key in keys} == {64}


def test_the_tests_find_each_account_under_the_name_of_its_argument() -> None:
    variables = environment_of(1)
    assert variables["ASTERISM_TESTS_STORAGE_ACCOUNT_NAME"] == "asterism1"
    assert variables["ASTERISM_TESTS_VERSIONED_STORAGE_ACCOUNT_NAME"] == "asterism1versioned"
    assert variables["ASTERISM_TESTS_STORAGE_TOKEN_KEY"] == variables["ASTERISM_TESTS_STORAGE_ACCOUNT_KEY"]


@pytest.fixture
def local_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(transport._BASES, ".blob.core.windows.net", "https://127.0.0.1:5000")


@pytest.mark.usefixtures("local_addresses")
def test_a_request_for_the_product_goes_to_the_server_under_test_with_its_host() -> None:
    url = "https://acc-secondary.blob.core.windows.net/c/b%20b?comp=list&prefix="
    assert transport.redirected(url) == (
        "https://127.0.0.1:5000/c/b%20b?comp=list&prefix=",
        "acc-secondary.blob.core.windows.net",
    )


@pytest.mark.usefixtures("local_addresses")
def test_a_request_for_another_service_goes_where_it_says() -> None:
    assert transport.redirected("https://acc.file.core.windows.net/share") is None
