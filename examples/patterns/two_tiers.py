"""Two tiers: a local container for each region with what is recent, and a global one with everything.

A shop asks for its own open orders many times a minute, and is served by the container of its region, keyed by the shop
and kept small by its time to live. A customer asks for all of his orders now and then, whatever the region; the global
container has them, keyed by the customer. The change feed of each local container feeds it, so that an order is written
once, where it arises. In one container keyed by the region, all orders of a region are one logical partition.
"""

from __future__ import annotations

import time
from typing import Any

from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from burst import LARGE_TEXT, send_burst
from connection import connect, fresh_database, lower_throughput, of_four_partitions
from costs import ask
from partition_picture import print_picture

REGIONS = ("eu", "us")
SHOPS = 40
CUSTOMERS = 15
ORDERS = 45
DAY_SECONDS = 24 * 60 * 60
OF_SHOP = "SELECT * FROM c WHERE c.shopId = @shop ORDER BY c.number DESC"
OF_CUSTOMER = "SELECT * FROM c WHERE c.customerId = @customer ORDER BY c.number DESC"


def order(number: int, *, region: str | None = None, note: str = "") -> dict[str, Any]:
    return {
        "id": f"o-{number:04}",
        "region": region or REGIONS[number % 2],
        "shopId": f"shop-{number % SHOPS:02}",
        "customerId": f"c-{number % CUSTOMERS:02}",
        "number": number,
        "note": note,
    }


class GlobalTier:
    """The container with everything, fed from those of the regions."""

    def __init__(self, everything: ContainerProxy) -> None:
        self._everything = everything
        # A program keeps the continuations where they survive a restart.
        self._continuations: dict[str, str] = {}

    def follow(self, recent: ContainerProxy) -> int:
        """Copy what has changed since the last call; return how many orders. A repetition changes nothing."""
        at = self._continuations.get(recent.id)
        start: dict[str, Any] = {"continuation": at} if at else {"start_time": "Beginning"}
        changed = list(recent.query_items_change_feed(**start))
        continuation = recent.client_connection.last_response_headers["etag"]
        for item in changed:
            self._everything.upsert_item({name: value for name, value in item.items() if not name.startswith("_")})
        self._continuations[recent.id] = continuation
        return len(changed)


def take_order(container: ContainerProxy, number: int) -> None:
    container.create_item(order(ORDERS + number, region="eu", note=LARGE_TEXT))


def shorten_life(database: DatabaseProxy, recent: ContainerProxy) -> None:
    """Let what is recent expire within a second, in the place of a day."""
    database.replace_container(recent, PartitionKey("/shopId"), default_ttl=1)
    time.sleep(2.1)


def main() -> None:
    with connect() as client:
        database = fresh_database(client, "patterns_two_tiers")
        by_region = of_four_partitions(database, "orders", PartitionKey("/region"))
        local = {
            region: of_four_partitions(database, f"recent-{region}", PartitionKey("/shopId"), default_ttl=DAY_SECONDS)
            for region in REGIONS
        }
        everything = of_four_partitions(database, "everything", PartitionKey("/customerId"))
        for number in range(ORDERS):
            by_region.create_item(order(number))
            local[order(number)["region"]].create_item(order(number))
        tier = GlobalTier(everything)
        print("copied from the regions:", [tier.follow(recent) for recent in local.values()])
        print("copied without a change:", [tier.follow(recent) for recent in local.values()])

        print("local, orders of a shop:", ask(local["eu"], OF_SHOP, partition_key="shop-04", shop="shop-04"))
        print("local, orders of a customer:", ask(local["eu"], OF_CUSTOMER, customer="c-07"))
        print("global, orders of a customer:", ask(everything, OF_CUSTOMER, partition_key="c-07", customer="c-07"))

        lower_throughput(by_region, local["eu"])
        for container, load in send_burst((by_region, local["eu"]), take_order):
            print_picture(container.id, load, by="request_units")

        shorten_life(database, local["us"])
        for name, container in (("local", local["us"]), ("global", everything)):
            (count,) = ask(container, "SELECT VALUE COUNT(1) FROM c WHERE c.region = 'us'").results
            print(f"{name}, orders of a region after their time to live: {count}")


if __name__ == "__main__":
    main()
