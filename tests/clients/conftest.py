"""One server process for all tests that need only a server, and the official client connected to it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey

from tests.support.server import RunningServer, running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory: Path = tmp_path_factory.mktemp("clients")
    with running_server(directory / "data", "--no-throttle") as running:
        yield running


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
