"""Event Hubs through the official asynchronous client for Python."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from azure.eventhub import EventData, LoadBalancingStrategy, TransportType
from azure.eventhub.aio import EventHubConsumerClient, PartitionContext
from azure.eventhub.exceptions import AuthenticationError, ConnectError, ConnectionLostError, EventHubError
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore

from tests.clients.blob_server import BlobServer, new_name
from tests.clients.hub_server import AioReceiver, HubServer
from tests.clients.messaging_server import WAIT_SECONDS
from tests.support.server import RunningServer


@pytest.fixture(scope="session")
def hubs(server: RunningServer) -> HubServer:
    return HubServer(server)


def receiving(client: EventHubConsumerClient, **options: Any) -> AioReceiver:
    return AioReceiver(client, options)


async def send(hubs: HubServer, hub: str, *bodies: str, **options: Any) -> None:
    async with hubs.aio_producer(hub) as producer:
        await producer.send_batch([EventData(body) for body in bodies], **options)


async def test_events_arrive_with_their_properties_and_places(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=4)
    async with hubs.aio_producer(hub) as producer:
        sent = EventData("hello")
        sent.properties = {"n": 1}
        await producer.send_event(sent, partition_key="alphabet")
        batch = await producer.create_batch(partition_id="3")
        for number in range(500):
            batch.add(EventData(str(number)))
        await producer.send_batch(batch)
        assert await producer.get_partition_ids() == ["0", "1", "2", "3"]
        filled = await producer.get_partition_properties("3")
        assert (filled["last_enqueued_sequence_number"], filled["last_enqueued_offset"]) == (499, "499")
    async with receiving(hubs.aio_consumer(hub)) as arrivals:
        await arrivals.until_aio(lambda: len(arrivals.events) == 501)
    (keyed,) = [event for partition, event in arrivals.events if partition == "2"]
    assert (keyed.body_as_str(), keyed.properties, keyed.partition_key) == ("hello", {b"n": 1}, b"alphabet")
    assert arrivals.bodies_of("3") == [str(number) for number in range(500)]


async def test_many_tasks_send_at_once_and_keep_their_order(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=2)

    async def send_own(sender: int) -> None:
        async with hubs.aio_producer(hub) as producer:
            for number in range(30):
                await producer.send_event(EventData(f"{sender}:{number}"), partition_key=str(sender))

    async with asyncio.TaskGroup() as tasks:
        for sender in range(10):
            tasks.create_task(send_own(sender))
    async with receiving(hubs.aio_consumer(hub)) as arrivals:
        await arrivals.until_aio(lambda: len(arrivals.events) == 300)
    for sender in range(10):
        own = [body for body in arrivals.bodies if body.startswith(f"{sender}:")]
        assert own == [f"{sender}:{number}" for number in range(30)]


async def test_a_buffered_producer_delivers_everything(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=2)
    sent: list[str] = []
    failed: list[Exception] = []

    async def on_success(events: list[EventData], _: str | None) -> None:
        sent.extend(event.body_as_str() for event in events)

    async def on_error(_: object, __: str | None, error: Exception) -> None:
        failed.append(error)

    options: dict[str, Any] = {"on_success": on_success, "on_error": on_error, "max_wait_time": 1}
    async with hubs.aio_producer(hub, buffered_mode=True, **options) as producer:
        for number in range(300):
            await producer.send_event(EventData(str(number)))
        await producer.flush(timeout=WAIT_SECONDS)
    assert failed == []
    async with receiving(hubs.aio_consumer(hub)) as arrivals:
        await arrivals.until_aio(lambda: len(arrivals.events) == 300)
    assert sorted(arrivals.bodies, key=int) == sorted(sent, key=int) == [str(number) for number in range(300)]


async def test_receivers_of_one_group_without_an_epoch_read_the_same(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1)
    await send(hubs, hub, "a", "b")
    async with (
        receiving(hubs.aio_consumer(hub), partition_id="0") as first,
        receiving(hubs.aio_consumer(hub), partition_id="0") as second,
    ):
        await first.until_aio(lambda: first.bodies == second.bodies == ["a", "b"])


async def test_a_consumer_can_follow_how_far_it_is_behind(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1)
    await send(hubs, hub, "a", "b")
    seen: list[dict[str, Any]] = []

    async def on_each(context: PartitionContext, _: EventData) -> None:
        seen.append(dict(context.last_enqueued_event_properties or {}))

    options = {"track_last_enqueued_event_properties": True, "partition_id": "0"}
    async with AioReceiver(hubs.aio_consumer(hub), options, on_each) as arrivals:
        await arrivals.until_aio(lambda: len(seen) == 2)
    assert [(each["sequence_number"], each["offset"]) for each in seen] == [(1, "1")] * 2


async def test_a_consumer_with_an_epoch_takes_the_partition(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1)
    await send(hubs, hub, "a")
    async with receiving(hubs.aio_consumer(hub), partition_id="0", owner_level=1) as first:
        await first.until_aio(lambda: first.bodies == ["a"])
        async with receiving(hubs.aio_consumer(hub), partition_id="0", owner_level=2) as second:
            await second.until_aio(lambda: second.bodies == ["a"])
            await first.until_aio(lambda: bool(first.errors))
            assert isinstance(first.errors[0], ConnectionLostError)
            async with receiving(hubs.aio_consumer(hub, retry_total=0), partition_id="0") as plain:
                await plain.until_aio(lambda: bool(plain.errors))
            assert isinstance(plain.errors[0], ConnectionLostError)
            assert (plain.bodies, second.errors) == ([], [])


async def test_two_consumers_share_the_partitions_and_go_on_from_checkpoints(
    hubs: HubServer, blobs: BlobServer
) -> None:
    hub = hubs.new_hub(partitions=4)
    container = new_name()
    blobs.service().create_container(container)
    stores: list[BlobCheckpointStore] = []

    async def checkpoint(context: PartitionContext, event: EventData) -> None:
        await context.update_checkpoint(event)

    def consumer() -> AioReceiver:
        stores.append(BlobCheckpointStore.from_connection_string(blobs.connection_string, container))
        client = hubs.aio_consumer(
            hub,
            checkpoint_store=stores[-1],
            partition_ownership_expiration_interval=3,
            load_balancing_strategy=LoadBalancingStrategy.GREEDY,
        )
        return AioReceiver(client, {}, checkpoint)

    async def send_round(number: int) -> set[str]:
        bodies = {partition: f"{number} of {partition}" for partition in "0123"}
        for partition, body in bodies.items():
            await send(hubs, hub, body, partition_id=partition)
        return set(bodies.values())

    sent = await send_round(0)
    async with consumer() as first:
        await first.until_aio(lambda: set(first.bodies) == sent)
        async with consumer() as second:
            await first.until_aio(lambda: (len(first.owned), len(second.owned)) == (2, 2))
            sent |= await send_round(1)
            await first.until_aio(lambda: set(first.bodies) | set(second.bodies) == sent)
        await first.until_aio(lambda: len(first.owned) == 4)
    news = await send_round(2)
    async with consumer() as third:
        await third.until_aio(lambda: set(third.bodies) >= news)
    # Nothing that has a checkpoint is read again.
    assert set(third.bodies) == news
    for store in stores:
        await store.close()


async def test_what_is_missing_is_refused(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1)
    async with hubs.aio_producer("missing", retry_total=0) as producer:
        with pytest.raises(AuthenticationError):
            await producer.send_event(EventData("a"))
    async with hubs.aio_consumer(hub, retry_total=0) as consumer:
        with pytest.raises(ConnectError, match="has no partition '1'"):
            await consumer.get_partition_properties("1")
    async with receiving(hubs.aio_consumer("missing", retry_total=0), partition_id="0") as arrivals:
        await arrivals.until_aio(lambda: bool(arrivals.errors))
    assert isinstance(arrivals.errors[0], ConnectError)


async def test_the_links_of_a_deleted_hub_end(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1)
    async with hubs.aio_producer(hub, retry_total=0) as producer:
        await producer.send_event(EventData("a"))
        async with receiving(hubs.aio_consumer(hub, retry_total=0), partition_id="0") as arrivals:
            await arrivals.until_aio(lambda: arrivals.bodies == ["a"])
            await asyncio.to_thread(hubs.manage, "DELETE", f"/{hub}")
            await arrivals.until_aio(lambda: bool(arrivals.errors))
        with pytest.raises(EventHubError):
            await producer.send_event(EventData("b"))


async def test_websockets_carry_the_same(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1)
    options: dict[str, Any] = {
        "transport_type": TransportType.AmqpOverWebsocket,
        "custom_endpoint_address": f"http://localhost:{hubs.amqp_port}",
    }
    async with hubs.aio_producer(hub, **options) as producer:
        await producer.send_batch([EventData("x" * 200_000), EventData("small")])
    async with receiving(hubs.aio_consumer(hub, **options)) as arrivals:
        await arrivals.until_aio(lambda: len(arrivals.events) == 2)
    assert arrivals.bodies == ["x" * 200_000, "small"]
