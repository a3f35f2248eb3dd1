"""Links on which clients receive the events of a partition."""

from __future__ import annotations

import asyncio

import pytest

from asterism.apis.amqp.hubs.nodes import EPOCH, GEOREPLICATION, RUNTIME_METRIC
from asterism.apis.amqp.nodes import ACCEPTED, LINK_STOLEN, NOT_FOUND, RESOURCE_LIMIT, AmqpError, Right, Settlement
from asterism.values.amqp.message import Header, encode_data_body, encode_delivery_annotations, encode_header
from asterism.values.amqp.types import Timestamp
from tests.support.event_logs import append
from tests.support.hub_links import FakePeer, HubClient, batch, condition_of, event, open_hub_client
from tests.support.virtual_time import in_virtual_time

ADDRESS = "h/ConsumerGroups/$Default/Partitions/0"


@in_virtual_time
async def test_a_receiver_gets_what_was_sent_with_fresh_annotations() -> None:
    async with open_hub_client() as client:
        await client.world.hub()
        sender = await client.sender("h/Partitions/0")
        await sender.take([batch([event(b"a"), event(b"b", {"x-opt-partition-key": "k", "own": 5})])])
        link = await client.receiver(ADDRESS)
        assert await link.bodies(2) == [b"a", b"b"]
        first, second = link.received
        enqueued = first.annotations["x-opt-enqueued-time"]
        assert isinstance(enqueued, Timestamp)
        assert first.annotations == {
            "x-opt-sequence-number": 0,
            "x-opt-offset": "0",
            "x-opt-enqueued-time": enqueued,
        }
        assert type(first.annotations["x-opt-sequence-number"]) is int
        assert type(first.annotations["x-opt-offset"]) is str
        assert second.annotations == {
            "x-opt-sequence-number": 1,
            "x-opt-offset": "1",
            "x-opt-enqueued-time": enqueued,
            "x-opt-partition-key": "k",
            "own": 5,
        }
        assert first.delivery_annotations_bytes == b""
        assert len(set(link.tags)) == 2


@in_virtual_time
async def test_every_length_of_a_key_is_delivered() -> None:
    async with open_hub_client() as client:
        await client.world.hub()
        sender = await client.sender("h/Partitions/0")
        keys = ["", "k", "k" * 128, "日" * 128]
        await sender.take([event(b"x", {"x-opt-partition-key": key}) for key in keys])
        link = await client.receiver(ADDRESS)
        await link.bodies(4)
        assert [message.annotations["x-opt-partition-key"] for message in link.received] == keys


@in_virtual_time
async def test_a_header_stays_before_the_annotations() -> None:
    async with open_hub_client() as client:
        await client.world.hub()
        sender = await client.sender("h/Partitions/0")
        delivery = event(b"a")
        delivery.payload = encode_header(Header(durable=True)) + delivery.payload
        await sender.take([delivery])
        plain = await client.receiver(ADDRESS)
        metrics = await client.receiver(ADDRESS, capabilities=[RUNTIME_METRIC])
        for link in (plain, metrics):
            assert await link.bodies(1) == [b"a"]
            assert link.received[0].header.durable is True
            assert link.received[0].annotations["x-opt-offset"] == "0"
        assert metrics.received[0].delivery_annotations["last_enqueued_sequence_number"] == 0


@in_virtual_time
async def test_delivery_annotations_of_a_sender_stay_beside_the_metrics() -> None:
    async with open_hub_client() as client:
        await client.world.hub()
        sender = await client.sender("h/Partitions/0")
        delivery = event(b"a", {"x-own": 1})
        delivery.payload = encode_delivery_annotations({"trace": "t"}) + delivery.payload
        cut = event(b"b")
        cut.payload = b"\x00\x53\x71\xc1\x03\x02\xa3\x01" + cut.payload
        outcomes = await sender.take([delivery, cut])
        assert (outcomes[0], condition_of(outcomes[1])) == (ACCEPTED, "amqp:decode-error")
        plain = await client.receiver(ADDRESS)
        metrics = await client.receiver(ADDRESS, capabilities=[RUNTIME_METRIC])
        for link in (plain, metrics):
            assert await link.bodies(1) == [b"a"]
            assert link.received[0].annotations["x-own"] == 1
            assert link.received[0].delivery_annotations["trace"] == "t"
        assert metrics.received[0].delivery_annotations["last_enqueued_offset"] == "0"


@in_virtual_time
async def test_a_receiver_waits_for_events_and_for_credit() -> None:
    async with open_hub_client() as client:
        hub = await client.world.hub()
        link = await client.receiver(ADDRESS, credit=0)
        for number in range(10):
            await append(hub.log(0), encode_data_body(b"%d" % number))
        await asyncio.sleep(1)
        assert link.received == []
        link.flow(3)
        assert await link.bodies(3) == [b"0", b"1", b"2"]
        await asyncio.sleep(1)
        assert len(link.received) == 3
        link.flow(100)
        await link.bodies(10)
        await append(hub.log(0), encode_data_body(b"10"))
        assert (await link.bodies(11))[10] == b"10"
        assert [message.annotations["x-opt-sequence-number"] for message in link.received] == list(range(11))


@in_virtual_time
async def test_a_receiver_that_drains_gets_what_is_there() -> None:
    async with open_hub_client() as client:
        hub = await client.world.hub()
        await append(hub.log(0), encode_data_body(b"a"))
        link = await client.receiver(ADDRESS, credit=0)
        link.flow(10, drain=True)
        await link.until(lambda: link.drained_count == 1)
        assert await link.bodies(1) == [b"a"]
        assert link.credit == 0


@pytest.mark.parametrize(
    ("selector", "first"),
    [
        (None, 0),
        ("amqp.annotation.x-opt-offset > '-1'", 0),
        ("amqp.annotation.x-opt-offset >= '-1'", 0),
        ("amqp.annotation.x-opt-offset > '1'", 2),
        ("amqp.annotation.x-opt-offset >= '1'", 1),
        ("amqp.annotation.x-opt-sequence-number > '0'", 1),
        ("amqp.annotation.x-opt-sequence-number >= '2'", 2),
        ("amqp.annotation.x-opt-sequence-number > '-1'", 0),
        ("amqp.annotation.x-opt-offset > '@latest'", 3),
        ("amqp.annotation.x-opt-enqueued-time > '0'", 0),
        ("amqp.annotation.x-opt-enqueued-time >= 99999999999999", 3),
        ("amqp.annotation.x-opt-enqueuedtimeutc > '-62135596800000'", 0),
    ],
)
def test_a_receiver_begins_where_its_filter_says(selector: str | None, first: int) -> None:
    @in_virtual_time
    async def check() -> None:
        async with open_hub_client() as client:
            hub = await client.world.hub()
            await append(hub.log(0), *[encode_data_body(b"%d" % number) for number in range(3)])
            link = await client.receiver(ADDRESS, selector=selector)
            await append(hub.log(0), encode_data_body(b"3"))
            assert await link.bodies(4 - first) == [b"%d" % number for number in range(first, 4)]

    check()


@pytest.mark.parametrize(
    "selector",
    [
        "amqp.annotation.x-opt-offset > '99'",
        "amqp.annotation.x-opt-offset < '1'",
        "amqp.annotation.x-opt-offset > 'x'",
        "amqp.annotation.x-opt-offset > '1",
        "amqp.annotation.other > '1'",
        "amqp.annotation.x-opt-enqueued-time > '@latest'",
        "",
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(selector: str) -> None:
    @in_virtual_time
    async def check() -> None:
        async with open_hub_client() as client:
            await client.world.hub()
            with pytest.raises(AmqpError) as refused:
                await client.receiver(ADDRESS, selector=selector)
            assert refused.value.condition == "com.microsoft:argument-error"

    check()


@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("h", NOT_FOUND),
        ("missing/ConsumerGroups/$Default/Partitions/0", NOT_FOUND),
        ("h/ConsumerGroups/missing/Partitions/0", NOT_FOUND),
        ("h/ConsumerGroups/$Default/Partitions/2", "com.microsoft:argument-out-of-range"),
        ("h/ConsumerGroups/$Default/Partitions/-1", "com.microsoft:argument-out-of-range"),
    ],
)
def test_a_receiver_from_nowhere_is_refused(address: str, condition: str) -> None:
    @in_virtual_time
    async def check() -> None:
        async with open_hub_client() as client:
            await client.world.hub()
            with pytest.raises(AmqpError) as refused:
                await client.receiver(address)
            assert refused.value.condition == condition

    check()


@in_virtual_time
async def test_a_receiver_with_an_epoch_takes_the_partition() -> None:
    async with open_hub_client() as client:
        await client.world.hub()
        plain = await client.receiver(ADDRESS)
        first = await client.receiver(ADDRESS, properties={EPOCH: 1})
        assert (plain.is_closed, first.is_closed) == (True, False)
        second = await client.receiver("H/consumergroups/$default/partitions/0", properties={EPOCH: 2})
        assert first.error is not None
        assert first.error.condition == LINK_STOLEN
        with pytest.raises(AmqpError) as refused:
            await client.receiver(ADDRESS, properties={EPOCH: 1})
        assert refused.value.condition == LINK_STOLEN
        with pytest.raises(AmqpError):
            await client.receiver(ADDRESS)
        second.close()
        assert not (await client.receiver(ADDRESS)).is_closed


@in_virtual_time
async def test_the_sixth_receiver_of_a_group_is_refused() -> None:
    async with open_hub_client() as client:
        await client.world.hub()
        links = [await client.receiver(ADDRESS) for _ in range(5)]
        with pytest.raises(AmqpError) as refused:
            await client.receiver(ADDRESS)
        assert refused.value.condition == RESOURCE_LIMIT
        links[2].close()
        await client.receiver(ADDRESS)


@in_virtual_time
async def test_receivers_end_with_their_hub_and_their_group() -> None:
    async with open_hub_client() as client:
        hub = await client.world.hub()
        await client.world.store.create_group(hub, "g")
        of_group = await client.receiver("h/ConsumerGroups/G/Partitions/0")
        of_hub = await client.receiver(ADDRESS)
        await client.world.store.delete_group(hub, "g")
        assert of_group.error is not None
        assert of_group.error.condition == NOT_FOUND
        assert not of_hub.is_closed
        await client.world.store.delete(hub)
        assert of_hub.error is not None
        assert of_hub.error.condition == NOT_FOUND


@in_virtual_time
async def test_capabilities_are_offered_back() -> None:
    async with open_hub_client() as client:
        hub = await client.world.hub()
        await append(hub.log(0), encode_data_body(b"a"), encode_data_body(b"b"))
        link = await client.receiver(
            ADDRESS, selector="amqp.annotation.x-opt-offset > '0'", capabilities=[RUNTIME_METRIC, GEOREPLICATION, "x"]
        )
        assert link.outlet is not None
        assert sorted(link.outlet.reply.offered_capabilities) == sorted([RUNTIME_METRIC, GEOREPLICATION])
        await link.bodies(1)
        metrics = link.received[0].delivery_annotations
        assert metrics["last_enqueued_sequence_number"] == 1
        assert metrics["last_enqueued_offset"] == "1"
        assert {type(metrics[name]) for name in ("last_enqueued_time_utc", "runtime_info_retrieval_time_utc")} == {
            Timestamp
        }


@in_virtual_time
async def test_a_receiver_needs_the_right_to_listen() -> None:
    async with open_hub_client() as client:
        await client.world.hub()
        other = HubClient(client.world, client.nodes, FakePeer(frozenset([Right.SEND])))
        with pytest.raises(AmqpError):
            await other.receiver(ADDRESS)


@in_virtual_time
async def test_settlements_are_echoed() -> None:
    async with open_hub_client() as client:
        await client.world.hub()
        link = await client.receiver(ADDRESS)
        assert link.outlet is not None
        assert await link.outlet.settle([Settlement(b"t", ACCEPTED, is_settled=False)]) == [ACCEPTED]
