"""Entities of Config.json, created where they are missing."""

from __future__ import annotations

import json
from typing import Any

from asterism.apis.amqp.administration.config_entities import create_configured_entities
from asterism.apis.amqp.administration.config_file import parse_config
from tests.unit.messaging_administration.door_at_hand import NAMESPACE, DoorAtHand, entry, run

CONFIG = {
    "Namespaces": [
        {
            "Name": "sbemulatorns",
            "Queues": [
                {"Name": "first", "Properties": {"ForwardTo": "later", "LockDuration": "PT30S"}},
                {"Name": "taken", "Properties": {"MaxDeliveryCount": 3}},
            ],
            "Topics": [
                {
                    "Name": "later",
                    "Subscriptions": [
                        {"Name": "all"},
                        {
                            "Name": "some",
                            "Properties": {"ForwardDeadLetteredMessagesTo": "first"},
                            "Rules": [{"Name": "r", "Properties": {"SqlFilter": {"SqlExpression": "a = 1"}}}],
                        },
                    ],
                }
            ],
        },
        {"Name": "second", "Queues": [{"Name": "elsewhere"}]},
    ],
    "NamespaceConfig": [
        {
            "Type": "EventHub",
            "Name": "emulatorNs1",
            "Entities": [{"Name": "eh1", "PartitionCount": "3", "ConsumerGroups": [{"Name": "cg1"}]}],
        }
    ],
}


async def create(door: DoorAtHand, config: dict[str, Any]) -> list[str]:
    parsed = parse_config(json.dumps({"UserConfig": config}), "Config.json")
    return list(await create_configured_entities(parsed, door.services, default_namespace=NAMESPACE))


def test_missing_entities_are_created_and_others_stay_as_they_are() -> None:
    async def test(door: DoorAtHand) -> None:
        await door.send("PUT", "taken", entry("QueueDescription", MaxDeliveryCount="7"))
        assert sorted(await create(door, CONFIG)) == ["1 hub", "1 topic", "2 queues", "2 subscriptions"]
        first = await door.send("GET", "first")
        assert first.text("ForwardTo") == "sb://asterism.servicebus.windows.net/later"
        assert first.text("LockDuration") == "PT30S"
        assert (await door.send("GET", "taken")).text("MaxDeliveryCount") == "7"
        assert (await door.send("GET", "later/subscriptions")).titles == ["all", "some"]
        assert (await door.send("GET", "later/subscriptions/all/rules")).titles == ["$Default"]
        assert (await door.send("GET", "later/subscriptions/some/rules")).titles == ["r"]
        hub = door.services.hubs.find(NAMESPACE, "eh1")
        assert hub is not None
        assert (hub.partition_count, sorted(hub.description.consumer_groups)) == (3, ["$default", "cg1"])

    run(test)


def test_a_namespace_of_the_server_gets_its_own_entities() -> None:
    async def test(door: DoorAtHand) -> None:
        await create(door, CONFIG)
        assert door.services.bus.find("second", "elsewhere") is not None
        assert door.services.bus.find(NAMESPACE, "elsewhere") is None

    run(test)


def test_the_next_start_creates_what_has_been_added() -> None:
    async def test(door: DoorAtHand) -> None:
        await create(door, CONFIG)
        assert await create(door, CONFIG) == []
        topic = {"Name": "later", "Subscriptions": [{"Name": "new"}]}
        assert await create(door, {"Namespaces": [{"Name": "n", "Topics": [topic]}]}) == ["1 subscription"]

    run(test)


def test_an_entity_of_another_kind_keeps_its_name() -> None:
    async def test(door: DoorAtHand) -> None:
        await door.send("PUT", "first", entry("TopicDescription"))
        assert sorted(await create(door, CONFIG)) == ["1 hub", "1 topic", "2 queues", "2 subscriptions"]
        assert door.services.bus.find(NAMESPACE, "first", "topic") is not None

    run(test)
