"""Time series with a container for each month.

Only the month at hand is written. Its container has the throughput that writes need; when the month is past, it is
lowered to what reads need, and when it is not read any more, the container is deleted: one request, instead of one for
each item. Within the container the key is the meter. In one container keyed by the month, all writes go to one logical
partition, and the throughput for them is paid for the old data too.
"""

from __future__ import annotations

from typing import Any

from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from burst import LARGE_TEXT, send_burst
from connection import RU_PER_SECOND_LOWEST, connect, fresh_database, lower_throughput, of_four_partitions
from costs import ask
from partition_picture import load_since, partitions_of, print_picture

MONTHS = ("2026-09", "2026-10", "2026-11")
METERS = 16
READINGS_OF_MONTH = 30
NEWEST = "SELECT TOP 3 * FROM c WHERE c.meterId = @meter ORDER BY c.at DESC"


def reading(month: str, number: int, *, note: str = "") -> dict[str, Any]:
    return {
        "id": f"{month}-{number:04}",
        "meterId": f"meter-{number % METERS:02}",
        "month": month,
        "at": f"{month}-{1 + number // METERS:02}T12:00:00Z",
        "celsius": 20 + number % 7,
        "note": note,
    }


def write_now(container: ContainerProxy, number: int) -> None:
    container.create_item(reading(MONTHS[-1], READINGS_OF_MONTH + number, note=LARGE_TEXT))


def throughput_of(container: ContainerProxy) -> int:
    return int(container.get_throughput().offer_throughput)


def begin_month(database: DatabaseProxy, month: str) -> ContainerProxy:
    return of_four_partitions(database, f"readings-{month}", PartitionKey("/meterId"))


def end_month(container: ContainerProxy) -> None:
    container.replace_throughput(RU_PER_SECOND_LOWEST)


def main() -> None:
    with connect() as client:
        database = fresh_database(client, "patterns_time_series_by_month")
        by_month = of_four_partitions(database, "readings", PartitionKey("/month"))
        months: dict[str, ContainerProxy] = {}
        for month in MONTHS:
            if months:
                end_month(list(months.values())[-1])
            months[month] = begin_month(database, month)
            for number in range(READINGS_OF_MONTH):
                by_month.create_item(reading(month, number))
                months[month].create_item(reading(month, number))
        print("RU/s of the months:", [throughput_of(container) for container in months.values()])
        past = months["2026-10"]
        print("a meter in a past month:", ask(past, NEWEST, partition_key="meter-07", meter="meter-07"))
        asked = [ask(month, NEWEST, partition_key="meter-07", meter="meter-07") for month in months.values()]
        print(f"a meter in all months: {len(asked)} queries, {sum(answer.charge for answer in asked):.2f} RU")

        before = partitions_of(by_month)
        for number in range(READINGS_OF_MONTH):
            by_month.delete_item(reading(MONTHS[0], number)["id"], MONTHS[0])
        charge = sum(partition.request_units for partition in load_since(before, partitions_of(by_month)))
        print(f"removing a month from one container: {READINGS_OF_MONTH} requests, {charge:.0f} RU")
        database.delete_container(months.pop(MONTHS[0]))
        print("removing the container of a month: 1 request")

        current = months[MONTHS[-1]]
        lower_throughput(by_month, current)
        for container, load in send_burst((by_month, current), write_now):
            print_picture(container.id, load, by="request_units")


if __name__ == "__main__":
    main()
