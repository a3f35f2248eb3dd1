"""The guide to messaging and its examples, run with the official clients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from tests.clients.messaging_programs import EXAMPLES, GUIDES, run_example, run_first_steps
from tests.clients.messaging_server import KEY, KEY_NAME, MessagingServer
from tests.support.commands import run_well
from tests.support.server import RunningServer, running_server

GUIDE = GUIDES / "messaging.md"
EXPECTED = {
    "workers": """\
done: 40 once each: True
dead letter broken.jpg: MaxDeliveryCountExceeded, deliveries: 3
dead letter notes.txt: not a picture, deliveries: 0
done: ['mended.jpg', 'notes.jpg']
""",
    "orders_in_sessions": """\
sessions handled by both workers: 6
order-0: placed paid packed shipped
order-1: placed paid packed shipped
""",
    "reminders": """\
sent three times: ['water the plants']
waiting: ['tomorrow', 'soon']
due: soon and not before its time: True
""",
    "fragments": """\
Bern: 1 fragment, in order: True
Oslo: 1 fragment, in order: True
Riga: 1 fragment, in order: True
anywhere: 16 fragments
""",
    "regions": """\
rules: ['by-amount']
large:
  a sofa [('amount', '1900'), ('priority', 'high')]
returns:
  a chair [('amount', '120'), ('region', 'us')]
archive:
  a chair [('amount', '120'), ('region', 'us')]
  a lamp [('amount', '90'), ('region', 'eu')]
  a sofa [('amount', '1900'), ('region', 'eu')]
  a table [('amount', '2900'), ('region', 'us')]
""",
}
TRANSFER = """\
aborted, bookings sent: 0
committed
attempts: 2 bookings: ['booking of ada', 'booking of bob']
"""
# A file of the vendor's emulator, as its users have them.
CONFIG = """\
{
  // The emulator's own example has comments, too.
  "UserConfig": {
    "Namespaces": [
      {
        "Name": "sbemulatorns",
        "Queues": [{"Name": "jobs", "Properties": {"MaxDeliveryCount": 5, "LockDuration": "PT1M"}}],
        "Topics": [
          {
            "Name": "news",
            "Properties": {},
            "Subscriptions": [
              {
                "Name": "eu",
                "Properties": {},
                "Rules": [
                  {
                    "Name": "region",
                    "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "region = 'eu'"}}
                  }
                ]
              }
            ]
          }
        ]
      }
    ],
    "Logging": {"Type": "File"}
  }
}
"""


@pytest.mark.parametrize("name", list(EXPECTED))
def test_an_example_does_what_it_says(name: str, server: RunningServer) -> None:
    assert (
        run_example(server, EXAMPLES / "messaging" / f"{name}.py", MessagingServer(server).connection_string())
        == EXPECTED[name]
    )


def test_the_first_steps_of_the_guide_run(messaging: MessagingServer) -> None:
    assert run_first_steps(messaging, GUIDE).startswith('{"id": 1}\n')


def test_a_transaction_does_what_the_example_says(server: RunningServer) -> None:
    address = f"amqp://{KEY_NAME}:{KEY}@127.0.0.1:{server.ports['amqp']}"
    assert run_example(server, EXAMPLES / "messaging" / "transfer.py", address) == TRANSFER


def test_senders_and_receivers_go_around_a_closed_fragment(server: RunningServer) -> None:
    """As the guide says; the state is shown until the fragment is opened again."""
    run_well(server, "bus", "create", "around", "--partitioned")
    with ServiceBusClient.from_connection_string(MessagingServer(server).connection_string()) as client:
        sender, receiver = client.get_queue_sender("around"), client.get_queue_receiver("around")
        run_well(server, "bus", "fragment", "around", "3", "close")
        sender.send_messages([ServiceBusMessage(str(number)) for number in range(8)])
        for number in range(8, 40):
            sender.send_messages(ServiceBusMessage(str(number)))
        states = {each["id"]: each["state"] for each in fragments(server, "around")}
        assert states == {**dict.fromkeys(range(16), "up"), 3: "closed"}
        texts: set[str] = set()
        while len(texts) < 40:
            for message in receiver.receive_messages(40, max_wait_time=60):
                assert message.sequence_number is not None
                assert message.sequence_number >> 48 != 3
                texts.add(str(message))
                receiver.complete_message(message)
        run_well(server, "bus", "fragment", "around", "3", "open")
        assert {each["state"] for each in fragments(server, "around")} == {"up"}


def fragments(server: RunningServer, queue: str) -> list[dict[str, object]]:
    return list(json.loads(run_well(server, "bus", "fragment", queue, "--format", "json"))["fragments"])


def test_a_file_of_the_emulator_makes_the_same_entities(tmp_path: Path) -> None:
    config = tmp_path / "Config.json"
    config.write_text(CONFIG, encoding="utf-8")
    with (
        running_server(tmp_path / "data", "--messaging-config", str(config), doors=("nosql", "amqp")) as server,
        ServiceBusClient.from_connection_string(MessagingServer(server).connection_string()) as client,
    ):
        with client.get_queue_sender("jobs") as sender:
            sender.send_messages(ServiceBusMessage("first"))
        with client.get_topic_sender("news") as sender:
            sender.send_messages(
                [ServiceBusMessage(name, application_properties={"region": name}) for name in ("eu", "us")]
            )
        with client.get_queue_receiver("jobs") as receiver:
            assert [str(message) for message in receiver.receive_messages(10, max_wait_time=60)] == ["first"]
        with client.get_subscription_receiver("news", "eu") as receiver:
            assert [str(message) for message in receiver.receive_messages(10, max_wait_time=60)] == ["eu"]


def test_the_guide_names_every_example() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    examples = {path.stem for path in (EXAMPLES / "messaging").glob("*.py")}
    assert examples == {*EXPECTED, "transfer"}
    assert all(f"(../../examples/messaging/{name}.py)" in guide for name in examples)
