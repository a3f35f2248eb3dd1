"""Accounts, created and changed through the admin door."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from asterism.keyspaces.catalog.store import CATALOG_PARTITION
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig
from asterism.server.data_directory import DataDirectory
from asterism.storage.contract import Span
from tests.unit.server.test_admin_door import Operator


@pytest.fixture
async def operator(tmp_path: Path) -> AsyncIterator[Operator]:
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        yield Operator(assembly)


async def post(operator: Operator, route: str, status: int, /, **body: object) -> dict[str, Any]:
    response = await operator.ask("POST", route, body=body)
    assert response.status == status, response.body
    answer: dict[str, Any] = json.loads(response.body)
    return answer


async def test_a_new_account_has_four_different_keys_of_64_bytes(operator: Operator) -> None:
    keys = (await post(operator, "accounts", 201, name="blue"))["keys"]
    assert len(set(keys.values())) == 4
    assert {len(base64.b64decode(key)) for key in keys.values()} == {64}
    assert (await post(operator, "accounts/keys", 200, name="blue"))["keys"] == keys


async def test_accounts_are_listed_without_keys(operator: Operator) -> None:
    await post(operator, "accounts", 201, name="blue", quotas={"databases": 2}, consistency="strong")
    listed = (await operator.get("accounts", query=""))["accounts"]
    blue = next(account for account in listed if account["name"] == "blue")
    assert blue == {
        "name": "blue",
        "kind": "cosmos",
        "configured": False,
        "consistency": "Strong",
        "quotas": {"databases_max": 2},
        "databases": 0,
        "closing": False,
    }
    assert {"name": "asterism", "configured": True} in listed
    assert "key" not in json.dumps(listed)


async def test_an_account_that_is_deleted_with_its_tables_leaves_nothing_of_them(operator: Operator) -> None:
    await post(operator, "accounts", 201, name="blue", kind="storage")
    services = operator.assembly.services
    table = await services.tables.create_table("blue", "orders", kind="storage")
    await services.tables.put_document("blue", table, "acl", b"policies")
    assert await services.tables.replace_account_document("blue", "properties", b"rules", before=None)
    await post(operator, "accounts/delete", 200, name="blue", with_data=True)
    assert services.tables.find_table("blue", "orders") is None
    page = await operator.assembly.fleet.engines.scan_unfenced(CATALOG_PARTITION, Span(b"a", b"b"))
    assert page.entries == []


async def test_a_rotated_key_replaces_its_pair_and_leaves_the_other(operator: Operator) -> None:
    before = (await post(operator, "accounts", 201, name="blue"))["keys"]
    after = (await post(operator, "accounts/rotate", 200, name="blue", which="primary"))["keys"]
    assert (after["secondary"], after["secondary_readonly"]) == (before["secondary"], before["secondary_readonly"])
    assert after["primary"] != before["primary"]
    assert after["primary_readonly"] == derive_readonly_key(after["primary"])


async def test_quotas_can_be_changed_and_taken_away(operator: Operator) -> None:
    await post(operator, "accounts", 201, name="blue", quotas={"databases": 2, "containers": 5})
    changed = await post(operator, "accounts/change", 200, name="blue", quotas={"databases": None, "ru-per-second": 9})
    assert changed["account"]["quotas"] == {"containers_max": 5, "ru_per_second_max": 9}


async def test_an_account_with_databases_is_deleted_only_with_its_data(operator: Operator) -> None:
    await post(operator, "accounts", 201, name="blue")
    store = operator.assembly.services.documents
    await store.create_database("blue", "d", None)
    refused = await post(operator, "accounts/delete", 400, name="blue")
    assert "1 databases" in refused["message"]
    await post(operator, "accounts/delete", 200, name="blue", with_data=True)
    assert store.catalog.databases_of("blue") == []
    await post(operator, "accounts/keys", 404, name="blue")


async def test_a_deletion_that_was_interrupted_resumes(operator: Operator) -> None:
    await post(operator, "accounts", 201, name="blue")
    store = operator.assembly.services.documents
    await store.create_database("blue", "d", None)
    await store.catalog.accounts.close("blue")
    await post(operator, "accounts/delete", 200, name="blue", with_data=True)
    assert store.catalog.accounts.find("blue") is None


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (409, {"name": "blue"}),
        (409, {"name": "asterism"}),
        (400, {"name": "Blue!"}),
        (400, {}),
        (400, {"name": "green", "kind": "graph"}),
        (400, {"name": "green", "consistency": "sometimes"}),
        (400, {"name": "green", "quotas": {"planets": 9}}),
        (400, {"name": "green", "quotas": {"databases": 0}}),
        (400, {"name": "green", "primary_key": "not base64!"}),
    ],
)
async def test_an_account_that_cannot_be_is_refused(operator: Operator, status: int, body: dict[str, object]) -> None:
    await post(operator, "accounts", 201, name="blue")
    refused = await post(operator, "accounts", status, **body)
    assert refused["message"]
    assert [record.name for record in operator.assembly.services.documents.catalog.accounts.all()] == ["blue"]


@pytest.mark.parametrize("route", ["accounts/keys", "accounts/rotate", "accounts/change", "accounts/delete"])
async def test_the_account_of_the_configuration_is_left_to_the_configuration(operator: Operator, route: str) -> None:
    refused = await post(operator, route, 400, name="asterism", which="primary")
    assert "configuration" in refused["message"]


@pytest.mark.parametrize("route", ["accounts", "accounts/keys", "accounts/rotate", "accounts/delete"])
async def test_a_read_only_key_cannot_read_keys_or_change_anything(operator: Operator, route: str) -> None:
    await post(operator, "accounts", 201, name="blue")
    reader = Operator(operator.assembly, key=derive_readonly_key(WELL_KNOWN_EMULATOR_KEY))
    await post(reader, route, 403, name="blue", which="primary")
