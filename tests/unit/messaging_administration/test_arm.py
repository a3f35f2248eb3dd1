"""Hubs, queues and topics in the form of the resource manager."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.messaging_administration.door_at_hand import DoorAtHand, bearer, run


def test_hubs_and_consumer_groups_are_created_shown_and_deleted() -> None:
    async def test(door: DoorAtHand) -> None:
        created = await door.arm(
            "PUT", "eventhubs/Telemetry", {"partitionCount": 2, "messageRetentionInDays": 1}, authorization=bearer()
        )
        assert created.status == 200
        shown = (await door.arm("GET", "eventhubs/telemetry")).json
        assert shown["type"] == "Microsoft.EventHub/Namespaces/eventhubs"
        assert shown["name"] == "Telemetry"
        properties = shown["properties"]
        assert [
            properties[name] for name in ("partitionCount", "partitionIds", "messageRetentionInDays", "status")
        ] == [
            2,
            ["0", "1"],
            1,
            "Active",
        ]
        changed = await door.arm("PUT", "eventhubs/telemetry", {"messageRetentionInDays": 7})
        assert changed.json["properties"]["retentionDescription"]["retentionTimeInHours"] == 168
        changed = await door.arm("PUT", "eventhubs/telemetry", {"throughputUnits": 2})
        assert changed.json["properties"]["throughputUnits"] == 2
        changed = await door.arm("PUT", "eventhubs/telemetry", {"throughputUnits": None})
        assert "throughputUnits" not in changed.json["properties"]
        for _ in range(2):
            group = await door.arm("PUT", "eventhubs/telemetry/consumergroups/Readers", {"userMetadata": "m"})
            assert group.json["properties"]["userMetadata"] == "m"
        groups = (await door.arm("GET", "eventhubs/telemetry/consumergroups")).json["value"]
        assert [each["name"] for each in groups] == ["$Default", "Readers"]
        assert (await door.arm("DELETE", "eventhubs/telemetry/consumergroups/readers")).status == 200
        assert (await door.arm("GET", "eventhubs/telemetry/consumergroups/readers")).status == 404
        assert [each["name"] for each in (await door.arm("GET", "eventhubs")).json["value"]] == ["Telemetry"]
        assert (await door.arm("DELETE", "eventhubs/telemetry")).status == 200
        assert (await door.arm("GET", "eventhubs/telemetry")).status == 404

    run(test)


def test_a_hub_has_shared_access_rules() -> None:
    async def test(door: DoorAtHand) -> None:
        await door.arm("PUT", "eventhubs/h", {})
        assert (await door.arm("PUT", "eventhubs/h/authorizationRules/r", {"rights": ["Listen"]})).status == 200
        assert (await door.arm("POST", "eventhubs/h/authorizationRules/r/listKeys")).json["keyName"] == "r"
        rules = await door.services.rules.applying_to("asterism", "h/ConsumerGroups/$Default/Partitions/0")
        assert sorted(rules) == ["RootManageSharedAccessKey", "r"]
        assert (await door.arm("DELETE", "eventhubs/h/authorizationRules/r")).status == 200
        assert (await door.arm("GET", "eventhubs/h/authorizationRules")).json == {"value": []}

    run(test)


def test_queues_topics_subscriptions_and_rules_are_resources_too() -> None:
    async def test(door: DoorAtHand) -> None:
        queue = await door.arm("PUT", "queues/a~b", {"lockDuration": "PT30S", "requiresSession": True})
        assert (queue.status, queue.json["name"]) == (200, "a~b")
        assert queue.json["properties"]["lockDuration"] == "PT30S"
        assert queue.json["properties"]["countDetails"]["activeMessageCount"] == 0
        changed = (await door.arm("PUT", "queues/a~b", {"maxDeliveryCount": 3})).json["properties"]
        assert (changed["maxDeliveryCount"], changed["lockDuration"]) == (3, "PT30S")
        await door.arm("PUT", "topics/t", {})
        await door.arm("PUT", "topics/t/subscriptions/s", {"forwardTo": "a/b"})
        subscription = (await door.arm("GET", "topics/t/subscriptions/s")).json["properties"]
        assert subscription["forwardTo"] == "a/b"
        filters: list[dict[str, Any]] = [
            {"filterType": "SqlFilter", "sqlFilter": {"sqlExpression": "a = 1", "compatibilityLevel": 20}},
            {"filterType": "CorrelationFilter", "correlationFilter": {"label": "l", "properties": {"n": 1, "b": True}}},
        ]
        for number, wanted in enumerate(filters):
            made = (await door.arm("PUT", f"topics/t/subscriptions/s/rules/r{number}", wanted)).json["properties"]
            assert {name: made[name] for name in wanted} == wanted
        listed = (await door.arm("GET", "topics/t/subscriptions/s/rules")).json["value"]
        assert [rule["name"] for rule in listed] == ["$Default", "r0", "r1"]
        for resource in ("topics/t/subscriptions/s/rules/r0", "topics/t/subscriptions/s", "topics/t", "queues/a~b"):
            assert (await door.arm("DELETE", resource)).status == 200
            assert (await door.arm("GET", resource)).status == 404

    run(test)


@pytest.mark.parametrize(
    ("resource", "properties"),
    [
        ("eventhubs/h", {"partitionCount": 0}),
        ("eventhubs/h", {"partitionCount": 33}),
        ("eventhubs/h", {"partitionCount": "2"}),
        ("eventhubs/h", {"messageRetentionInDays": 1000}),
        ("eventhubs/h", {"status": "Sleeping"}),
        ("eventhubs/h", {"userMetadata": 5}),
        ("eventhubs/-", {}),
        ("queues/q", {"lockDuration": 60}),
        ("queues/q", {"lockDuration": "PT6M"}),
        ("queues/q", {"maxDeliveryCount": True}),
        ("queues/a b", {}),
        ("queues/q", []),
    ],
)
def test_a_bad_property_is_refused(resource: str, properties: object) -> None:
    async def test(door: DoorAtHand) -> None:
        refused = await door.arm("PUT", resource, properties)
        assert refused.status == 400
        assert refused.json["error"]["message"]

    run(test)


def test_the_number_of_partitions_is_fixed() -> None:
    async def test(door: DoorAtHand) -> None:
        await door.arm("PUT", "eventhubs/h", {"partitionCount": 2})
        assert (await door.arm("PUT", "eventhubs/h", {"partitionCount": 3})).status == 400
        assert (await door.arm("PUT", "eventhubs/h", {"partitionCount": 2})).status == 200

    run(test)


def test_unknown_resources_methods_and_namespaces_are_refused() -> None:
    async def test(door: DoorAtHand) -> None:
        assert (await door.arm("GET", "")).json["sku"]["name"] == "Standard"
        assert (await door.arm("GET", "topics/t/queues/q")).status == 404
        assert (await door.arm("POST", "queues/q")).status == 400
        assert (await door.arm("PUT", "queues/q", body=b"{")).status == 400
        elsewhere = "subscriptions/0/resourceGroups/g/providers/Microsoft.ServiceBus/namespaces/nowhere/queues/q"
        assert (await door.send("GET", elsewhere)).json["error"]["code"] == "NotFound"
        assert (await door.arm("GET", "queues", authorization=None)).status == 401

    run(test)
