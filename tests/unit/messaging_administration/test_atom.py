"""Queues, topics, subscriptions and rules in Atom."""

from __future__ import annotations

import re

import pytest

from asterism.apis.amqp.administration.properties import QUEUE, SUBSCRIPTION, TOPIC, Property
from tests.unit.messaging_administration.door_at_hand import (
    CONNECT,
    HOST,
    DoorAtHand,
    Reply,
    entry,
    entry_of,
    run,
)

QUEUE_ENTRY = entry("QueueDescription")
TOPIC_ENTRY = entry("TopicDescription")
UNLIMITED = "P10675199DT2H48M5.4775807S"


def names_of(table: tuple[Property, ...], *, without: tuple[str, ...] = ()) -> list[str]:
    return [row.name for row in table if row.name not in without]


def elements_of(reply: Reply, description: str) -> list[str]:
    found = reply.xml.find(f".//{CONNECT}{description}")
    assert found is not None
    return [element.tag.removeprefix(CONNECT) for element in found]


def test_a_queue_has_the_defaults_of_the_service_in_its_order() -> None:
    async def test(door: DoorAtHand) -> None:
        created = await door.send("PUT", "Orders", QUEUE_ENTRY)
        assert created.status == 201
        assert created.headers["content-type"] == "application/atom+xml;type=entry;charset=utf-8"
        shown = await door.send("GET", "orders")
        assert shown.status == 200
        unset = ("ForwardTo", "UserMetadata", "ForwardDeadLetteredMessagesTo")
        assert elements_of(shown, "QueueDescription") == names_of(QUEUE, without=unset)
        assert shown.xml.findtext("{*}title") == "Orders"
        expected = {
            "LockDuration": "PT1M",
            "MaxSizeInMegabytes": "1024",
            "RequiresSession": "false",
            "DefaultMessageTimeToLive": UNLIMITED,
            "DuplicateDetectionHistoryTimeWindow": "PT10M",
            "MaxDeliveryCount": "10",
            "EnableBatchedOperations": "true",
            "Status": "Active",
            "AutoDeleteOnIdle": UNLIMITED,
            "EntityAvailabilityStatus": "Available",
            "MessageCount": "0",
            "SupportOrdering": "true",
            "MaxMessageSizeInKilobytes": "256",
        }
        assert {name: shown.text(name) for name in expected} == expected

    run(test)


def test_a_topic_and_a_subscription_have_their_elements_in_order() -> None:
    async def test(door: DoorAtHand) -> None:
        topic = await door.send("PUT", "t", TOPIC_ENTRY)
        assert elements_of(topic, "TopicDescription") == names_of(TOPIC, without=("UserMetadata",))
        older = await door.send("GET", "t", query="api-version=2017-04")
        newer = ("UserMetadata", "SqlFilterCount", "CorrelationFilterCount", "MaxMessageSizeInKilobytes")
        assert elements_of(older, "TopicDescription") == names_of(TOPIC, without=newer)
        subscription = await door.send("PUT", "t/subscriptions/s", entry("SubscriptionDescription"))
        assert subscription.status == 201
        unset = ("ForwardTo", "ForwardDeadLetteredMessagesTo", "UserMetadata")
        assert elements_of(subscription, "SubscriptionDescription") == names_of(SUBSCRIPTION, without=unset)
        counted = await door.send("GET", "t")
        assert [counted.text(name) for name in ("SubscriptionCount", "SqlFilterCount", "CorrelationFilterCount")] == [
            "1",
            "1",
            "0",
        ]

    run(test)


def test_settings_are_kept_and_changed() -> None:
    async def test(door: DoorAtHand) -> None:
        await door.send("PUT", "target", QUEUE_ENTRY)
        given = {
            "LockDuration": "PT13S",
            "MaxSizeInMegabytes": "3072",
            "RequiresSession": "true",
            "DefaultMessageTimeToLive": "PT11M2S",
            "MaxDeliveryCount": "14",
            "Status": "SendDisabled",
            "AutoDeleteOnIdle": "PT10M1S",
            "EnablePartitioning": "true",
            "UserMetadata": "a &lt; b",
        }
        forwards = {
            "ForwardTo": f"sb://{HOST}/target",
            "ForwardDeadLetteredMessagesTo": "target",
        }
        shown = await door.send("PUT", "q", entry("QueueDescription", **given, **forwards))
        expected = {**given, "UserMetadata": "a < b", **dict.fromkeys(forwards, f"sb://{HOST}/target")}
        assert {name: shown.text(name) for name in expected} == expected
        changed = await door.update("q", entry("QueueDescription", LockDuration="PT30S"))
        assert changed.status == 200
        assert (changed.text("LockDuration"), changed.text("MaxDeliveryCount")) == ("PT30S", "14")
        # A description without them takes these away; the SDK leaves them out when they are None.
        assert [changed.text(name) for name in (*forwards, "UserMetadata")] == [None, None, None]

    run(test)


def test_an_entity_that_does_not_exist_is_an_empty_feed() -> None:
    async def test(door: DoorAtHand) -> None:
        reply = await door.send("GET", "missing")
        assert reply.status == 200
        assert reply.xml.tag.endswith("feed")
        assert reply.titles == []
        for method, path in (
            ("DELETE", "missing"),
            ("GET", "missing/subscriptions"),
            ("GET", "missing/subscriptions/s"),
        ):
            assert (await door.send(method, path)).status == 404
        missing = await door.update("missing", QUEUE_ENTRY)
        assert missing.detail == "SubCode=40400. The entity 'missing' could not be found."

    run(test)


def test_an_entity_is_created_once_and_deleted_once() -> None:
    async def test(door: DoorAtHand) -> None:
        assert (await door.send("PUT", "a", QUEUE_ENTRY)).status == 201
        for taken in (QUEUE_ENTRY, TOPIC_ENTRY):
            again = await door.send("PUT", "A", taken)
            assert (again.status, again.detail[:14]) == (409, "SubCode=40900.")
        assert (await door.send("DELETE", "a")).status == 200
        assert (await door.send("DELETE", "a")).status == 404
        assert (await door.send("PUT", "a", TOPIC_ENTRY)).status == 201

    run(test)


def test_names_have_slashes() -> None:
    async def test(door: DoorAtHand) -> None:
        for name in ("txt/.-_123", "a", "a/b"):
            assert (await door.send("PUT", name, QUEUE_ENTRY)).status == 201
        await door.send("PUT", "my/topic", TOPIC_ENTRY)
        created = await door.send("PUT", "my/topic/subscriptions/s", entry("SubscriptionDescription"))
        assert created.xml.findtext("{*}title") == "s"
        # The body tells that this is not a subscription.
        assert (await door.send("PUT", "x/subscriptions/y", QUEUE_ENTRY)).status == 201
        assert (await door.send("GET", "x/subscriptions/y")).text("LockDuration") == "PT1M"
        listed = await door.send("GET", "$Resources/queues")
        assert listed.titles == ["a", "a/b", "txt/.-_123", "x/subscriptions/y"]
        assert (await door.send("DELETE", "x/subscriptions/y")).status == 200

    run(test)


def test_lists_have_pages_with_a_link_to_the_next() -> None:
    async def test(door: DoorAtHand) -> None:
        for number in range(5):
            await door.send("PUT", f"q{number}", QUEUE_ENTRY)
        await door.send("PUT", "t", TOPIC_ENTRY)
        first = await door.send("GET", "$Resources/queues", query="$skip=1&$top=2&api-version=2021-05")
        assert first.titles == ["q1", "q2"]
        links = [link.get("href") for link in first.xml.findall("{*}link")]
        assert links[1:] == [f"https://{HOST}:5300/%24Resources/queues?$skip=3&$top=2&api-version=2021-05"]
        last = await door.send("GET", "$Resources/queues", query="$skip=3&$top=2")
        assert (last.titles, len(last.xml.findall("{*}link"))) == (["q3", "q4"], 1)
        assert (await door.send("GET", "$Resources/topics")).titles == ["t"]
        for query in ("$skip=-1", "$top=x", "$top=99999999999"):
            assert (await door.send("GET", "$Resources/queues", query=query)).status == 400

    run(test)


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("", {}),
        ("a b", {}),
        ("-a", {}),
        ("a/", {"Status": "x"}),
        ("a" * 261, {}),
        ("a//b", {}),
        ("q", {"LockDuration": "PT6M"}),
        ("q", {"LockDuration": "PT0S"}),
        ("q", {"LockDuration": "soon"}),
        ("q", {"LockDuration": UNLIMITED}),
        ("q", {"MaxDeliveryCount": "0"}),
        ("q", {"MaxDeliveryCount": "2001"}),
        ("q", {"MaxDeliveryCount": "ten"}),
        ("q", {"AutoDeleteOnIdle": "PT4M59S"}),
        ("q", {"DuplicateDetectionHistoryTimeWindow": "PT19S"}),
        ("q", {"DuplicateDetectionHistoryTimeWindow": "P8D"}),
        ("q", {"DefaultMessageTimeToLive": "PT0S"}),
        ("q", {"MaxSizeInMegabytes": "0"}),
        ("q", {"MaxSizeInMegabytes": "81921"}),
        ("q", {"MaxMessageSizeInKilobytes": "1024"}),
        ("q", {"ForwardTo": "missing"}),
        ("q", {"ForwardDeadLetteredMessagesTo": f"sb://{HOST}/missing"}),
        ("q", {"Status": "Sleeping"}),
        ("q", {"RequiresSession": "perhaps"}),
        ("q", {"UserMetadata": "x" * 1025}),
        ("q", {"EnableExpress": "true", "RequiresDuplicateDetection": "true"}),
    ],
)
def test_a_bad_name_or_setting_is_refused(name: str, properties: dict[str, str]) -> None:
    async def test(door: DoorAtHand) -> None:
        refused = await door.send("PUT", name, entry("QueueDescription", **properties))
        assert refused.status == 400
        assert re.fullmatch(r"SubCode=40000\. .+\.", refused.detail)
        assert (await door.send("GET", "$Resources/queues")).titles == []

    run(test)


@pytest.mark.parametrize("property", ["RequiresSession", "EnablePartitioning", "RequiresDuplicateDetection"])
def test_settings_that_are_fixed_at_creation_cannot_change(property: str) -> None:
    async def test(door: DoorAtHand) -> None:
        await door.send("PUT", "q", QUEUE_ENTRY)
        assert (await door.update("q", entry("QueueDescription", **{property: "false"}))).status == 200
        refused = await door.update("q", entry("QueueDescription", **{property: "true"}))
        assert (refused.status, property in refused.detail) == (400, True)

    run(test)


def test_the_size_of_messages_needs_a_newer_interface() -> None:
    async def test(door: DoorAtHand) -> None:
        body = entry("QueueDescription", MaxMessageSizeInKilobytes="100")
        assert (await door.send("PUT", "q", body, query="api-version=2017-04")).status == 400
        assert (await door.send("PUT", "q", body, query="api-version=2021-05")).status == 201

    run(test)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"<entry/>",
        b"<feed/>",
        entry("Nonsense"),
        entry_of("SubscriptionDescription", ""),
        b'<!DOCTYPE a [<!ENTITY b "c">]><entry/>',
        entry_of("QueueDescription", "<AuthorizationRules><AuthorizationRule/></AuthorizationRules>"),
    ],
)
def test_a_body_that_does_not_describe_an_entity_is_refused(body: bytes) -> None:
    async def test(door: DoorAtHand) -> None:
        assert (await door.send("PUT", "q", body)).status == 400

    run(test)


def test_authorization_rules_of_an_entity_come_back_with_their_keys() -> None:
    rule = (
        '<AuthorizationRules><AuthorizationRule i:type="SharedAccessAuthorizationRule"><ClaimType>SharedAccessKey'
        "</ClaimType><ClaimValue>None</ClaimValue><Rights><AccessRights>Listen</AccessRights></Rights><KeyName>reader"
        "</KeyName><PrimaryKey>one&amp;two</PrimaryKey></AuthorizationRule></AuthorizationRules>"
    )

    async def test(door: DoorAtHand) -> None:
        created = await door.send("PUT", "q", entry_of("QueueDescription", rule))
        assert [created.text(name) for name in ("KeyName", "AccessRights", "PrimaryKey")] == [
            "reader",
            "Listen",
            "one&two",
        ]
        assert created.text("SecondaryKey")
        kept = await door.update("q", QUEUE_ENTRY)
        assert kept.text("KeyName") == "reader"
        cleared = await door.update("q", entry_of("QueueDescription", "<AuthorizationRules />"))
        assert cleared.text("KeyName") is None

    run(test)


def test_quotas_of_a_namespace_are_kept() -> None:
    async def test(door: DoorAtHand) -> None:
        partitioned = entry("QueueDescription", EnablePartitioning="true")
        assert (await door.send("PUT", "a", partitioned)).status == 201
        full = await door.send("PUT", "b", partitioned)
        assert (full.status, full.detail[:14]) == (403, "SubCode=40300.")
        assert (await door.send("PUT", "b", QUEUE_ENTRY)).status == 201
        assert (await door.send("PUT", "c", TOPIC_ENTRY)).status == 403

    run(test, bus_entities_max=2, bus_partitioned_entities_max=1)


def test_partitioned_entities_may_be_kept_from_deleting_themselves() -> None:
    body = entry("QueueDescription", EnablePartitioning="true", AutoDeleteOnIdle="PT10M")

    async def allowed(door: DoorAtHand) -> None:
        assert (await door.send("PUT", "q", body)).status == 201

    async def refused(door: DoorAtHand) -> None:
        assert (await door.send("PUT", "q", body)).status == 400

    run(allowed)
    run(refused, partitioned_auto_delete_refused=True)


def test_the_namespace_describes_itself() -> None:
    async def test(door: DoorAtHand) -> None:
        shown = await door.send("GET", "$namespaceinfo")
        assert (shown.text("MessagingSKU"), shown.text("Name")) == ("Standard", "asterism")

    run(test)


def test_a_method_that_an_address_does_not_have_is_refused() -> None:
    async def test(door: DoorAtHand) -> None:
        for method, path in (("POST", "q"), ("DELETE", "$Resources/queues"), ("PUT", "t/subscriptions")):
            assert (await door.send(method, path)).status == 400

    run(test)
