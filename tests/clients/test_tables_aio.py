"""Tables with the official client's asyncio half, which encodes URLs in its own way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.data.tables import TableTransactionError
from azure.data.tables.aio import TableClient, TableServiceClient

from tests.clients.table_server import TableServer, new_name


@pytest.fixture
async def table(tables: TableServer) -> AsyncIterator[TableClient]:
    async with TableServiceClient.from_connection_string(tables.connection_string) as service:
        made = await service.create_table(new_name("Table"))
        yield made
        await service.delete_table(made.table_name)


@pytest.mark.parametrize("key", ["it's", "a+b c", "50%25", "(x=1,y:2;@z)!*~$&", "é\U0001f600", '"'])
async def test_keys_of_any_kind_are_found_again(table: TableClient, key: str) -> None:
    await table.create_entity({"PartitionKey": key, "RowKey": key, "a": 1})
    assert (await table.get_entity(key, key))["a"] == 1
    await table.upsert_entity({"PartitionKey": key, "RowKey": key, "b": 2})
    found = [entity async for entity in table.query_entities("PartitionKey eq @key", parameters={"key": key})]
    assert [(entity["a"], entity["b"]) for entity in found] == [(1, 2)]
    await table.delete_entity(key, key)
    with pytest.raises(ResourceNotFoundError):
        await table.get_entity(key, key)


async def test_pages_are_read_one_after_the_other(table: TableClient) -> None:
    await table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": f"{row:02}"}) for row in range(50)])
    pages = table.list_entities(results_per_page=20).by_page()
    assert [len([entity async for entity in page]) async for page in pages] == [20, 20, 10]


async def test_a_transaction_names_what_failed(table: TableClient) -> None:
    await table.create_entity({"PartitionKey": "p", "RowKey": "it's"})
    with pytest.raises(TableTransactionError) as failed:
        await table.submit_transaction(
            [
                ("upsert", {"PartitionKey": "p", "RowKey": "new"}),
                ("create", {"PartitionKey": "p", "RowKey": "it's"}),
            ]
        )
    assert failed.value.index == 1
    assert [entity["RowKey"] async for entity in table.list_entities()] == ["it's"]


async def test_of_many_inserts_of_one_entity_one_succeeds(table: TableClient) -> None:
    entity = {"PartitionKey": "p", "RowKey": "r"}
    results = await asyncio.gather(*(table.create_entity(entity) for _ in range(10)), return_exceptions=True)
    assert sum(not isinstance(result, BaseException) for result in results) == 1
    assert sum(isinstance(result, ResourceExistsError) for result in results) == 9


async def test_concurrent_merges_all_arrive(table: TableClient) -> None:
    entity = {"PartitionKey": "p", "RowKey": "r"}
    await asyncio.gather(*(table.upsert_entity({**entity, f"p{number}": number}) for number in range(20)))
    found = await table.get_entity("p", "r")
    assert {name: value for name, value in found.items() if name.startswith("p")} == {f"p{n}": n for n in range(20)}
