"""Time series that are read by ranges of time: the time stamp, rolled up to the day, is the key.

All readings of a day are a logical partition, and a range of days is as many of them. The server computes the key from
`at`: the rule is declared with the container, and the items stay plain. It suits few writes, because all writes of a
day go to one partition (time_series_many_writes.py has the other case). With the id as the key, the readings of a day
lie anywhere, and each range asks all partitions.
"""

from __future__ import annotations

from typing import Any

from azure.cosmos import ContainerProxy, PartitionKey
from connection import connect, fresh_database, of_four_partitions
from costs import Answer, ask, charge_of
from partition_picture import load_since, partitions_of, print_picture

DAYS = 10
READINGS_OF_DAY = 6
REPORTS = 10


def reading(day: int, number: int) -> dict[str, Any]:
    at = f"2026-11-{day:02}T{number * 3:02}:00:00Z"
    return {"id": f"r-{day:02}-{number:02}", "at": at, "celsius": 20 + number % 7}


def by_day_key() -> PartitionKey:
    """Return the definition of a key that the server makes of `at`: `2026-11-18`."""
    key = PartitionKey("/day")
    key["synthetic"] = {"/day": {"parts": [{"path": "/at", "bucket": "day"}]}}
    return key


def report_by_time(container: ContainerProxy, first: int, last: int) -> Answer:
    query = "SELECT * FROM c WHERE c.at >= @start AND c.at < @end ORDER BY c.at"
    return ask(container, query, start=f"2026-11-{first:02}", end=f"2026-11-{last + 1:02}")


def report_by_day(container: ContainerProxy, first: int, last: int) -> Answer:
    """Name the days by their keys. Bounds of `at` alone are routed to a few days more, because their texts may be in
    another time zone."""
    days = {f"day{day}": f"2026-11-{day:02}" for day in range(first, last + 1)}
    query = f"SELECT * FROM c WHERE c.day IN ({', '.join(f'@{name}' for name in days)}) ORDER BY c.at"
    return ask(container, query, **days)


def main() -> None:
    with connect() as client:
        database = fresh_database(client, "patterns_time_series_by_date")
        by_id = of_four_partitions(database, "by-id", PartitionKey("/id"))
        by_day = of_four_partitions(database, "by-day", by_day_key())
        for day in range(1, DAYS + 1):
            for number in range(READINGS_OF_DAY):
                by_id.create_item(reading(day, number))
                by_day.create_item(reading(day, number))
        stored = by_day.read_item("r-05-03", ["2026-11-05T09:00:00Z"])
        print(f"by-day, a reading by its id and time: {stored['day']}, {charge_of(stored):.2f} RU")
        print("by-day, a day by its bounds:", report_by_time(by_day, 5, 5))
        for container, report in ((by_id, report_by_time), (by_day, report_by_day)):
            print(f"{container.id}, a day:", report(container, 5, 5))
            print(f"{container.id}, three days:", report(container, 5, 7))
            before = partitions_of(container)
            for day in range(1, REPORTS + 1):
                report(container, day, day)
            load = load_since(before, partitions_of(container))
            print_picture(f"{container.id}, {REPORTS} reports of a day", load, by="request_units")


if __name__ == "__main__":
    main()
