"""A view that is computed from a hub, and computed anew from the beginning when its program has changed.

The hub is the truth and the view a product of it. A new version of the program reads everything again, into a view of
its own, while the old one goes on serving; then the readers change over.

Needs a hub:

    asterism hubs create payments --partitions 2
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosResourceNotFoundError
from azure.eventhub import EventData, EventHubProducerClient
from reading import EMULATOR, read_to_end

HUB = "payments"
ENDPOINT = "http://localhost:8081"
# The well-known key of the emulator.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

Payment = dict[str, Any]


def amount(payment: Payment) -> int:
    """Return what the first version of the program adds up."""
    return int(payment["cents"])


def amount_without_refunds(payment: Payment) -> int:
    """Return what the second version adds up."""
    return 0 if payment["kind"] == "refund" else int(payment["cents"])


def apply(view: ContainerProxy, events: list[EventData], count: Callable[[Payment], int]) -> int:
    """Add events of one partition to the totals of a view, each once; return how many were new.

    A total and the sequence number of the last event in it are one item, and so are written together or not at all:
    events that come a second time change nothing, without any checkpoint. It suffices to look at the number because
    all events of a customer are in one partition.
    """
    added = 0
    for event in events:
        payment = json.loads(event.body_as_str())
        total = read_total(view, payment["customer"])
        if event.sequence_number <= total["sequence_number"]:
            continue
        total["cents"] += count(payment)
        total["sequence_number"] = event.sequence_number
        view.upsert_item(total)
        added += 1
    return added


def read_total(view: ContainerProxy, customer: str) -> dict[str, Any]:
    try:
        return dict(view.read_item(customer, customer))
    except CosmosResourceNotFoundError:
        return {"id": customer, "cents": 0, "sequence_number": -1}


def totals(view: ContainerProxy) -> dict[str, int]:
    return {item["id"]: item["cents"] for item in sorted(view.read_all_items(), key=lambda item: str(item["id"]))}


def build(connection: str, view: ContainerProxy, count: Callable[[Payment], int]) -> int:
    """Bring a view up to date; return how many events were new in it."""
    events = asyncio.run(read_to_end(connection, HUB))
    return sum(apply(view, found, count) for found in events.values())


def send(connection: str, payments: list[Payment]) -> None:
    with EventHubProducerClient.from_connection_string(connection, eventhub_name=HUB) as hub:
        for payment in payments:
            hub.send_event(EventData(json.dumps(payment)), partition_key=payment["customer"])


def new_view(database: DatabaseProxy, version: int) -> ContainerProxy:
    return database.create_container(f"totals-{version}", PartitionKey("/id"))


def main(connection: str, endpoint: str, key: str) -> None:
    client = CosmosClient(endpoint, key)
    with suppress(CosmosResourceNotFoundError):
        client.delete_database("rebuild_example")
    database = client.create_database("rebuild_example")

    send(connection, [{"customer": name, "kind": "sale", "cents": 1000} for name in ("ada", "bob", "eve")])
    send(connection, [{"customer": "ada", "kind": "refund", "cents": -400}])
    first = new_view(database, 1)
    print("new:", build(connection, first, amount), totals(first))
    send(connection, [{"customer": "bob", "kind": "sale", "cents": 250}])
    print("new:", build(connection, first, amount), totals(first))

    second = new_view(database, 2)
    print("rebuilt:", build(connection, second, amount_without_refunds), totals(second))
    # The readers ask the second view from now on.
    database.delete_container(first)


if __name__ == "__main__":
    main(*(sys.argv[1:] or (EMULATOR, ENDPOINT, KEY)))
