"""Messages that become visible later, and one whose receipt is kept to take it back."""

from __future__ import annotations

import sys

from azure.core.exceptions import ResourceExistsError
from azure.storage.queue import QueueServiceClient


def main(connection_string: str) -> None:
    service = QueueServiceClient.from_connection_string(connection_string)
    reminders = service.get_queue_client("reminders")
    try:
        reminders.create_queue()
    except ResourceExistsError:
        reminders.clear_messages()

    reminders.send_message("now")
    tomorrow = reminders.send_message("tomorrow", visibility_timeout=24 * 3600)
    canceled = reminders.send_message("canceled", visibility_timeout=24 * 3600)
    print("visible:", [message.content for message in reminders.peek_messages(32)])
    print("all:", reminders.get_queue_properties().approximate_message_count)

    # The receipt of a put is good for an update and a delete, as that of a get is.
    reminders.delete_message(canceled.id, canceled.pop_receipt)
    reminders.update_message(tomorrow.id, tomorrow.pop_receipt, visibility_timeout=0, content="tomorrow, early")
    print("visible:", [message.content for message in reminders.peek_messages(32)])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "UseDevelopmentStorage=true")
