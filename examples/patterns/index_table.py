"""An index table: a second container whose key is what the first one is searched by.

Orders are kept by customer. The latest orders of a product lie in all partitions, so that each search asks all of them,
and costs more with every partition that is added. A container keyed by the product holds a small entry for each order,
with what the search shows: one partition, whatever their number. The change feed keeps it current. An entry appears a
moment after its order, and work that was interrupted is repeated without harm.
"""

from __future__ import annotations

import time
from typing import Any

from azure.cosmos import ContainerProxy, PartitionKey
from connection import connect, fresh_database, of_four_partitions
from costs import ask, charge_of
from partition_picture import load_since, partitions_of, print_picture

CUSTOMERS = 30
PRODUCTS = 30
ORDERS = 90
LATEST = "SELECT TOP 3 * FROM c WHERE c.productId = @product ORDER BY c.number DESC"
SEARCHES = 20
# Days, in an application.
CANCELED_SECONDS = 1


def order(number: int) -> dict[str, Any]:
    return {
        "id": f"o-{number:04}",
        "customerId": f"c-{number % CUSTOMERS:02}",
        "productId": f"p-{number * 7 % PRODUCTS:02}",
        "number": number,
        "lines": [{"size": "M", "count": 1, "price": 19.9}] * 8,
    }


class ProductIndex:
    """The entries of the index, made from the change feed of the orders."""

    def __init__(self, orders: ContainerProxy, entries: ContainerProxy) -> None:
        self._orders = orders
        self._entries = entries
        # A program keeps it where it survives a restart, for example in an item of a container of its own.
        self._continuation: str | None = None
        # Of all entries so far, in request units.
        self.charge = 0.0

    def follow(self) -> int:
        """Enter what has changed since the last call; return how many orders that were."""
        is_first = self._continuation is None
        start: dict[str, Any] = {"start_time": "Beginning"} if is_first else {"continuation": self._continuation}
        changed = list(self._orders.query_items_change_feed(**start))
        continuation = self._orders.client_connection.last_response_headers["etag"]
        for item in changed:
            self._enter(item)
        # Not before: what was interrupted is read again.
        self._continuation = continuation
        return len(changed)

    def _enter(self, item: dict[str, Any]) -> None:
        entry = {name: item[name] for name in ("id", "productId", "customerId", "number")}
        # The feed has no deletions, so that an order is marked, and `ttl` removes both of them later.
        if item.get("canceled"):
            entry["ttl"] = CANCELED_SECONDS
        self.charge += charge_of(self._entries.upsert_item(entry))


def search_orders(orders: ContainerProxy, number: int) -> None:
    ask(orders, LATEST, product=order(number)["productId"])


def search_entries(entries: ContainerProxy, number: int) -> None:
    product = order(number)["productId"]
    ask(entries, LATEST, partition_key=product, product=product)


def main() -> None:
    with connect() as client:
        database = fresh_database(client, "patterns_index_table")
        orders = of_four_partitions(database, "orders", PartitionKey("/customerId"))
        entries = of_four_partitions(database, "orders-by-product", PartitionKey("/productId"), default_ttl=-1)
        index = ProductIndex(orders, entries)
        for number in range(ORDERS):
            orders.create_item(order(number))

        print("orders, latest of a product:", ask(orders, LATEST, product="p-07"))
        print("entries, before the feed was read:", ask(entries, LATEST, partition_key="p-07", product="p-07"))
        print("orders entered from the feed:", index.follow())
        print(f"an entry costs {index.charge / ORDERS:.2f} RU to write")
        found = ask(entries, LATEST, partition_key="p-07", product="p-07")
        print("entries, latest of a product:", found)
        newest = found.results[0]
        whole = orders.read_item(newest["id"], newest["customerId"])
        print(f"the whole order {whole['id']}, a point read: {charge_of(whole):.2f} RU")

        orders.upsert_item({**whole, "canceled": True})
        print("orders entered after a change:", index.follow())

        for container, search in ((orders, search_orders), (entries, search_entries)):
            before = partitions_of(container)
            for number in range(SEARCHES):
                search(container, number)
            load = load_since(before, partitions_of(container))
            print_picture(f"{container.id}, {SEARCHES} searches", load, by="request_units")
        time.sleep(CANCELED_SECONDS + 0.1)
        left = ask(entries, LATEST, partition_key="p-07", product="p-07").results
        print("the canceled order is found:", newest["id"] in [entry["id"] for entry in left])


if __name__ == "__main__":
    main()
