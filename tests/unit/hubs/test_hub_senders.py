"""Links on which clients send to hubs: placement, batches, refusals."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.amqp.hubs.event_messages import events_of
from asterism.apis.amqp.hubs.nodes import HubNodes
from asterism.apis.amqp.nodes import ACCEPTED, NOT_FOUND, SIZE_EXCEEDED, UNAUTHORIZED, AmqpError, Delivery, Right
from asterism.errors import StorageUnavailable
from asterism.models.event_logs.hub import Hub
from asterism.models.namespaces.store import EntityRecord
from asterism.partitioning.hub_partition import hub_partition
from asterism.values.amqp.message import encode_data_body
from asterism.values.amqp.types import InvalidAmqp
from tests.support.event_logs import NAMESPACE, contents, open_two_processes, read_all
from tests.support.hub_links import FakePeer, HubClient, batch, condition_of, event, open_hub_client
from tests.support.virtual_time import in_virtual_time

KEY = "x-opt-partition-key"


async def counts(hub: Hub) -> list[int]:
    return [(await hub.log(partition).properties()).stored_events for partition in range(hub.partition_count)]


@in_virtual_time
async def test_events_without_a_key_take_turns_among_the_partitions() -> None:
    async with open_hub_client() as client:
        hub = await client.world.hub(partitions=4)
        sender = await client.sender("h")
        for _ in range(8):
            assert await sender.take([event(b"a")]) == [ACCEPTED]
        assert await counts(hub) == [2, 2, 2, 2]
        assert await sender.take([batch([event(b"a"), event(b"b")]) for _ in range(4)]) == [ACCEPTED] * 4
        assert await counts(hub) == [4, 4, 4, 4]


@in_virtual_time
async def test_events_that_came_together_stay_together() -> None:
    async with open_hub_client() as client:
        hub = await client.world.hub(partitions=4)
        sender = await client.sender("h")
        await sender.take([event(b"%d" % number) for number in range(5)])
        assert sorted(await counts(hub)) == [0, 0, 0, 5]


@in_virtual_time
async def test_a_key_decides_on_the_partition() -> None:
    async with open_hub_client() as client:
        hub = await client.world.hub(partitions=11)
        sender = await client.sender("H/")
        keys = ["7", "alphabet", "日本", "abc-123"]
        await sender.take([event(key.encode(), {KEY: key}) for key in keys])
        await sender.take([batch([event(b"x"), event(b"y")], {KEY: "a"})])
        await sender.take([batch([event(b"x", {KEY: "a"}), event(b"y", {KEY: "a"})])])
        await sender.take([event(b"x", {KEY: b"a"})])
        expected = Counter(hub_partition(key, 11) for key in keys)
        expected[hub_partition("a", 11)] += 5
        assert await counts(hub) == [expected[partition] for partition in range(11)]
        events = await read_all(hub.log(hub_partition("a", 11)))
        assert {found.partition_key for found in events if found.content == encode_data_body(b"x")} == {b"a"}


@in_virtual_time
async def test_a_named_partition_is_not_hashed_again() -> None:
    async with open_hub_client() as client:
        hub = await client.world.hub(partitions=4)
        sender = await client.sender("h/Partitions/1")
        # The service's hash of this key is 3.
        assert await sender.take([batch([event(b"x", {KEY: "7"})], {KEY: "7"})]) == [ACCEPTED]
        assert await counts(hub) == [0, 1, 0, 0]
        assert [found.partition_key for found in await read_all(hub.log(1))] == [b"7"]


@in_virtual_time
async def test_only_what_is_wrong_is_refused() -> None:
    async with open_hub_client() as client:
        client.world.limit(message_bytes_max=1024)
        hub = await client.world.hub()
        sender = await client.sender("h/partitions/0")
        assert sender.reply.max_message_bytes == 1024
        outcomes = await sender.take(
            [
                event(b"a"),
                event(b"x" * 1024),
                Delivery(b"no message", 0, b"t", is_settled=False),
                Delivery(encode_data_body(b"no message"), 0x80013700, b"t", is_settled=False),
                Delivery(event(b"x").payload, 0, b"t", is_settled=False, transaction=b"1"),
                event(b"x", {KEY: "k" * 129}),
                event(b"b"),
            ]
        )
        assert [outcomes[0], outcomes[6]] == [ACCEPTED, ACCEPTED]
        assert [condition_of(outcome) for outcome in outcomes[1:6]] == [
            SIZE_EXCEEDED,
            "amqp:decode-error",
            "amqp:decode-error",
            "amqp:not-implemented",
            "amqp:decode-error",
        ]
        assert contents(await read_all(hub.log(0))) == [encode_data_body(b"a"), encode_data_body(b"b")]


@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("missing", NOT_FOUND),
        ("h/Partitions/2", "com.microsoft:argument-out-of-range"),
        ("h/Partitions/x", "com.microsoft:argument-out-of-range"),
        ("h/Partitions/01", "com.microsoft:argument-out-of-range"),
        ("h/other", NOT_FOUND),
        ("h/ConsumerGroups/$Default/Partitions/0", NOT_FOUND),
    ],
)
def test_links_to_nowhere_are_refused(address: str, condition: str) -> None:
    @in_virtual_time
    async def check() -> None:
        async with open_hub_client() as client:
            await client.world.hub()
            with pytest.raises(AmqpError) as refused:
                await client.sender(address)
            assert refused.value.condition == condition

    check()


@in_virtual_time
async def test_a_sender_needs_the_right_to_send() -> None:
    async with open_hub_client() as client:
        await client.world.hub()
        other = HubClient(client.world, client.nodes, FakePeer(frozenset([Right.LISTEN])))
        with pytest.raises(AmqpError) as refused:
            await other.sender("h")
        assert refused.value.condition == UNAUTHORIZED


@in_virtual_time
async def test_a_deleted_or_disabled_hub_ends_its_senders() -> None:
    async with open_hub_client() as client:
        hub = await client.world.hub()
        sender = await client.sender("h")
        await disable(client, hub)
        with pytest.raises(AmqpError) as refused:
            await sender.take([event(b"a")])
        assert refused.value.condition == "com.microsoft:entity-disabled"
        await client.world.store.delete(hub)
        with pytest.raises(AmqpError) as refused:
            await sender.take([event(b"a")])
        assert refused.value.condition == NOT_FOUND
        # They are not left to find out.
        assert [error.condition for error in client.ended] == ["com.microsoft:entity-disabled", NOT_FOUND]


@in_virtual_time
async def send_to_a_hub_that_is_created_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_two_processes() as (first, second):
        client = HubClient(first, HubNodes(first.store))
        await first.hub()
        sender = await client.sender("h")
        assert await sender.take([event(b"old")]) == [ACCEPTED]
        there = await second.store.find_newest(NAMESPACE, "h")
        assert there is not None
        apply = first.world.router.apply

        async def late(*args: object, **options: object) -> object:
            await second.store.delete(there)
            await second.hub()
            return await apply(*args, **options)  # type: ignore[arg-type]  # passed on

        with monkeypatch.context() as patched:
            patched.setattr(first.world.router, "apply", late)
            with pytest.raises(AmqpError) as refused:
                await sender.take([event(b"lost")])
        assert refused.value.condition == NOT_FOUND
        sender = await client.sender("h/Partitions/0")
        assert await sender.take([event(b"new")]) == [ACCEPTED]
        hub = await second.store.find_newest(NAMESPACE, "h")
        assert hub is not None
        assert contents(await read_all(hub.log(0))) == [encode_data_body(b"new")]


def test_a_hub_that_another_process_has_created_again_is_found_by_the_next_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send_to_a_hub_that_is_created_again(monkeypatch)


@in_virtual_time
async def test_a_sender_that_has_left_is_not_told_of_its_hub() -> None:
    async with open_hub_client() as client:
        hub = await client.world.hub()
        (await client.sender("h")).closed()
        await client.world.store.delete(hub)
        assert client.ended == []


async def disable(client: HubClient, hub: Hub) -> None:
    await client.world.store.update(hub, lambda description: replace(description, status="SendDisabled"))


@in_virtual_time
async def test_a_busy_hub_says_so() -> None:
    async with open_hub_client() as client:
        client.world.limit(throughput_units=1)
        await client.world.hub("generous", throughput_units=2)
        generous = await client.sender("generous")
        assert await generous.take([batch([event(b"a")] * 900), batch([event(b"a")] * 900)]) == [ACCEPTED] * 2
        assert await generous.take([event(b"a")]) == [ACCEPTED]
        await client.world.hub()
        sender = await client.sender("h")
        assert await sender.take([batch([event(b"a")] * 1500)]) == [ACCEPTED]
        (outcome,) = await sender.take([event(b"a")])
        assert condition_of(outcome) == "com.microsoft:server-busy"


@in_virtual_time
async def send_past_a_partition_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_hub_client() as client:
        hub = await client.world.hub(partitions=3)
        apply = client.world.world.router.apply
        down = hub.keyspace.record.map.ranges[1].range.start

        async def failing(keyspace: object, point: bytes, *args: object, **options: object) -> object:
            fail = {True: _unavailable, False: apply}[point == down]
            return await fail(keyspace, point, *args, **options)  # type: ignore[operator]  # passed on

        monkeypatch.setattr(client.world.world.router, "apply", failing)
        sender, keyed = await client.sender("h"), await client.sender("h/Partitions/1")
        for _ in range(6):
            assert await sender.take([event(b"a")]) == [ACCEPTED]
        (outcome,) = await keyed.take([event(b"a")])
        assert condition_of(outcome) == "com.microsoft:server-busy"
        (outcome,) = await keyed.take([event(b"a")])
        assert condition_of(outcome) == "com.microsoft:server-busy"
        assert [await stored(hub, partition) for partition in (0, 2)] == [3, 3]


async def stored(hub: Hub, partition: int) -> int:
    return (await hub.log(partition).properties()).stored_events


async def _unavailable(*_: object, **__: object) -> EntityRecord:
    raise StorageUnavailable(reason="the test says so")


def test_events_without_a_key_go_past_a_partition_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    send_past_a_partition_that_is_down(monkeypatch)


@given(st.binary(max_size=60), st.sampled_from([0, 0x80013700]))
def test_any_payload_is_events_or_refused(payload: bytes, message_format: int) -> None:
    with suppress(InvalidAmqp):
        events_of(payload, message_format)
