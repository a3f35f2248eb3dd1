"""Consumers that share the partitions of a hub, and keep their places in a container of blobs.

Needs a hub:

    asterism hubs create clicks --partitions 4 --group counters
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress

from azure.core.exceptions import ResourceExistsError
from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, EventHubProducerClient, PartitionContext
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore
from azure.storage.blob import ContainerClient
from reading import EMULATOR

HUB, GROUP, CHECKPOINTS = "clicks", "counters", "checkpoints"
PARTITIONS = 4
STORAGE = "UseDevelopmentStorage=true"
# How often consumers look whether the partitions are shared fairly; in production every half a minute.
BALANCING_SECONDS = 1.0
EVENTS_PER_CHECKPOINT = 10


class Consumer:
    """One program of several that do the same work. Each has a store of its own, which leads to the same container."""

    def __init__(self, connection: str, storage: str) -> None:
        self.partitions: set[str] = set()
        self.handled: list[str] = []
        # The last event of each partition that was handled, in case its place is not kept yet.
        self._last: dict[str, tuple[PartitionContext, EventData]] = {}
        self._places = BlobCheckpointStore.from_connection_string(storage, CHECKPOINTS)
        self._client = EventHubConsumerClient.from_connection_string(
            connection,
            GROUP,
            eventhub_name=HUB,
            checkpoint_store=self._places,
            load_balancing_interval=BALANCING_SECONDS,
        )
        self._receiving: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._receiving = asyncio.create_task(
            self._client.receive(
                self._handle,
                starting_position="-1",
                on_partition_initialize=self._take_partition,
                on_partition_close=self._give_up_partition,
            )
        )

    async def stop(self) -> None:
        await self._client.close()
        assert self._receiving is not None
        await self._receiving
        await self._places.close()

    async def keep_places(self) -> None:
        """Keep the places behind all that was handled, as a program does that ends in good order."""
        for context, event in self._last.values():
            await context.update_checkpoint(event)

    async def _take_partition(self, context: PartitionContext) -> None:
        self.partitions.add(context.partition_id)

    async def _give_up_partition(self, context: PartitionContext, _reason: object) -> None:
        self.partitions.discard(context.partition_id)

    async def _handle(self, context: PartitionContext, event: EventData | None) -> None:
        assert event is not None
        assert event.sequence_number is not None
        self.handled.append(event.body_as_str())
        self._last[context.partition_id] = (context, event)
        # Not after each: a checkpoint is a write to the storage account. Events behind the last one come again.
        if event.sequence_number % EVENTS_PER_CHECKPOINT == 0:
            await context.update_checkpoint(event)


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.05)


async def send_clicks(connection: str, first: int, count: int) -> None:
    producer = EventHubProducerClient.from_connection_string(connection, eventhub_name=HUB)
    async with producer:
        for number in range(first, first + count):
            await producer.send_event(EventData(str(number)), partition_key=f"visitor-{number % 20}")


async def main(connection: str, storage: str) -> None:
    with ContainerClient.from_connection_string(storage, CHECKPOINTS) as container, suppress(ResourceExistsError):
        container.create_container()

    first, second = Consumer(connection, storage), Consumer(connection, storage)
    first.start()
    await until(lambda: len(first.partitions) == PARTITIONS)
    print("alone:", len(first.partitions), "partitions")
    second.start()
    await until(lambda: len(first.partitions) == len(second.partitions) == PARTITIONS // 2)
    print("together:", len(first.partitions), "and", len(second.partitions), "partitions")

    await send_clicks(connection, 0, 200)
    await until(lambda: len(set(first.handled + second.handled)) == 200)
    await first.keep_places()
    await second.keep_places()
    await asyncio.gather(first.stop(), second.stop())
    print("handled:", len(set(first.handled + second.handled)))

    # No consumer is there while these are sent; they wait.
    await send_clicks(connection, 200, 40)
    third = Consumer(connection, storage)
    third.start()
    await until(lambda: len(third.handled) == 40)
    await third.keep_places()
    await third.stop()
    print("after the restart:", len(third.handled), "from", min(map(int, third.handled)))


if __name__ == "__main__":
    asyncio.run(main(*(sys.argv[1:] or (EMULATOR, STORAGE))))
