"""A topic whose subscriptions take what their rules say, one of which forwards all it takes to a queue.

Makes its entities by itself, with the administration client. That client always speaks TLS.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from azure.core.exceptions import ResourceNotFoundError
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiver
from azure.servicebus.management import (
    CorrelationRuleFilter,
    ServiceBusAdministrationClient,
    SqlRuleAction,
    SqlRuleFilter,
    TrueRuleFilter,
)

EMULATOR = (
    "Endpoint=sb://localhost:5672;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
)
TOPIC, QUEUE = "sales", "archive"
IDLE_SECONDS = 2


def create_entities(administration: ServiceBusAdministrationClient) -> None:
    with suppress(ResourceNotFoundError):
        administration.delete_topic(TOPIC)
    with suppress(ResourceNotFoundError):
        administration.delete_queue(QUEUE)
    administration.create_queue(QUEUE)
    administration.create_topic(TOPIC)

    # A subscription is made with a rule that takes everything, $Default; here others take its place.
    administration.create_subscription(TOPIC, "large")
    administration.delete_rule(TOPIC, "large", "$Default")
    # SQL: properties of the message, and `sys.` for its system properties. The action changes the copy that enters.
    administration.create_rule(
        TOPIC,
        "large",
        "by-amount",
        filter=SqlRuleFilter("region = 'eu' AND amount >= @limit", parameters={"@limit": 1000}),
        action=SqlRuleAction("SET priority = 'high'; REMOVE region"),
    )

    administration.create_subscription(TOPIC, "returns")
    administration.delete_rule(TOPIC, "returns", "$Default")
    # A correlation filter compares for equality only, and is found by its values: hundreds of them cost little.
    administration.create_rule(TOPIC, "returns", "by-label", filter=CorrelationRuleFilter(label="return"))

    # This one has no receivers: all it takes goes on to the queue.
    administration.create_subscription(TOPIC, "everything", forward_to=QUEUE)
    print("rules:", [rule.name for rule in administration.list_rules(TOPIC, "large")])
    assert isinstance(administration.get_rule(TOPIC, "everything", "$Default").filter, TrueRuleFilter)


def take(receiver: ServiceBusReceiver, count: int) -> list[str]:
    """Return all that is there, which is so many messages: they are awaited, and no further one follows."""
    texts: list[str] = []
    with receiver:
        while len(texts) < count:
            for message in receiver.receive_messages(count, max_wait_time=60):
                properties = message.application_properties or {}
                texts.append(f"{message} {sorted((_text(key), _text(value)) for key, value in properties.items())}")
                receiver.complete_message(message)
        if receiver.receive_messages(max_wait_time=IDLE_SECONDS):
            raise ValueError("a message that no rule has let in")
    return sorted(texts)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def main(connection: str) -> None:
    # The certificate is the server's own. Beyond your own machine, copy it from the data directory (`tls`) and give its
    # path in the place of False.
    with ServiceBusAdministrationClient.from_connection_string(connection, connection_verify=False) as administration:
        create_entities(administration)
    with ServiceBusClient.from_connection_string(connection) as client:
        with client.get_topic_sender(TOPIC) as sender:
            for text, label, region, amount in (
                ("a lamp", "sale", "eu", 90),
                ("a sofa", "sale", "eu", 1900),
                ("a table", "sale", "us", 2900),
                ("a chair", "return", "us", 120),
            ):
                message = ServiceBusMessage(text, subject=label)
                message.application_properties = {"region": region, "amount": amount}
                sender.send_messages(message)
        print("large:", *take(client.get_subscription_receiver(TOPIC, "large"), 1), sep="\n  ")
        print("returns:", *take(client.get_subscription_receiver(TOPIC, "returns"), 1), sep="\n  ")
        print("archive:", *take(client.get_queue_receiver(QUEUE), 4), sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else EMULATOR)
