"""Administration of Service Bus through the official clients for Python, and entities of the emulators' Config.json."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.servicebus.aio.management import ServiceBusAdministrationClient as AsyncAdministrationClient
from azure.servicebus.management import (
    CorrelationRuleFilter,
    ServiceBusAdministrationClient,
    SqlRuleAction,
    SqlRuleFilter,
    TrueRuleFilter,
)

from tests.clients.messaging_server import MessagingServer
from tests.support.server import refused_start, running_server


@pytest.fixture
def administration(messaging: MessagingServer) -> Iterator[ServiceBusAdministrationClient]:
    with messaging.administration() as client:
        yield client


def new_name() -> str:
    return f"admin/{uuid.uuid4()}"


def test_a_queue_keeps_its_settings(administration: ServiceBusAdministrationClient) -> None:
    name = new_name()
    administration.create_queue(
        name,
        lock_duration=timedelta(seconds=13),
        default_message_time_to_live="PT11M",
        max_delivery_count=14,
        requires_session=True,
        enable_partitioning=True,
        user_metadata="<&>",
    )
    queue = administration.get_queue(name)
    assert (queue.name, queue.lock_duration, queue.max_delivery_count) == (name, timedelta(seconds=13), 14)
    assert (queue.default_message_time_to_live, queue.user_metadata) == (timedelta(minutes=11), "<&>")
    queue.lock_duration = timedelta(minutes=5)
    queue.status = "SendDisabled"
    administration.update_queue(queue)
    changed = administration.get_queue(name)
    assert (changed.lock_duration, changed.status, changed.requires_session) == (
        timedelta(minutes=5),
        "SendDisabled",
        True,
    )
    runtime = administration.get_queue_runtime_properties(name)
    assert (runtime.active_message_count, runtime.total_message_count) == (0, 0)
    administration.delete_queue(name)
    with pytest.raises(ResourceNotFoundError):
        administration.get_queue(name)


def test_lists_have_many_pages(administration: ServiceBusAdministrationClient) -> None:
    names = {new_name() for _ in range(5)}
    for name in names:
        administration.create_queue(name)
    pages = administration.list_queues(max_page_size=2)
    listed = [queue.name for queue in pages]
    assert names <= set(listed)
    assert len(listed) == len(set(listed))


def test_refusals_are_the_exceptions_that_programs_catch(administration: ServiceBusAdministrationClient) -> None:
    name = new_name()
    administration.create_topic(name)
    with pytest.raises(ResourceExistsError):
        administration.create_queue(name)
    with pytest.raises(ResourceNotFoundError):
        administration.delete_queue(new_name())
    with pytest.raises(HttpResponseError, match="LockDuration is between"):
        administration.create_queue(new_name(), lock_duration=timedelta(minutes=6))
    gone = administration.create_queue(new_name())
    administration.delete_queue(gone.name)
    with pytest.raises(ResourceNotFoundError):
        administration.update_queue(gone)


def test_rules_come_back_with_the_types_of_their_values(administration: ServiceBusAdministrationClient) -> None:
    topic = new_name()
    administration.create_topic(topic)
    administration.create_subscription(topic, "s")
    values: dict[str, str | int | float | bool | datetime | timedelta] = {
        "text": "a",
        "int": 2,
        "long": 2**40,
        "flag": False,
        "at": datetime(2020, 7, 5, 11, 12, 13),
        "for": timedelta(days=1, hours=2),
    }
    administration.create_rule(
        topic,
        "s",
        "correlation",
        filter=CorrelationRuleFilter(correlation_id="c", properties=values),
        action=SqlRuleAction("SET a = @param", parameters={"@param": 5}),
    )
    administration.create_rule(topic, "s", "sql", filter=SqlRuleFilter("a = @x", parameters={"@x": "y"}))
    correlation = administration.get_rule(topic, "s", "correlation")
    assert isinstance(correlation.filter, CorrelationRuleFilter)
    assert correlation.filter.properties == values
    assert correlation.action is not None
    assert (correlation.action.sql_expression, correlation.action.parameters) == ("SET a = @param", {"@param": 5})
    rules = list(administration.list_rules(topic, "s"))
    assert [rule.name for rule in rules] == ["$Default", "correlation", "sql"]
    assert isinstance(rules[0].filter, TrueRuleFilter)
    with pytest.raises(HttpResponseError, match="See character 5 of the expression"):
        administration.create_rule(topic, "s", "bad", filter=SqlRuleFilter("a = "))
    runtime = administration.get_topic_runtime_properties(topic)
    assert (runtime.subscription_count, runtime.sql_filter_count, runtime.correlation_filter_count) == (1, 2, 1)


def test_the_asynchronous_client_administers_too(messaging: MessagingServer) -> None:
    async def steps() -> None:
        client = AsyncAdministrationClient.from_connection_string(
            messaging.administration_string, connection_verify=False
        )
        async with client:
            topic = new_name()
            await client.create_topic(topic, max_size_in_megabytes=2048)
            for name in ("one", "two"):
                await client.create_subscription(topic, name, forward_to=topic)
            assert [each.name async for each in client.list_subscriptions(topic)] == ["one", "two"]
            subscription = await client.get_subscription(topic, "one")
            assert str(subscription.forward_to).endswith(f"/{topic}")
            await client.delete_subscription(topic, "two")
            assert [each.name async for each in client.list_subscriptions_runtime_properties(topic)] == ["one"]
            assert (await client.get_namespace_properties()).messaging_sku == "Standard"
            await client.delete_topic(topic)

    asyncio.run(steps())


def test_a_wrong_key_is_refused(messaging: MessagingServer) -> None:
    wrong = messaging.administration_string.replace("SAS_KEY_VALUE", "another")
    with (
        ServiceBusAdministrationClient.from_connection_string(wrong, connection_verify=False) as client,
        pytest.raises(HttpResponseError, match="not made with a key of its rule"),
    ):
        client.create_queue(new_name())


CONFIG = {
    "UserConfig": {
        "Namespaces": [
            {
                "Name": "sbemulatorns",
                "Queues": [{"Name": "queue.1", "Properties": {"MaxDeliveryCount": 3, "LockDuration": "PT1M"}}],
                "Topics": [
                    {
                        "Name": "topic.1",
                        "Subscriptions": [
                            {
                                "Name": "subscription.1",
                                "Rules": [{"Name": "r", "Properties": {"SqlFilter": {"SqlExpression": "a = 1"}}}],
                            }
                        ],
                    }
                ],
            }
        ]
    }
}


def test_the_entities_of_a_config_file_are_there_after_the_start(tmp_path: Path) -> None:
    file = tmp_path / "Config.json"
    file.write_text(json.dumps(CONFIG))
    options = ("--messaging-config", str(file))
    with (
        running_server(tmp_path / "data", *options, doors=("nosql", "amqp")) as server,
        MessagingServer(server).administration() as client,
    ):
        assert client.get_queue("queue.1").max_delivery_count == 3
        (rule,) = client.list_rules("topic.1", "subscription.1")
        assert isinstance(rule.filter, SqlRuleFilter)
        assert rule.filter.sql_expression == "a = 1"


def test_a_wrong_config_file_refuses_the_start_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "Config.json"
    file.write_text('{"UserConfig": {"Namespaces": [{"Name": "n", "Queues": [{"Name": "a b"}]}]}}')
    assert "UserConfig.Namespaces[0].Queues[0]: 'a b' cannot be the name of an entity" in refused_start(
        tmp_path / "data", "--messaging-config", str(file)
    )
