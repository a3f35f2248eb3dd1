"""The server of the examples, a database for each of them, and containers of four physical partitions."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosResourceNotFoundError

ENDPOINT = os.environ.get("ASTERISM_URL", "http://localhost:8081")
# The default is the well-known key of the emulator.
KEY = os.environ.get(
    "ASTERISM_KEY", "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
)
# A partition is made for every 6,000 RU/s that a container is created with.
RU_PER_SECOND_OF_FOUR_PARTITIONS = 24_000
RU_PER_SECOND_LOWEST = 400


def connect() -> CosmosClient:
    """Connect; queries explain which partitions they read, and throttled requests fail instead of being retried."""
    # The client takes 0 for its default of nine retries.
    client = CosmosClient(ENDPOINT, KEY, retry_throttle_total=-1)
    client.client_connection.default_headers["x-asterism-explain"] = "true"
    return client


def fresh_database(client: CosmosClient, name: str) -> DatabaseProxy:
    """Return an empty database, without what an earlier run of the example has left for the portal."""
    with suppress(CosmosResourceNotFoundError):
        client.delete_database(name)
    return client.create_database(name)


def of_four_partitions(database: DatabaseProxy, name: str, key: PartitionKey, **settings: Any) -> ContainerProxy:
    return database.create_container(name, key, offer_throughput=RU_PER_SECOND_OF_FOUR_PARTITIONS, **settings)


def lower_throughput(*containers: ContainerProxy) -> None:
    """Give each container 400 RU/s, 100 for each of its four partitions: a small load on a single one is throttled."""
    for container in containers:
        container.replace_throughput(RU_PER_SECOND_LOWEST)
