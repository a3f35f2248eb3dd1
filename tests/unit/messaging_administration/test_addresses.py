"""Paths of entities, whose names have slashes too, and of resources of the resource manager."""

from __future__ import annotations

import pytest

from asterism.apis.amqp.administration.address import Address, Form, parse_address
from asterism.apis.amqp.administration.arm_resource import parse_resource
from asterism.errors import ResourceNotFound

KNOWN = {"topic", "a/subscriptions/b", "health/check"}


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/queue", Address(Form.ENTITY, "queue")),
        ("/txt/.-_123", Address(Form.ENTITY, "txt/.-_123")),
        ("/", Address(Form.ENTITY, "")),
        ("/$Resources/queues", Address(Form.QUEUES)),
        ("/$resources/Topics/", Address(Form.TOPICS)),
        ("/$namespaceinfo", Address(Form.NAMESPACE_INFO)),
        ("/health", Address(Form.HEALTH)),
        ("/topic/subscriptions", Address(Form.SUBSCRIPTIONS, "topic")),
        ("/topic/Subscriptions/s", Address(Form.SUBSCRIPTION, "topic", "s")),
        ("/topic/subscriptions/", Address(Form.SUBSCRIPTION, "topic", "")),
        ("/topic/subscriptions/s/rules", Address(Form.RULES, "topic", "s")),
        ("/topic/subscriptions/s/rules/$Default", Address(Form.RULE, "topic", "s", "$Default")),
        ("/my/topic/subscriptions/s", Address(Form.SUBSCRIPTION, "my/topic", "s")),
        # An entity of the whole name counts before a subscription.
        ("/a/subscriptions/b", Address(Form.ENTITY, "a/subscriptions/b")),
        ("/a/subscriptions/b/subscriptions/c", Address(Form.SUBSCRIPTION, "a/subscriptions/b", "c")),
    ],
)
def test_a_path_names_an_entity_or_a_part_of_it(path: str, address: Address) -> None:
    assert parse_address(path, lambda name: name.lower() in KNOWN) == address


_GROUP = "/subscriptions/0/resourceGroups/rg/providers"


def test_a_resource_has_types_and_names() -> None:
    resource = parse_resource(f"{_GROUP}/Microsoft.EventHub/namespaces/Ns/eventhubs/hub/consumergroups/g")
    assert resource.namespace == "ns"
    assert resource.types == ("eventhubs", "consumergroups")
    assert resource.names == ("hub", "g")
    assert resource.entity_path == "hub"
    assert resource.shown("g", {})["type"] == "Microsoft.EventHub/Namespaces/eventhubs/consumergroups"


def test_a_list_an_action_and_a_name_with_slashes_are_told_apart() -> None:
    queues = parse_resource(f"{_GROUP}/Microsoft.ServiceBus/namespaces/ns/queues")
    assert queues.is_list
    assert queues.shown("a/b", {})["id"].endswith("/queues/a~b")
    keys = parse_resource(f"{_GROUP}/Microsoft.ServiceBus/namespaces/ns/queues/a~b/authorizationRules/r/listKeys")
    assert (keys.action, keys.names, keys.is_list) == ("listkeys", ("a/b", "r"), False)
    named_so = parse_resource(f"{_GROUP}/Microsoft.ServiceBus/namespaces/ns/queues/listKeys")
    assert (named_so.action, named_so.names) == ("", ("listKeys",))


@pytest.mark.parametrize(
    "path",
    [
        "/subscriptions/0",
        f"{_GROUP}/Microsoft.Storage/namespaces/ns",
        f"{_GROUP}/Microsoft.ServiceBus/namespaces/ns/eventhubs/h",
        f"{_GROUP}/Microsoft.EventHub/namespaces/ns/queues/q",
    ],
)
def test_other_resources_do_not_exist(path: str) -> None:
    with pytest.raises(ResourceNotFound):
        parse_resource(path)
