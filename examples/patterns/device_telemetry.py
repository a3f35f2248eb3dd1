"""Device telemetry: the device is the key, or the device and the day.

A reading is looked up by its device. By date, all devices write to one logical partition. By device, writes spread, and
a device's readings are read from one partition; but they are one logical partition for as long as the device lives,
with 20 GB at most. Two keys divide them by the day: a synthetic one, `engine-07-2026-11-18`, which the server joins
from two properties, and a hierarchical one, which also keeps queries over all days of a device in few partitions.
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
DAYS = 2
# The numbers of readings in the burst begin here.
LATER = 38
OF_DAY = "SELECT * FROM c WHERE c.deviceId = @device AND c.date = @date ORDER BY c.at"
OF_DEVICE = "SELECT * FROM c WHERE c.deviceId = @device ORDER BY c.at"
COUNT = "SELECT VALUE COUNT(1) FROM c"


def device_and_day() -> PartitionKey:
    """Return a key that the server joins: `engine-07-2026-11-18`."""
    key = PartitionKey("/partitionKey")
    key["synthetic"] = {"/partitionKey": {"parts": ["/deviceId", "/date"]}}
    return key


KEYS = {
    "by-date": PartitionKey("/date"),
    "by-device": PartitionKey("/deviceId"),
    "by-device-and-day": device_and_day(),
    "hierarchical": PartitionKey(["/deviceId", "/date"], kind="MultiHash"),
}
# The name of the logical partition that has a device's readings of today.
NAMED: dict[str, str | list[str]] = {
    "by-date": TODAY,
    "by-device": "engine-07",
    "by-device-and-day": ["engine-07", TODAY],
    "hierarchical": ["engine-07", TODAY],
}


def reading(number: int, date: str, *, note: str = "") -> dict[str, Any]:
    return {
        "id": f"{date}-{number:03}",
        "deviceId": f"engine-{number % DEVICES:02}",
        "date": date,
        "at": f"{date}T12:{number // 60:02}:{number % 60:02}Z",
        "celsius": 20 + number % 7,
        "note": note,
    }


def write_now(container: ContainerProxy, number: int) -> None:
    container.create_item(reading(LATER + number, TODAY, note=LARGE_TEXT))


def main() -> None:
    with connect() as client:
        database = fresh_database(client, "patterns_device_telemetry")
        containers = [of_four_partitions(database, name, key) for name, key in KEYS.items()]
        for container in containers:
            for day in range(18, 18 - DAYS, -1):
                for number in range(DEVICES):
                    container.create_item(reading(number, f"2026-11-{day}"))
            named = NAMED[container.id]
            read = container.read_item(f"{TODAY}-007", named)
            print(f"{container.id}, a reading: {charge_of(read):.2f} RU")
            (count,) = ask(container, COUNT, partition_key=named).results
            print(f"{container.id}, readings in its logical partition: {count}")
            print(f"{container.id}, a device today:", ask(container, OF_DAY, device="engine-07", date=TODAY))
            print(f"{container.id}, all days of a device:", ask(container, OF_DEVICE, device="engine-07"))

        lower_throughput(*containers)
        for container, load in send_burst(containers, write_now):
            print_picture(container.id, load, by="request_units")


if __name__ == "__main__":
    main()
