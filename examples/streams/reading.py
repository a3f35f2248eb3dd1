"""Reading what a hub holds now: the examples of this folder share it."""

from __future__ import annotations

import asyncio
import contextlib

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, PartitionContext

EMULATOR = (
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
)


def number_of(event: EventData) -> int:
    """Return the sequence number, which every event has that was received."""
    assert event.sequence_number is not None
    return event.sequence_number


async def read_to_end(connection: str, hub: str, group: str = "$Default") -> dict[str, list[EventData]]:
    """Return the events that the partitions of a hub hold now, each partition's in its order."""
    client = EventHubConsumerClient.from_connection_string(connection, group, eventhub_name=hub)
    async with client:
        ends: dict[str, int] = {}
        for partition in await client.get_partition_ids():
            properties = await client.get_partition_properties(partition)
            if not properties["is_empty"]:
                ends[partition] = properties["last_enqueued_sequence_number"]
        events: dict[str, list[EventData]] = {partition: [] for partition in ends}
        is_at_end = asyncio.Event()

        async def keep(context: PartitionContext, event: EventData | None) -> None:
            if event is not None and context.partition_id in ends:
                events[context.partition_id].append(event)
            if all(events[name] and number_of(events[name][-1]) >= end for name, end in ends.items()):
                is_at_end.set()

        # Without a place to keep checkpoints, a consumer reads all partitions, from where it is told.
        receiving = asyncio.create_task(client.receive(keep, starting_position="-1"))
        if ends:
            await is_at_end.wait()
        receiving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await receiving
    return {name: found[: ends[name] - number_of(found[0]) + 1] for name, found in events.items()}
