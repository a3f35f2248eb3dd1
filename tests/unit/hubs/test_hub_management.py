"""Requests to `$management` about hubs and their partitions."""

from __future__ import annotations

import pytest

from asterism.apis.amqp.nodes import NodeReply, Right
from asterism.values.amqp.types import Array, Timestamp
from tests.support.event_logs import append
from tests.support.hub_links import FakePeer, HubClient, open_hub_client
from tests.support.virtual_time import in_virtual_time


async def read(client: HubClient, kind: str, **properties: object) -> NodeReply:
    return await client.ask(operation="READ", type=f"com.microsoft:{kind}", **properties)


@in_virtual_time
async def test_a_hub_lists_its_partitions() -> None:
    async with open_hub_client() as client:
        hub = await client.world.hub("Telemetry", partitions=3)
        reply = await read(client, "eventhub", name="telemetry")
        assert reply.properties["status-code"] == 200
        assert reply.body == {
            "name": "Telemetry",
            "type": "com.microsoft:eventhub",
            "created_at": Timestamp(hub.description.created_ms),
            "partition_count": 3,
            "partition_ids": Array.of(str, ["0", "1", "2"]),
            "georeplication_factor": 1,
        }


@in_virtual_time
async def test_a_partition_tells_where_its_log_begins_and_ends() -> None:
    async with open_hub_client() as client:
        hub = await client.world.hub()
        reply = await read(client, "partition", name="h", partition="1")
        assert reply.body == {
            "name": "h",
            "type": "com.microsoft:partition",
            "partition": "1",
            "begin_sequence_number": 0,
            "last_enqueued_sequence_number": -1,
            "last_enqueued_offset": "-1",
            "last_enqueued_time_utc": Timestamp(-62135596800000),
            "is_partition_empty": True,
        }
        appended = await append(hub.log(1), b"a", b"b")
        reply = await read(client, "partition", name="h", partition="1")
        assert (reply.body["last_enqueued_sequence_number"], reply.body["last_enqueued_offset"]) == (1, "1")
        assert reply.body["last_enqueued_time_utc"] == appended.enqueued_ms
        assert reply.body["is_partition_empty"] is False


@pytest.mark.parametrize(
    ("properties", "status"),
    [
        ({"operation": "READ", "type": "com.microsoft:eventhub", "name": "missing"}, 404),
        ({"operation": "READ", "type": "com.microsoft:eventhub"}, 404),
        ({"operation": "READ", "type": "com.microsoft:partition", "name": "h", "partition": "2"}, 400),
        ({"operation": "READ", "type": "com.microsoft:partition", "name": "h"}, 400),
        ({"operation": "WRITE", "type": "com.microsoft:eventhub", "name": "h"}, 501),
        ({}, 501),
    ],
)
def test_a_request_that_cannot_be_answered_has_a_status(properties: dict[str, str], status: int) -> None:
    @in_virtual_time
    async def check() -> None:
        async with open_hub_client() as client:
            await client.world.hub()
            assert (await client.ask(**properties)).properties["status-code"] == status

    check()


@pytest.mark.parametrize(
    ("rights", "status"), [([Right.SEND], 200), ([Right.LISTEN], 200), ([Right.MANAGE], 200), ([], 401)]
)
def test_any_right_lets_a_client_ask(rights: list[Right], status: int) -> None:
    @in_virtual_time
    async def check() -> None:
        async with open_hub_client() as client:
            await client.world.hub()
            other = HubClient(client.world, client.nodes, FakePeer(frozenset(rights)))
            reply = await read(other, "eventhub", name="h")
            assert reply.properties["status-code"] == status

    check()
