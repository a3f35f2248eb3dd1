"""Orders, partitioned by date.

PartitionKey = the day, RowKey = the time of the order: a day is one partition, a month a range of neighbors, and
yesterday's orders can be deleted without touching today's. The price: every order of today goes to one partition, at
the end of the key range. `asterism partitions --table OrdersByDate` shows that hotspot, and no split can help it. If
one partition cannot take a day's orders, spread each day over a few buckets, and read as many partitions for a day.
"""

from __future__ import annotations

import sys
import zlib
from datetime import date, timedelta

from azure.data.tables import TableClient, TableServiceClient

FIRST_DAY = date(2026, 11, 1)
BUCKETS = 4


def main(connection: str) -> None:
    service = TableServiceClient.from_connection_string(connection)
    by_date = service.create_table_if_not_exists("OrdersByDate")
    spread = service.create_table_if_not_exists("OrdersSpread")
    for place in range(60):
        day = (FIRST_DAY + timedelta(days=place % 10)).isoformat()
        order = {"RowKey": f"{8 + place % 12:02}:30:00-{place:04}", "Customer": f"c-{place % 7}", "Total": 10.0 + place}
        by_date.upsert_entity({"PartitionKey": day, **order})
        spread.upsert_entity({"PartitionKey": f"{day}-{bucket_of(order['Customer'])}", **order})

    day = by_date.query_entities("PartitionKey eq '2026-11-03'")
    print("orders of a day:", len(list(day)))
    week = by_date.query_entities("PartitionKey ge '2026-11-02' and PartitionKey lt '2026-11-09'")
    print("orders of a week:", len(list(week)))
    morning = by_date.query_entities("PartitionKey eq '2026-11-03' and RowKey lt '12'")
    print("orders of a morning:", [order["RowKey"] for order in morning])
    print("orders of a day, spread:", len(orders_of_day(spread, "2026-11-03")))
    pages = by_date.query_entities("PartitionKey ge '2026-11-05'", results_per_page=10).by_page()
    print("pages:", [len(list(page)) for page in pages])


def bucket_of(customer: str) -> int:
    """Return the bucket of an order, from the customer alone: a reader of a single order knows it too."""
    return zlib.crc32(customer.encode()) % BUCKETS


def orders_of_day(spread: TableClient, day: str) -> list[str]:
    """Read all buckets of a day, which are neighbors, as one range, and merge their rows."""
    found = spread.query_entities(f"PartitionKey ge '{day}-' and PartitionKey lt '{day}.'")
    return sorted(order["RowKey"] for order in found)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "UseDevelopmentStorage=true")
