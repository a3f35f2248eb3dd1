"""The outbox: what a program writes into a container becomes events in a hub, whatever is stopped in between.

A program that writes to a database and sends an event has done only one of the two when it is stopped between them.
Here it only writes. A second one, the relay, reads the container's change feed and sends each change to the hub; it
remembers its place in the feed *after* the hub has acknowledged. If it is stopped between the two it sends some changes
again, with the same message ids, by which their readers pass over them.

Needs a hub:

    asterism hubs create order-events --partitions 4
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from itertools import groupby
from typing import Any

from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosResourceNotFoundError
from azure.eventhub import EventData, EventHubProducerClient
from reading import EMULATOR, read_to_end

HUB = "order-events"
ENDPOINT = "http://localhost:8081"
# The well-known key of the emulator.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
CHANGES_PER_PAGE = 4
# The place in the feed is kept beside the data, under a key of its own.
PLACE = "relay"

Item = dict[str, Any]


class RelayStopped(Exception):
    """The relay has been stopped between sending and remembering, for the sake of the example."""


class Relay:
    """Sends the changes of a container to a hub, at least once, those of one order in their order."""

    def __init__(self, orders: ContainerProxy, places: ContainerProxy, hub: EventHubProducerClient) -> None:
        self._orders = orders
        self._places = places
        self._hub = hub
        self.sent = 0

    def run(self, *, stops_before_remembering: bool = False) -> None:
        """Send what is new in the feed, page by page."""
        pages = self._orders.query_items_change_feed(max_item_count=CHANGES_PER_PAGE, **self._place()).by_page()
        for page in pages:
            changes = list(page)
            # The position behind the page, which is valid after splits and restarts, too.
            position = self._orders.client_connection.last_response_headers["etag"]
            self._send(changes)
            if stops_before_remembering:
                raise RelayStopped
            self._places.upsert_item({"id": PLACE, "position": position})

    def _place(self) -> dict[str, Any]:
        try:
            return {"continuation": self._places.read_item(PLACE, PLACE)["position"]}
        except CosmosResourceNotFoundError:
            return {"start_time": "Beginning"}

    def _send(self, changes: list[Item]) -> None:
        """Send changes in batches of one key each, so that those of a customer lie in one partition, in their order."""
        # Sorting is stable: the order within a customer remains.
        for customer, items in groupby(sorted(changes, key=customer_of), customer_of):
            batch = self._hub.create_batch(partition_key=customer)
            for item in items:
                event = EventData(f"{item['id']} {item['status']}")
                event.message_id = f"{item['id']}:{item['_etag']}"
                event.properties = {"item": item["id"], "number": item["_lsn"]}
                batch.add(event)
            # Returns when the batch is durable; raises, and then the place is not moved on.
            self._hub.send_batch(batch)
            self.sent += len(batch)


def customer_of(item: Item) -> str:
    return str(item["customer"])


def handle_once(events: list[EventData], handled: set[str]) -> list[str]:
    """Handle what has not been handled. A real reader keeps the ids together with what it makes of the events."""
    texts = []
    for event in events:
        message_id = str(event.message_id)
        if message_id not in handled:
            handled.add(message_id)
            texts.append(event.body_as_str())
    return texts


def write_orders(orders: ContainerProxy) -> None:
    for number in range(6):
        orders.create_item({"id": f"order-{number}", "customer": f"customer-{number % 3}", "status": "placed"})


def ship_orders(orders: ContainerProxy) -> None:
    for number in range(3):
        orders.upsert_item({"id": f"order-{number}", "customer": f"customer-{number % 3}", "status": "shipped"})


def main(connection: str, endpoint: str, key: str) -> None:
    client = CosmosClient(endpoint, key)
    with suppress(CosmosResourceNotFoundError):
        client.delete_database("outbox_example")
    database = client.create_database("outbox_example")
    orders = database.create_container("orders", PartitionKey("/customer"))
    places = database.create_container("places", PartitionKey("/id"))

    with EventHubProducerClient.from_connection_string(connection, eventhub_name=HUB) as hub:
        write_orders(orders)
        relay = Relay(orders, places, hub)
        with suppress(RelayStopped):
            relay.run(stops_before_remembering=True)
        print("sent before it was stopped:", relay.sent)
        again = Relay(orders, places, hub)
        again.run()
        print("sent by the next one:", again.sent)
        ship_orders(orders)
        again.run()
        print("sent in all:", relay.sent + again.sent)

    events = asyncio.run(read_to_end(connection, HUB))
    handled: set[str] = set()
    texts = [text for found in events.values() for text in handle_once(found, handled)]
    print("read:", sum(map(len, events.values())), "handled:", len(texts))
    print("of order-0:", [text for text in texts if text.startswith("order-0 ")])


if __name__ == "__main__":
    main(*(sys.argv[1:] or (EMULATOR, ENDPOINT, KEY)))
