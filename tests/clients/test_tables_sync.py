"""Tables with the official client."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import (
    EdmType,
    EntityProperty,
    RequestTooLargeError,
    TableAccessPolicy,
    TableAnalyticsLogging,
    TableClient,
    TableCorsRule,
    TableRetentionPolicy,
    TableSasPermissions,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_table_sas,
)

from asterism.access.keys import DEVELOPMENT_ACCOUNT
from tests.clients.table_server import CREDENTIAL, TableServer, new_name, running_tables


@pytest.fixture
def table(tables: TableServer) -> Iterator[TableClient]:
    service = tables.service()
    made = service.create_table(new_name("Table"))
    yield made
    service.delete_table(made.table_name)


def keys(found: Any) -> list[tuple[str, str]]:
    return [(entity["PartitionKey"], entity["RowKey"]) for entity in found]


def test_a_connection_string_is_all_a_client_needs(tables: TableServer) -> None:
    service = TableServiceClient.from_connection_string(tables.connection_string)
    name = new_name("ByString")
    service.create_table_if_not_exists(name)
    assert service.create_table_if_not_exists(name).table_name == name
    assert [table.name for table in service.query_tables(f"TableName eq '{name}'")] == [name]
    service.delete_table(name)
    service.delete_table(name)
    with pytest.raises(ResourceNotFoundError):
        next(iter(service.get_table_client(name).list_entities()))


def test_every_type_comes_back_as_it_was(table: TableClient) -> None:
    entity = {
        "PartitionKey": "p",
        "RowKey": "it's é+ 50%",
        "text": 'say "hi" \u2028 \U0001f600',
        "small": -(2**31),
        "large": EntityProperty(2**62, EdmType.INT64),
        "real": 0.1,
        "whole": 3.0,
        "endless": float("-inf"),
        "yes": True,
        "moment": datetime(2026, 11, 16, 12, 30, 15, 123456, tzinfo=UTC),
        "guid": uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
        "data": bytes(range(256)),
        "nothing": None,
    }
    table.create_entity(entity)
    found = table.get_entity("p", "it's é+ 50%")
    del entity["nothing"]
    assert found == entity
    assert isinstance(found["whole"], float)
    assert found.metadata["etag"]


def test_updates_keep_to_their_conditions(table: TableClient) -> None:
    created = table.create_entity({"PartitionKey": "p", "RowKey": "r", "a": 1})
    with pytest.raises(ResourceExistsError):
        table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    table.update_entity({"PartitionKey": "p", "RowKey": "r", "b": 2}, mode=UpdateMode.MERGE)
    stale = {"etag": created["etag"], "match_condition": MatchConditions.IfNotModified}
    with pytest.raises(ResourceModifiedError):
        table.update_entity({"PartitionKey": "p", "RowKey": "r"}, mode=UpdateMode.REPLACE, **stale)
    with pytest.raises(ResourceModifiedError):
        table.delete_entity("p", "r", **stale)
    assert {name: table.get_entity("p", "r")[name] for name in "ab"} == {"a": 1, "b": 2}
    table.upsert_entity({"PartitionKey": "p", "RowKey": "r", "c": 3}, mode=UpdateMode.REPLACE)
    assert set(table.get_entity("p", "r")) == {"PartitionKey", "RowKey", "c"}
    with pytest.raises(ResourceNotFoundError):
        table.update_entity({"PartitionKey": "p", "RowKey": "missing"})
    table.delete_entity("p", "r")
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "r")


def test_queries_come_in_order_and_in_pages(table: TableClient) -> None:
    for partition_key in "abc":
        table.submit_transaction(
            [("create", {"PartitionKey": partition_key, "RowKey": f"{row:03}", "n": row}) for row in range(100)]
        )
    everything = [(partition_key, f"{row:03}") for partition_key in "abc" for row in range(100)]
    assert keys(table.list_entities()) == everything
    pages = [keys(page) for page in table.list_entities(results_per_page=70).by_page()]
    assert [len(page) for page in pages] == [70, 70, 70, 70, 20]
    text = "PartitionKey ge @low and PartitionKey lt 'c' and n ge @n"
    found = table.query_entities(text, parameters={"low": "b", "n": 98}, select=["n"])
    assert [dict(entity) for entity in found] == [{"n": 98}, {"n": 99}]
    rows = table.query_entities("PartitionKey eq 'a' and RowKey gt '010' and RowKey le '013'", results_per_page=2)
    assert [keys(page) for page in rows.by_page()] == [[("a", "011"), ("a", "012")], [("a", "013")]]


def test_a_continuation_is_honoured_by_another_client(tables: TableServer, table: TableClient) -> None:
    for row in range(5):
        table.create_entity({"PartitionKey": "ö/".strip("/"), "RowKey": f"é{row}"})
    pages = table.list_entities(results_per_page=2).by_page()
    first = keys(next(pages))
    token = pages.continuation_token
    other = tables.service().get_table_client(table.table_name)
    rest = [key for page in other.list_entities(results_per_page=2).by_page(token) for key in keys(page)]
    assert [row for _, row in first + rest] == [f"é{row}" for row in range(5)]


def test_a_transaction_is_all_or_nothing_and_names_what_failed(table: TableClient) -> None:
    table.create_entity({"PartitionKey": "p", "RowKey": "there"})
    operations: list[Any] = [("upsert", {"PartitionKey": "p", "RowKey": str(number)}) for number in range(5)]
    with pytest.raises(TableTransactionError) as failed:
        table.submit_transaction([*operations, ("create", {"PartitionKey": "p", "RowKey": "there"})])
    assert (failed.value.index, failed.value.error_code) == (5, "EntityAlreadyExists")
    assert keys(table.list_entities()) == [("p", "there")]
    done = table.submit_transaction([*operations, ("delete", {"PartitionKey": "p", "RowKey": "there"})])
    assert len(done) == 6
    assert [row for _, row in keys(table.list_entities())] == ["0", "1", "2", "3", "4"]


def test_a_transaction_keeps_to_one_partition_and_its_sizes(table: TableClient) -> None:
    with pytest.raises(ValueError, match="must all be the same"):
        table.submit_transaction([("upsert", {"PartitionKey": key, "RowKey": "r"}) for key in "pq"])
    many = [("upsert", {"PartitionKey": "p", "RowKey": str(number)}) for number in range(101)]
    with pytest.raises(TableTransactionError):
        table.submit_transaction(many)
    large = [("upsert", {"PartitionKey": "p", "RowKey": str(number), "a": "x" * 32000}) for number in range(100)]
    table.submit_transaction(large)
    with pytest.raises(RequestTooLargeError):
        table.submit_transaction([(kind, {**entity, "b": "y" * 20000}) for kind, entity in large])
    assert len(list(table.list_entities())) == 100
    assert table.submit_transaction([]) == []


@pytest.mark.parametrize(
    ("entity", "code"),
    [
        ({"PartitionKey": "a/b", "RowKey": "r"}, "OutOfRangeInput"),
        ({"PartitionKey": "p" * 513, "RowKey": "r"}, "PropertyValueTooLarge"),
        ({"PartitionKey": "p", "RowKey": "r", "1a": 1}, "PropertyNameInvalid"),
        ({"PartitionKey": "p", "RowKey": "r", "a" * 256: 1}, "PropertyNameTooLong"),
        ({"PartitionKey": "p", "RowKey": "r", "a": "x" * 32769}, "PropertyValueTooLarge"),
        ({"PartitionKey": "p", "RowKey": "r", **{f"p{n}": n for n in range(253)}}, "TooManyProperties"),
        ({"PartitionKey": "p", "RowKey": "r", **{f"p{n}": "x" * 32768 for n in range(17)}}, "EntityTooLarge"),
    ],
)
def test_limits_are_refused_with_the_services_codes(table: TableClient, entity: dict[str, Any], code: str) -> None:
    with pytest.raises(HttpResponseError) as refused:
        table.create_entity(entity)
    assert refused.value.response is not None
    assert refused.value.response.headers["x-ms-error-code"] == code
    assert list(table.list_entities()) == []


def test_a_wrong_key_is_refused_and_a_shared_access_signature_opens_its_range(
    tables: TableServer, table: TableClient
) -> None:
    wrong = AzureNamedKeyCredential(DEVELOPMENT_ACCOUNT, "d3Jvbmc=")
    with pytest.raises(ClientAuthenticationError):
        TableClient(tables.endpoint, table.table_name, credential=wrong).get_entity("p", "r")
    for key in "abc":
        table.create_entity({"PartitionKey": key, "RowKey": key})
    sas = generate_table_sas(
        CREDENTIAL,
        table.table_name,
        permission=TableSasPermissions(read=True, add=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
        start_pk="b",
        end_pk="b",
    )
    limited = TableClient(tables.endpoint, table.table_name, credential=AzureSasCredential(sas))
    assert keys(limited.list_entities()) == [("b", "b")]
    limited.submit_transaction([("create", {"PartitionKey": "b", "RowKey": "new"})])
    with pytest.raises(HttpResponseError):
        limited.create_entity({"PartitionKey": "c", "RowKey": "new"})


def test_policies_properties_and_statistics_are_kept(tables: TableServer, table: TableClient) -> None:
    expiry = datetime.now(UTC) + timedelta(hours=1)
    table.set_table_access_policy({"readers": TableAccessPolicy(expiry=expiry, permission="r"), "nobody": None})
    assert set(table.get_table_access_policy()) == {"readers", "nobody"}
    sas = generate_table_sas(CREDENTIAL, table.table_name, policy_id="readers")
    reader = TableClient(tables.endpoint, table.table_name, credential=AzureSasCredential(sas))
    assert list(reader.list_entities()) == []
    service = tables.of_new_account().service()
    service.set_service_properties(
        analytics_logging=TableAnalyticsLogging(
            write=True, retention_policy=TableRetentionPolicy(enabled=True, days=7)
        ),
        cors=[TableCorsRule(["https://shop.test"], ["GET"])],
    )
    properties = service.get_service_properties()
    assert properties["analytics_logging"].retention_policy.days == 7
    assert properties["cors"][0].allowed_origins == ["https://shop.test"]
    assert service.get_service_stats()["geo_replication"]["status"] == "live"


def test_acknowledged_writes_exist_after_kill_minus_9(tmp_path: Path) -> None:
    with running_tables(tmp_path) as server:
        table = server.service().create_table("kept")
        for row in range(20):
            table.create_entity({"PartitionKey": "p", "RowKey": f"{row:02}"})
        table.submit_transaction([("create", {"PartitionKey": "q", "RowKey": f"{row:02}"}) for row in range(20)])
        server.running.kill()
    with running_tables(tmp_path) as server:
        found = server.service().get_table_client("kept").list_entities()
        assert keys(found) == [(key, f"{row:02}") for key in "pq" for row in range(20)]


def test_tables_are_served_over_https_with_any_number_of_accounts(tmp_path: Path) -> None:
    accounts = ("--table-account", "one:b25l", "--table-account", "two:dHdv")
    with running_tables(tmp_path, "--https", *accounts) as server:
        for name, key in (("one", "b25l"), ("two", "dHdv")):
            endpoint = f"https://127.0.0.1:{server.port}/{name}"
            credential = AzureNamedKeyCredential(name, key)
            with TableServiceClient(endpoint, credential=credential, connection_verify=False) as service:
                service.create_table(f"of{name}")
                assert [table.name for table in service.list_tables()] == [f"of{name}"]
