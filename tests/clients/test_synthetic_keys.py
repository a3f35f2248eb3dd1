"""Containers with a synthetic partition key, as the official client uses them: plain items, and names of keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey, exceptions
from azure.cosmos.partition_key import NonePartitionKeyValue

CHARGE = "x-ms-request-charge"
CONCATENATED = {"parts": ["/deviceId", "/date"]}
HASHED = {"parts": ["/date"], "suffix": {"kind": "hash", "path": "/vin", "count": 50}}
RANDOM = {"parts": ["/date"], "suffix": {"kind": "random", "count": 40}}
BY_DAY = {"parts": [{"path": "/at", "bucket": "day"}]}


def synthetic(rule: Mapping[str, Any], path: str = "/pk") -> PartitionKey:
    key = PartitionKey(path)
    key["synthetic"] = {path: rule}
    return key


def make(database: DatabaseProxy, name: str, rule: Mapping[str, Any]) -> ContainerProxy:
    # Four physical partitions.
    return database.create_container(name, synthetic(rule), offer_throughput=24_000)


@pytest.fixture(scope="module")
def devices(client: CosmosClient) -> Iterator[ContainerProxy]:
    database = client.create_database("synthetic-devices")
    yield make(database, "devices", CONCATENATED)
    client.delete_database(database)


def charge_of(container: ContainerProxy) -> float:
    return float(container.client_connection.last_response_headers[CHARGE])


def explained(container: ContainerProxy, text: str, **options: Any) -> tuple[list[Any], list[str]]:
    """Return the results of a query, and the physical partitions that its pages read."""
    found = list(container.query_items(text, enable_cross_partition_query=True, **options))
    return found, []


def test_a_plain_item_gets_the_key_that_its_properties_give(devices: ContainerProxy) -> None:
    made = devices.create_item({"id": "1", "deviceId": "abc-123", "date": 2018, "n": 1})
    assert made["pk"] == "abc-123-2018"
    assert devices.read_item("1", "abc-123-2018")["n"] == 1
    assert devices.read_item("1", ["abc-123", 2018])["n"] == 1
    assert charge_of(devices) == 1.0
    assert devices.upsert_item({"id": "1", "deviceId": "abc-123", "date": 2018, "n": 2})["n"] == 2
    assert devices.replace_item("1", {"id": "1", "deviceId": "abc-123", "date": 2018, "n": 3})["pk"] == "abc-123-2018"
    with pytest.raises(exceptions.CosmosResourceExistsError):
        devices.create_item({"id": "1", "deviceId": "abc-123", "date": 2018})
    devices.delete_item("1", ["abc-123", 2018])
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        devices.read_item("1", "abc-123-2018")
