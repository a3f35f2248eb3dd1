"""The item's id as its key: every item is a logical partition of its own.

Nothing spreads better, and a point read needs nothing but the id. The price: no transaction over two items, and every
query that is not about a single id asks all partitions. It suits items that are read alone: sessions, carts, documents
of a cache, objects that another system names. For the orders of customers, `/customerId` gives both back.
"""

from __future__ import annotations

from typing import Any

from azure.cosmos import ContainerProxy, PartitionKey
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError
from burst import LARGE_TEXT, send_burst
from connection import connect, fresh_database, lower_throughput, of_four_partitions
from costs import ask, charge_of
from partition_picture import print_picture

CUSTOMERS = 40
ORDERS = 68
LATEST = "SELECT TOP 3 * FROM c WHERE c.customerId = @customer ORDER BY c.number DESC"
KEY_OF = {"by-status": "status", "by-id": "id", "by-customer": "customerId"}


def order(number: int, *, note: str = "") -> dict[str, Any]:
    # An order is open when it is new: the status of all that is written now.
    return {
        "id": f"o-{number}",
        "customerId": f"c-{number % CUSTOMERS:02}",
        "number": number,
        "status": "open",
        "note": note,
    }


def key_of(container: ContainerProxy, item: dict[str, Any]) -> str:
    return str(item[KEY_OF[container.id]])


def take_order(container: ContainerProxy, number: int) -> None:
    container.create_item(order(ORDERS + number, note=LARGE_TEXT))


def change_two(container: ContainerProxy) -> str:
    """Change two orders of one customer together, where the key allows it."""
    orders = [order(3), order(3 + CUSTOMERS)]
    try:
        container.execute_item_batch([("upsert", (item,)) for item in orders], key_of(container, orders[0]))
    except (CosmosBatchOperationError, CosmosHttpResponseError) as refused:
        return f"refused with {refused.status_code}"
    return "done"


def main() -> None:
    with connect() as client:
        database = fresh_database(client, "patterns_item_id_as_key")
        containers = [
            of_four_partitions(database, name, PartitionKey(f"/{property_name}"))
            for name, property_name in KEY_OF.items()
        ]
        for container in containers:
            for number in range(ORDERS):
                container.create_item(order(number))
            item = order(3)
            read = container.read_item(item["id"], key_of(container, item))
            print(f"{container.id}, a point read: {charge_of(read):.2f} RU")
            print(f"{container.id}, the latest of a customer: {latest_of(container, item)}")
            print(f"{container.id}, two orders in one transaction: {change_two(container)}")

        lower_throughput(*containers)
        for container, load in send_burst(containers, take_order):
            print_picture(container.id, load, by="request_units")


def latest_of(container: ContainerProxy, item: dict[str, Any]) -> object:
    customer = item["customerId"]
    scope = customer if container.id == "by-customer" else None
    return ask(container, LATEST, partition_key=scope, customer=customer)


if __name__ == "__main__":
    main()
