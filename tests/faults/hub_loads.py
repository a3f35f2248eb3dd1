"""Producers and a reader of a hub, and what must be there when its server runs again."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import count
from typing import Any

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, EventHubProducerClient, PartitionContext

from asterism.partitioning.hub_partition import hub_partition
from tests.clients.messaging_server import MessagingServer
from tests.faults.bus_clients import admin_of, until

HUB = "readings"
PARTITIONS = 4
BATCH_EVENTS = 5
# The texts of events by partition and sequence number.
Found = dict[tuple[int, int], str]


class Producer:
    """Sends batches of numbered events: with a key, to a partition, or to whichever is next."""

    def __init__(
        self, name: str, *, key: str | None = None, partition: int | None = None, batches: int | None = None
    ) -> None:
        """`batches`: how many it sends; without end if omitted."""
        self.name = name
        self._starts = count(0, BATCH_EVENTS) if batches is None else range(0, batches * BATCH_EVENTS, BATCH_EVENTS)
        self.partition = hub_partition(key, PARTITIONS) if key is not None else partition
        self.attempted = 0
        self.sent = 0
        self._place: dict[str, Any] = {
            "partition_key": key,
            "partition_id": None if partition is None else str(partition),
        }

    async def run(self, messaging: MessagingServer) -> None:
        client = EventHubProducerClient.from_connection_string(
            messaging.connection_string(), eventhub_name=HUB, retry_total=0
        )
        async with client:
            for start in self._starts:
                batch = await client.create_batch(**self._place)
                for number in range(start, start + BATCH_EVENTS):
                    batch.add(EventData(f"{self.name} {number}"))
                self.attempted = start + BATCH_EVENTS
                await client.send_batch(batch)
                self.sent = start + BATCH_EVENTS

    def check(self, found: Found) -> None:
        places = {text: place for place, text in found.items() if text.startswith(f"{self.name} ")}
        # A batch whose outcome is unknown is there as a whole or not at all.
        assert len(places) in (self.sent, self.attempted)
        ordered = [places[f"{self.name} {number}"] for number in range(len(places))]
        for start in range(0, len(ordered), BATCH_EVENTS):
            (partition, first), *_ = batch = ordered[start : start + BATCH_EVENTS]
            assert batch == [(partition, first + at) for at in range(BATCH_EVENTS)]
            assert partition == (partition if self.partition is None else self.partition)
        for partition in range(PARTITIONS):
            numbers = [number for place, number in ordered if place == partition]
            assert numbers == sorted(numbers)


class Reader:
    """Reads all partitions from the beginning and remembers what it was given."""

    def __init__(self) -> None:
        self.found: Found = {}

    async def run(self, messaging: MessagingServer) -> None:
        client = EventHubConsumerClient.from_connection_string(
            messaging.connection_string(), "$Default", eventhub_name=HUB, retry_total=0
        )
        async with client:
            await client.receive_batch(self._keep, starting_position="-1", max_wait_time=1)

    async def _keep(self, context: PartitionContext, events: list[EventData]) -> None:
        for event in events:
            assert event.sequence_number is not None
            assert event.offset == str(event.sequence_number)
            self.found[int(context.partition_id), event.sequence_number] = event.body_as_str()


def all_producers() -> list[Producer]:
    return [
        Producer("first-key", key="sensor-1"),
        Producer("same-key", key="sensor-1"),
        Producer("other-key", key="sensor-2"),
        Producer("third-partition", partition=3),
        Producer("also-third-partition", partition=3),
        Producer("anywhere"),
    ]


async def read_everything(messaging: MessagingServer, last_sequences: dict[int, int]) -> Found:
    reader = Reader()
    task = asyncio.create_task(reader.run(messaging))
    whole = {(partition, number) for partition, last in last_sequences.items() for number in range(last + 1)}
    await until(lambda: reader.found.keys() >= whole, "events are missing")
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert reader.found.keys() == whole
    return reader.found


def last_sequences_of(messaging: MessagingServer) -> dict[int, int]:
    shown = admin_of(messaging).get("messaging/hub", namespace="asterism", hub=HUB)["partitions"]
    return {each["id"]: -1 if each["events"] == 0 else each["last_sequence"] for each in shown}
