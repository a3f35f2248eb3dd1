"""One server process with every door, for all tests of a worker that need only a server, and official clients of it.

Tests share it in any order, so each uses databases, tables and accounts with names of its own. Tests about options,
kills, restarts, memory or the data directory start a server of their own with `running_server`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey

from tests.clients.blob_server import BlobServer
from tests.clients.messaging_server import MessagingServer
from tests.clients.queue_server import QueueServer
from tests.clients.table_server import TableServer
from tests.support.server import ALL_DOORS, RunningServer, running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory: Path = tmp_path_factory.mktemp("clients")
    with running_server(directory / "data", "--no-throttle", doors=ALL_DOORS) as running:
        yield running


@pytest.fixture(scope="session")
def tables(server: RunningServer) -> TableServer:
    return TableServer(server)


@pytest.fixture(scope="session")
def queues(server: RunningServer) -> QueueServer:
    return QueueServer(server)


@pytest.fixture(scope="session")
def blobs(server: RunningServer) -> BlobServer:
    return BlobServer(server)


@pytest.fixture(scope="session")
def messaging(server: RunningServer) -> MessagingServer:
    return MessagingServer(server)


@pytest.fixture(scope="session")
def client(server: RunningServer) -> Iterator[CosmosClient]:
    with server.client() as connected:
        yield connected


@pytest.fixture
def database(client: CosmosClient) -> Iterator[DatabaseProxy]:
    made = client.create_database(f"database-{uuid.uuid4()}")
    yield made
    client.delete_database(made)


@pytest.fixture
def container(database: DatabaseProxy) -> ContainerProxy:
    return database.create_container("things", PartitionKey("/pk"))
