"""Readings with the sensor as partition key: those of a sensor are in one partition, in the order they were sent in.

Needs a hub:

    asterism hubs create telemetry --partitions 4
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubProducerClient
from reading import EMULATOR, read_to_end

HUB = "telemetry"
SENSORS = [f"sensor-{number}" for number in range(12)]
READINGS_EACH = 5
BUSY_READINGS = 100


async def send_readings(producer: EventHubProducerClient, sensor: str, count: int) -> None:
    """Send readings of a sensor as one batch, which is stored as a whole or not at all."""
    batch = await producer.create_batch(partition_key=sensor)
    for number in range(count):
        batch.add(EventData(f"{sensor} {number}"))
    await producer.send_batch(batch)


async def main(connection: str) -> None:
    producer = EventHubProducerClient.from_connection_string(connection, eventhub_name=HUB)
    async with producer:
        print("partitions:", await producer.get_partition_ids())
        for sensor in SENSORS:
            await send_readings(producer, sensor, READINGS_EACH)
        # One that sends all the time: whatever the number of partitions, it stays in one.
        await send_readings(producer, "busy", BUSY_READINGS)

    events = await read_to_end(connection, HUB)
    places: dict[str, set[str]] = defaultdict(set)
    readings: dict[str, list[int]] = defaultdict(list)
    for partition, found in events.items():
        for event in found:
            sensor, number = event.body_as_str().split()
            places[sensor].add(partition)
            readings[sensor].append(int(number))
    for sensor in sorted(places, key=lambda name: (places[name], name)):
        print(f"partition {', '.join(places[sensor])}: {sensor}")
    print("in order:", all(numbers == sorted(numbers) for numbers in readings.values()))
    print("events:", {partition: len(found) for partition, found in sorted(events.items())})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else EMULATOR))
