"""Orders, sharded by the customer they belong to.

All orders of a customer are one logical partition: a query that names the customer reads one physical partition, and a
transaction over the customer's orders is possible. A query that does not name the customer asks all partitions;
`explain` shows the difference.
"""

from __future__ import annotations

import sys
from typing import Any

from pymongo import ASCENDING, DESCENDING, MongoClient

Document = dict[str, Any]


def main(connection: str) -> None:
    with MongoClient[Document](connection) as client:
        shop = client["shop_example"]
        client.drop_database(shop.name)
        sharded = shop.command({"shardCollection": f"{shop.name}.orders", "key": {"customer": "hashed"}})
        print("sharded:", sharded["collectionsharded"])

        orders = shop["orders"]
        orders.create_index([("customer", ASCENDING), ("day", DESCENDING)])
        orders.insert_many(
            {"_id": number, "customer": f"c-{number % 7}", "day": number // 7, "total": number * 1.5}
            for number in range(70)
        )
        latest = orders.find({"customer": "c-3"}).sort("day", DESCENDING).limit(2)
        print("the latest of one customer:", [order["_id"] for order in latest])
        print("charge:", shop.command("getLastRequestStatistics")["RequestCharge"] > 0)

        totals = orders.aggregate(
            [
                {"$match": {"day": {"$gte": 8}}},
                {"$group": {"_id": "$customer", "total": {"$sum": "$total"}}},
                {"$sort": {"total": -1}},
                {"$limit": 1},
            ]
        )
        print("the best customer of the last days:", [found["_id"] for found in totals])


if __name__ == "__main__":
    main(sys.argv[1])
