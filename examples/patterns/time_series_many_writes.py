"""Time series with many writes: a key that is not the time alone.

By date, every write of today goes to one logical partition, whatever the number of partitions. Three ways out:

- the device: as many keys as there are devices; a day of all devices asks all partitions;
- the date with a suffix that is a hash of the device: writes of a day spread over N keys, and a reader that knows the
  device and the day asks exactly one of them;
- the date with a random suffix: for items without a property that readers know; a read by id asks all N keys.
"""

from __future__ import annotations

from typing import Any

from azure.cosmos import ContainerProxy, PartitionKey
from burst import LARGE_TEXT, send_burst
from connection import connect, fresh_database, lower_throughput, of_four_partitions
from costs import ask, charge_of
from partition_picture import print_picture

TODAY = "2026-11-18"
DEVICES = 24
READINGS = 38
SUFFIXES = 40
OF_DAY = "SELECT * FROM c WHERE c.date = @date ORDER BY c.number"
BY_DATE = {"parts": ["/date"]}
HASHED = {**BY_DATE, "suffix": {"kind": "hash", "path": "/deviceId", "count": SUFFIXES}}
RANDOM = {**BY_DATE, "suffix": {"kind": "random", "count": SUFFIXES}}


def reading(number: int, *, note: str = "") -> dict[str, Any]:
    device = f"engine-{number % DEVICES:02}"
    return {"id": f"r-{number:04}", "deviceId": device, "date": TODAY, "number": number, "note": note}


def synthetic(rule: dict[str, Any]) -> PartitionKey:
    key = PartitionKey("/partitionKey")
    key["synthetic"] = {"/partitionKey": rule}
    return key


def write(container: ContainerProxy, number: int) -> None:
    container.create_item(reading(READINGS + number, note=LARGE_TEXT))


KEYS = {
    "by-date": PartitionKey("/date"),
    "by-device": PartitionKey("/deviceId"),
    "by-date-and-hash": synthetic(HASHED),
    "by-date-and-random": synthetic(RANDOM),
}
# The partition key of reading 7 in a point read: its value, or the values that it is made of.
NAMED = {
    "by-date": TODAY,
    "by-device": "engine-07",
    "by-date-and-hash": [TODAY, "engine-07"],
    "by-date-and-random": [TODAY],
}


def main() -> None:
    with connect() as client:
        database = fresh_database(client, "patterns_time_series_many_writes")
        containers = [of_four_partitions(database, name, key) for name, key in KEYS.items()]
        for container in containers:
            for number in range(READINGS):
                container.create_item(reading(number))
            read = container.read_item("r-0007", NAMED[container.id])
            print(f"{container.id}, a reading by its id: {charge_of(read):.2f} RU")
            print(f"{container.id}, a day:", ask(container, OF_DAY, date=TODAY))

        lower_throughput(*containers)
        for container, load in send_burst(containers, write):
            print_picture(container.id, load, by="request_units")


if __name__ == "__main__":
    main()
