"""Messages for later, one that is taken back, and a sender that repeats itself without doing harm.

Needs a queue:

    asterism bus create reminders --duplicates 600
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode

EMULATOR = (
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
)
QUEUE = "reminders"


def main(connection: str) -> None:
    client = ServiceBusClient.from_connection_string(connection)
    sender = client.get_queue_sender(QUEUE)
    receiver = client.get_queue_receiver(QUEUE, receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE)
    with client, sender, receiver:
        # A sender that got no answer sends again under the same id. The queue keeps ids for ten minutes.
        for _ in range(3):
            sender.send_messages(ServiceBusMessage("water the plants", message_id="plants-2026-11-20"))
        print("sent three times:", [str(message) for message in receiver.peek_messages(10)])
        receiver.receive_messages()

        tomorrow = datetime.now(UTC) + timedelta(days=1)
        soon = datetime.now(UTC) + timedelta(seconds=2)
        (canceled,) = sender.schedule_messages(ServiceBusMessage("canceled"), tomorrow)
        sender.schedule_messages([ServiceBusMessage("tomorrow")], tomorrow)
        sender.schedule_messages([ServiceBusMessage("soon")], soon)
        # The number of a scheduled message is enough to take it back.
        sender.cancel_scheduled_messages(canceled)
        # A peek shows messages that are not due yet, too.
        print("waiting:", [str(message) for message in receiver.peek_messages(10)])
        (message,) = receiver.receive_messages(max_wait_time=60)
        print("due:", message, "and not before its time:", datetime.now(UTC) >= soon)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else EMULATOR)
