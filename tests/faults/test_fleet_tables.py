"""Tables over PostgreSQL while the network to it breaks, with the official client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient, TableServiceClient

from tests.clients.table_server import CREDENTIAL, TableServer, running_tables
from tests.support.postgres import shared_server
from tests.support.proxy import Fault, Proxy, enter_behind_proxy, proxy_to


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with proxy_to(shared_server().port) as proxy:
        yield proxy


@pytest.fixture
async def server(tmp_path: Path, proxy: Proxy) -> AsyncIterator[TableServer]:
    await shared_server().empty_database("tables_cut")
    async with AsyncExitStack() as stack:
        starting = running_tables(tmp_path, "--store", shared_server().dsn("tables_cut", port=proxy.port))
        running = await enter_behind_proxy(stack, starting)
        yield running


def make_table(server: TableServer, *, retries: int) -> TableClient:
    service = TableServiceClient(server.endpoint, credential=CREDENTIAL, retry_total=retries, retry_backoff_factor=0.2)
    return service.create_table_if_not_exists("things")


class Inserter(threading.Thread):
    """A client that inserts, alone and in transactions, without a retry of its own."""

    def __init__(self, table: TableClient) -> None:
        super().__init__(daemon=True)
        self.inserted: set[str] = set()
        self.problems: list[Exception] = []
        self.stopping = threading.Event()
        self._table = table

    def run(self) -> None:
        number = 0
        while not self.stopping.is_set():
            number += 1
            rows = [f"{number}-{place}" for place in range(3)]
            entities = [{"PartitionKey": str(number), "RowKey": row} for row in rows]
            try:
                self._table.create_entity(entities[0])
                self.inserted.add(rows[0])
                self._table.submit_transaction([("create", entity) for entity in entities[1:]])
                self.inserted.update(rows[1:])
            except Exception as problem:
                self.problems.append(problem)

    async def wait_for_more(self) -> None:
        wanted = len(self.inserted) + 12
        async with asyncio.timeout(180):
            while len(self.inserted) < wanted:
                await asyncio.sleep(0.02)


async def test_cut_connections_are_not_noticed_and_nothing_is_inserted_twice(server: TableServer, proxy: Proxy) -> None:
    table = await asyncio.to_thread(make_table, server, retries=0)
    inserter = Inserter(table)
    inserter.start()
    for fault in (Fault.ANSWER_LOST, Fault.REQUEST_LOST, Fault.ANSWER_LOST):
        await inserter.wait_for_more()
        proxy.arm(fault)
        await asyncio.wait_for(proxy.struck.wait(), 180)
    await inserter.wait_for_more()
    proxy.cut_all()
    await inserter.wait_for_more()
    inserter.stopping.set()
    await asyncio.to_thread(inserter.join, 180)
    assert not inserter.is_alive()
    # An insert that was made and then made again would have been refused as one that exists.
    assert inserter.problems == []
    found = await asyncio.to_thread(lambda: [entity["RowKey"] for entity in table.list_entities()])
    assert sorted(found) == sorted(inserter.inserted)


async def test_a_database_that_is_away_is_a_busy_server_which_the_client_tries_again(
    server: TableServer, proxy: Proxy
) -> None:
    table = await asyncio.to_thread(make_table, server, retries=0)
    await asyncio.to_thread(table.create_entity, {"PartitionKey": "p", "RowKey": "before"})
    await proxy.refuse()
    calls = [
        asyncio.to_thread(table.get_entity, "p", "before"),
        asyncio.to_thread(table.upsert_entity, {"PartitionKey": "p", "RowKey": "new"}),
        asyncio.to_thread(server.service().create_table, "others"),
    ]
    for problem in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(problem, HttpResponseError)
        assert (problem.status_code, problem.error_code) == (503, "ServerBusy")
    patient = asyncio.create_task(asyncio.to_thread(self_healing, server))
    await asyncio.sleep(0.5)
    await proxy.start()
    assert await asyncio.wait_for(patient, 180) == "before"


def self_healing(server: TableServer) -> object:
    """A client with its usual retries: it waits the fault out."""
    service = TableServiceClient(server.endpoint, credential=CREDENTIAL, retry_total=8, retry_backoff_factor=0.2)
    return service.get_table_client("things").get_entity("p", "before")["RowKey"]
